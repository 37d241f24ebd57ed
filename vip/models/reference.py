"""onnxruntime's floating point, beside which compiled models are evaluated."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isa.support.extras import need
from microkernels.onnx_models.errors import ModelError, one_line
from microkernels.onnx_models.model import Reals

from .folder import CompiledModel

__all__ = ["float_outputs"]

#: NumPy's names of onnxruntime's types of inputs, where they are others.
_KINDS = {"float": "float32", "double": "float64"}


def float_outputs(
    compiled: CompiledModel,
    arrays: Mapping[str, NDArray[Any]],
    images: int,
    progress: Callable[[str, int, int], None],
) -> dict[str, Reals]:
    """onnxruntime's outputs, by tensor.

    Parameters:
        arrays: of each input, by tensor; "" or ``x`` is the only input's.
        images: of the arrays.
        progress: called with the images so far.

    Raises:
        MissingExtraError: onnxruntime is not installed.
        ModelError: it can't run the model.
    """
    need("onnxruntime", "comparisons with floating point")
    import onnxruntime  # type: ignore[import-untyped]

    try:
        options = onnxruntime.SessionOptions()
        # Errors alone: warnings on standard error are not of this command.
        options.log_severity_level = 3
        # Without it, processors that lack dot products of bytes saturate sums of their products.
        options.add_session_config_entry("session.x64quantprecision", "1")
        session = onnxruntime.InferenceSession(
            str(compiled.model), options, providers=["CPUExecutionProvider"]
        )
        kinds = {}
        for each in session.get_inputs():
            kind = each.type.removeprefix("tensor(").removesuffix(")")
            kinds[each.name] = np.dtype(_KINDS.get(kind, kind))
        found: dict[str, list[Reals]] = {port.tensor: [] for port in compiled.outputs}
        state = {
            port.tensor: np.zeros(port.shape, kinds[port.tensor])
            for port in compiled.inputs
            if port.tensor in compiled.carry.values()
        }
        for first in range(0, images, compiled.batch):
            progress("onnxruntime (images)", first, images)
            feeds = dict(state)
            for port in compiled.inputs:
                if port.tensor in state:
                    continue
                held = arrays.get(port.tensor, arrays.get("", arrays.get("x")))
                assert held is not None
                part = held[first : first + compiled.batch].astype(kinds[port.tensor])
                if len(part) < compiled.batch:
                    more = compiled.batch - len(part)
                    part = np.concatenate([part, np.repeat(part[-1:], more, axis=0)])
                feeds[port.tensor] = part
            made = dict(zip(found, session.run(list(found), feeds), strict=True))
            for name, values in made.items():
                found[name].append(np.asarray(values, np.float64))
            state = {other: made[one] for one, other in compiled.carry.items()}
    except Exception as error:  # onnxruntime has many, without a common base.
        raise ModelError(f"onnxruntime can't run the model: {one_line(error)}") from error
    return {name: np.concatenate(parts)[:images] for name, parts in found.items()}
