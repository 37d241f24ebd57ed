"""``vip cosim``: programs on the Verilog of an engine, a vault with its engines, or a chip."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from microkernels.bp.golden import labels as read_labels
from microkernels.bp.jobs import bp_job
from microkernels.data.stereo import StereoScene, motorcycle, percent_wrong, read_pair, stereo_scene
from microkernels.data.stereo_picture import draw
from pe.config import PeConfig
from pe.interface import PeState
from sim_tb.cosim.chip import ChipResult
from sim_tb.cosim.engine import CosimResult, MemoryBehaviour
from sim_tb.cosim.kernels import (
    KernelOutcome,
    chip_bp_job,
    cosim_chip,
    cosim_engine,
    cosim_vault,
)
from sim_tb.cosim.vault import VaultResult
from sim_tb.measure.bandwidth_plot import draw_bandwidth
from soc.chip.config import ChipConfig
from soc.generate.designs import Configuration
from soc.generate.generate import configuration_json
from soc.generate.presets import any_preset, preset
from soc.tile.config import VaultTileConfig
from vip.cli.console import console, counted, tally, warn
from vip.cli.errors import UserError
from vip.output import write_json

from .assembly import read_program
from .cosim_chip import chip_bp_report, chip_program, chip_report, show_chip_bp, show_chip_program
from .cosim_engine import engine_program, engine_report, show_engine_program
from .cosim_vault import show_vault_bp, vault_bp_report
from .machine import DumpOption, MemoryOption, check_dump, show_model_saturated
from .options import JsonOption, ParametersOption, PresetOption, drawing, reading, writing

__all__ = ["app", "bp_report", "scene_of", "show_bp"]

app = typer.Typer(
    help="Run programs on the Verilog of an engine, a vault or a chip.",
    no_args_is_help=True,
)

TraceOption = Annotated[
    Path | None,
    typer.Option(
        help="Write waveforms, .fst or .vcd; about ten times slower.",
        metavar="FILE",
        callback=writing(".fst", ".vcd"),
    ),
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
OuterOption = Annotated[
    bool,
    typer.Option(
        "--cocotbext-axi", help="Let cocotbext-axi's masters drive a chip's buses; slower."
    ),
]
PreloadOption = Annotated[
    bool,
    typer.Option("--preload", help="Put a chip's problem into its DRAM without the AXI port."),
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
    outcome: KernelOutcome[CosimResult], scene: StereoScene, config: PeConfig
) -> dict[str, object]:
    """The numbers of a run as plain data."""
    chosen = read_labels(scene.problem, outcome.outputs)
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


def show_bp(outcome: KernelOutcome[CosimResult]) -> None:
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


#: Options that say something about one kind of preset alone.
_ONLY_FOR: dict[type, tuple[str, ...]] = {
    PeConfig: ("latency", "bandwidth", "stall", "out_of_order", "seed", "compare"),
    VaultTileConfig: ("pes", "plot"),
    ChipConfig: ("cocotbext_axi", "preload"),
}
_KINDS = {
    PeConfig: "one engine",
    VaultTileConfig: "a vault, which has its own memory",
    ChipConfig: "a chip, which has its own memory",
}
#: Pixels across and down: of the demonstration, and of the thesis's tile (6.1).
_ENGINE_SIZE = (64, 48)
_VAULT_SIZE = (60, 34)
#: Of an image that a small chip does in a minute.
_CHIP_SIZE = (32, 24)
_SIZES = {PeConfig: _ENGINE_SIZE, VaultTileConfig: _VAULT_SIZE, ChipConfig: _CHIP_SIZE}


def _check_options(context: typer.Context, preset_name: str, config: Configuration) -> None:
    """Refuse options that say nothing about the kind of preset."""
    for kind, names in _ONLY_FOR.items():
        for name in () if isinstance(config, kind) else names:
            source = context.get_parameter_source(name)
            if source is not None and source.name == "COMMANDLINE":
                raise UserError(
                    f"--{name.replace('_', '-')} can't be used: preset {preset_name!r} is "
                    f"{_KINDS[type(config)]}"
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
        typer.Option(
            help="Left photograph (default: the Motorcycle pair).",
            metavar="FILE",
            callback=reading(),
        ),
    ] = None,
    right: Annotated[
        Path | None,
        typer.Option(help="Right photograph.", metavar="FILE", callback=reading()),
    ] = None,
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
        Path | None,
        typer.Option(
            help="Write the disparities as PNG or SVG.", metavar="FILE", callback=drawing()
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Write a vault's bandwidth over time as PNG or SVG.",
            metavar="FILE",
            callback=drawing(),
        ),
    ] = None,
    cocotbext_axi: OuterOption = False,
    preload: PreloadOption = False,
    trace: TraceOption = None,
    json: JsonOption = None,
) -> None:
    """Belief propagation (BP-M) for depth from stereo, checked against the golden model.

    On a vault its engines share the grid and real DRAM timing. On a chip all engines do, and the
    host writes and reads through the AXI ports.

    Example: vip cosim bp --latency 60 --json bp.json --picture depth.png

    Example: vip cosim bp --preset vault --iterations 1 --plot bandwidth.png

    Example: vip cosim bp --preset tiny --iterations 2
    """
    config = any_preset(preset_name)
    _check_options(context, preset_name, config)
    size = _SIZES[type(config)]
    scene = scene_of(
        left,
        right,
        width=size[0] if width is None else width,
        height=size[1] if height is None else height,
        labels=labels,
        disparities=disparities,
    )
    memory = _memory(latency, bandwidth, stall, out_of_order, seed)
    expected = 81 * scene.problem.updates * iterations
    outcome: KernelOutcome[CosimResult] | KernelOutcome[VaultResult] | KernelOutcome[ChipResult]
    show: Callable[[], None]
    if isinstance(config, VaultTileConfig):
        job = bp_job(
            scene.problem,
            iterations,
            pes=pes or config.pes,
            scratchpad_bytes=config.pe.scratchpad_bytes,
        )
        with counted("cosimulation (cycles)", expected / job.pes) as done:
            outcome = shared = cosim_vault(job, config, trace=trace, progress=done)
        if plot is not None:
            draw_bandwidth(shared.result, plot, caption=f"BP-M on {shared.pes} engines of a vault")
        report = vault_bp_report(shared, scene, config)
        show = partial(show_vault_bp, shared)
    elif isinstance(config, ChipConfig):
        with tally("cosimulation (cycles)") as done:
            outcome = spread = cosim_chip(
                chip_bp_job(scene.problem, iterations, config),
                config,
                preload=preload,
                outer=cocotbext_axi,
                trace=trace,
                progress=done,
            )
        report = chip_bp_report(spread, scene, config)
        show = partial(show_chip_bp, spread)
    else:
        job = bp_job(scene.problem, iterations, scratchpad_bytes=config.scratchpad_bytes)
        with counted("cosimulation (cycles)", expected) as done:
            outcome = alone = cosim_engine(job, config, memory=memory, trace=trace, progress=done)
        report = bp_report(alone, scene, config)
        show = partial(show_bp, alone)
    if picture is not None:
        caption = f"BP-M on {outcome.pes} engine(s), {iterations} iterations"
        draw(scene, read_labels(scene.problem, outcome.outputs), picture, caption=caption)
    write_json(json, report | {"saturated": outcome.job.saturated})
    show()
    show_model_saturated(outcome.job.saturated)
    if not outcome.match:
        raise typer.Exit(1)


def _words(config: Configuration) -> int:
    """Words that an engine of ``config`` has room for."""
    if isinstance(config, ChipConfig):
        config = config.tile
    engine = config if isinstance(config, PeConfig) else config.pe
    return engine.instruction_words


@app.command("program")
def run_program(
    context: typer.Context,
    program: Annotated[
        Path,
        typer.Argument(
            help="Program file, or assembly (.s).", metavar="PROGRAM", callback=reading()
        ),
    ],
    preset_name: PresetOption = "pe",
    memory: MemoryOption = None,
    parameters: ParametersOption = 0,
    max_cycles: Annotated[int, typer.Option(help="Give up after so many.", min=1)] = 100_000_000,
    latency: LatencyOption = 20,
    bandwidth: BandwidthOption = 8,
    stall: StallOption = 0,
    out_of_order: ShuffleOption = False,
    seed: SeedOption = 1,
    cocotbext_axi: OuterOption = False,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare/--no-compare", help="Compare one engine with the instruction set simulator."
        ),
    ] = True,
    dump: DumpOption = None,
    trace: TraceOption = None,
    json: JsonOption = None,
) -> None:
    """Run any program and report its end, counters and registers.

    What one engine leaves is compared with the instruction set simulator: its end, registers,
    scratchpad and memory. The first difference gets a line, and the exit code is 1. On a chip all
    engines run the program, the host drives the AXI ports, and nothing is compared.

    Example: vip cosim program kernel.vip --memory image.bin --dump 4096 512 out.bin

    Example: vip cosim program kernel.s --preset tiny --parameters 4096
    """
    config = any_preset(preset_name)
    _check_options(context, preset_name, config)
    loaded = read_program(program, _words(config))
    if isinstance(config, ChipConfig):
        wanted = check_dump(dump, config.memory_bytes)
        with tally("cosimulation (cycles)") as done:
            spread = chip_program(
                loaded,
                config,
                memory=memory,
                dump=wanted,
                parameters=parameters,
                max_cycles=max_cycles,
                outer=cocotbext_axi,
                trace=trace,
                progress=done,
            )
        write_json(json, chip_report(spread, config))
        show_chip_program(program.name, spread)
        if spread.faults:
            raise UserError(f"{program}: {spread.faults[0]}")
        return
    config = preset(preset_name)
    wanted = check_dump(dump, 1 << config.address_bits)
    with tally("cosimulation (cycles)") as done:
        run = engine_program(
            loaded,
            config,
            memory=memory,
            dump=wanted,
            parameters=parameters,
            max_cycles=max_cycles,
            behaviour=_memory(latency, bandwidth, stall, out_of_order, seed),
            compare=compare,
            trace=trace,
            progress=done,
        )
    write_json(json, engine_report(run, config))
    show_engine_program(program.name, loaded, run)
    if run.comparison is not None and not run.comparison.match:
        warn(f"{program}: the engine differs from the simulator: {run.comparison.differences[0]}")
        raise typer.Exit(1)
    if run.result.state is PeState.FAULTED:
        raise UserError(f"{program}: fault {run.result.cause.name} at word {run.result.pc}")
