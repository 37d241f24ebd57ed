"""Tables of ``vip trim``."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from isa.table import Unit
from synth.analysis.trim import TrimReport
from synth.physical.area import AreaComparison
from vip.cli.console import console, table
from vip.cli.tables.area import show_proofs
from vip.trimming.filling import CLOCK_MHZ, Filled
from vip.trimming.trim import TrimResult

#: Target and measure of the area shown.
_AREAS = (
    ("generic", "logic_ge"),
    ("xc7", "luts"),
    ("xc7", "ffs"),
    ("xc7", "dsps"),
    ("xc7", "brams"),
)


def _instructions(cut: TrimReport) -> Table:
    text = ("unit", "needed by")
    title = "instructions by unit, and what needs the unit"
    rows = table(text[0], "kept", "removed", text[1], left=text, title=title)
    for unit in Unit:
        left, removed = len(cut.kept[unit]), len(cut.removed[unit])
        why = cut.why_unit(unit).partition(": ")[2]
        rows.add_row(unit.value, str(left), str(removed), why)
    return rows


def _sizes(cut: TrimReport) -> Table:
    text = ("", "basis", "from", "overflow")
    numbers = ("full", "trimmed", "needed")
    rows = table("", *numbers, *text[1:], left=text, title="sizes and their basis")
    for bound in cut.bounds:
        if bound.name == "fx":
            continue
        guard = "faults: " + bound.guard if bound.guard.isupper() else bound.guard
        rows.add_row(
            bound.name.replace("_", " "),
            f"{bound.full:,}",
            f"{bound.size:,}",
            f"{bound.value:,}",
            bound.basis,
            bound.why,
            guard or ("impossible" if bound.basis == "proved" else ""),
        )
    return rows


def _areas(areas: Mapping[str, AreaComparison], title: str) -> Table:
    rows = table("", "full", "trimmed", "saved", title=title)
    for target, name in _AREAS:
        if target not in areas:
            continue
        area = areas[target]
        before, after = (part.total.values.get(name, 0) for part in (area.full, area.trimmed))
        rows.add_row(name, f"{before:,.0f}", f"{after:,.0f}", f"{area.saved(name):.1%}")
    return rows


def _runs(result: TrimResult) -> Table:
    design = "vaults" if result.vault else "engines"
    text = ("program", "memory", "results")
    heads = (*text[:2], "cycles, full", "cycles, trimmed", text[2])
    rows = table(*heads, left=text, title=f"runs on both {design}")
    for launch in result.checks:
        verdict = f"DIFFERS: {', '.join(launch.different)}" if launch.different else "the same"
        rows.add_row(
            launch.name,
            "zeros" if launch.zero_memory else "given",
            f"{launch.cycles_full:,}",
            f"{launch.cycles_trimmed:,}",
            verdict,
        )
    if len(result.checks) > 1:
        rows.add_section()
        rows.add_row("all", "", f"{result.cycles_full:,}", f"{result.cycles_trimmed:,}", "")
    return rows


def _cut(cut: TrimReport) -> None:
    console.print(_instructions(cut))
    console.print(_sizes(cut))
    for bound in cut.bounds:
        if bound.remedy:
            console.print(f"{bound.name.replace('_', ' ')} may shrink with {bound.remedy}")


def _check(result: TrimResult) -> None:
    """Print the runs, and whether removed instructions fault."""
    console.print(_runs(result))
    full, trimmed = result.cycles_full, result.cycles_trimmed
    if result.vault:
        console.print("every output of both equals the golden model's")
    elif not result.different and full == trimmed:
        console.print("memory, scratchpad, registers and cycles are the same on both engines")
    elif not result.different:
        console.print(
            "memory, scratchpad and registers are the same on both engines; the trimmed one "
            f"takes {abs(trimmed / full - 1):.2%} {'more' if trimmed > full else 'fewer'} cycles"
        )
    if result.unfaulted:
        console.print(f"removed without a fault: {', '.join(result.unfaulted)}")
    else:
        console.print(f"every removed instruction faults ({result.removed} tried)")


def show_trim(result: TrimResult, work: str, why: Sequence[str] = ()) -> None:
    """Print the removed parts, the reasons for the remaining ones, the savings, and the runs.

    Parameters:
        work: what the design is trimmed to, for the table of a proof.
        why: keys of instructions or units whose reasons are printed.
    """
    _cut(result.cut)
    if result.areas:
        counters = result.cut.trimmed.counters
        title = "area, with counters" if counters else "area, both without counters"
        console.print(_areas(result.areas, title))
    if result.vault and result.vault_areas:
        title = f"area of the vault: {result.vault.pes} engines and the memory controller"
        console.print(_areas(result.vault_areas, title))
    if result.areas and result.vault is None:
        note = "areas: each unit mapped alone; vip fit maps the engine as one netlist: less"
        console.print(note, style="dim")
    if result.checks:
        _check(result)
    for key in why:
        console.print(result.cut.why(key))
    if result.proof is not None:
        show_proofs({work: result.proof})
    if result.filled is not None:
        show_fit(result.filled)


def show_fit(chip: Filled) -> None:
    """Print a table of a chip beside that of full engines."""
    device = chip.device
    rows = table("", "full", "trimmed", title=f"{device.name}, filled")
    both = (chip.full or chip, chip)
    rows.add_row("engines", *(str(one.config.pes) for one in both))
    rows.add_row("vaults", *(f"{one.config.vaults}" for one in both))
    for name, part in device.capacity.items():
        used = [one.area.total.values.get(name, 0) for one in both]
        rows.add_row(f"{name} of {part:,.0f}", *(f"{value / part:.0%}" for value in used))
    rows.add_row("cycles that the host sees", *(f"{one.host_cycles:,}" for one in both))
    rows.add_row("throughput", "1.00", f"{chip.gain:.2f}")
    rows.add_row(f"GB/s at {CLOCK_MHZ:g} MHz", *(f"{one.gigabytes:.1f}" for one in both))
    if chip.board_gain is not None:
        size = device.board_bytes_per_second / 1e9
        rows.add_row(
            f"throughput on {device.board} ({size:.1f} GB/s)",
            "1.00",
            f"{chip.board_gain:.2f}",
        )
    console.print(rows)
