"""Small engines, and ones of only those instructions that a test's programs have.

Tests of what is around engines compile them in half of the time.
"""

from dataclasses import replace

from isa.program import Program
from isa.table import find
from pe.config import ALL_INSTRUCTIONS, PeConfig
from soc.generate.presets import preset

#: As small an engine as there is.
TINY = replace(
    preset("pe-small"),
    instructions=frozenset({"halt", "jmp", "add"}),
    registers=8,
    register_width=24,
    instruction_words=16,
    scratchpad_bytes=64,
    max_vl=1,
    max_mr=1,
    arc_entries=1,
    load_store_queue=2,
    address_bits=12,
    counters=False,
)
#: As small as it gets with the optional instructions, so that whatever can fill up does.
SMALL = PeConfig(
    instructions=ALL_INSTRUCTIONS,
    registers=16,
    scratchpad_bytes=256,
    address_bits=12,
    instruction_words=128,
    arc_entries=2,
    load_store_queue=2,
)


def only(config: PeConfig, *programs: Program) -> PeConfig:
    """``config`` with the instructions of ``programs`` alone."""
    rows = [find(word) for program in programs for word in program.words]
    return replace(config, instructions=frozenset(row.key for row in rows if row is not None))
