"""Options of the commands that compile ONNX models."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from vip.cli.commands.options import reading
from vip.cli.errors import UserError

_MOST_SIZE = 1 << 24


def _options(values: Mapping[str, Any]) -> dict[str, Any]:
    """The options that are on the command line."""
    return {name: value for name, value in values.items() if value not in (None, [], {})}


def _part(
    *,
    batch: Annotated[
        int | None,
        typer.Option(help="Images per run (the first dimension of inputs).", min=1, max=1024),
    ] = None,
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TENSOR",
            help="Compute this tensor alone, such as the scores of a model whose labels are text; "
            "may be repeated.",
        ),
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="INPUT=SIZES",
            help="Shape of an input that leaves sizes open, such as x=1x3x48x192; may be repeated.",
        ),
    ] = None,
) -> dict[str, Any]:
    """What of a model is asked for: what is given, by parameter of :func:`vip.check_model`.

    Raises:
        UserError: a malformed shape.
    """
    return _options({"batch": batch, "outputs": outputs, "shapes": _shaped(shape or ())})


PartOption = Annotated[dict[str, Any], _part]


def _compiling(
    *,
    part: PartOption,
    carry: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OUTPUT=INPUT",
            help="Feed an output of each image to an input of the next, such as the state of a "
            "recurrent network; may be repeated.",
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(
            metavar="PERCENT",
            help="Error of the outputs on the calibration data, of their magnitude; on presets "
            "with bytes, maps whose bytes exceed it keep 16 bits.",
        ),
    ] = None,
) -> dict[str, Any]:
    """How a model is compiled: what is given, by parameter of :func:`vip.compile_model`.

    Raises:
        UserError: malformed options.
    """
    return {**part, **_options({"carry": _carried(carry or ()), "budget": budget})}


CompilingOption = Annotated[dict[str, Any], _compiling]


def _model(
    *,
    compiling: CompilingOption,
    calibrate: Annotated[
        Path | None,
        typer.Option(
            metavar="DATA",
            callback=reading(),
            help="Images for MODEL.onnx, as for vip nn compile.",
        ),
    ] = None,
    inputs: Annotated[
        Path | None,
        typer.Option(
            "--input",
            metavar="DATA",
            callback=reading(),
            help="Images for the runs of a model, as for vip nn run (default: random, or those of "
            "--calibrate).",
        ),
    ] = None,
) -> dict[str, Any]:
    """How ``vip trim`` and ``vip board`` compile and run a model: what is given, by parameter of
    :func:`vip.build_model`.

    Raises:
        UserError: malformed options.
    """
    return {**compiling, **_options({"calibration": calibrate, "inputs": inputs})}


ModelOption = Annotated[dict[str, Any], _model]
#: Parameters of :func:`vip.build_model` whose options have other names.
_OPTIONS = {"calibration": "calibrate", "shapes": "shape", "inputs": "input"}


def refuse(model: Mapping[str, Any], kind: str, *allowed: str) -> None:
    """Refuse options of a model other than those ``allowed``, for what ``kind`` says.

    Raises:
        UserError: there is one.
    """
    for name in model:
        if name not in allowed:
            raise UserError(f"--{_OPTIONS.get(name, name)} is {kind}")


def _carried(texts: Sequence[str]) -> dict[str, str]:
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


def _shaped(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
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
