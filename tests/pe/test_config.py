"""Values that a configuration of an engine rejects, and properties derived from valid ones."""

from typing import Any

import pytest

from hdl.config import ConfigurationError
from pe.config import PeConfig


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"register_width": 65}, "register_width must be a whole number from 34 to 64, not 65"),
        ({"register_width": 33}, "register_width must be a whole number from 34 to 64, not 33"),
        ({"register_width": 19, "address_bits": 12}, "register_width .* from 20 to 64, not 19"),
        ({"register_width": 40.0}, "register_width .* not 40.0"),
        ({"max_vl": 0}, "max_vl must be a whole number from 1 to 256, not 0"),
        ({"max_mr": 257}, "max_mr must be a whole number from 1 to 256, not 257"),
        ({"scratchpad_bytes": 32}, "scratchpad_bytes must be a power of two from 64 to 65536"),
        ({"scratchpad_alignment": 16}, "scratchpad_alignment must be a power of two from 1 to 8"),
        ({"program": [0]}, "program must be a tuple of instruction words, or None"),
        ({"program": ()}, r"program must have 1 to 1024 words \(instruction_words\), not 0"),
        ({"program": (0,) * 17, "instruction_words": 16}, "program must have 1 to 16 words"),
        ({"load_history": 24}, r"load_history must be one of 0, 8, 16, 32, 64, not 24"),
        ({"load_history": 128}, r"load_history must be one of 0, 8, 16, 32, 64, not 128"),
        ({"load_history": "8"}, r"load_history must be one of 0, 8, 16, 32, 64, not '8'"),
        ({"load_history_ways": 8}, r"load_history_ways must be one of 0, 1, 2, 4, not 8"),
        ({"load_history_ways": -1}, r"load_history_ways must be one of 0, 1, 2, 4, not -1"),
        (
            {"load_history": 8},
            "load_history must be 0 without the instructions 'set.ws' and 'ld.sram', which it "
            "serves, not 8",
        ),
        (
            {"load_history": 8, "instructions": frozenset({"halt", "set.ws", "ld.reg[8]"})},
            "load_history must be 0 without",
        ),
        ({"scratchpad_banks": 4}, "scratchpad_banks must be one of 8, 16, not 4"),
        ({"scratchpad_banks": "16"}, "scratchpad_banks must be one of 8, 16, not '16'"),
        (
            {"scratchpad_banks": 16, "sram": "fpga", "instructions": frozenset({"halt"})},
            r"scratchpad_banks must be 8 in an FPGA \(sram 'fpga'\), which has no cycle left",
        ),
        (
            {"scratchpad_banks": 16, "instructions": frozenset({"halt", "set.ws"})},
            "scratchpad_banks must be 8 with the instruction 'set.ws', whose loads wait for no",
        ),
        (
            {"program": (0, 1 << 32)},
            "word 1 of program must be a whole number from 0 to 42949",
        ),
    ],
)
def test_values_outside_their_ranges_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{message}"):
        PeConfig(**values)


def test_what_no_instruction_sets_stays_one() -> None:
    config = PeConfig(instructions=frozenset({"halt", "set.vl"}), max_vl=40, max_mr=30)
    assert (config.vl_limit, config.vl_bits) == (40, 6)
    assert (config.mr_limit, config.mr_bits) == (1, 1)


def test_only_registers_below_full_width_are_narrow() -> None:
    assert not PeConfig().narrow
    assert PeConfig(register_width=63).narrow
