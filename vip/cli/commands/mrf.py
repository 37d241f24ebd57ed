"""``vip mrf``: Markov random fields of the user."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from microkernels.bp.shifts.choice import Form
from microkernels.mrf.disparities import ENDINGS
from microkernels.mrf.matching import Cost
from microkernels.mrf.pair import PairOptions
from vip.cli.console import console, shown
from vip.cli.groups import grouped
from vip.cli.tables.machine import show_model_saturated
from vip.mrf.run import Method, MrfRun, Place
from vip.mrf.stereo import mrf_stereo
from vip.output import write_json

from .options import JsonOption, PresetOption, reading, writing

__all__ = ["app"]

app = typer.Typer(
    help="Markov random fields of your own, by belief propagation.", no_args_is_help=True
)

_PLACES = {
    "golden": "the golden model",
    "iss": "the instruction set simulator",
    "model": "the timing model",
    "rtl": "its Verilog",
}


@dataclass(frozen=True, kw_only=True)
class FieldOptions:
    """Costs and width."""

    smooth: Annotated[
        str,
        typer.Option(
            help="Smoothness costs of labels d apart: linear, linear:T, potts, quadratic, "
            "quadratic:T (T truncates), or a file .npy with a matrix."
        ),
    ] = "linear:2"
    weight: Annotated[int, typer.Option(help="Factor of the smoothness costs.", min=0)] = 20
    bits: Annotated[int, typer.Option(help="Element width: 8, 16 or 32.")] = 16


@dataclass(frozen=True, kw_only=True)
class SolveOptions:
    """Method and machine."""

    method: Annotated[
        Method, typer.Option(help="BP-M, or BP-M on a quarter of the size first.")
    ] = "bp"
    iterations: Annotated[int, typer.Option(help="Iterations.", min=0, max=1000)] = 5
    coarse: Annotated[
        int, typer.Option(help="Iterations on a quarter of the size (hbp).", min=0, max=1000)
    ] = 5
    on: Annotated[
        Place,
        typer.Option(
            "--on",
            help="Golden model, timing model, instruction set simulator, or Verilog; on the last "
            "three every message is compared with the golden model's.",
        ),
    ] = "golden"
    messages: Annotated[
        Form,
        typer.Option(
            help="New messages on a machine: by a matrix of all pairs of labels, by shifts, which "
            "convex and truncated costs allow, or what takes fewer cycles. The result is the same."
        ),
    ] = "auto"


@app.command()
@grouped
def stereo(
    left_image: Annotated[
        Path, typer.Argument(metavar="LEFT", help="Left photograph.", callback=reading())
    ],
    right_image: Annotated[
        Path,
        typer.Argument(metavar="RIGHT", help="Right photograph, rectified.", callback=reading()),
    ],
    field: FieldOptions,
    solve: SolveOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the disparities: .npy, .pfm, or .png (8 bits, scaled).",
            callback=writing(*ENDINGS),
        ),
    ] = None,
    labels: Annotated[int, typer.Option(help="Disparities.", min=2, max=256)] = 16,
    first: Annotated[int, typer.Option(help="Disparity of the first label.", min=0)] = 0,
    scale: Annotated[
        float, typer.Option(help="Scale both photographs first, with antialiasing; up to 1.")
    ] = 1.0,
    cost: Annotated[
        Cost,
        typer.Option(help="Absolute differences, Birchfield-Tomasi, or census transform."),
    ] = "ad",
    cut: Annotated[
        int | None, typer.Option(help="Largest data cost (default: all).", min=1, max=32767)
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="True disparities: picture (0: unknown), .pfm, .npy or .npz.",
            callback=reading(),
        ),
    ] = None,
    truth_factor: Annotated[
        float | None,
        typer.Option(help="The truth's numbers are disparities times this (default: 1)."),
    ] = None,
    mask: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Picture that is white where both photographs show a point, for the errors.",
            callback=reading(),
        ),
    ] = None,
    preset_name: PresetOption = "pe",
    energies: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the energy after each iteration as JSON.",
            callback=writing(),
        ),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Disparities of a pair of photographs of any size, and their errors against the truth.

    Costs are whole numbers: the data costs are grey levels (ad, bt) or bits (census), and the
    smoothness costs are in the same unit. Errors are in pixels of the photographs as they are in
    the files, also with --scale.

    Example: vip mrf stereo left.png right.png --labels 60 --truth d.png --truth-factor 4 -o out.png

    Example: vip mrf stereo left.png right.png --scale 0.5 --on model --energies energies.json
    """
    options = PairOptions(
        labels=labels,
        first=first,
        scale=scale,
        cost=cost,
        truncation=cut,
        smooth=field.smooth,
        weight=field.weight,
        bits=field.bits,
    )
    with shown() as progress:
        found = mrf_stereo(
            left_image,
            right_image,
            options,
            preset_name,
            method=solve.method,
            iterations=solve.iterations,
            coarse_iterations=solve.coarse,
            on=solve.on,
            form=solve.messages,
            truth=truth,
            truth_factor=truth_factor,
            mask=mask,
            progress=progress,
        )
    if output is not None:
        found.save(output)
    write_json(energies, found.run.energies_json())
    write_json(json, found.to_json())
    rows = {}
    for name, errors in found.errors.items():
        rows[f"bad 1.0, {name} pixels"] = f"{errors.bad_1:.2f} %"
        rows[f"bad 2.0, {name} pixels"] = f"{errors.bad_2:.2f} %"
        rows[f"mean error, {name} pixels"] = f"{errors.mean:.2f}"
    _show(found.run, rows)


def _show(run: MrfRun, rows: dict[str, str]) -> None:
    """Print a solution, and end with exit code 1 if it is not the golden model's."""
    problem = run.problem
    table = Table(
        title=f"{problem.width} x {problem.height} pixels, {problem.labels} labels of "
        f"{problem.bits} bits",
        show_header=False,
    )
    table.add_column()
    table.add_column(justify="right")
    table.add_row("solved on", _PLACES[run.on])
    table.add_row("energy before", f"{run.energies[0]:,}")
    table.add_row("energy", f"{run.energy:,}")
    for name, text in rows.items():
        table.add_row(name, text)
    for name, cycles in run.cycles.items():
        table.add_row(f"cycles of {name}" if name else "cycles", f"{cycles:,}")
    if run.on != "golden":
        table.add_row("messages", "exact" if run.match else f"{run.differing:,} elements DIFFER")
    console.print(table)
    show_model_saturated(run.saturated)
    if not run.match:
        raise typer.Exit(1)
