"""Stages of the vector unit that only some memories need.

Block RAMs of an FPGA are slow and their gates are far from each other; macros are fast and every
flip-flop counts. Programs see neither: they rely on :data:`isa.timing.VECTOR_LATENCY`, and the
vector unit is busy for as long, whatever is built. Behavioural memories get the stages of an FPGA,
which are all that there are.
"""

from hdl.config import PeConfig
from isa.table import Unit, VerticalOp

__all__ = ["read_cycles", "shift_cycles"]


def _slow(config: PeConfig) -> bool:
    return config.sram != "macro"


def read_cycles(config: PeConfig) -> int:
    """Cycles from the address of a vector operand to its data: 1, or 2 with a register behind the
    block RAMs."""
    return 2 if _slow(config) else 1


def shift_cycles(config: PeConfig) -> int:
    """Cycles in which products are shifted: 1, or 2, by multiples of eight bits and by the rest."""
    products = any(row.vertical is VerticalOp.MUL for row in config.rows_of(Unit.VECTOR))
    return 2 if _slow(config) and products else 1
