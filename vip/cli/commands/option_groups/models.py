"""Options of the commands that compile ONNX models."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from vip.cli.commands.options import reading
from vip.cli.errors import UserError

_MOST_SIZE = 1 << 24

BatchOption = Annotated[
    int | None,
    typer.Option(help="Images per run (the first dimension of inputs).", min=1, max=1024),
]
CarryOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OUTPUT=INPUT",
        help="Feed an output of each image to an input of the next, such as the state of a "
        "recurrent network; may be repeated.",
    ),
]
OutputsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="TENSOR",
        help="Compute this tensor alone, such as the scores of a model whose labels are text; may "
        "be repeated.",
    ),
]
ShapeOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="INPUT=SIZES",
        help="Shape of an input that leaves sizes open, such as x=1x3x48x192; may be repeated.",
    ),
]
BudgetOption = Annotated[
    float | None,
    typer.Option(
        metavar="PERCENT",
        help="Error of the outputs on the calibration data, of their magnitude; on presets "
        "with bytes, maps whose bytes exceed it keep 16 bits.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """How ``vip trim`` and ``vip board`` compile and run a model."""

    calibrate: Annotated[
        Path | None,
        typer.Option(
            metavar="DATA",
            callback=reading(),
            help="Images for MODEL.onnx, as for vip nn compile.",
        ),
    ] = None
    carry: CarryOption = None
    batch: BatchOption = None
    outputs: OutputsOption = None
    shape: ShapeOption = None
    budget: BudgetOption = None
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--input",
            metavar="DATA",
            callback=reading(),
            help="Images for the runs of a model, as for vip nn run (default: random, or those of "
            "--calibrate).",
        ),
    ] = None

    def check(self, kind: str, *allowed: str) -> None:
        """Refuse options other than those with the names ``allowed``, for what ``kind`` says.

        Raises:
            UserError: one is given.
        """
        for name, value in vars(self).items():
            if name not in allowed and value is not None:
                flag = "input" if name == "inputs" else name
                raise UserError(f"--{flag} is {kind}")

    @property
    def compiling(self) -> dict[str, Any]:
        """The options that the verbs which compile a model take.

        Raises:
            UserError: malformed options.
        """
        return {
            "batch": self.batch,
            "carry": carried(self.carry or ()),
            "outputs": self.outputs or (),
            "shapes": shaped(self.shape or ()),
            "budget": self.budget,
        }


def carried(texts: Sequence[str]) -> dict[str, str]:
    """Outputs, with the inputs that they become.

    Raises:
        UserError: malformed, or an output is named twice.
    """
    pairs = {}
    for text in texts:
        output, separator, name = text.partition("=")
        if not (separator and output and name):
            raise UserError(f"--carry {text}: must be OUTPUT=INPUT, two names of tensors")
        if output in pairs:
            raise UserError(f"--carry {text}: output {output} is named twice")
        pairs[output] = name
    return pairs


def shaped(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Inputs, with their shapes.

    Raises:
        UserError: malformed, or an input is named twice.
    """
    shapes = {}
    for text in texts:
        name, _, sizes = text.rpartition("=")
        numbers = sizes.split("x")
        if not name or not all(number.isascii() and number.isdigit() for number in numbers):
            raise UserError(f"--shape {text}: must be INPUT=SIZES, such as x=1x3x48x192")
        if name in shapes:
            raise UserError(f"--shape {text}: input {name} is named twice")
        shapes[name] = tuple(map(int, numbers))
        if min(shapes[name]) < 1 or max(shapes[name]) > _MOST_SIZE:
            raise UserError(f"--shape {text}: sizes must be from 1 to {_MOST_SIZE:,}")
    return shapes
