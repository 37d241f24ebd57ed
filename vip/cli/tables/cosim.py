"""Tables of ``vip cosim``."""

from itertools import zip_longest

from isa.run import RunResult
from microkernels.runtime.job import KernelOutcome
from pe.interface import PeCounter
from sim_tb.cosim.difference import Commit, Content, FirstDifference
from sim_tb.cosim.machine import On
from support.errors import counted
from vip.cli.console import console, show_values, table, warn
from vip.cosimulation.program import CosimRun
from vip.cosimulation.stereo import BpRun

from .machine import MACHINES, show_hazards, show_model_saturated, show_registers, show_saturated

#: Most elements of an operand, and most differing stretches, shown.
_SHOWN = 8


def show_difference(difference: FirstDifference) -> None:
    """Print the instruction, what it reads, what differs and the last commits."""
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
        console.print(f"  and {len(difference.differing) - _SHOWN} more places")
    _show_commits(difference)


def _source(commit: Commit) -> str:
    return "" if commit.source is None else f" ({commit.source.file}:{commit.source.line})"


def _place(where: Content) -> str:
    return f"r{where.start}" if where.space == "register" else f"{where.space} {where.start:#x}"


def _numbers(content: bytes, size: int) -> str:
    """The signed elements of ``size`` bytes each."""
    numbers = [
        int.from_bytes(content[at : at + size], "little", signed=True)
        for at in range(0, len(content), size)
    ]
    return " ".join(map(str, numbers[:_SHOWN])) + (" ..." if len(numbers) > _SHOWN else "")


def _operand(operand: Content) -> str:
    numbers = _numbers(operand.expected, operand.bytes_each)
    if operand.space == "register" and not numbers.startswith("-"):
        return f"{int(numbers):#x}"
    return numbers


def _show_place(place: Content) -> None:
    for name, content in (("expected", place.expected), ("got", place.got or b"")):
        console.print(f"  {_place(place)}: {name:8} {_numbers(content, place.bytes_each)}")


def _show_commits(difference: FirstDifference) -> None:
    """The last instructions on the simulator and, with waveforms, those of the engine."""
    text = ("instruction", "line")
    engine = ("on the engine", "in cycles") if difference.passages else ()
    title = "last instructions; the final one differs"
    rows = table("number", "word", *text, *engine, left=text, title=title)
    # They may differ in length but end together.
    commits, passages = reversed(difference.commits), reversed(difference.passages)
    for commit, passage in reversed(list(zip_longest(commits, passages))):
        cells = ["", "", "", ""]
        if commit is not None:
            line = "" if commit.source is None else f"{commit.source.file}:{commit.source.line}"
            cells = [str(commit.number), str(commit.pc), commit.text, line]
        if passage is not None:
            cells += [f"word {passage.pc}", f"{passage.start}-{passage.end}"]
        rows.add_row(*cells)
    console.print(rows)


def show_bp(run: BpRun) -> None:
    """Print the figures of belief propagation."""
    outcome = run.outcome
    verdict = "every message equals the golden model's"
    if not run.match:
        verdict = f"{counted(outcome.differing, 'message element')} DIFFER from the golden model's"
    result = outcome.result
    if result.host_cycles:
        rows = _chip_bp(outcome, result)
    elif len(result.engines) > 1 or result.vaults:
        rows = _vault_bp(outcome, result)
    else:
        rows = _engine_bp(outcome, result)
    show_values(verdict, {"ran on": MACHINES[run.on], **rows})
    show_model_saturated(outcome.job.saturated)


def _engine_bp(outcome: KernelOutcome, result: RunResult) -> dict[str, str]:
    counters = result.engine.counters
    rows = {"message updates": f"{outcome.updates:,}"}
    if outcome.cycles:
        rows |= {
            "cycles": f"{outcome.cycles:,}",
            "cycles per update": f"{outcome.cycles_per_update:.2f}",
        }
    if not counters:
        return rows
    return {
        **rows,
        "vector unit busy": f"{counters['VECTOR_BUSY'] / outcome.cycles:.1%}",
        **{
            name.lower().replace("_", " "): f"{count:,}"
            for name, count in counters.items()
            if name.startswith("STALL_") and count
        },
        "simulated cycles per second": f"{result.cycles_per_second:,.0f}",
    }


