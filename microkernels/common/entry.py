"""Entries of a program's text, as :class:`microkernels.common.builder.KernelBuilder` keeps them."""

from dataclasses import dataclass

from .hazard_check import Line

__all__ = ["Entry", "line_text"]

#: Column of the note after an instruction.
_NOTE_COLUMN = 60


@dataclass(eq=False)
class Entry:
    """Text, and its meaning for the check of hazards: an instruction, a label, an assumption."""

    text: str
    line: Line | None = None
    label: str = ""
    assumed: tuple[str, str, int] | None = None


def line_text(line: Line, note: str) -> str:
    """The text of an instruction, with its note where there is one."""
    operands = [f"#{operand}" if isinstance(operand, int) else operand for operand in line.operands]
    text = f"    {line.mnemonic} {', '.join(operands)}".rstrip()
    return f"{text:<{_NOTE_COLUMN}}; {note}" if note else text
