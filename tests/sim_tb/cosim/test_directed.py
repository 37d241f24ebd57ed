"""Each instruction in each situation of the crosses, and random programs of the same engine: the
Verilog does what the simulator does."""

import pytest

from pe.config import ALL_INSTRUCTIONS, PeConfig
from sim_tb.random.comparison import check_programs

from .directed import directed_count, directed_program

# For an engine that no other test has. Whatever these find, the random programs of test_cosim.py
# should; these are for the crosses (vip bench coverage).
pytestmark = pytest.mark.slow

CONFIG = PeConfig(
    instructions=ALL_INSTRUCTIONS,
    address_bits=14,
    arc_entries=2,
    load_store_queue=4,
    load_history=8,
)


def test_each_instruction_in_each_situation() -> None:
    count = directed_count(CONFIG)
    report = check_programs(CONFIG, programs=count, seed=0, make=directed_program)
    assert (report.programs, report.faulting, report.different) == (count, 0, ())


def test_random_programs() -> None:
    report = check_programs(CONFIG, programs=150, seed=1)
    assert (report.programs, report.different) == (150, ())
    assert report.faulting > 15
