"""Stages of the vector unit that only some memories or some instructions need.

Block RAMs of an FPGA are slow and their gates are far from each other; macros are fast and every
flip-flop counts. Programs see neither: they rely on :data:`isa.timing.VECTOR_LATENCY`, and the
vector unit is busy for as long, whatever is built. Behavioural memories get the stages of an FPGA,
which are all that there are. A scratchpad with shared ports needs the same times in all memories:
those of macros, and a register in which operands stay. A stage in which no instruction does
anything is left out.
"""

from hdl.sram_fpga import DISTRIBUTED_DEPTH
from isa.timing import WORD_BYTES
from pe.capabilities import FOLDED, LONG, Capabilities
from pe.config import PeConfig

#: Cycles in which operands are latched and operated on.
_OPERAND_CYCLES = 2


def _slow(config: PeConfig) -> bool:
    return config.sram != "macro" and not config.shared_ports


def read_cycles(config: PeConfig) -> int:
    """Cycles from the address of a vector operand to its data: 1, or 2 with a register between the
    memories and the rotation."""
    if config.shared_ports:
        return 2
    block = config.scratchpad_bytes // WORD_BYTES > DISTRIBUTED_DEPTH
    rotates = config.scratchpad_alignment < WORD_BYTES
    return 2 if _slow(config) and block and rotates else 1


def word_cycles(config: PeConfig) -> int:
    """Cycles in which the results of the operation become words: 1, or 0 where only the saturation
    of the elements is left to be done."""
    needs = Capabilities.of(config).vector
    return int(bool(needs.reductions or needs.products or needs.special))


def fold_cycles(config: PeConfig) -> int:
    """Cycles in which narrow elements are folded or long products added up: 0 or 1."""
    needs = Capabilities.of(config).vector
    folds = needs.reduced.of_widths(FOLDED).rows or needs.products.widths & LONG
    return int(bool(folds or needs.special))


def horizontal_cycles(config: PeConfig) -> int:
    """Cycles of the horizontal stage: 2, or 1 where nothing is reduced but halves of long products
    are put together, or 0."""
    needs = Capabilities.of(config).vector
    if needs.reductions or needs.special:
        return 2
    return int(needs.has_long_products)


def shift_cycles(config: PeConfig) -> int:
    """Cycles in which products are shifted: 2, by multiples of eight bits and by the rest, or 1.
    Without products, sums that may have to saturate take 1, everything else 0."""
    needs = Capabilities.of(config).vector
    if needs.products.rows:
        return 2 if _slow(config) else 1
    return int(bool(needs.summed.rows or needs.special))


def total_cycles(config: PeConfig) -> int:
    """Cycles from the words that were read to the value that is scaled."""
    vertical = _OPERAND_CYCLES + word_cycles(config) + fold_cycles(config)
    return vertical + horizontal_cycles(config)


def result_cycles(config: PeConfig) -> int:
    """Cycles from the last beat of an element to the one in which its result is written, or may
    begin to wait for a port."""
    return read_cycles(config) + total_cycles(config) + shift_cycles(config)
