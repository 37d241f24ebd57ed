"""What ``vip trim`` found, as JSON and as tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from isa.table import Unit
from pe.interface import PeState
from sim_tb.cosim.trim_check import TrimCheck
from soc.generate.generate import configuration_json
from synth.analysis.trim import AreaComparison, TrimReport
from vip.cli.console import console

__all__ = ["Checked", "different", "show_trim", "sound", "trim_json"]

#: Target and measure of the area shown.
_AREAS = (
    ("generic", "logic_ge"),
    ("xc7", "luts"),
    ("xc7", "ffs"),
    ("xc7", "dsps"),
    ("xc7", "brams"),
)
#: Key in the JSON -> target and measure of what is saved.
_SAVED = {
    "ff_saved": ("xc7", "ffs"),
    "lut_saved": ("xc7", "luts"),
    "dsp_saved": ("xc7", "dsps"),
    "ge_saved": ("generic", "logic_ge"),
}


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A run on both engines.

    Attributes:
        name: of the program. zero_memory: whether the memory held nothing but zeros.
    """

    name: str
    check: TrimCheck
    zero_memory: bool


def sound(checks: Sequence[Checked]) -> bool:
    """Whether the trimmed engine does in every run what the full one does, and faults on all that
    it lacks."""
    return all(item.check.match and not item.check.unfaulted for item in checks)


def different(checks: Sequence[Checked]) -> list[str]:
    """What differs between the engines in any run, each once."""
    return list(dict.fromkeys(name for item in checks for name in item.check.different))


def _end(check: TrimCheck) -> str:
    full = check.full
    if full.state is PeState.FAULTED:
        return f"{full.cause.name} at word {full.pc}"
    return full.state.name.lower()


def _run_json(item: Checked) -> dict[str, object]:
    check = item.check
    return {
        "program": item.name,
        "match": check.match,
        "different": list(check.different),
        "state": check.full.state.name.lower(),
        "cause": check.full.cause.name,
        "pc": check.full.pc if check.full.state is PeState.FAULTED else None,
        "zero_memory": item.zero_memory,
        "cycles_full": check.cycles_full,
        "cycles_trimmed": check.cycles_trimmed,
    }


def trim_json(
    cut: TrimReport, checks: Sequence[Checked], areas: Mapping[str, AreaComparison]
) -> dict[str, object]:
    """The numbers of a trim; savings are fractions of the full engine.

    Parameters:
        checks: of all runs; without one there is nothing about results and cycles.
        areas: by target; without one there is nothing about area.
    """
    report: dict[str, object] = {"trim": cut.to_json()}
    if checks:
        unfaulted = [key for item in checks for key in item.check.unfaulted]
        report |= {
            "match": sound(checks),
            "different": different(checks),
            "cycles_full": sum(item.check.cycles_full for item in checks),
            "cycles_trimmed": sum(item.check.cycles_trimmed for item in checks),
            "removed_instructions": checks[0].check.removed,
            "removed_without_fault": sorted(set(unfaulted)),
            "runs": [_run_json(item) for item in checks],
        }
    if areas:
        report |= {key: areas[target].saved(name) for key, (target, name) in _SAVED.items()}
        report["areas"] = {target: area.to_json() for target, area in areas.items()}
    return report | {
        "configuration": configuration_json(cut.trimmed),
        "configuration_full": configuration_json(cut.full),
    }


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


def show_trim(
    cut: TrimReport, checks: Sequence[Checked], areas: Mapping[str, AreaComparison]
) -> None:
    """Print what was removed, why the rest is there, and what that saves; parameters as for
    :func:`trim_json`."""
    console.print(_instructions(cut))
    console.print(_sizes(cut))
    if areas:
        title = "area, with counters" if cut.trimmed.counters else "area, both without counters"
        table = Table(title=title)
        for heading in ("", "full", "trimmed", "saved"):
            table.add_column(heading, justify="right" if heading else "left")
        for target, name in _AREAS:
            area = areas[target]
            before, after = area.full.total.values[name], area.trimmed.total.values[name]
            table.add_row(name, f"{before:,.0f}", f"{after:,.0f}", f"{area.saved(name):.1%}")
        console.print(table)
    if not checks:
        return
    table = Table(title="runs on both engines")
    for heading in ("program", "memory", "end", "cycles, full", "cycles, trimmed", "the rest"):
        table.add_column(heading, justify="right" if "cycles" in heading else "left")
    for item in checks:
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
    console.print(table)
    if not different(checks):
        console.print("memory, scratchpad, registers and cycles are the same on both engines")
    unfaulted = sorted({key for item in checks for key in item.check.unfaulted})
    if unfaulted:
        console.print(f"removed, but no fault: {', '.join(unfaulted)}")
    else:
        console.print(f"each of the {checks[0].check.removed} removed instructions faults")
