"""What a debugger shows."""

from rich.table import Table

from vip.cli.console import console
from vip.debugging.commands import Listing, Points, Reply
from vip.debugging.points import Breakpoint, Hit, Point, Watchpoint
from vip.debugging.views import ListedWord, Matrix, Registers, Stop

__all__ = ["show_reply"]

#: Columns of a matrix beside each other in one part of its table.
_COLUMNS = 16
#: Bytes that are shown as one number, and most that are shown.
_NUMBER_BYTES = 8
_SHOWN_BYTES = 16


def show_reply(reply: Reply, points: dict[int, Point]) -> None:
    """Print the reply to a command.

    Parameters:
        points: all break- and watchpoints by number.
    """
    match reply:
        case Stop():
            _show_stop(reply, points)
        case Registers():
            _show_registers(reply)
        case Matrix():
            _show_matrix(reply)
        case Listing():
            for word in reply.words:
                _show_word(word)
        case Points():
            for point in reply.points:
                console.print(_point(point))
        case _:
            console.print(reply.text)


def _show_registers(registers: Registers) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column(justify="right")
    for number, value in registers.values.items():
        signed = value - (1 << 64) if value >> 63 else value
        table.add_row(f"r{number}", f"{value:#x}", str(signed))
    console.print(table if table.row_count else "all registers are 0")


def _point(point: Point) -> str:
    if isinstance(point, Breakpoint):
        return f"{point.number}: break at word {point.address}"
    if point.space == "register":
        return f"{point.number}: watch r{point.start}"
    what = f"{point.size} bytes of the {point.space} from {point.start:#x}"
    return f"{point.number}: watch {what}, {point.kind}"


def _show_stop(stop: Stop, points: dict[int, Point]) -> None:
    for hit in stop.hits:
        if hit.wrote is not None:
            _show_hit(hit, points[hit.point])
    reason = {
        "launch": "at the launch",
        "limit": "stopped at the limit",
        "end": stop.state if stop.state == "halted" else f"fault {stop.cause}",
    }.get(stop.reason, "stopped")
    if broken := [hit for hit in stop.hits if hit.wrote is None]:
        reason = f"breakpoint {broken[0].point}"
    settings = f"VL {stop.vl}, MR {stop.mr}, FX {stop.fx}"
    console.print(
        f"{reason} after {stop.time:,} instructions at {stop.place}; {settings}", soft_wrap=True
    )
    if stop.next is not None:
        _show_word(stop.next)


def _show_hit(hit: Hit, point: Point) -> None:
    assert isinstance(point, Watchpoint)
    name = f"r{point.start}" if point.space == "register" else f"{point.space} {point.start:#x}"
    does = "written" if hit.wrote else "read"
    before, after = _hexadecimal(hit.before), _hexadecimal(hit.after)
    change = f"{before} -> {after}" if hit.wrote else before
    console.print(
        f"watchpoint {hit.point}: {name} {does} by word {hit.pc}: {change}", soft_wrap=True
    )


def _hexadecimal(data: bytes) -> str:
    """A number of up to 64 bits, or the first bytes in the order of their addresses."""
    if len(data) <= _NUMBER_BYTES:
        return f"0x{data[::-1].hex()}"
    return data[:_SHOWN_BYTES].hex(" ") + (" ..." if len(data) > _SHOWN_BYTES else "")


def _show_word(word: ListedWord) -> None:
    for label in word.labels:
        console.print(f"{label}:")
    mark = ("=>" if word.current else "  ") + ("*" if word.point is not None else " ")
    line = f"{mark}{word.address:5}  {word.text:<36}"
    if word.line:
        line += f"  {word.file}:{word.line}  {word.source.strip()}"
    console.print(line.rstrip(), soft_wrap=True)


def _show_matrix(matrix: Matrix) -> None:
    rows, columns = matrix.values.shape
    step = matrix.type.size
    for first in range(0, columns, _COLUMNS):
        part = range(first, min(first + _COLUMNS, columns))
        table = Table(box=None, pad_edge=False)
        table.add_column(f"{matrix.type.name} at", justify="right")
        for column in part:
            table.add_column(str(column), justify="right")
        for row in range(rows):
            at = matrix.start + (row * columns + first) * step
            shown = [matrix.type.text(int(matrix.values[row, column])) for column in part]
            table.add_row(f"{at:#x}", *shown)
        console.print(table)
