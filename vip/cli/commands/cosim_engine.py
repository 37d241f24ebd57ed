"""``vip cosim program`` of one engine: what it runs and what it reports."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from isa.image import DramImage
from isa.program import Program
from pe.config import PeConfig
from sim_tb.cosim.compare import Comparison, compare_run
from sim_tb.cosim.engine import CosimResult, MemoryBehaviour, run_pe
from soc.generate.generate import configuration_json
from vip.cli.console import console

from .machine import show_hazards, show_registers, show_saturated

__all__ = ["EngineRun", "engine_program", "engine_report", "show_engine_program"]


@dataclass(frozen=True, kw_only=True)
class EngineRun:
    """A program's run. comparison: with the simulator; None if there was none."""

    result: CosimResult
    comparison: Comparison | None


def engine_program(
    program: Program,
    config: PeConfig,
    *,
    memory: Path | None,
    dump: tuple[int, int, Path] | None,
    parameters: int,
    max_cycles: int,
    behaviour: MemoryBehaviour,
    compare: bool,
    trace: Path | None,
    progress: Callable[[int], None],
) -> EngineRun:
    """Run ``program`` on one engine, and on the simulator if ``compare``.

    The memory holds the file ``memory`` before; what ``dump`` wants is written after.
    """
    size = 1 << config.address_bits
    comparison: Comparison | None = None
    with DramImage(size) as image, DramImage(size) as start:
        for each in (image, start) if compare else (image,):
            if memory is not None:
                each.load_file(0, memory)
        result = run_pe(
            program,
            image,
            config=config,
            max_cycles=max_cycles,
            memory=behaviour,
            parameters=parameters,
            trace=trace,
            progress=progress,
        )
        if compare:
            comparison = compare_run(
                program, result, image, start, config=config, parameters=parameters
            )
        if dump is not None:
            address, count, path = dump
            image.save_file(address, count, path)
    return EngineRun(result=result, comparison=comparison)


def engine_report(run: EngineRun, config: PeConfig) -> dict[str, object]:
    """The numbers of a run as plain data; without a comparison, what it says is None."""
    result, compared = run.result, run.comparison
    return {
        "state": result.state.name.lower(),
        "cause": result.cause.name,
        "pc": result.pc,
        "cycles": result.counters["CYCLES"] or result.cycles,
        "counters": result.counters,
        "registers": result.registers,
        "match": None if compared is None else compared.match,
        "differences": None if compared is None else list(compared.differences),
        "hazards": None if compared is None else [item.report() for item in compared.hazards],
        "saturated": None if compared is None else sum(compared.saturated),
        "configuration": configuration_json(config),
    }


def show_engine_program(name: str, program: Program, run: EngineRun) -> None:
    """Print what a program did."""
    result = run.result
    table = Table(title=f"{name}: {result.state.name.lower()}", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for counter, count in result.counters.items():
        table.add_row(counter.lower().replace("_", " "), f"{count:,}")
    if run.comparison is not None:
        table.add_row("equal to the simulator", "yes" if run.comparison.match else "NO")
    console.print(table)
    show_registers(result.registers)
    if run.comparison is not None:
        show_hazards(program, run.comparison.hazards)
        show_saturated(program, run.comparison.saturated)
