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
    show_values(verdict, {"ran on": MACHINES[run.on], **_bp(outcome)})
    show_model_saturated(outcome.job.saturated)


def _bp(outcome: KernelOutcome) -> dict[str, str]:
    """Rows of belief propagation; cycles and counters only if they are known."""
    result = outcome.result
    alone = len(result.engines) == 1 and not result.vaults
    rows = {} if alone else {"engines": str(outcome.pes)}
    rows["message updates"] = f"{outcome.updates:,}"
    if outcome.cycles:
        mean = "cycles per update" if alone else "cycles per update per engine"
        rows |= {"cycles": f"{outcome.cycles:,}", mean: f"{outcome.cycles_per_update:.2f}"}
    if result.host_cycles:
        rows["bytes moved to another vault"] = f"{outcome.job.remote_bytes:.2%}"
    elif result.counters:
        for pe in result.engines:
            name = "vector unit busy" if alone else f"engine {pe.slot}: vector unit busy"
            rows[name] = f"{pe.counters['VECTOR_BUSY'] / outcome.cycles:.1%}"
    if alone:
        rows |= {
            name.lower().replace("_", " "): f"{count:,}"
            for name, count in result.engine.counters.items()
            if name.startswith("STALL_") and count
        }
    return rows | (_machine(result) if result.counters or result.host_cycles else {})


def _machine(result: RunResult) -> dict[str, str]:
    """Rows of network, memory and simulation, as far as the machine has them."""
    rows = {}
    if result.host_cycles:
        rows["requests to another vault"] = f"{result.remote_share:.2%}"
        rows["flits on links"] = f"{result.flits:,}"
    if result.vaults:
        rows["DRAM bandwidth, GB/s"] = f"{result.gbs:.2f}"
    if result.vaults and not result.host_cycles:
        rows["row hits"] = f"{result.row_hits:.1%}"
        rows["data bus busy"] = f"{result.vaults[0]['BUS_BUSY'] / result.cycles:.1%}"
    return {**rows, "simulated cycles per second": f"{result.cycles_per_second:,.0f}"}


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
    if result.host_cycles:
        rows["cycles"] = f"{result.cycles:,}"
    count = len(result.faults)
    ended = f"{counted(count, 'engine')} faulted" if count else "halted"
    show_values(
        f"{name}: {ended}", rows | (_machine(result) if result.vaults or result.host_cycles else {})
    )
