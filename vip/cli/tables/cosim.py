"""Tables of ``vip cosim``."""

from collections.abc import Mapping

from rich.table import Table

from isa.run import RunResult
from microkernels.runtime.job import KernelOutcome
from pe.interface import PeCounter
from sim_tb.cosim.machine import On
from vip.cli.console import console
from vip.cosimulation.program import CosimRun
from vip.cosimulation.stereo import BpRun

from .difference import show_difference
from .machine import show_hazards, show_model_saturated, show_registers, show_saturated

__all__ = ["show_bp", "show_program"]

_MACHINES = {
    "rtl": "its Verilog",
    "model": "the timing model",
    "iss": "the instruction set simulator",
}


def _table(title: str, rows: Mapping[str, str]) -> None:
    table = Table(title=title, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)


def show_bp(run: BpRun) -> None:
    """Print the numbers of belief propagation."""
    outcome = run.outcome
    verdict = "every message equals the golden model's"
    if not run.match:
        verdict = f"{outcome.differing} message elements DIFFER from the golden model"
    result = outcome.result
    if result.host_cycles:
        rows = _chip_bp(outcome, result)
    elif len(result.engines) > 1 or result.vaults:
        rows = _vault_bp(outcome, result)
    else:
        rows = _engine_bp(outcome, result)
    _table(verdict, {"ran on": _MACHINES[run.on], **rows})
    show_model_saturated(outcome.job.saturated)


def _engine_bp(outcome: KernelOutcome, result: RunResult) -> dict[str, str]:
    counters = result.engine.counters
    if not counters:
        return {"message updates": f"{outcome.updates:,}"}
    return {
        "message updates": f"{outcome.updates:,}",
        "cycles": f"{outcome.cycles:,}",
        "cycles per update": f"{outcome.cycles_per_update:.2f}",
        "vector unit busy": f"{counters['VECTOR_BUSY'] / outcome.cycles:.1%}",
        **{
            name.lower().replace("_", " "): f"{count:,}"
            for name, count in counters.items()
            if name.startswith("STALL_") and count
        },
        "simulated cycles a second": f"{result.cycles_per_second:,.0f}",
    }


def _vault_bp(outcome: KernelOutcome, result: RunResult) -> dict[str, str]:
    shared = {"engines": str(outcome.pes), "message updates": f"{outcome.updates:,}"}
    if not result.counters:
        return shared
    return {
        **shared,
        "cycles": f"{outcome.cycles:,}",
        "cycles per update and engine": f"{outcome.cycles_per_update:.2f}",
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
        "data bus busy": f"{result.vaults[0]['BUS_BUSY'] / result.program_cycles:.1%}",
        "simulated cycles a second": f"{result.cycles_per_second:,.0f}",
    }


def _chip_bp(outcome: KernelOutcome, result: RunResult) -> dict[str, str]:
    return {
        "engines": str(outcome.pes),
        "message updates": f"{outcome.updates:,}",
        "cycles per update and engine": f"{outcome.cycles_per_update:.2f}",
        "bytes moved to another vault": f"{outcome.job.remote_bytes:.2%}",
        **_chip(result),
    }


def _chip(result: RunResult) -> dict[str, str]:
    """Rows common to all runs of a chip."""
    return {
        "cycles": f"{result.program_cycles:,}",
        "requests to another vault": f"{result.remote_share:.2%}",
        "flits on links": f"{result.flits:,}",
        "DRAM bandwidth, GB/s": f"{result.gbs:.2f}",
        "simulated cycles a second": f"{result.cycles_per_second:,.0f}",
    }


def show_program(name: str, run: CosimRun) -> None:
    """Print the results of the program ``name``."""
    if run.config.kind == "engine":
        _show_engine(name, run)
    else:
        _show_engines(name, run.on, run.result)


def _show_engine(name: str, run: CosimRun) -> None:
    end = run.result.engine
    rows = {"ran on": _MACHINES[run.on]}
    rows |= {
        counter.lower().replace("_", " "): f"{count:,}" for counter, count in end.counters.items()
    }
    compared = run.comparison
    if compared is not None:
        equal = "yes" if compared.match else "not known" if run.unknown else "NO"
        rows["equal to the simulator"] = equal
    _table(f"{name}: {end.state}", rows)
    show_registers(end.registers)
    if compared is not None:
        show_hazards(run.program, compared.hazards)
        show_saturated(run.program, compared.saturated)
    if run.located is not None:
        show_difference(run.located)


def _show_engines(name: str, on: On, result: RunResult) -> None:
    rows = {"ran on": _MACHINES[on]}
    for counter in PeCounter:
        values = [pe[counter.name] for pe in result.counters]
        if values:
            title = f"{counter.name.lower().replace('_', ' ')}, mean and most"
            rows[title] = f"{sum(values) / len(values):,.0f}  {max(values):,}"
    ended = f"{len(result.faults)} engines faulted" if result.faults else "halted"
    _table(
        f"{name}: {ended}", {**rows, **(_chip(result) if result.host_cycles else _vault(result))}
    )
