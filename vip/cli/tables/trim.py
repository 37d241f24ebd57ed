"""Tables of ``vip trim``."""

from collections.abc import Mapping

from rich.table import Table

from isa.table import Unit
from sim_tb.cosim.trim_check import TrimCheck
from synth.analysis.trim import TrimReport
from synth.physical.comparison import AreaComparison
from vip.cli.console import console
from vip.trimmed_models import ModelTrim
from vip.trimming.filling import CLOCK_MHZ, Fitting
from vip.trimming.result import TrimResult

__all__ = ["show_fit", "show_model_trim", "show_trim"]

#: Target and measure of the area shown.
_AREAS = (
    ("generic", "logic_ge"),
    ("xc7", "luts"),
    ("xc7", "ffs"),
    ("xc7", "dsps"),
    ("xc7", "brams"),
)


def _end(check: TrimCheck) -> str:
    full = check.full
    if full.state == "faulted":
        return f"{full.cause.name} at word {full.pc}"
    return full.state


def _instructions(cut: TrimReport) -> Table:
    table = Table(title="instructions by unit, and what needs them")
    for heading in ("unit", "kept", "removed", "why the unit is still there"):
        table.add_column(heading, justify="right" if heading in ("kept", "removed") else "left")
    for unit in Unit:
        kept, removed = len(cut.kept[unit]), len(cut.removed[unit])
        why = cut.why_unit(unit).partition(": ")[2]
        table.add_row(unit.value, str(kept), str(removed), why)
    return table


def _sizes(cut: TrimReport) -> Table:
    table = Table(title="sizes, and how they are known")
    for heading in ("", "full", "trimmed", "needed", "known", "from", "a run that needs more"):
        number = heading in ("full", "trimmed", "needed")
        table.add_column(heading, justify="right" if number else "left")
    for bound in cut.bounds:
        if bound.name == "fx":
            continue
        guard = "faults: " + bound.guard if bound.guard.isupper() else bound.guard
        table.add_row(
            bound.name.replace("_", " "),
            f"{bound.full:,}",
            f"{bound.size:,}",
            f"{bound.value:,}",
            bound.basis,
            bound.why,
            guard or ("there is none" if bound.basis == "proved" else ""),
        )
    return table


def _areas(areas: Mapping[str, AreaComparison], *, counters: bool) -> Table:
    table = Table(title="area, with counters" if counters else "area, both without counters")
    for heading in ("", "full", "trimmed", "saved"):
        table.add_column(heading, justify="right" if heading else "left")
    for target, name in _AREAS:
        area = areas[target]
        before, after = area.full.total.values[name], area.trimmed.total.values[name]
        table.add_row(name, f"{before:,.0f}", f"{after:,.0f}", f"{area.saved(name):.1%}")
    return table


def _runs(result: TrimResult) -> Table:
    table = Table(title="runs on both engines")
    for heading in ("program", "memory", "end", "cycles, full", "cycles, trimmed", "the rest"):
        table.add_column(heading, justify="right" if "cycles" in heading else "left")
    for item in result.checks:
        check = item.check
        verdict = f"DIFFERS: {', '.join(check.different)}" if check.different else "the same"
        table.add_row(
            item.name,
            "zeros" if item.zero_memory else "given",
            _end(check),
            f"{check.cycles_full:,}",
            f"{check.cycles_trimmed:,}",
            verdict,
        )
    return table


def _cut(cut: TrimReport) -> None:
    console.print(_instructions(cut))
    console.print(_sizes(cut))
    for bound in cut.bounds:
        if bound.remedy:
            console.print(f"{bound.name.replace('_', ' ')} may shrink with {bound.remedy}")


def show_model_trim(result: ModelTrim) -> None:
    """Print the removed parts, the reasons for the others, the savings, and the runs."""
    _cut(result.cut)
    if result.vaults:
        console.print(_areas(result.engines, counters=result.cut.trimmed.counters))
        engines = result.config.pes
        table = Table(title=f"area of the vault: {engines} engines, their memory's controller")
        for heading in ("", "full", "trimmed", "saved"):
            table.add_column(heading, justify="right" if heading else "left")
        for target, name in _AREAS:
            area = result.vaults[target]
            before, after = area.full.get(name, 0), area.trimmed.get(name, 0)
            table.add_row(name, f"{before:,.0f}", f"{after:,.0f}", f"{area.saved(name):.1%}")
        console.print(table)
    if not result.cycles:
        return
    table = Table(title="the model on the Verilog of both vaults")
    for heading in ("launch", "cycles, full", "cycles, trimmed"):
        table.add_column(heading, justify="right" if "cycles" in heading else "left")
    for name, (full, trimmed) in result.cycles.items():
        table.add_row(name, f"{full:,}", f"{trimmed:,}")
    table.add_section()
    table.add_row("all", f"{result.cycles_full:,}", f"{result.cycles_trimmed:,}")
    console.print(table)
    console.print("every output of both equals the golden model's")
    if result.unfaulted:
        console.print(f"removed, but no fault: {', '.join(result.unfaulted)}")
    else:
        removed = len(result.cut.full.instructions - result.cut.trimmed.instructions)
        console.print(f"each of the {removed} removed instructions faults")


def show_trim(result: TrimResult) -> None:
    """Print the removed parts, the reasons for the others, the savings, and the runs."""
    _cut(result.cut)
    if result.areas:
        console.print(_areas(result.areas, counters=result.cut.trimmed.counters))
    if not result.checks:
        return
    console.print(_runs(result))
    if not result.different:
        full, trimmed = (
            sum(cycles)
            for cycles in zip(
                *((each.check.cycles_full, each.check.cycles_trimmed) for each in result.checks),
                strict=True,
            )
        )
        if full == trimmed:
            console.print("memory, scratchpad, registers and cycles are the same on both engines")
        else:
            console.print(
                "memory, scratchpad and registers are the same on both engines; the trimmed one "
                f"takes {trimmed / full - 1:.2%} more cycles"
            )
    if result.unfaulted:
        console.print(f"removed, but no fault: {', '.join(result.unfaulted)}")
    else:
        removed = result.checks[0].check.removed
        console.print(f"each of the {removed} removed instructions faults")


def show_fit(found: Fitting) -> None:
    """Print a table of both chips."""
    budget = found.full.chip.budget
    table = Table(title=f"{budget.name}, filled")
    for heading in ("", "full", "trimmed"):
        table.add_column(heading, justify="right" if heading else "left")
    both = (found.full, found.trimmed)
    table.add_row("engines", *(str(one.chip.config.pes) for one in both))
    table.add_row("vaults", *(f"{one.chip.config.vaults}" for one in both))
    for name, part in budget.capacity.items():
        used = [one.chip.area.total.values.get(name, 0) for one in both]
        table.add_row(f"{name} of {part:,.0f}", *(f"{value / part:.0%}" for value in used))
    table.add_row("cycles", *(f"{one.copies.cycles:,}" for one in both))
    table.add_row("throughput", "1.00", f"{found.gain:.2f}")
    table.add_row(f"GB/s at {CLOCK_MHZ:g} MHz", *(f"{one.gigabytes:.1f}" for one in both))
    if budget.board is not None and found.board_gain is not None:
        size = budget.board.bytes_per_second / 1e9
        table.add_row(
            f"throughput on {budget.board.name} ({size:.1f} GB/s)",
            "1.00",
            f"{found.board_gain:.2f}",
        )
    console.print(table)
