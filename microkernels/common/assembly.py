"""Helper of the generators: collects assembly text, names registers, numbers labels."""

from isa.launch import START_REGISTERS
from isa.table import REGISTERS

from .errors import KernelError

__all__ = ["AssemblyWriter"]

_NOTE_COLUMN = 60
_REGISTER_COLUMN = 28


class AssemblyWriter:
    """Assembly text under construction.

    Parameters:
        title: lines of text for the head of the program.
        first: number of the first register to hand out; by default those that the launch sets are
            left as they are.
    """

    def __init__(self, *title: str, first: int = max(START_REGISTERS) + 1) -> None:
        self._head = [f"; {line}".rstrip() for line in title]
        self._registers: list[tuple[str, int, str]] = []
        self._body: list[str] = []
        self._labels = 0
        self._next = first

    def fixed_register(self, name: str, number: int, purpose: str) -> str:
        """Name the register ``number``, whose contents come from elsewhere; returns ``name``."""
        self._registers.append((name, number, purpose))
        return name

    def register(self, name: str, purpose: str) -> str:
        """Name a register of its own for ``purpose``, which the head of the text shows.

        Returns ``name``; operands are written so.

        Raises:
            KernelError: none is left.
        """
        if self._next >= REGISTERS:
            raise KernelError(f"no scalar register is left for {name}")
        self._registers.append((name, self._next, purpose))
        self._next += 1
        return name

    def label(self, name: str) -> None:
        """Place a label here."""
        self._body.append(f"{name}:")

    def new_label(self, stem: str) -> str:
        """A name for a label that no other label has."""
        self._labels += 1
        return f"{stem}_{self._labels}"

    def note(self, *lines: str) -> None:
        """A comment of its own, after an empty line."""
        self._body.append("")
        self._body += [f"    ; {line}" for line in lines]

    def op(self, mnemonic: str, *operands: str | int, note: str = "") -> None:
        """One instruction; numbers become ``#`` immediates."""
        shown = [f"#{operand}" if isinstance(operand, int) else operand for operand in operands]
        line = f"    {mnemonic} {', '.join(shown)}".rstrip()
        self._body.append(f"{line:<{_NOTE_COLUMN}}; {note}" if note else line)

    def text(self) -> str:
        """The program's text."""
        registers = [
            f"{f'.reg {name}, r{number}':<{_REGISTER_COLUMN}}; {purpose}"
            for name, number, purpose in self._registers
        ]
        return "\n".join([*self._head, "", *registers, *self._body, ""])
