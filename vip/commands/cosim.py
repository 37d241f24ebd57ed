"""``vip cosim``: programs on the Verilog of an engine, or of a vault with its engines."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from hdl.config import PeConfig
from hdl.ports import PeState
from isa.image import DramImage
from kernels.bp_golden import labels as read_labels
from kernels.stereo import StereoScene, motorcycle, percent_wrong, read_pair, stereo_scene
from kernels.stereo_picture import draw
from sim_tb.bandwidth_plot import draw_bandwidth
from sim_tb.bp_cosim import BpJob, BpOutcome, cosim_bp, cosim_vault_bp
from sim_tb.cosim import CosimResult, MemoryBehaviour, run_pe
from sim_tb.vault_cosim import VaultResult
from soc.config import VaultTileConfig
from soc.generate import configuration_json
from soc.presets import any_preset, preset

from ..console import console, counted, tally
from ..errors import UserError
from ..output import check_outputs, write_json
from .assembly import read_program
from .cosim_vault import show_vault_bp, vault_bp_report
from .machine import DumpOption, MemoryOption, check_dump, show_registers
from .options import JsonOption, PresetOption

__all__ = ["app", "bp_report", "scene_of", "show_bp"]

app = typer.Typer(
    help="Run programs on the Verilog of a processing engine (Verilator under cocotb).",
    no_args_is_help=True,
)

TraceOption = Annotated[
    Path | None,
    typer.Option(help="Write waveforms, .fst or .vcd; about ten times slower.", metavar="FILE"),
]
LatencyOption = Annotated[
    int, typer.Option(help="Memory latency in cycles.", min=1, max=1_000_000, metavar="CYCLES")
]
BandwidthOption = Annotated[
    float, typer.Option(help="Memory bandwidth in bytes per cycle.", min=0.03125, max=8)
]
SeedOption = Annotated[int, typer.Option(help="Seed of everything random in the memory.", min=0)]
StallOption = Annotated[
    float, typer.Option(help="Chance per cycle that the memory refuses a request.", min=0, max=0.99)
]
ShuffleOption = Annotated[
    bool, typer.Option("--out-of-order", help="Answer requests in random order.")
]


def _memory(
    latency: int, bandwidth: float, stall: float, out_of_order: bool, seed: int
) -> MemoryBehaviour:
    return MemoryBehaviour(
        latency=latency,
        bandwidth=max(1, round(bandwidth * 32)),
        stall=stall,
        gap=stall,
        out_of_order=out_of_order,
        seed=seed,
    )


def scene_of(
    left: Path | None,
    right: Path | None,
    *,
    width: int,
    height: int,
    labels: int,
    disparities: tuple[int, int] = (0, 64),
) -> StereoScene:
    """The stereo problem of the two photographs given, or of the Motorcycle pair."""
    if left is None and right is None:
        return motorcycle(width, height, labels)
    if left is None or right is None:
        raise UserError("--left and --right go together")
    images = read_pair(left, right)
    return stereo_scene(
        *images,
        width=width,
        height=height,
        labels=labels,
        disparities=disparities,
        name=left.stem,
    )


def bp_report(
    outcome: BpOutcome[CosimResult], scene: StereoScene, config: PeConfig
) -> dict[str, object]:
    """The numbers of a run as plain data."""
    chosen = read_labels(scene.problem, outcome.messages)
    report: dict[str, object] = {
        "match": outcome.match,
        "differing_elements": outcome.differing,
        "scene": scene.name,
        "width": scene.problem.width,
        "height": scene.problem.height,
        "labels": scene.problem.labels,
        "updates": outcome.updates,
        "cycles": outcome.cycles,
        "cycles_per_update": round(outcome.cycles_per_update, 3),
        "counters": outcome.result.counters,
        "simulation_seconds": round(outcome.result.wall_seconds, 3),
        "simulated_cycles_per_second": round(outcome.result.cycles_per_second),
        "configuration": configuration_json(config),
    }
    if scene.truth is not None:
        report["percent_wrong"] = round(percent_wrong(chosen, scene.truth), 2)
    return report


def show_bp(outcome: BpOutcome[CosimResult]) -> None:
    """Print what a run came to."""
    counters = outcome.result.counters
    verdict = "every message equals the golden model's"
    if not outcome.match:
        verdict = f"{outcome.differing} message elements DIFFER from the golden model"
    table = Table(title=verdict, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_row("message updates", f"{outcome.updates:,}")
    table.add_row("cycles", f"{outcome.cycles:,}")
    table.add_row("cycles per update", f"{outcome.cycles_per_update:.2f}")
    table.add_row("vector unit busy", f"{counters['VECTOR_BUSY'] / outcome.cycles:.1%}")
    for name, count in counters.items():
        if name.startswith("STALL_") and count:
            table.add_row(name.lower().replace("_", " "), f"{count:,}")
    table.add_row("simulated cycles a second", f"{outcome.result.cycles_per_second:,.0f}")
    console.print(table)


#: Options of the memory beside one engine, and those of a vault, which it has not.
_BESIDE_ENGINE = ("latency", "bandwidth", "stall", "out_of_order", "seed")
_OF_VAULT = ("pes", "plot")
#: Pixels across and down: of the demonstration, and of the thesis's tile (6.1).
_ENGINE_SIZE = (64, 48)
_VAULT_SIZE = (60, 34)


def _check_options(context: typer.Context, preset_name: str, *, vault: bool) -> None:
    """Refuse options that say nothing about the kind of preset."""
    for name in _BESIDE_ENGINE if vault else _OF_VAULT:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            has = "a vault, which has its own memory" if vault else "one engine"
            raise UserError(
                f"--{name.replace('_', '-')} can't be used: preset {preset_name!r} is {has}"
            )


@app.command()
def bp(
    context: typer.Context,
    preset_name: PresetOption = "pe",
    width: Annotated[
        int | None, typer.Option(help="Pixels across (default: 64; a vault's: 60).", min=1)
    ] = None,
    height: Annotated[
        int | None, typer.Option(help="Pixels down (default: 48; a vault's: 34).", min=1)
    ] = None,
    labels: Annotated[int, typer.Option(help="Labels (disparity levels).", min=1)] = 16,
    iterations: Annotated[int, typer.Option(help="BP-M iterations.", min=1, max=1000)] = 5,
    left: Annotated[
        Path | None,
        typer.Option(help="Left photograph (default: the Motorcycle pair).", metavar="FILE"),
    ] = None,
    right: Annotated[Path | None, typer.Option(help="Right photograph.", metavar="FILE")] = None,
    disparities: Annotated[
        tuple[int, int], typer.Option(help="Range of disparities in pixels, with --left.")
    ] = (0, 64),
    latency: LatencyOption = 20,
    bandwidth: BandwidthOption = 8,
    stall: StallOption = 0,
    out_of_order: ShuffleOption = False,
    seed: SeedOption = 1,
    pes: Annotated[
        int | None, typer.Option(help="Engines of a vault that work (default: all).", min=1)
    ] = None,
    picture: Annotated[
        Path | None, typer.Option(help="Write the disparities as a PNG.", metavar="FILE")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Write a vault's bandwidth over time as a PNG.", metavar="FILE"),
    ] = None,
    trace: TraceOption = None,
    json: JsonOption = None,
) -> None:
    """Belief propagation (BP-M) for depth from stereo, checked against the golden model.

    On a vault its engines share the grid and real DRAM timing.

    Example: vip cosim bp --latency 60 --json bp.json --picture depth.png

    Example: vip cosim bp --preset vault --iterations 1 --plot bandwidth.png
    """
    check_outputs(picture, plot, trace, json)
    config = any_preset(preset_name)
    vault = isinstance(config, VaultTileConfig)
    _check_options(context, preset_name, vault=vault)
    size = _VAULT_SIZE if vault else _ENGINE_SIZE
    scene = scene_of(
        left,
        right,
        width=size[0] if width is None else width,
        height=size[1] if height is None else height,
        labels=labels,
        disparities=disparities,
    )
    memory = _memory(latency, bandwidth, stall, out_of_order, seed)
    job = BpJob(problem=scene.problem, iterations=iterations, memory=memory)
    expected = 81 * scene.problem.updates * iterations
    outcome: BpOutcome[CosimResult] | BpOutcome[VaultResult]
    show: Callable[[], None]
    if isinstance(config, VaultTileConfig):
        with counted("cosimulation (cycles)", expected / (pes or config.pes)) as done:
            outcome = shared = cosim_vault_bp(job, config, pes=pes, trace=trace, progress=done)
        if plot is not None:
            draw_bandwidth(shared.result, plot, caption=f"BP-M on {shared.pes} engines of a vault")
        report = vault_bp_report(shared, scene, config)
        show = partial(show_vault_bp, shared)
    else:
        with counted("cosimulation (cycles)", expected) as done:
            outcome = alone = cosim_bp(job, config, trace=trace, progress=done)
        report = bp_report(alone, scene, config)
        show = partial(show_bp, alone)
    if picture is not None:
        caption = f"BP-M on {outcome.pes} engine(s), {iterations} iterations"
        draw(scene, read_labels(scene.problem, outcome.messages), picture, caption=caption)
    write_json(json, report)
    show()
    if not outcome.match:
        raise typer.Exit(1)


@app.command("program")
def run_program(
    program: Annotated[
        Path, typer.Argument(help="Program file, or assembly (.s).", metavar="PROGRAM")
    ],
    preset_name: PresetOption = "pe",
    memory: MemoryOption = None,
    parameters: Annotated[
        int, typer.Option(help="DRAM address of the parameter block (r5).", metavar="ADDRESS")
    ] = 0,
    max_cycles: Annotated[int, typer.Option(help="Give up after so many.", min=1)] = 100_000_000,
    latency: LatencyOption = 20,
    bandwidth: BandwidthOption = 8,
    stall: StallOption = 0,
    out_of_order: ShuffleOption = False,
    seed: SeedOption = 1,
    dump: DumpOption = None,
    trace: TraceOption = None,
    json: JsonOption = None,
) -> None:
    """Run any program and report its end, counters and registers.

    Example: vip cosim program kernel.vip --memory image.bin --dump 4096 512 out.bin
    """
    check_outputs(trace, json)
    config = preset(preset_name)
    check_dump(dump, config)
    loaded = read_program(program)
    with DramImage(1 << config.address_bits) as image:
        if memory is not None:
            image.load_file(0, memory)
        with tally("cosimulation (cycles)") as done:
            result = run_pe(
                loaded,
                image,
                config=config,
                max_cycles=max_cycles,
                memory=_memory(latency, bandwidth, stall, out_of_order, seed),
                parameters=parameters,
                trace=trace,
                progress=done,
            )
        if dump is not None:
            address, count, path = dump
            image.save_file(address, count, path)
    write_json(
        json,
        {
            "state": result.state.name.lower(),
            "cause": result.cause.name,
            "pc": result.pc,
            "cycles": result.counters["CYCLES"] or result.cycles,
            "counters": result.counters,
            "registers": result.registers,
            "configuration": configuration_json(config),
        },
    )
    title = f"{program.name}: {result.state.name.lower()}"
    table = Table(title=escape(title), show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, count in result.counters.items():
        table.add_row(name.lower().replace("_", " "), f"{count:,}")
    console.print(table)
    show_registers(result.registers)
    if result.state is PeState.FAULTED:
        raise UserError(f"{program}: fault {result.cause.name} at word {result.pc}")
