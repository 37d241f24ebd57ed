"""Named configurations."""

import pytest

from hdl.config import ALL_INSTRUCTIONS, ConfigurationError
from soc.presets import PRESETS, preset


def test_pe_is_the_machine_of_the_thesis() -> None:
    config = preset("pe")
    assert config.instructions == ALL_INSTRUCTIONS
    assert config.instruction_words == 1024
    assert config.registers == 64
    assert config.scratchpad_bytes == 8 * 512
    assert config.arc_entries == 20
    assert config.load_store_queue == 64
    assert config.address_bits == 33


def test_unknown_preset_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError) as error:
        preset("huge")
    assert "'huge'" in str(error.value)
    assert all(name in str(error.value) for name in PRESETS)
    assert "\n" not in str(error.value)
