"""ONNX models in onnxruntime, with which mapped and compiled models are compared.

No other module runs onnxruntime for a comparison.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.networks.parameters import Reals
from microkernels.onnx_models.errors import ModelError, RefusedError, one_line
from microkernels.onnx_models.model import ModelPort
from microkernels.onnx_models.read import OnnxGraph, load_proto
from support.extras import need
from vip.progress import Progress, silent


class UnrunnableError(ModelError):
    """A model that onnxruntime can't run; one line."""


@dataclass(frozen=True, kw_only=True)
class OutputDeviation:
    """An output beside onnxruntime's.

    Attributes:
        tensor: in the ONNX model. images: compared.
        error: root of the mean squared error over that of the mean square, or alone if that is 0.
        largest: difference of two elements.
    """

    tensor: str
    images: int
    error: float
    largest: float


#: NumPy's names of onnxruntime's types of inputs, where they are others.
_KINDS = {"float": "float32", "double": "float64"}


class OnnxModel:
    """An ONNX model in onnxruntime; if that does not take it, as with types or attributes for which
    it has no kernel, in ONNX's reference implementation.

    Parameters:
        model: file, or its contents.

    Raises:
        MissingExtraError: onnxruntime is not installed.
        UnrunnableError: neither takes the model.
    """

    def __init__(self, model: Path | bytes) -> None:
        need("onnxruntime", "comparisons with floating point")
        import onnxruntime  # type: ignore[import-untyped]

        options = onnxruntime.SessionOptions()
        # Without it, processors that lack dot products of bytes saturate sums of their products.
        options.add_session_config_entry("session.x64quantprecision", "1")
        # Models run a few times; packing weights, and threads that wait for work, take longer.
        options.add_session_config_entry("session.disable_prepacking", "1")
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # Errors are raised; what else goes to standard error is not of the command.
        options.log_severity_level = 4
        self._model = model
        content = model if isinstance(model, bytes) else str(model)
        self._ran = False
        try:
            session = onnxruntime.InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has many, without a common base.
            self._take_reference(error)
            return
        self._run: Callable[..., Any] = session.run
        kinds = {
            one.name: one.type.removeprefix("tensor(").removesuffix(")")
            for one in session.get_inputs()
        }
        self._kinds = {name: _KINDS.get(kind, kind) for name, kind in kinds.items()}

    def _take_reference(self, why: Exception) -> None:
        """Run in ONNX's reference implementation from now on, as onnxruntime does not take the
        model."""
        from onnx import TensorProto, load_model, load_model_from_string
        from onnx.reference import ReferenceEvaluator

        self._ran = True
        model = self._model
        try:
            proto = load_model_from_string(model) if isinstance(model, bytes) else load_model(model)
            self._run = ReferenceEvaluator(proto).run
        except Exception as error:  # Any of another library.
            raise _unrunnable(why) from error
        kinds = {
            one.name: TensorProto.DataType.Name(one.type.tensor_type.elem_type).lower()
            for one in proto.graph.input
        }
        self._kinds = {name: _KINDS.get(kind, kind) for name, kind in kinds.items()}

    def run(
        self, tensors: Sequence[str], feeds: Mapping[str, NDArray[Any]]
    ) -> dict[str, NDArray[Any]]:
        """These outputs, by tensor, for inputs in their shapes.

        Raises:
            UnrunnableError: the model can't be run on them.
        """
        try:
            typed = {name: values.astype(self._kinds[name]) for name, values in feeds.items()}
            results = self._run(list(tensors), typed)
        except Exception as error:  # Any of another library.
            if self._ran:
                raise _unrunnable(error) from error
            # Kernels may refuse attributes when they run.
            self._take_reference(error)
            return self.run(tensors, feeds)
        self._ran = True
        return {name: np.asarray(values) for name, values in zip(tensors, results, strict=True)}


def _unrunnable(why: Exception) -> UnrunnableError:
    return UnrunnableError(f"onnxruntime can't run the model: {one_line(why)}")


def _check_shapes(ports: Sequence[ModelPort], runs: Mapping[str, Sequence[NDArray[Any]]]) -> None:
    for port in ports:
        if (shape := runs[port.tensor][0].shape) != port.shape:
            raise ModelError(
                f"output {port.tensor} has the shape {list(shape)} in onnxruntime, but "
                f"{list(port.shape)} as it was mapped"
            )


def onnx_outputs(
    model: Path | bytes | OnnxModel,
    arrays: Mapping[str, NDArray[Any]],
    *,
    inputs: Sequence[ModelPort],
    outputs: Sequence[ModelPort],
    batch: int,
    carry: Mapping[str, str] | None = None,
    progress: Progress = silent,
) -> dict[str, Reals]:
    """Outputs of an ONNX model in onnxruntime, by tensor: images x the elements of an image, in
    ONNX's order.

    Parameters:
        model: file, or its contents, or opened before.
        arrays: by tensor of each input that is not carried: images, at least one, along the first
            axis, and an image's elements in ONNX's order along the others.
        inputs: of the model. A run gets each in the shape of its port, whether or not that begins
            with the batch, so that a model may leave dimensions open that the ports fix.
        outputs: of the model, of which the result is.
        batch: images of a run, at least 1. The last run repeats its last image where there are
            fewer.
        carry: output -> input of the next run; zeros for the first.
        progress: called with the images so far.

    Raises:
        MissingExtraError: onnxruntime is not installed.
        UnrunnableError: it can't run the model.
        ModelError: an output has another shape than its port.
    """
    session = model if isinstance(model, OnnxModel) else OnnxModel(model)
    carry = carry or {}
    runs: dict[str, list[NDArray[Any]]] = {port.tensor: [] for port in outputs}
    tensors = list(dict.fromkeys([*runs, *carry]))
    images = len(next(iter(arrays.values())))
    state = {port.tensor: np.zeros(port.shape) for port in inputs if port.tensor in carry.values()}
    for first in range(0, images, batch):
        progress("onnxruntime (images)", first, images)
        chosen = np.minimum(np.arange(first, first + batch), images - 1)
        feeds = state | {
            port.tensor: arrays[port.tensor][chosen].reshape(port.shape)
            for port in inputs
            if port.tensor not in state
        }
        results = session.run(tensors, feeds)
        for tensor, values in runs.items():
            values.append(results[tensor])
        state = {
            port.tensor: results[source].reshape(port.shape)
            for source, target in carry.items()
            for port in inputs
            if port.tensor == target
        }
    _check_shapes(outputs, runs)
    return {
        port.tensor: np.stack(runs[port.tensor])
        .astype(np.float64)
        .reshape(-1, port.size.elements)[:images]
        for port in outputs
    }


