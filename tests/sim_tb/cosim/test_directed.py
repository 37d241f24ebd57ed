"""Each instruction in each situation of the crosses: the Verilog does what the simulator does."""

from pathlib import Path

from pe.config import ALL_INSTRUCTIONS, PeConfig
from sim_tb.random.comparison import check_programs

from .directed import directed_count, directed_program

CONFIG = PeConfig(instructions=ALL_INSTRUCTIONS, address_bits=14, arc_entries=2, load_store_queue=4)


def test_each_instruction_in_each_situation(tmp_path: Path) -> None:
    count = directed_count(CONFIG)
    report = check_programs(CONFIG, programs=count, seed=0, folder=tmp_path, make=directed_program)
    assert (report.programs, report.faulting, report.different) == (count, 0, ())
