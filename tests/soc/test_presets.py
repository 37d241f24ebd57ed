"""Named configurations."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from hdl.config import ConfigurationError
from memory.config import VaultConfig
from pe.config import LOGISTIC_INSTRUCTIONS, STANDARD_INSTRUCTIONS
from soc.generate.presets import PRESETS, chip_preset, design, preset, tile_preset


def test_pe_is_the_machine_of_the_thesis() -> None:
    config = preset("pe")
    assert config.instructions == STANDARD_INSTRUCTIONS
    assert config.instruction_words == 1024
    assert config.registers == 64
    assert config.scratchpad_bytes == 8 * 512
    assert config.arc_entries == 20
    assert config.load_store_queue == 64
    assert config.address_bits == 33


def test_vault_is_that_of_the_thesis() -> None:
    config = tile_preset("vault")
    assert config.pes == 4
    assert config.pe == replace(preset("pe"), address_bits=28)
    assert config.vault == VaultConfig()
    assert config.vault.size_bytes == 256 << 20


def test_optional_instructions_are_all_that_the_logistic_presets_add() -> None:
    pe, tile = preset("pe-logistic"), tile_preset("vault-logistic")
    assert pe == replace(preset("pe"), instructions=LOGISTIC_INSTRUCTIONS)
    assert tile == replace(tile_preset("vault"), pe=replace(pe, address_bits=28))


def test_thesis_is_its_chip() -> None:
    config = chip_preset("thesis")
    assert (config.network.columns, config.network.rows) == (8, 4)
    assert config.pes == 128
    assert config.tile == tile_preset("vault")
    assert config.pe == preset("pe")
    assert config.memory_bytes == 8 << 30


def test_tiny_is_a_torus_of_single_engines() -> None:
    config = chip_preset("tiny")
    assert (config.network.columns, config.network.rows, config.pes) == (2, 2, 4)
    assert config.memory_bytes == 4 << 20
    assert config.pe.instructions == STANDARD_INSTRUCTIONS


@pytest.mark.parametrize(
    ("find", "name", "message"),
    [
        (
            preset,
            "vault",
            r"'vault' is a vault; one engine is needed here: pe, pe-small, pe-logistic, pe-int8$",
        ),
        (
            preset,
            "tiny",
            r"'tiny' is a chip; one engine is needed here: pe, pe-small, pe-logistic, pe-int8$",
        ),
        (tile_preset, "pe", r"'pe' is one engine; a vault is needed here: vault, .*vault-small$"),
        (
            chip_preset,
            "vault",
            r"'vault' is a vault; a chip is needed here: tiny, .*thesis-int8-lines$",
        ),
    ],
)
def test_preset_of_another_kind_is_refused_with_those_that_fit(
    find: Callable[[str], object], name: str, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        find(name)
    assert design(name) is PRESETS[name]


def test_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError) as error:
        preset("huge")
    assert "'huge'" in str(error.value)
    assert all(name in str(error.value) for name in PRESETS)
    assert "\n" not in str(error.value)
