"""Engines of only those instructions that a test's programs have.

Tests of what is around engines compile them in half of the time.
"""

from dataclasses import replace

from isa.program import Program
from isa.table import find
from pe.config import PeConfig


def only(config: PeConfig, *programs: Program) -> PeConfig:
    """``config`` with the instructions of ``programs`` alone."""
    rows = [find(word) for program in programs for word in program.words]
    return replace(config, instructions=frozenset(row.key for row in rows if row is not None))
