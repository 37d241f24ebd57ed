"""Helper of the generators: collects assembly text, names registers, numbers labels."""

from isa.launch import START_REGISTERS
from isa.table import REGISTERS

from .errors import KernelError

__all__ = ["AssemblyWriter"]

_NOTE_COLUMN = 48


class AssemblyWriter:
    """Assembly text under construction.

    Parameters:
        title: lines of text for the head of the program.
    """

    def __init__(self, *title: str) -> None:
        self._head = [f"; {line}".rstrip() for line in title]
        self._registers: dict[str, str] = {}
        self._body: list[str] = []
        self._labels = 0
        self._next = max(START_REGISTERS) + 1

    def register(self, purpose: str) -> str:
        """A scalar register for ``purpose``, which the head of the text lists.

        Raises:
            KernelError: none is left.
        """
        if self._next >= REGISTERS:
            raise KernelError(f"no scalar register is left for {purpose}")
        name = f"r{self._next}"
        self._registers[name] = purpose
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
        registers = [f";   {name:<4} {purpose}" for name, purpose in self._registers.items()]
        return "\n".join([*self._head, ";", "; Registers", *registers, "", *self._body, ""])
