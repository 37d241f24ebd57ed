"""Configuration of the network, and components that refuse what can't be built."""

import pytest

from hdl.config import ConfigurationError
from hdl.ports import COLUMN_BYTES
from noc.config import NetworkConfig
from noc.network import Network
from noc.node.node import Node
from noc.packet import request_header


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": 0}, "columns must be a whole number from 1 to 16, not 0"),
        ({"rows": 17}, "rows must be a whole number from 1 to 16, not 17"),
        ({"rows": True}, "rows must be a whole number from 1 to 16, not True"),
        ({"address_bits": 9}, "address_bits must be a whole number from 10 to 40, not 9"),
        ({"address_bits": 36}, "address_bits must be at most 35 with 8 x 4 vaults"),
        ({"tag_bits": 9}, "tag_bits must be a whole number from 1 to 8, not 9"),
        ({"packet_bytes": 48}, "packet_bytes must be a power of two from 32 to 256, not 48"),
        ({"buffer_flits": 12}, "buffer_flits must be a power of two from 8 to 64, not 12"),
        ({"packet_bytes": 64}, "buffer_flits must be at least 10, a packet of 64 bytes"),
        ({"counters": 1}, "counters must be True or False, not 1"),
        ({"sram": "flops"}, "sram must be one of behavioural, fpga, macro, not 'flops'"),
    ],
)
def test_bad_values_are_refused_by_name(change, message):
    with pytest.raises(ConfigurationError, match=message.replace("(", r"\(")):
        NetworkConfig(**change)


@pytest.mark.parametrize(
    ("columns", "rows", "vault_bits", "channels"),
    [(1, 1, 0, 2), (3, 3, 4, 2), (4, 4, 4, 2), (8, 4, 5, 4), (1, 5, 3, 4)],
)
def test_widths_follow_from_the_size(columns, rows, vault_bits, channels):
    config = NetworkConfig(columns=columns, rows=rows)
    assert config.vaults == columns * rows
    assert config.vault_bits == vault_bits
    assert config.chip_address_bits == 28 + vault_bits
    assert config.channels == channels
    assert config.packet_flits == 2 + COLUMN_BYTES // 8


@pytest.mark.parametrize(("columns", "rows"), [(16, 16), (9, 9), (16, 1), (2, 1)])
def test_the_widest_header_fits_into_a_flit(columns, rows):
    bits = (columns * rows - 1).bit_length()
    config = NetworkConfig(columns=columns, rows=rows, address_bits=40 - bits, tag_bits=8)
    assert request_header(config, config.tag_bits + 4).size <= 62


def test_components_refuse_what_they_cannot_be():
    with pytest.raises(ConfigurationError, match="a node has 1 to 16 requesters, not 17"):
        Node(NetworkConfig(), requesters=17)
    with pytest.raises(ConfigurationError, match="a network has at least two vaults"):
        Network(NetworkConfig(columns=1, rows=1))
