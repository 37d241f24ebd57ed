"""Hazards, saturated values and registers of a run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from isa.program import Program
from vip.cli.console import console, table, warn

if TYPE_CHECKING:
    from isa.hazards import Hazard

__all__ = ["show_hazards", "show_model_saturated", "show_registers", "show_saturated"]

#: Most hazards that are printed; all are in the JSON.
_MOST_HAZARDS = 20


def show_hazards(program: Program, hazards: Sequence["Hazard"]) -> None:
    """Print a line for each hazard on standard error; beyond the first twenty how many more."""
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
        f"saturation: {sum(saturated)} values were limited to the width of their element, "
        f"{saturated[word]} of them at {place}"
    )


def show_model_saturated(values: int) -> None:
    """Print a line on standard error if ``values``, of a golden model, saturated."""
    if values:
        warn(f"saturation: {values} values were limited to the width of their element")


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
