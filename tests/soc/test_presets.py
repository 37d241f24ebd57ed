"""Named configurations."""

from dataclasses import replace

import pytest

from hdl.config import ALL_INSTRUCTIONS, ConfigurationError
from memory.config import VaultConfig
from soc.presets import PRESETS, any_preset, preset, tile_preset


def test_pe_is_the_machine_of_the_thesis() -> None:
    config = preset("pe")
    assert config.instructions == ALL_INSTRUCTIONS
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


def test_preset_of_another_kind_is_refused_with_those_that_fit() -> None:
    with pytest.raises(ConfigurationError, match=r"'vault' is a vault; .*: pe, pe-small$"):
        preset("vault")
    with pytest.raises(ConfigurationError, match=r"'pe' is one engine; .*: vault, vault-axi, vault-small$"):
        tile_preset("pe")
    assert any_preset("pe") is preset("pe")


def test_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError) as error:
        preset("huge")
    assert "'huge'" in str(error.value)
    assert all(name in str(error.value) for name in PRESETS)
    assert "\n" not in str(error.value)
