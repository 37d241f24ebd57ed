"""What the generators of neural network kernels share: the parameter block.

The parameter block begins with one 64-bit word for each PE of the vault, the address of that PE's
part; what the part holds is the kernel's business.
"""

from collections.abc import Sequence

import numpy as np

from isa.launch import START_REGISTERS
from microkernels.common.writer import KernelWriter

__all__ = ["WORD_BYTES", "NnWriter", "block_bytes", "block_size"]

#: Bytes of a word of a parameter block.
WORD_BYTES = 8
_LOG_WORD = 3
_START = {name: number for number, name in START_REGISTERS.items()}
_WIDE = "[64-bit]"


def block_size(parts: Sequence[int]) -> int:
    """Bytes of a parameter block with parts of so many words."""
    return WORD_BYTES * (len(parts) + sum(parts))


def block_bytes(base: int, parts: Sequence[Sequence[int]]) -> bytes:
    """The parameter block at address ``base`` for PEs with these words, by slot."""
    starts = np.cumsum([0, *(len(part) for part in parts)])[:-1] + len(parts)
    table = [base + WORD_BYTES * int(start) for start in starts]
    return np.array([*table, *(word for part in parts for word in part)], "<i8").tobytes()


class NnWriter(KernelWriter):
    """Assembly of a kernel on 16-bit elements.

    Parameters:
        title: lines of text for the head of the program.

    Attributes: names of registers, see the purposes below.
    """

    def __init__(self, *title: str) -> None:
        super().__init__(*title, uses_launch=True)
        self.slot = self.fixed_register("slot", _START["slot"], "this PE's place in its vault")
        self.block = self.fixed_register("block", _START["parameters"], "parameter block")

    def start(self, words: Sequence[str], pointer: str) -> None:
        """Set all constants, find this PE's part of the parameter block, and read its first words.

        Parameters:
            words: registers to read, in the order of the part.
            pointer: register that is left with the address of the word behind them.
        """
        self.set_constants()
        self.note("This PE's part of the parameter block.")
        self.op("sll", pointer, self.slot, _LOG_WORD)
        self.op("add", pointer, self.block, pointer)
        self.op(f"ld.reg {_WIDE}", pointer, pointer)
        for word in words:
            self.read(word, pointer)

    def read(self, word: str, pointer: str) -> None:
        """Read a word of the parameter block into a register, and move on to the next one."""
        self.op(f"ld.reg {_WIDE}", word, pointer)
        self.op("add", pointer, pointer, WORD_BYTES)
