"""Listings: a program's words beside the source that they come from."""

from isa.program import Program

from .syntax import leading_labels

__all__ = ["listing"]

#: Up to the column of the source.
_INDENT = " " * 22


def listing(program: Program) -> str:
    """A table of word address (decimal), word (hexadecimal), line number and source line.

    A line that became several words is shown beside the first of them. Words without a source line
    show their labels alone.
    """
    labels: dict[int, list[str]] = {}
    for name, address in program.symbols.items():
        labels.setdefault(address, []).append(name)
    lines = []
    previous = None
    for address, word in enumerate(program.words):
        source = program.source.get(address)
        row = f"{address:5}  {word:08x}"
        for name in labels.get(address, []):
            # A label on the line of its instruction is part of the source text.
            if source is None or name not in leading_labels(source.text):
                lines.append(f"{_INDENT}{name}:")
        if source is not None and source != previous:
            row += f"  {source.line:5}  {source.text.rstrip()}"
        previous = source
        lines.append(row)
    for name in labels.get(len(program.words), []):
        lines.append(f"{_INDENT}{name}:")
    return "".join(f"{line}\n" for line in lines)
