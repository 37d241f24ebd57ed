"""The verb ``build_model``: from a trained model to the Verilog of a vault that runs it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from microkernels.onnx_models.read import need_onnx
from support.extras import together
from support.scratch import owned_folder
from synth.analysis.bounds import Sizes

from .models.compile import Images, compile_model, input_arrays
from .models.folder import check_new
from .progress import Progress, silent
from .trimming.models import trim_model
from .trimming.trim import TrimResult, need_tools

#: Folders of the compiled model and of the vault's Verilog.
MODEL_FOLDER, VERILOG_FOLDER = "model", "verilog"


def build_model(
    model: Path,
    calibration: Images,
    output: Path | str,
    *,
    preset: str = "vault",
    inputs: Images | None = None,
    sizes: Sizes | None = None,
    check: bool = True,
    area: bool = True,
    prove: bool = False,
    progress: Progress = silent,
    **compiling: Any,
) -> TrimResult:
    """Compile a model, and rebuild a vault with only what its programs need.

    Parameters:
        model, calibration, preset: as for :func:`vip.compile_model`.
        output: to write; it must not exist. It gets :data:`MODEL_FOLDER` and
            :data:`VERILOG_FOLDER`, or nothing if the vault must not be used.
        inputs: images for the runs, as for :func:`vip.trim_model`; None: those of the calibration.
        sizes, check, area, prove: as for :func:`vip.trim_model`.
        progress: called with each stage.
        compiling: the other parameters of :func:`vip.compile_model`.

    Raises:
        VipError: as those verbs.
        OSError: a file can't be read or written.
    """
    with together():
        need_tools(check=check, synthesis=True)
        need_onnx()
    folder = Path(output)
    check_new(folder)
    arrays, _ = input_arrays(calibration, "the calibration data")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with owned_folder(folder.parent, f".{folder.name}-") as scratch:
        new = scratch / "new"
        new.mkdir()
        of_model = new / MODEL_FOLDER
        compiled = compile_model(
            model, arrays, of_model, preset=preset, progress=progress, **compiling
        )
        images = arrays if inputs is None else inputs
        steps: dict[str, Any] = {"sizes": sizes, "check": check, "area": area, "prove": prove}
        vault = new / VERILOG_FOLDER
        trimmed = trim_model(of_model, vault, inputs=images, progress=progress, **steps)
        if not trimmed.failure:
            new.rename(folder)
    moved = replace(compiled.model, folder=folder / MODEL_FOLDER)
    return replace(trimmed, compiled=replace(compiled, model=moved))