def _vault_bp(outcome: KernelOutcome, result: RunResult) -> dict[str, str]:
    shared = {"engines": str(outcome.pes), "message updates": f"{outcome.updates:,}"}
    if not result.counters:
        return shared
    return {
        **shared,
        "cycles": f"{outcome.cycles:,}",
        "cycles per update per engine": f"{outcome.cycles_per_update:.2f}",
        **{
            f"engine {pe.slot}: vector unit busy": (
                f"{pe.counters['VECTOR_BUSY'] / outcome.cycles:.1%}"
            )
            for pe in result.engines
        },
        **_vault(result),
    }


def _vault(result: RunResult) -> dict[str, str]:
    """Rows common to all runs of a vault; none without counters."""
    if not result.vaults:
        return {}
    return {
        "DRAM bandwidth, GB/s": f"{result.gbs:.2f}",
        "row hits": f"{result.row_hits:.1%}",
        "data bus busy": f"{result.vaults[0]['BUS_BUSY'] / result.cycles:.1%}",
        "simulated cycles per second": f"{result.cycles_per_second:,.0f}",
    }


def _chip_bp(outcome: KernelOutcome, result: RunResult) -> dict[str, str]:
    return {
        "engines": str(outcome.pes),
        "message updates": f"{outcome.updates:,}",
        "cycles per update per engine": f"{outcome.cycles_per_update:.2f}",
        "bytes moved to another vault": f"{outcome.job.remote_bytes:.2%}",
        **_chip(result),
    }


def _chip(result: RunResult) -> dict[str, str]:
    """Rows common to all runs of a chip."""
    return {
        "cycles": f"{result.cycles:,}",
        "requests to another vault": f"{result.remote_share:.2%}",
        "flits on links": f"{result.flits:,}",
        "DRAM bandwidth, GB/s": f"{result.gbs:.2f}",
        "simulated cycles per second": f"{result.cycles_per_second:,.0f}",
    }


def show_program(name: str, run: CosimRun) -> None:
    """Print the results of the program ``name``."""
    _show_faults(run)
    if run.config.kind == "engine":
        _show_engine(name, run)
    else:
        _show_engines(name, run.on, run.result)


def _show_faults(run: CosimRun) -> None:
    """Print why the first of the faulted engines faulted, on standard error."""
    faults = run.result.faults
    if not faults:
        return
    if run.config.kind == "engine":
        warn(faults[0].fault)
        return
    rest = len(faults) - 1
    also = f"; {counted(rest, 'more engine')} faulted" if rest else ""
    warn(f"{faults[0]}{also}")


def _show_engine(name: str, run: CosimRun) -> None:
    end = run.result.engine
    rows = {"ran on": MACHINES[run.on]}
    if run.cycles:
        rows["cycles"] = f"{run.cycles:,}"
    rows |= {
        counter.lower().replace("_", " "): f"{count:,}" for counter, count in end.counters.items()
    }
    compared = run.comparison
    if compared is not None:
        equal = "yes" if compared.match else "not known" if run.unknown else "NO"
        rows["equal to the simulator"] = equal
    if compared is not None:
        show_hazards(run.program, compared.hazards)
        show_saturated(run.program, compared.saturated)
    show_values(f"{name}: {end.state}", rows)
    show_registers(end.registers)
    if run.located is not None:
        show_difference(run.located)


def _show_engines(name: str, on: On, result: RunResult) -> None:
    rows = {"ran on": MACHINES[on]}
    for counter in PeCounter:
        values = [pe[counter.name] for pe in result.counters]
        if values:
            title = f"{counter.name.lower().replace('_', ' ')}, mean and most"
            rows[title] = f"{sum(values) / len(values):,.0f}  {max(values):,}"
    count = len(result.faults)
    ended = f"{counted(count, 'engine')} faulted" if count else "halted"
    show_values(
        f"{name}: {ended}", {**rows, **(_chip(result) if result.host_cycles else _vault(result))}
    )
