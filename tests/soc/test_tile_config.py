"""Configurations of a vault with its engines: what fits, and what is refused."""

from dataclasses import replace

import pytest

from hdl.config import ConfigurationError
from memory.config import VaultConfig
from pe.config import PeConfig
from soc.generate.presets import preset, tile_preset
from soc.tile.config import ClockConfig, VaultTileConfig


@pytest.mark.parametrize(("pes", "extra_ports"), [(1, 0), (1, 7), (4, 2), (7, 1), (15, 1)])
def test_number_of_requesters_decides_the_tags(pes: int, extra_ports: int) -> None:
    bits = (pes + extra_ports - 1).bit_length()
    vault = VaultConfig(tag_bits=6 + bits)
    config = VaultTileConfig(pes=pes, extra_ports=extra_ports, vault=vault)
    assert config.requesters == pes + extra_ports
    assert config.port_tag_bits == 6
    with pytest.raises(
        ConfigurationError, match=rf"^vault\.tag_bits must be at least {6 + bits} for 64 req"
    ):
        replace(config, vault=replace(vault, tag_bits=5 + bits))
    # An engine with fewer requests in flight leaves tags unused.
    wide = replace(config, pe=replace(config.pe, load_store_queue=16))
    assert (wide.pe.tag_bits, wide.port_tag_bits) == (4, 6)


def test_buffers_for_responses_may_be_kept() -> None:
    tile = tile_preset("vault")
    assert tile.always_ready == 0
    without = frozenset(key for key in tile.pe.instructions if not key.startswith("ld.reg"))
    ready = replace(tile, pe=replace(tile.pe, instructions=without))
    assert ready.always_ready == 4
    assert replace(ready, buffered=True).always_ready == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pes": 0}, r"^pes must be a whole number from 1 to 15, not 0$"),
        ({"pes": 16}, r"^pes must be a whole number from 1 to 15, not 16$"),
        ({"pes": True}, r"^pes must be a whole number from 1 to 15, not True$"),
        ({"extra_ports": -1}, r"^extra_ports must be a whole number from 0 to 15, not -1$"),
        ({"pes": 15}, r"^pes and extra_ports must be at most 16 together, not 15 \+ 2$"),
        ({"pe": PeConfig()}, r"^pe\.address_bits must be 28, .*, or at most 26, .* 4 PEs; not 33$"),
        (
            {"pe": PeConfig(address_bits=27)},
            r"^pe\.address_bits must be 28, .* most 26, .* not 27$",
        ),
        ({"buffered": 1}, r"^buffered must be True or False, not 1$"),
        ({"vault": 3}, r"^vault must be a VaultConfig or an AxiConfig or an OnChipConfig, not 3$"),
        ({"pe": None}, r"^pe must be a PeConfig, not None$"),
        ({"clocks": "two"}, r"^clocks must be a ClockConfig, not 'two'$"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        replace(tile_preset("vault"), **changes)


def test_vault_whose_port_reaches_beyond_it_fits_wider_addresses() -> None:
    vault = VaultConfig(port_address_bits=33)
    assert VaultTileConfig(pe=PeConfig(), vault=vault).pe.address_bits == 33


def test_memories_of_all_parts_change_together() -> None:
    tile = tile_preset("vault").with_sram("macro")
    assert isinstance(tile, VaultTileConfig)
    assert tile.pe.sram == tile.vault.sram == "macro"
    assert preset("pe").with_sram("fpga") == replace(preset("pe"), sram="fpga")
    with pytest.raises(ConfigurationError, match="sram must be one of"):
        tile.with_sram("paper")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"domains": 2}, r"^domains must be one of one, two, not 2$"),
        ({"domains": "three"}, r"^domains must be one of one, two, not 'three'$"),
        ({"request_depth": 6}, r"^request_depth must be a power of two from 4 to 64, not 6$"),
        ({"response_depth": 128}, r"^response_depth must be a power of two from 4 to 64, not 128$"),
    ],
)
def test_clocks_are_checked(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ClockConfig(**values)  # type: ignore[arg-type]
