"""``vip cosim``: programs on the Verilog of an engine, a vault with its engines, or a chip."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

import vip
from microkernels.data.pictures import need_photographs
from microkernels.data.stereo import StereoScene
from sim_tb.cosim.difference import COMMITS
from sim_tb.cosim.machine import On
from sim_tb.waves.saved import SAVE_ENDINGS
from soc.generate.designs import Configuration
from soc.generate.presets import design
from support.command import USER_ERROR
from support.extras import together
from support.picture import check_picture
from vip.cli.console import shown, warn
from vip.cli.errors import UserError
from vip.cli.groups import Answer
from vip.cli.lazy import CommandGroup
from vip.cli.tables.cosim import show_bp, show_program
from vip.cosimulation.runs import need_machine
from vip.programs import LIMIT

from .option_groups.design import (
    DesignOption,
    DumpOption,
    MemoryOption,
    ProgramArgument,
    dump_of,
    naming_dump,
)
from .option_groups.machine import BehaviourOption, OnOption, TargetOption
from .options import (
    CyclesOption,
    ParametersOption,
    PresetOption,
    drawing,
    file_option,
    is_given,
    writing,
)

app = typer.Typer(
    cls=CommandGroup,
    help="Run programs on the Verilog of an engine, a vault or a chip.",
    no_args_is_help=True,
)

TraceOption = Annotated[
    Path | None,
    file_option(
        "Write waveforms (.fst or .vcd; about ten times slower) or events over time for "
        "Perfetto (.json).",
        writing(".fst", ".vcd", ".json"),
    ),
]
PipelineOption = Annotated[
    Path | None,
    file_option("Log each instruction's path through the pipeline, for Konata.", writing()),
]
OuterOption = Annotated[
    bool,
    typer.Option(
        "--cocotbext-axi", help="Drive a chip's buses with cocotbext-axi's masters (slower)."
    ),
]


def _scene(
    *,
    width: Annotated[
        int | None,
        typer.Option(
            help="Width in pixels, also above the pair's (default: 64; on a vault: 60).",
            min=1,
        ),
    ] = None,
    height: Annotated[
        int | None, typer.Option(help="Height in pixels (default: 48; on a vault: 34).", min=1)
    ] = None,
    labels: Annotated[int, typer.Option(help="Labels (disparity levels).", min=1)] = 16,
) -> Callable[..., StereoScene]:
    """:func:`vip.stereo_pair` of a grid on the Motorcycle pair, which needs the machine's
    ``config``."""
    return partial(vip.stereo_pair, width=width, height=height, labels=labels)


SceneOption = Annotated[Callable[..., StereoScene], _scene]

#: Options of the memory beside one engine.
_MEMORY = ("latency", "bandwidth", "stall", "out_of_order", "seed")
#: Options that apply to only one kind of preset.
_ONLY_FOR: dict[str, tuple[str, ...]] = {
    "engine": (*_MEMORY, "compare", "window", "save", "commits"),
    "vault": ("engines", "traffic"),
    "chip": ("cocotbext_axi", "preload"),
}
_KINDS = {
    "engine": "one engine",
    "vault": "a vault, which has a memory of its own",
    "chip": "a chip, which has a memory of its own",
}


def _check_options(
    context: typer.Context, design: str | Path, config: Configuration, on: On
) -> None:
    """Refuse options that have no effect for the kind of configuration, or on the machine."""
    named = f"preset {design!r}" if isinstance(design, str) else design
    reason = f"{named} is {_KINDS[config.kind]}"
    refused = dict.fromkeys(
        (name for kind, names in _ONLY_FOR.items() if kind != config.kind for name in names), reason
    )
    if on == "iss":
        untimed = "the instruction set simulator's memory takes no time"
        refused = {**dict.fromkeys(_MEMORY, untimed), **refused}
    for name, why in refused.items():
        if is_given(context, name):
            raise UserError(f"--{name.replace('_', '-')} can't be used: {why}")


def _beside(
    config: Configuration, on: On, behaviour: vip.MemoryBehaviour
) -> vip.MemoryBehaviour | None:
    """``behaviour``, if the machine has a memory whose behaviour is chosen."""
    return behaviour if config.kind == "engine" and on != "iss" else None


@app.command()
def bp(
    context: typer.Context,
    scene: SceneOption,
    memory: BehaviourOption,
    preset_name: PresetOption = "pe",
    on: OnOption = "rtl",
    target: TargetOption = None,
    iterations: Annotated[int, typer.Option(help="BP-M iterations.", min=1, max=1000)] = 5,
    engines: Annotated[
        int | None, typer.Option(help="Engines of a vault to use (default: all).", min=1)
    ] = None,
    picture: Annotated[
        Path | None,
        file_option("Write the disparities as PNG or SVG.", drawing()),
    ] = None,
    traffic: Annotated[
        Path | None,
        file_option("Write a vault's bandwidth over time as PNG or SVG.", drawing()),
    ] = None,
    cocotbext_axi: OuterOption = False,
    preload: Annotated[
        bool | None,
        typer.Option(
            "--preload/--no-preload",
            help="Load a chip's DRAM directly instead of through AXI (default: on the model).",
            show_default=False,
        ),
    ] = None,
    trace: TraceOption = None,
    pipeline: PipelineOption = None,
) -> Answer:
    """Run belief propagation (BP-M) for depth from stereo, checked against the golden model.

    On a vault, the engines divide the grid and the DRAM has its real timing. On a chip, all engines
    divide the grid, and the host writes and reads through the AXI ports unless the problem is
    preloaded.

    Example: vip cosim bp --latency 60 --json bp.json --picture depth.png

    Example: vip cosim bp --on model --width 320 --height 240

    Example: vip cosim bp --preset vault --iterations 1 --traffic rates.png

    Example: vip cosim bp --width 8 --height 6 --iterations 1 --pipeline bp.log --trace bp.json

    Example: vip cosim bp --preset tiny --iterations 2

    Example: vip cosim bp --preset thesis --on model --width 1920 --height 1080 --iterations 1
    """
    config = design(preset_name)
    _check_options(context, preset_name, config, on)
    with together():
        for path in (picture, traffic):
            check_picture(path)
        need_photographs()
        need_machine(on, trace, outer=cocotbext_axi)
    with shown() as progress:
        run = vip.cosim_bp(
            config,
            scene(config=config),
            iterations=iterations,
            on=on,
            target=target,
            behaviour=_beside(config, on, memory),
            pes=engines,
            preload=preload,
            outer=cocotbext_axi,
            trace=trace,
            pipeline=pipeline,
            progress=progress,
        )
    if traffic is not None:
        run.plot(traffic)
    if picture is not None:
        run.draw(picture)
    show_bp(run)
    return Answer(run.to_json(), code=0 if run.match else 1, picture=picture or traffic)


@app.command("program")
def run_program(
    context: typer.Context,
    program: ProgramArgument,
    named: DesignOption,
    behaviour: BehaviourOption,
    on: OnOption = "rtl",
    target: TargetOption = None,
    memory: MemoryOption = None,
    parameters: ParametersOption = 0,
    limit: CyclesOption = LIMIT,
    cocotbext_axi: OuterOption = False,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare/--no-compare",
            help="Compare with the instruction set simulator (one engine).",
        ),
    ] = True,
    dump: DumpOption = None,
    window: Annotated[
        Path | None,
        file_option(
            "If the Verilog differs from the simulator, write the waveforms of the last "
            "instructions before the difference (.vcd).",
            writing(".vcd"),
        ),
    ] = None,
    save: Annotated[
        Path | None,
        file_option(
            "With --window, write a GTKWave (.gtkw) or Surfer (.sucl) file that shows its "
            "signals by unit.",
            writing(*SAVE_ENDINGS),
        ),
    ] = None,
    commits: Annotated[
        int, typer.Option(help="Number of instructions in the --window.", min=1, max=1000)
    ] = COMMITS,
    trace: TraceOption = None,
    pipeline: PipelineOption = None,
) -> Answer:
    """Run a program and report how it ended, its counters and its registers.

    On one engine, the final state, registers, scratchpad and memory are compared with the
    instruction set simulator. If they differ, the command finds the first instruction after which
    they do, shows it with its operands, and exits with code 1. On a vault or a chip, all engines
    run the program and nothing is compared; a chip's host drives the AXI ports.

    Example: vip cosim program kernel.vip --memory image.bin --dump 4096 512 out.bin

    Example: vip cosim program kernel.s --preset tiny --parameters 4096

    Example: vip cosim program kernel.s --window difference.vcd --commits 20

    Example: vip cosim program kernel.s --preset pe-small --on netlist --target ecp5
    """
    configuration = design(named)
    _check_options(context, named, configuration, on)
    with shown() as progress, naming_dump():
        run = vip.cosim(
            program,
            named,
            on=on,
            target=target,
            memory=memory,
            parameters=parameters,
            max_cycles=limit,
            dump=dump_of(dump),
            behaviour=_beside(configuration, on, behaviour),
            compare=compare,
            outer=cocotbext_axi,
            trace=trace,
            pipeline=pipeline,
            window=window,
            saved=save,
            commits=commits,
            progress=progress,
        )
    compared = run.comparison
    differs = compared is not None and not compared.match
    if compared is not None and differs:
        subject = "" if run.unknown else "the engine differs from the simulator: "
        warn(f"{program}: {subject}{compared.differences[0]}")
    show_program(program.name, run)
    return Answer(run.to_json(), code=1 if differs else USER_ERROR if run.result.faults else 0)
