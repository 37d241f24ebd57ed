"""The first difference of an engine from the simulator, as ``vip cosim program`` shows it."""

from itertools import zip_longest

from rich.table import Table

from sim_tb.cosim.difference import Commit, Differing, OperandContent
from vip.cli.console import console
from vip.cosimulation.difference import Located

__all__ = ["show_difference"]

#: Elements of an operand, and stretches that differ, that are shown.
_SHOWN = 8


def show_difference(located: Located) -> None:
    """Print the instruction, what it reads, what differs and the last commits."""
    difference = located.difference
    first = difference.instruction
    console.print(
        f"first difference after instruction {first.number}, word {first.pc}{_source(first)}:"
    )
    console.print(f"  {first.text}")
    for operand in difference.operands:
        console.print(f"  reads {_place(operand)}: {_operand(operand)}")
    if difference.end:
        console.print(f"  {difference.end}")
    for place in difference.differing[:_SHOWN]:
        _show_place(place)
    if len(difference.differing) > _SHOWN:
        console.print(f"  and {len(difference.differing) - _SHOWN} places more")
    _show_commits(located)


def _source(commit: Commit) -> str:
    return "" if commit.source is None else f" ({commit.source.file}:{commit.source.line})"


def _place(where: OperandContent | Differing) -> str:
    return f"r{where.start}" if where.space == "register" else f"{where.space} {where.start:#x}"


def _numbers(content: bytes, size: int) -> list[int]:
    return [
        int.from_bytes(content[at : at + size], "little", signed=True)
        for at in range(0, len(content), size)
    ]


def _operand(operand: OperandContent) -> str:
    if operand.space == "register":
        (value,) = _numbers(operand.content, 8)
        return f"{value:#x}" if value >= 0 else f"{value}"
    numbers = _numbers(operand.content, operand.bytes_each)
    return " ".join(map(str, numbers[:_SHOWN])) + (" ..." if len(numbers) > _SHOWN else "")


def _show_place(place: Differing) -> None:
    pairs = [_numbers(content, place.bytes_each) for content in (place.expected, place.got)]
    for name, numbers in zip(("expected", "got"), pairs, strict=True):
        text = " ".join(map(str, numbers[:_SHOWN])) + (" ..." if len(numbers) > _SHOWN else "")
        console.print(f"  {_place(place)}: {name:8} {text}")


def _show_commits(located: Located) -> None:
    """The last instructions on the simulator and, with waveforms, those of the engine."""
    table = Table(title="last instructions, the differing one at the end")
    table.add_column("number", justify="right")
    table.add_column("word", justify="right")
    table.add_column("instruction")
    table.add_column("line")
    if located.passages:
        table.add_column("on the engine", justify="right")
        table.add_column("in cycles", justify="right")
    # Of different lengths, they end together.
    commits, passages = reversed(located.difference.commits), reversed(located.passages)
    for commit, passage in reversed(list(zip_longest(commits, passages))):
        cells = ["", "", "", ""]
        if commit is not None:
            line = "" if commit.source is None else f"{commit.source.file}:{commit.source.line}"
            cells = [str(commit.number), str(commit.pc), commit.text, line]
        if passage is not None:
            cells += [f"word {passage.pc}", f"{passage.start}-{passage.end}"]
        table.add_row(*cells)
    console.print(table)
