"""Hazards, saturated values and registers of a run."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from isa.program import Program
from isa.table import BY_KEY, Unit, find
from support.errors import counted
from vip.cli.console import console, table, warn

if TYPE_CHECKING:
    from isa.timing import Hazard
    from vip.programs import Dump

#: Where a run is, in words.
MACHINES = {
    "golden": "the golden model",
    "iss": "the instruction set simulator",
    "model": "the timing model",
    "rtl": "its Verilog",
    "netlist": "its netlist",
}
#: Numbers of a dump printed, and those per line.
_DUMPED, _IN_LINE = 64, 8
#: Most hazards printed; the JSON has all.
_MOST_HAZARDS = 20


def show_dump(program: Program, dump: "Dump") -> None:
    """Print the first numbers of a dump written to its file, as wide as what ``program`` stores."""
    rows = [row for row in map(find, program.words) if row is not None and row.memory is not None]
    size = min((row.width.bytes for row in rows if row.width and not row.loads), default=1)
    assert dump.path is not None
    with dump.path.open("rb") as file:
        content = file.read(_DUMPED * size)
    numbers = [
        int.from_bytes(content[at : at + size], "little", signed=True)
        for at in range(0, len(content) // size * size, size)
    ]
    console.print(f"{dump.path}: {counted(dump.size, 'byte')}, as {8 * size}-bit numbers:")
    for first in range(0, len(numbers), _IN_LINE):
        line = " ".join(f"{number:>7}" for number in numbers[first : first + _IN_LINE])
        console.print(f"{dump.address + first * size:#8x} {line}", soft_wrap=True)
    if dump.size > len(content):
        console.print(f"     ... {counted(dump.size - len(content), 'more byte')} in the file")


def show_hazards(program: Program, hazards: Sequence["Hazard"]) -> None:
    """Print a line per hazard on standard error; after twenty, how many more there are."""
    for hazard in hazards[:_MOST_HAZARDS]:
        warn(f"hazard: {hazard.describe(program.source)}")
    if len(hazards) > _MOST_HAZARDS:
        warn(f"hazard: {len(hazards) - _MOST_HAZARDS} more")


def show_saturated(program: Program, saturated: Sequence[int]) -> None:
    """Print a line on standard error if values of vector instructions saturated.

    Parameters:
        saturated: number of saturated values for each word of the program.
    """
    if not any(saturated):
        return
    word = max(range(len(saturated)), key=saturated.__getitem__)
    line = program.source.get(word)
    place = f"word {word}" if line is None else f"word {word} ({line.file}:{line.line})"
    warn(
        f"saturation: {counted(sum(saturated), 'value')} saturated to the width of the element, "
        f"{saturated[word]} at {place}"
    )


def show_unset_length(executed: Iterable[str]) -> None:
    """Print a line on standard error if vectors ran, and no instruction set their length.

    Parameters:
        executed: keys of instructions.
    """
    keys = set(executed)
    vectors = any(BY_KEY[key].unit is Unit.VECTOR for key in keys)
    if vectors and "set.vl" not in keys:
        warn("vectors ran with VL 1: no set.vl was executed")


def show_model_saturated(values: int) -> None:
    """Print a line on standard error if ``values``, of a golden model, saturated."""
    if values:
        warn(f"saturation: {counted(values, 'value')} saturated to the width of the element")


def show_registers(registers: Sequence[int]) -> None:
    """Print the registers that are not 0, as hexadecimal and as signed decimal numbers."""
    heads = ("register", "hexadecimal", "decimal")
    rows = table(*heads, left=("register",), title="registers that are not 0")
    for number, value in enumerate(registers):
        if value:
            signed = value - (1 << 64) if value >> 63 else value
            rows.add_row(f"r{number}", f"{value:#x}", str(signed))
    if rows.row_count:
        console.print(rows)
