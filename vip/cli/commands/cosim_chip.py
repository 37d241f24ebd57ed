"""``vip cosim`` of a chip: what it runs and what it reports."""

from collections.abc import Callable
from pathlib import Path

from rich.table import Table

from isa.image import DramImage
from isa.program import Program
from isa.support.files import check_regular, open_without_waiting, write_atomically
from microkernels.bp.golden import labels as read_labels
from microkernels.data.stereo import StereoScene, percent_wrong
from pe.interface import PeCounter
from sim_tb.cosim.chip import ChipResult, run_program
from sim_tb.cosim.chip_session import ChipSimulation
from sim_tb.cosim.kernels import KernelOutcome
from soc.chip.config import ChipConfig
from soc.generate.generate import configuration_json
from soc.host.driver import Host
from soc.host.transport import Blocking, run
from vip.cli.console import console
from vip.cli.errors import UserError

__all__ = ["chip_bp_report", "chip_program", "chip_report", "show_chip_bp", "show_chip_program"]


_BLOCK_BYTES = 1 << 20


def chip_program(
    program: Program,
    config: ChipConfig,
    *,
    memory: Path | None,
    dump: tuple[int, int, Path] | None,
    parameters: int,
    max_cycles: int,
    outer: bool,
    trace: Path | None,
    progress: Callable[[int], None],
) -> ChipResult:
    """Run ``program`` on all engines of a chip.

    The host writes the file ``memory`` to the DRAM before, and reads what ``dump`` wants after,
    through the chip's AXI ports.
    """
    held = 0 if memory is None else check_regular(memory)
    if held > config.memory_bytes:
        raise UserError(
            f"--memory {memory}: it has {held:,} bytes, the chip's memory {config.memory_bytes:,}"
        )
    with (
        DramImage(config.memory_bytes) as image,
        ChipSimulation(config, image, outer=outer, trace=trace, progress=progress) as chip,
    ):
        host = Host(Blocking(chip))
        if memory is not None:
            _load(host, memory)
        result = run_program(chip, program, max_cycles=max_cycles, parameters=parameters)
        if dump is not None:
            address, count, path = dump
            write_atomically(path, run(host.read(address, count)))
    return result


def _load(host: Host, path: Path) -> None:
    """Write the file to the chip's memory from address 0 on, never all of it at once in ours."""
    address = 0
    with open(path, "rb", opener=open_without_waiting) as file:
        while block := file.read(_BLOCK_BYTES):
            run(host.write(address, block))
            address += len(block)


def chip_report(result: ChipResult, config: ChipConfig) -> dict[str, object]:
    """The numbers of a run as plain data."""
    return {
        "faults": [
            {
                "pe": fault.pe,
                "vault": fault.vault,
                "cause": fault.cause.name,
                "pc": fault.pc,
                "memory_error": fault.memory_error,
            }
            for fault in result.faults
        ],
        "cycles": result.program_cycles,
        "bandwidth_gbs": round(result.gbs, 3),
        "remote_request_share": round(result.remote_share, 6),
        "flits": result.flits,
        "counters": list(result.counters),
        "vault_counters": list(result.vaults),
        "network_counters": list(result.network),
        "simulation_seconds": round(result.seconds, 3),
        "simulated_cycles_per_second": round(result.cycles_per_second),
        "configuration": configuration_json(config),
    }


def chip_bp_report(
    outcome: KernelOutcome[ChipResult], scene: StereoScene, config: ChipConfig
) -> dict[str, object]:
    """The numbers of belief propagation as plain data."""
    report = chip_report(outcome.result, config)
    report |= {
        "match": outcome.match,
        "differing_elements": outcome.differing,
        "scene": scene.name,
        "width": scene.problem.width,
        "height": scene.problem.height,
        "labels": scene.problem.labels,
        "pes": outcome.pes,
        "updates": outcome.updates,
        "cycles_per_update": round(outcome.cycles_per_update, 3),
        "remote_byte_share": round(outcome.job.remote_bytes, 6),
    }
    if scene.truth is not None:
        chosen = read_labels(scene.problem, outcome.outputs)
        report["percent_wrong"] = round(percent_wrong(chosen, scene.truth), 2)
    return report


def show_chip_bp(outcome: KernelOutcome[ChipResult]) -> None:
    """Print what belief propagation came to."""
    verdict = "every message equals the golden model's"
    if not outcome.match:
        verdict = f"{outcome.differing} message elements DIFFER from the golden model"
    table = _table(verdict)
    table.add_row("engines", str(outcome.pes))
    table.add_row("message updates", f"{outcome.updates:,}")
    table.add_row("cycles per update and engine", f"{outcome.cycles_per_update:.2f}")
    table.add_row("bytes moved to another vault", f"{outcome.job.remote_bytes:.2%}")
    _add(table, outcome.result)
    console.print(table)


def show_chip_program(name: str, result: ChipResult) -> None:
    """Print what a program did."""
    ended = f"{len(result.faults)} engines faulted" if result.faults else "halted"
    table = _table(f"{name}: {ended}")
    for counter in PeCounter:
        values = [pe[counter.name] for pe in result.counters]
        if values:
            table.add_row(
                f"{counter.name.lower().replace('_', ' ')}, mean and most",
                f"{sum(values) / len(values):,.0f}  {max(values):,}",
            )
    _add(table, result)
    console.print(table)


def _table(title: str) -> Table:
    table = Table(title=title, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    return table


def _add(table: Table, result: ChipResult) -> None:
    """Rows that all runs of a chip have."""
    table.add_row("cycles", f"{result.program_cycles:,}")
    table.add_row("requests to another vault", f"{result.remote_share:.2%}")
    table.add_row("flits on links", f"{result.flits:,}")
    table.add_row("DRAM bandwidth, GB/s", f"{result.gbs:.2f}")
    table.add_row("simulated cycles a second", f"{result.cycles_per_second:,.0f}")
