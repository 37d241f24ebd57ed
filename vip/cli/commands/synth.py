"""``vip synth``: area by unit; place and route."""

from typing import Annotated

import typer

import vip
from synth.physical.area import MEASURES
from synth.physical.devices import DEVICES, GRADES, PLACED, find_placed, is_placed
from synth.physical.targets import DEFAULT_TARGETS, TARGETS, check_target
from vip.cli.console import console, shown
from vip.cli.errors import UserError
from vip.cli.groups import Answer
from vip.cli.tables.area import SHOWN, show_area, show_placed

from .option_groups.design import DesignOption
from .options import (
    PlacementsOption,
    SchedulerOption,
    ToolsOption,
    liberty_files,
    reading,
)


def synth(
    design: DesignOption,
    unit: Annotated[
        list[str] | None, typer.Argument(help="Units (default: all).", metavar="[UNIT]...")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Technology: one of {', '.join(TARGETS)}, nangate45, liberty:PATH, or "
            "flops:TARGET for memories of cells; may be repeated "
            f"(default: of {' and '.join(DEFAULT_TARGETS)} those whose memories the engine can "
            "have).",
            metavar="TARGET",
            callback=reading(liberty_files),
        ),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Place and route on this FPGA: one of {', '.join(PLACED)}; append a speed grade "
            f"(-{', -'.join(GRADES)}), or get the slowest; may be repeated.",
            metavar="DEVICE",
        ),
    ] = None,
    placements: PlacementsOption = 5,
    flat: Annotated[
        bool, typer.Option("--flat", help="Also map the whole engine, flattened.")
    ] = False,
    scheduler: SchedulerOption = None,
    jobs: ToolsOption = None,
) -> Answer:
    """Synthesise with Yosys and report the area of each unit, or place and route on an FPGA.

    Finished units and placements are cached, so an interrupted run continues. With --device, the
    whole engine is placed, or each named unit alone.

    Example: vip synth --target generic --json area.json
    """
    for name in unit or ():
        if name.endswith((".s", ".vip")):
            raise UserError(
                f"{name} is a program, not a unit; vip fit {name} reports the engine that it needs"
            )
    for name in target or ():
        if is_placed(name):
            raise UserError(f"--target {name} is an FPGA: use --device {name}")
        if name in DEVICES:
            raise UserError(
                f"--target {name} is an FPGA, not a technology: --target xc7 counts the cells of "
                f"its family, and vip fit PROGRAM --device {name} the engines that fit"
            )
        check_target(name)
    targets = [*(target or ()), *(find_placed(name).name for name in device or ())]
    with shown() as progress:
        result = vip.synth(
            design,
            targets,
            units=unit or (),
            seeds=placements,
            flat=flat,
            scheduler=scheduler,
            jobs=jobs,
            progress=progress,
        )
    if result.placed:
        show_placed(str(design), result.placed)
    if result.areas:
        show_area(str(design), result.areas)
    for name in SHOWN:
        if any(name in area.total.values for area in result.areas.values()):
            console.print(f"{name}: {MEASURES[name]}", style="dim")
    return Answer(result.to_json())