def output_error(tensor: str, values: Reals, exact: Reals) -> OutputDeviation:
    """How far ``values`` are from onnxruntime's ``exact`` ones, both of one shape, images first."""
    error = float(np.sqrt(np.mean(np.square(values - exact))))
    power = float(np.sqrt(np.mean(np.square(exact))))
    return OutputDeviation(
        tensor=tensor,
        images=len(values),
        error=error / power if power else error,
        largest=float(np.abs(values - exact).max()),
    )


#: Largest difference of tensors of two images from those of each, as a share; with integers, whose
#: steps may be rounded otherwise.
_APART, _APART_INTEGERS = 1e-3, 5e-2


def mixed_images(model: Path | bytes, session: OnnxModel, graph: OnnxGraph) -> RefusedError | None:
    """The node that mixes images, of a model that leaves their number open: outputs of two images
    together are not those of each alone; None: none does, or constants say that there is one.

    Parameters:
        model: ONNX file, or its contents. session, graph: of it, for one image.

    Raises:
        UnrunnableError: onnxruntime can't run the model.
    """
    if not graph.open_inputs:
        return None
    random = np.random.default_rng(0)
    feeds: dict[str, NDArray[Any]] = {}
    for name in graph.inputs:
        shape = graph.shapes[name]
        sizes = (2, *shape[1:]) if name in graph.open_inputs else shape
        feeds[name] = _drawn(random, sizes, integers=name in graph.integers)
    mixed = _mixed(session, graph.outputs, feeds, graph)
    if not mixed:
        return None
    content, makers = with_every_output(model)
    inner = OnnxModel(content)
    mixed = _mixed(inner, list(makers), feeds, graph, any_axis=True) or mixed
    first = next((name for name in makers if name in mixed), mixed[0])
    op, node = makers.get(first, ("", first))
    why = (
        f"the model leaves the number of images open, but of two images its output {first} is "
        "not that of each; --batch 1 takes one image at a time"
    )
    return RefusedError(op, node, why)


def _mixed(
    session: OnnxModel,
    tensors: Sequence[str],
    feeds: Mapping[str, NDArray[Any]],
    graph: OnnxGraph,
    *,
    any_axis: bool = False,
) -> list[str]:
    """Tensors whose elements for two images are not those for each.

    Parameters:
        any_axis: images may lie along any axis.
    """
    alone = [
        session.run(
            tensors,
            {
                name: values[number : number + 1] if name in graph.open_inputs else values
                for name, values in feeds.items()
            },
        )
        for number in range(2)
    ]
    try:
        both = session.run(tensors, feeds)
    except UnrunnableError:
        # Constants fix the number of images.
        return []
    share = _APART_INTEGERS if graph.integers else _APART
    return [
        name
        for name in tensors
        if not any(
            _alike(both[name], expected, share)
            for expected in _joined(*(run[name] for run in alone), any_axis=any_axis)
        )
    ]


def _joined(one: NDArray[Any], other: NDArray[Any], *, any_axis: bool) -> Iterator[NDArray[Any]]:
    """What a tensor of two images may be."""
    yield np.concatenate([one.ravel(), other.ravel()])
    if np.array_equal(one, other, equal_nan=one.dtype.kind == "f"):
        yield one
    if any_axis and one.shape == other.shape:
        for axis in range(one.ndim):
            yield np.concatenate([one, other], axis=axis)


def _alike(values: NDArray[Any], expected: NDArray[Any], share: float) -> bool:
    if values.size != expected.size or values.dtype.kind not in "biuf":
        return values.size == expected.size
    first, second = (array.ravel().astype(np.float64) for array in (values, expected))
    finite = np.isfinite(first) & np.isfinite(second)
    largest = np.abs(second[finite]).max(initial=0.0)
    return bool((np.abs(first - second)[finite] <= share * largest).all())


def with_every_output(model: Path | bytes) -> tuple[bytes, dict[str, tuple[str, str]]]:
    """The contents of a model whose nodes' outputs are all outputs of it, and the operator and the
    node of each."""
    from onnx import helper

    proto = load_proto(model)
    outputs = {output.name for output in proto.graph.output}
    makers = {}
    for node in proto.graph.node:
        for name in filter(None, node.output):
            makers[name] = (node.op_type, node.name or node.output[0])
            if name not in outputs:
                proto.graph.output.append(helper.make_empty_tensor_value_info(name))
    return proto.SerializeToString(), makers


def _drawn(random: np.random.Generator, shape: tuple[int, ...], *, integers: bool) -> NDArray[Any]:
    """Random numbers: of the standard normal distribution, or from 0 to 7."""
    if integers:
        return random.integers(0, 8, shape)
    return random.standard_normal(shape)
