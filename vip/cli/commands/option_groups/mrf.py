"""Options that the commands of ``vip mrf`` share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from microkernels.bp.shifts.choice import Form
from microkernels.mrf.matching import Cost
from sim_tb.cosim.machine import Place
from vip.cli.commands.options import PresetOption, drawing, reading, writing
from vip.mrf.options import Method
from vip.mrf.run import MOST_LEVELS

__all__ = [
    "BitsOption",
    "CutOption",
    "LabelsOption",
    "MatchingOptions",
    "SmoothOption",
    "SolveOptions",
    "TruthOptions",
    "WeightOption",
]

SmoothOption = Annotated[
    str,
    typer.Option(
        help="Smoothness costs of labels d apart: linear, linear:T, potts, quadratic, "
        "quadratic:T (T truncates), or a file .npy with a matrix."
    ),
]
WeightOption = Annotated[int, typer.Option(help="Factor of the smoothness costs.", min=0)]
BitsOption = Annotated[int, typer.Option(help="Element width: 8, 16 or 32.")]
CutOption = Annotated[
    int | None, typer.Option(help="Largest data cost (default: all).", min=1, max=32767)
]
LabelsOption = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FILE",
        help="Write the labels: .npy, or .png (as grey levels).",
        callback=writing(".npy", ".png"),
    ),
]


@dataclass(frozen=True, kw_only=True)
class SolveOptions:
    """Method and machine."""

    method: Annotated[
        Method,
        typer.Option(help="BP-M, TRW-S, or either on a quarter of the size first (hbp, htrws)."),
    ] = "bp"
    iterations: Annotated[int, typer.Option(help="Iterations.", min=0, max=1000)] = 5
    coarse: Annotated[
        int,
        typer.Option(help="Iterations on each coarse level (hbp, htrws).", min=0, max=1000),
    ] = 5
    levels: Annotated[
        int,
        typer.Option(
            help="Levels of hbp and htrws, each with half of the sides of the one before.",
            min=2,
            max=MOST_LEVELS,
        ),
    ] = 2
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
    damping: Annotated[
        int,
        typer.Option(
            help="Sixteenths of the old message in a new one (bp, hbp).",
            min=0,
            max=15,
        ),
    ] = 0
    preset_name: PresetOption = "pe"
    energies: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the energy after each iteration as JSON.",
            callback=writing(),
        ),
    ] = None
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Draw the energy after each iteration as PNG or SVG.",
            callback=drawing(),
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class MatchingOptions:
    """How two photographs are compared."""

    labels: Annotated[int, typer.Option(help="Disparities.", min=2, max=256)] = 16
    first: Annotated[int, typer.Option(help="Disparity of the first label.", min=0)] = 0
    scale: Annotated[
        float, typer.Option(help="Scale both photographs first, with antialiasing; up to 1.")
    ] = 1.0
    cost: Annotated[
        Cost,
        typer.Option(help="Absolute differences, Birchfield-Tomasi, or census transform."),
    ] = "ad"
    cut: CutOption = None


@dataclass(frozen=True, kw_only=True)
class TruthOptions:
    """What disparities are compared with."""

    truth: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="True disparities: picture (0: unknown), .pfm, .npy or .npz.",
            callback=reading(),
        ),
    ] = None
    truth_factor: Annotated[
        float | None,
        typer.Option(help="The truth's numbers are disparities times this (default: 1)."),
    ] = None
    mask: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Picture that is white where both photographs show a point, for the errors.",
            callback=reading(),
        ),
    ] = None
