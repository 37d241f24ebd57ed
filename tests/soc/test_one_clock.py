"""A design with one clock has nothing of a second one in its Verilog."""

import re
from dataclasses import replace

import pytest

from hdl.clocks import CLOCK_PORTS, MEMORY_DOMAIN
from soc.chip.config import ChipConfig
from soc.generate.designs import Configuration
from soc.generate.generate import verilog
from soc.generate.presets import PRESETS, design
from soc.tile.config import ClockConfig, VaultTileConfig

OTHERS = sorted(
    name
    for name, config in PRESETS.items()
    if isinstance(config, ChipConfig | VaultTileConfig) and name != "vault-small"
)


def with_clocks(config: Configuration, clocks: ClockConfig) -> Configuration:
    if isinstance(config, ChipConfig):
        return replace(config, tile=replace(config.tile, clocks=clocks))
    assert isinstance(config, VaultTileConfig)
    return replace(config, clocks=clocks)


def bare(text: str) -> str:
    return re.sub(r"^//.*\n", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    "name", ["vault-small", *(pytest.param(name, marks=pytest.mark.slow) for name in OTHERS)]
)
def test_one_clock_gives_the_verilog_of_the_preset(name: str) -> None:
    config = design(name)
    expected = verilog(config).modules
    one = ClockConfig(domains="one")
    assert verilog(with_clocks(config, one)).modules == expected
    # Comments name the depths, which nothing has.
    deep = verilog(with_clocks(config, replace(one, request_depth=64, response_depth=4))).modules
    assert list(map(bare, deep.values())) == list(map(bare, expected.values()))
    second = CLOCK_PORTS[MEMORY_DOMAIN]
    assert not any(port in text for text in expected.values() for port in second)
    assert not any("crossing" in module or "mirror" in module for module in expected)
    two = verilog(with_clocks(config, ClockConfig(domains="two"))).modules
    assert all(port in two[verilog(config).top] for port in second)
    # What is no part of the crossing, and does not hold it, is the same.
    changed = {module for module in expected if two.get(module) != expected[module]}
    assert changed <= {"chip", "chip_tile", "vault_tile", "vault_memory"}
