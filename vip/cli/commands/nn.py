"""``vip nn``: ONNX models on the machine."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

import vip
from microkernels.common.fixed_point import Reals
from support.errors import counted
from support.files import write_atomically
from vip.cli.console import console, shown, table, warn
from vip.cli.errors import UserError
from vip.cli.groups import Answer
from vip.cli.lazy import CommandGroup
from vip.models.folder import check_new, manifest_of
from vip.models.layers import MOST_OFF, LayerFigures, worth_changing
from vip.models.run import ModelRun

from .option_groups.machine import PlaceOption
from .option_groups.models import CompilingOption, PartOption
from .options import PresetOption, filling, output_option, reading, writing

if TYPE_CHECKING:
    from vip.models.compile import CompileReport

app = typer.Typer(
    cls=CommandGroup, help="Check, compile, run and evaluate ONNX models.", no_args_is_help=True
)

ModelArgument = Annotated[
    Path, typer.Argument(metavar="MODEL.onnx", callback=reading(), help="ONNX file.")
]


def _manifests(path: Path) -> list[Path]:
    """The manifest of a compiled model.

    Raises:
        UserError: a model that is not compiled.
    """
    if path.suffix == ".onnx":
        folder = f"build/{path.stem}"
        compiling = f"vip nn compile {path} --calibrate DATA -o {folder}"
        raise UserError(f"{path} is not compiled: run {compiling}, then use {folder}")
    manifest = manifest_of(path)
    if path.is_dir() and not manifest.exists():
        raise UserError(f"{path}: vip nn compile did not write it: it has no {manifest.name}")
    return [manifest]


FolderArgument = Annotated[
    Path,
    typer.Argument(
        metavar="DIR",
        callback=reading(_manifests),
        help="Folder written by vip nn compile, or the manifest in it.",
    ),
]


#: Names of maps that are shown.
_SHOWN = 8
#: What predicted cycles are.
_ESTIMATE = (
    f"cycles: an estimate, within {MOST_OFF:.0%} for layers like measured ones (others have a "
    "question mark); vip nn run --on model counts them"
)
#: Layers that saturate but did not during calibration.
_BEYOND = "outside the range of the calibration data"


@app.command()
def check(
    model: ModelArgument,
    part: PartOption,
    preset_name: PresetOption = "vault",
) -> Answer:
    """Report which nodes of a model are supported, and predict its cycles and memory.

    Nothing is built. Each unsupported node is listed with the reason. If there is one, or if the
    model does not fit the machine, the exit code is 1.

    Example: vip nn check model.onnx --preset thesis
    """
    with shown() as progress:
        report = vip.check_model(model, preset=preset_name, progress=progress, **part)
    heads = ("operator", "nodes", "supported")
    operators = table(*heads, left=("operator",), title="operators")
    for name, (count, mapped) in report.operators.items():
        operators.add_row(name, f"{count}", f"{mapped}")
    console.print(operators)
    for refusal in report.refused:
        console.print(str(refusal))
    if report.problem:
        console.print(report.problem)
    if report.layers and report.vault_bytes:
        show_predicted(report.layers, report.batch)
        console.print(
            f"about {report.ms:.3f} ms at 1.25 GHz on {counted(report.vaults, 'vault')}; "
            f"{report.vault_bytes:,} bytes of {report.room_bytes / 2**20:.0f} MiB per vault"
        )
        console.print(_ESTIMATE, style="dim")
    return Answer(report.to_json(), code=0 if report.supported else 1)


@app.command("compile")
def compile_command(
    model: ModelArgument,
    calibrate: Annotated[
        Path,
        typer.Option(
            metavar="DATA",
            callback=reading(),
            help="Images: .npz with an array per input, or .npy for a single input.",
        ),
    ],
    output: Annotated[
        Path,
        output_option("Output folder, which must not exist.", filling(check=check_new), "DIR"),
    ],
    compiling: CompilingOption,
    preset_name: PresetOption = "vault",
) -> Answer:
    """Compile a model into programs, memory image, launch table, manifest and listing.

    The compiler chooses the fraction bits of all maps and weights from the calibration data. It
    reports them with the number of saturated values, the rounding error (against the same layers
    in floating point) and the error of each output against onnxruntime.

    Example: vip nn compile digits.onnx --calibrate digits_train.npz -o build/digits
    """
    with shown() as progress:
        report = vip.compile_model(
            model,
            calibrate,
            output,
            preset=preset_name,
            progress=progress,
            **compiling,
        )
    _show(report, f"{model.name} on {preset_name}, calibration")
    return Answer(report.to_json())


def _show(report: "CompileReport", title: str) -> None:
    """Print what was compiled, and warnings."""
    heads = ("layer", "fraction bits", "of weights", "largest", "rounding", "saturated")
    layers = table(*heads, left=("layer",), title=title)
    for feature_map in report.model.maps:
        weights = "" if feature_map.weight_fraction is None else f"{feature_map.weight_fraction}"
        layers.add_row(
            feature_map.layer,
            f"{feature_map.fraction}",
            weights,
            f"{feature_map.largest:.4g}",
            f"{feature_map.error:.2e}",
            f"{feature_map.saturated:,}" if feature_map.saturated else "",
        )
    console.print(layers)
    for tensor in report.outputs:
        console.print(
            f"{tensor.tensor} against onnxruntime, {counted(tensor.images, 'image')}: error "
            f"{tensor.error:.2e} of its magnitude, largest difference {tensor.largest:.3g}"
        )
    console.print(
        f"{report.model.folder}: {counted(len(report.model.launches), 'launch', 'launches')} of "
        f"{counted(report.programs, 'program')}, {report.vault_bytes:,} bytes per vault, about "
        f"{report.predicted_cycles:,.0f} cycles"
    )
    console.print(_ESTIMATE, style="dim")
    show_worth(report.layers)
    if report.widened:
        further = len(report.widened) - _SHOWN
        also = f" and {further} more" if further > 0 else ""
        console.print(
            f"{counted(len(report.widened), 'map')} in 16 bits for the budget, without which the "
            f"error is {report.error_in_bytes:.1f} %: {', '.join(report.widened[:_SHOWN])}{also}"
        )
    if report.requantised:
        further = len(report.requantised) - 1
        also = f" (and {further} more: --json lists them)" if further else ""
        warn(f"requantised: {report.requantised[0]}{also}")
    _warn(
        {feature_map.layer: feature_map.saturated for feature_map in report.saturated},
        "on the calibration data",
    )
    _warn_beyond(
        {feature_map.layer: feature_map.beyond for feature_map in report.beyond},
        "on the calibration data, ",
        "the range in floating point",
    )


def _warn(saturated: Mapping[str, int], where: str) -> None:
    if saturated:
        layer = max(saturated, key=lambda name: saturated[name])
        warn(
            f"saturation: {where}, {counted(sum(saturated.values()), 'value')} saturated, "
            f"most in {layer}"
        )


def _warn_beyond(
    beyond: Mapping[str, int], where: str = "", bound: str = "the range of the calibration data"
) -> None:
    if beyond:
        layer = max(beyond, key=lambda name: beyond[name])
        warn(
            f"range: {where}{counted(sum(beyond.values()), 'function argument')} exceeded {bound}, "
            f"where functions are constant; most in {layer}"
        )


@app.command()
def run(
    folder: FolderArgument,
    inputs: Annotated[
        Path,
        typer.Option(
            "--input",
            metavar="DATA",
            callback=reading(),
            help="Images: .npz with an array per input, or .npy for a single input.",
        ),
    ],
    on: PlaceOption = "golden",
    output: Annotated[
        Path | None,
        output_option("Write the outputs by name (.npz).", writing(".npz")),
    ] = None,
) -> Answer:
    """Run a compiled model and compare every output with the golden model's.

    Example: vip nn run build/digits --input digit.npy --on rtl
    """
    with shown() as progress:
        result = vip.run_model(folder, inputs, on=on, progress=progress)
    for name, values in result.outputs.items():
        flat = values.ravel()
        some = ", ".join(f"{value:.5g}" for value in flat[:10])
        rest = f" and {flat.size - 10:,} more" if flat.size > 10 else ""
        console.print(f"{name} {list(values.shape)}: {some}{rest}")
    if result.launches:
        launches = counted(len(result.launches), "launch", "launches")
        console.print(
            f"{result.cycles:,} cycles in {launches}; loading their programs takes "
            f"{result.loading:,} more"
        )
        show_layers(result)
    if result.instructions:
        console.print(f"{result.instructions:,} instructions")
    _warn(result.saturated, _BEYOND)
    _warn_beyond(result.beyond)
    if output is not None:
        write_atomically(output, _packed(result.outputs))
    return Answer(result.to_json())


def _packed(arrays: Mapping[str, Reals]) -> bytes:
    from io import BytesIO

    content = BytesIO()
    np.savez(content, allow_pickle=False, **arrays)
    return content.getvalue()


@app.command()
def evaluate(
    folder: FolderArgument,
    inputs: Annotated[
        Path,
        typer.Option(
            "--input",
            metavar="DATA",
            callback=reading(),
            help="Images in an array per input, and labels in y (.npz).",
        ),
    ],
) -> Answer:
    """Compare a compiled model with onnxruntime in floating point.

    A label is the index of the highest output. For a model with a single output, label 1 means an
    output above 0.5 if the output is a probability (of Sigmoid, for instance), otherwise above 0.

    Example: vip nn evaluate build/digits --input digits_test.npz
    """
    with shown() as progress:
        result = vip.evaluate_model(folder, inputs, progress=progress)
    single = result.threshold is not None
    if result.accuracy is not None:
        rule = f" (label 1: an output above {result.threshold:.4g})" if single else ""
        console.print(
            f"accuracy {result.accuracy:.2%}; onnxruntime in floating point: "
            f"{result.float_accuracy:.2%}{rule}"
        )
    console.print(
        f"{counted(result.images, 'image')}: error {result.error:.2e} of the outputs' magnitude, "
        f"largest difference {result.largest:.3g}, same "
        f"{'label' if single else 'highest output'} in {result.agreement:.2%}"
    )
    _warn(result.saturated, _BEYOND)
    _warn_beyond(result.beyond)
    return Answer(result.to_json())


def show_predicted(layers: Sequence[LayerFigures], batch: int) -> None:
    """Print the predicted cycles of each layer, beside the fewest."""
    text = ("layer", "kind", "output")
    heads = (*text, "cycles", "moves before", "bound", "use")
    rows = table(*heads, left=text, title=f"predicted cycles, batch {batch}")
    for layer in layers:
        size = " x ".join(map(str, layer.output))
        cycles = (layer.predicted, layer.predicted_moves, layer.bound)
        numbers = [f"{value:,.0f}" for value in cycles]
        numbers[0] += "" if layer.known else " ?"
        rows.add_row(layer.name, layer.kind, size, *numbers, f"{layer.use:.0%}")
    rows.add_section()
    sums = [sum(column) for column in zip(*map(_cycles, layers), strict=True)]
    computing = sum(layer.computing for layer in layers)
    use = computing / (sums[0] + sums[1])
    rows.add_row("all", "", "", *(f"{value:,.0f}" for value in sums), f"{use:.0%}")
    console.print(rows)


def _cycles(layer: LayerFigures) -> tuple[float, float, float]:
    return layer.predicted, layer.predicted_moves, layer.bound


def show_worth(layers: Sequence[LayerFigures]) -> None:
    """Name the layers that take most cycles beyond their bounds, and why."""
    named = worth_changing(layers)
    if named:
        console.print("worth changing, by cycles beyond the fewest:")
    for layer in named:
        console.print(
            f"  {layer.name} ({layer.kind}, node {layer.node}): {layer.taken:,.0f} cycles, at "
            f"least {layer.bound:,.0f}: {layer.reason}"
        )


def show_layers(run: ModelRun) -> None:
    """Print the cycles, bytes and energy of each layer, and of all."""
    energies = [name for name in run.costs if name.endswith("_uj")]
    heads = ("cycles", "moves", "bound", "busy", "use", "bytes read", "written")
    rows = table("layer", *heads, *(["uJ"] if energies else ()), left=("layer",), title="layers")
    for layer in run.layers:
        rows.add_row(
            layer.name,
            *(f"{value:,.0f}" for value in (layer.cycles, layer.moves, layer.bound)),
            *(f"{share:.0%}" for share in (layer.busy, layer.use)),
            *_costs(layer.costs, energies),
        )
    rows.add_section()
    sums = (
        sum(layer.cycles for layer in run.layers),
        sum(layer.moves for layer in run.layers),
        sum(layer.bound for layer in run.layers),
    )
    use = sum(layer.computing for layer in run.layers) / run.cycles
    busy = sum(layer.vector_busy for layer in run.layers) / max(
        1, sum(sum(layer.causes.values()) for layer in run.layers)
    )
    shares = (f"{busy:.0%}", f"{use:.0%}")
    rows.add_row("all", *(f"{n:,.0f}" for n in sums), *shares, *_costs(run.costs, energies))
    console.print(rows)
    show_worth(run.layers)
    if run.no_energy:
        console.print(run.no_energy)


def _costs(costs: Mapping[str, float], energies: Sequence[str]) -> list[str]:
    cells = [f"{costs.get(name, 0):,.0f}" for name in ("read_bytes", "written_bytes")]
    return cells + [f"{sum(costs.get(name, 0) for name in energies):.2f}"] * bool(energies)
