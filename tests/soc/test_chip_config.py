"""Configurations of a chip: what fits, and what is refused."""

from dataclasses import replace

import pytest

from hdl.config import ConfigurationError
from memory.axi.layout import AxiConfig
from memory.config import VaultConfig
from noc.config import NetworkConfig
from noc.node.counters import NetworkCounter
from pe.config import PeConfig
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset, tile_preset

VAULT = tile_preset("vault")


@pytest.mark.parametrize(
    ("columns", "rows", "bits"), [(1, 1, 28), (2, 2, 30), (3, 3, 32), (3, 2, 31), (8, 4, 33)]
)
def test_addresses_of_engines_and_host_are_those_of_the_chip(
    columns: int, rows: int, bits: int
) -> None:
    config = ChipConfig(network=NetworkConfig(columns=columns, rows=rows))
    assert config.pe.address_bits == config.host.address_bits == bits
    assert replace(config.pe, address_bits=28) == config.tile.pe
    assert config.pes == config.host.pe_count == 4 * columns * rows
    assert config.memory_bytes == config.host.memory_bytes == columns * rows << 28


@pytest.mark.parametrize("counters", [True, False])
def test_host_knows_the_counters(counters: bool) -> None:
    vault = replace(VAULT.vault, counters=counters)
    config = ChipConfig(
        tile=replace(VAULT, vault=vault), network=NetworkConfig(counters=not counters)
    )
    assert config.host.vault_counters is counters
    assert config.host.network_counters == (0 if counters else len(NetworkCounter))


def test_vaults_may_stand_on_axi_buses() -> None:
    config = ChipConfig(tile=replace(VAULT, vault=AxiConfig()))
    assert config.memory_bytes == 8 << 30


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tile": 4}, r"^tile must be a VaultTileConfig, not 4$"),
        ({"network": None}, r"^network must be a NetworkConfig, not None$"),
        (
            {"tile": replace(VAULT, extra_ports=1)},
            r"^tile\.extra_ports must be 2, for the host and the network, not 1$",
        ),
        (
            {"tile": replace(VAULT, pe=PeConfig(), vault=VaultConfig(port_address_bits=33))},
            r"^tile\.vault\.port_address_bits must be 0 or 28, .* not 33$",
        ),
        (
            {"network": NetworkConfig(address_bits=27)},
            r"^network\.address_bits must be 28, as tile\.vault has, not 27$",
        ),
        (
            {"network": NetworkConfig(tag_bits=5)},
            r"^network\.tag_bits must be 6, as tile\.vault leaves, not 5$",
        ),
        ({"axi_id_bits": 0}, r"^axi_id_bits must be a whole number from 1 to 16, not 0$"),
        ({"axi_id_bits": 17}, r"^axi_id_bits must be a whole number from 1 to 16, not 17$"),
        ({"axi_id_bits": True}, r"^axi_id_bits must be a whole number from 1 to 16, not True$"),
        (
            {"tile": replace(VAULT, pes=6), "network": NetworkConfig(columns=16, rows=16)},
            r"^a chip has at most 1024 PEs, not 256 vaults of 6$",
        ),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ChipConfig(**changes)  # type: ignore[arg-type]


def test_memories_of_all_parts_change_together() -> None:
    config = chip_preset("tiny").with_sram("fpga")
    assert isinstance(config, ChipConfig)
    kinds = {config.pe.sram, config.tile.vault.sram, config.network.sram, config.host.pe.sram}
    assert kinds == {"fpga"}
