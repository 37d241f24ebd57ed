"""Listings: a program's words beside the source that they come from."""

from .program import Program

__all__ = ["listing"]


def listing(program: Program) -> str:
    """A table of word address (decimal), word (hexadecimal), line number and source line.

    A line that became several words is shown beside the first of them. Words without a source line
    show their labels alone.
    """
    labels: dict[int, list[str]] = {}
    for name, address in program.symbols.items():
        labels.setdefault(address, []).append(name)
    lines = []
    shown = None
    for address, word in enumerate(program.words):
        source = program.source.get(address)
        row = f"{address:5}  {word:08x}"
        for name in labels.get(address, []):
            # A label on the line of its instruction is part of the source text.
            if source is None or f"{name}:" not in source.text.replace(" :", ":"):
                lines.append(f"{'':15}{'':7}{name}:")
        if source is not None and source != shown:
            row += f"  {source.line:5}  {source.text.rstrip()}"
        shown = source
        lines.append(row)
    for name in labels.get(len(program.words), []):
        lines.append(f"{'':15}{'':7}{name}:")
    return "".join(f"{line}\n" for line in lines)
