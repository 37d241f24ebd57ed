"""``vip fit``: how many engines, trimmed to some work, fit an FPGA."""

from typing import Annotated

import typer

from synth.physical.devices import DEVICES, FILL, find_device
from vip.cli.console import console, shown, table
from vip.cli.errors import UserError
from vip.cli.groups import Answer
from vip.trimming.devices import DeviceFit, fit_devices
from vip.trimming.models import work_files

from .options import (
    PlacementsOption,
    PresetOption,
    ToolsOption,
    is_given,
    reading,
)
from .trim import LaunchesOption, MemoryOption, SizesOption, trimmed_to

ProgramsArgument = Annotated[
    list[str],
    typer.Argument(
        help="Program files, assembly (.s), applications of the suite, or one folder written "
        "by vip nn compile.",
        metavar="PROGRAM|APPLICATION|DIR...",
        callback=reading(work_files),
    ),
]
DevicesOption = Annotated[
    list[str] | None,
    typer.Option(
        help=f"One of {', '.join(DEVICES)} (for an ECP5, append a speed grade, or get the "
        "slowest), or asic:MM2; may be repeated (default: all, not placed).",
        metavar="DEVICE",
    ),
]


def fit(
    context: typer.Context,
    programs: ProgramsArgument,
    sizes: SizesOption,
    memory: MemoryOption,
    launches: LaunchesOption,
    device: DevicesOption = None,
    preset_name: PresetOption = "pe",
    check: Annotated[
        bool,
        typer.Option(
            help="Run the programs on the Verilog of both engines to find the smallest one."
        ),
    ] = True,
    placements: PlacementsOption = 1,
    jobs: ToolsOption = None,
) -> Answer:
    """Report how many engines, trimmed to programs, fit an FPGA and how fast they run.

    The engine is the one that vip trim builds (vip trim also writes its Verilog). Its cells are
    counted against the usable part of the device, without crossbar, host ports and pins; vip trim
    --device builds a whole chip with them. On devices that nextpnr knows, the clock is that of a
    placed engine, if the extra pnr is installed; on others it is assumed. For a folder written by
    vip nn compile, engines are counted in whole vaults.

    Example: vip fit kernel.s --memory image.bin --device xc7a100t

    Example: vip fit bp --no-check
    """
    devices = [find_device(name) for name in device or DEVICES]
    trimmed = trimmed_to(
        context,
        programs,
        preset_name,
        None,
        sizes=sizes,
        memory=memory,
        launches=launches,
        model={},
        steps={"check": check, "area": False, "prove": False},
    )
    if trimmed.failure:
        raise UserError(trimmed.failure)
    with shown() as progress:
        fits = fit_devices(
            trimmed,
            devices,
            placements=placements if device or is_given(context, "placements") else 0,
            jobs=jobs,
            progress=progress,
        )
    _show(", ".join(programs), fits)
    report = {one.device.name: one.to_json() for one in fits}
    return Answer({"devices": report, "trimmed": trimmed.to_json()})


def _show(work: str, fits: tuple[DeviceFit, ...]) -> None:
    """Print a row per device, and what each number means."""
    measures = list(dict.fromkeys(name for one in fits for name in one.device.capacity))
    head = ("device", "engines", "limit", *measures, "MHz")
    rows = table(*head, left=("device", "limit"), title=f"Engines for {work}")
    for one in fits:
        cells = [
            f"{one.needed.get(name, 0):,.10g}" if name in one.device.capacity else ""
            for name in measures
        ]
        mhz = "?" if one.mhz is None else f"{one.mhz:.1f}" if one.placed else f"{one.mhz:.0f}*"
        rows.add_row(one.device.name, f"{one.engines:,}", one.limit, *cells, mhz)
    console.print(rows)
    engines = max(one.engines_each for one in fits)
    design = f"vault of {engines} engines, whose units are mapped alone"
    if engines == 1:
        design = "engine, mapped as one netlist; vip trim adds up units, each mapped alone"
    console.print(f"{', '.join(measures)}: per {design}", style="dim")
    parts = ", ".join(f"{share:.0%} of {name}" for name, share in FILL.items())
    console.print(
        f"an upper bound, of {parts}: logic around the engines is not counted; vip trim --device "
        "builds a whole chip",
        style="dim",
    )
    if any(one.limit == "brams" and one.device.target == "xc7" for one in fits):
        console.print(
            "brams: memories above 64 words take block RAM, so a scratchpad of 512 bytes, which "
            "has eight banks, takes none, but one of 1024 takes 16",
            style="dim",
        )
    if any(one.mhz is not None and one.placed is None for one in fits):
        console.print("*: assumed; VIP can't place on these devices", style="dim")
    for reason in dict.fromkeys(one.unplaced for one in fits if one.mhz is None):
        console.print(f"?: {reason}", style="dim", soft_wrap=True)
