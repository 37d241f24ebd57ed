"""ONNX models in onnxruntime, with which mapped and compiled models are compared.

No other module runs onnxruntime for a comparison. Before anything is made of a mapped model,
:func:`check_mapping` computes its layers on random numbers in floating point, of 64 bits unless the
model is large (:func:`microkernels.onnx_models.model.real_layers`), without fraction bits, so that
a difference is a fault of the mapping. They may differ by:

- 32-bit numbers in onnxruntime: :data:`_TOLERANCE` of the tensor's largest magnitude,
- what the mapping itself leaves out
  (:attr:`microkernels.onnx_models.model.MappedModel.approximation`), which layers that follow may
  enlarge: :data:`_ENLARGED` times that,
- where the model rounds to steps of integers, twice what that changes in a tensor: a number between
  two steps may become either,
- the error of onnxruntime's logistic functions, :data:`_LOGISTIC_ERROR`, if there are some,
- where a function is steep, such as a reciprocal near 0: :data:`_ENLARGED` times what onnxruntime's
  output changes when its inputs change by :data:`_NUDGE`.

Elements that are not finite in one of both are not compared: random numbers may be beyond the
domain of a function.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.common.fixed_point import Reals
from microkernels.onnx_models.errors import ModelError, RefusedError, one_line
from microkernels.onnx_models.importer import Importer
from microkernels.onnx_models.mapping import map_graph
from microkernels.onnx_models.model import MappedModel, Value, of_images, real_layers, with_norms
from microkernels.onnx_models.operators.table import OPERATORS
from microkernels.onnx_models.read import OnnxGraph, load_proto, read_graph
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


def _check_shapes(ports: Sequence[Value], runs: Mapping[str, Sequence[NDArray[Any]]]) -> None:
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
    inputs: Sequence[Value],
    outputs: Sequence[Value],
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


def read_model(path: Path | bytes, batch: int | None) -> tuple[Importer, OnnxModel | None]:
    """What of a model is supported, and the model in onnxruntime, if all of it is.

    Parameters:
        path: ONNX file, or its contents.
        batch: as of :func:`vip.models.compile.compile_model`.

    Raises:
        ModelError: the file holds no model, or one of unknown sizes or that can't be run.
        OSError: it can't be read.
    """
    graph = read_graph(load_proto(path), batch=batch)
    importer = map_graph(graph, OPERATORS)
    if importer.model is None:
        return importer, None
    session = OnnxModel(path)
    if mixed := mixed_images(path, session, graph):
        importer.refused, importer.model = [mixed], None
        return importer, None
    return importer, session


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


_TOLERANCE = 5e-4
_ENLARGED = 8
_NUDGE = 1e-5
_LOGISTIC_ERROR = 1e-6
#: Share of the first set's range that the second set of numbers has.
_SMALL = 1 / 8
#: Products of an image from which on one set of numbers, of 32 bits, is enough.
_MOST_PRODUCTS = 1 << 30


def check_mapping(
    model: Path | bytes,
    session: OnnxModel,
    mapped: MappedModel,
    data: Mapping[str, Reals] | None = None,
) -> None:
    """Refuse a mapped model whose layers do not do what onnxruntime does.

    Parameters:
        model: ONNX file, or its contents. session, mapped: of it.
        data: calibration data, images x height x width x channels of each input by its layer;
            random numbers are within their range. None: there are none, and random numbers have
            the standard normal distribution; models of integers are not compared.

    Raises:
        ModelError: a tensor has another shape, or other numbers; the message names the first one.
        UnrunnableError: onnxruntime can't run the model.
    """
    if data is None and any(port.integers for port in mapped.inputs):
        return
    numbers = _numbers(mapped, data)
    differing = _differing(session, mapped, numbers, mapped.outputs)
    if not differing:
        return
    content, makers = with_every_output(model)
    ports = [port for port in (*mapped.inner, *mapped.outputs) if port.tensor in makers]
    differing = _differing(OnnxModel(content), mapped, numbers, ports) or differing
    tensor, (error, largest) = next(iter(differing.items()))
    op, node = makers.get(tensor, ("", tensor))
    raise ModelError(
        f"node {node} ({op}): its output {tensor} differs by {error:.3g} between the mapped layers "
        f"and onnxruntime, where it reaches {largest:.3g}: one of both is wrong"
    )


def _numbers(mapped: MappedModel, data: Mapping[str, Reals] | None) -> dict[str, Reals]:
    """Sets of a batch's numbers, one after the other, by tensor."""
    random = np.random.default_rng(0)
    many = _products(mapped) <= _MOST_PRODUCTS
    numbers: dict[str, Reals] = {}
    for port in mapped.inputs:
        shape = (mapped.batch, *port.inner)
        wide: Reals = random.standard_normal(shape)
        middle, sample = 0.0, wide
        if data is not None:
            values = port.images(data[port.layer])
            wide = random.uniform(values.min(), values.max(), shape)
            middle, sample = float(values.mean()), values[np.arange(mapped.batch) % len(values)]
        small = middle + _SMALL * (wide - middle)
        sets = [wide, small, sample] if many else [wide]
        # The types of integers may not hold the differences of random ones.
        sets = [np.rint(sample)] if port.integers else sets
        numbers[port.tensor] = np.concatenate(sets)
    count = min(map(len, numbers.values()))
    return {name: values[:count] for name, values in numbers.items()}


def _products(mapped: MappedModel) -> int:
    """Products of the layers with weights, of an image."""
    sizes = mapped.network.sizes
    return sum(
        real.weights.size * sizes[name].width * sizes[name].height
        for name, real in mapped.real.items()
    )


def _differing(
    session: OnnxModel,
    mapped: MappedModel,
    numbers: Mapping[str, Reals],
    ports: Sequence[Value],
) -> dict[str, tuple[float, float]]:
    """The tensors of ``ports`` that differ, in their order: by how much, and their largest
    magnitude in onnxruntime."""
    random = np.random.default_rng(1)
    both: dict[str, Reals] = {}
    for port in mapped.inputs:
        values = numbers[port.tensor]
        nudge = 0.0 if port.integers else _NUDGE
        signs = random.choice((-1, 1), values.shape)
        both[port.tensor] = np.concatenate([values, values * (1 + nudge * signs)])
    exact = onnx_outputs(session, both, inputs=mapped.inputs, outputs=ports, batch=mapped.batch)
    floats = _float_outputs(mapped, numbers, ports, steps=True)
    unrounded = replace(mapped, rounded=mapped.rounded & mapped.integers)
    rounds = bool(mapped.steps) or unrounded.rounded < mapped.rounded
    plain = _float_outputs(unrounded, numbers, ports, steps=False) if rounds else floats
    share = _TOLERANCE + _ENLARGED * mapped.approximation
    logistic = any(layer.transcendental for layer in mapped.network.layers)
    least = _LOGISTIC_ERROR if logistic else 0.0
    differing = {}
    for port in ports:
        expected, moved = np.split(exact[port.tensor], 2)
        values = floats[port.tensor]
        by_steps = np.nan_to_num(np.abs(values - plain[port.tensor]), posinf=0.0).max(initial=0.0)
        with np.errstate(invalid="ignore"):
            error, change = np.abs(values - expected), np.abs(moved - expected)
        finite = np.isfinite(values) & np.isfinite(expected) & np.isfinite(moved)
        largest = float(np.abs(expected[finite]).max(initial=0.0))
        allowed = share * largest + least + 2 * float(by_steps)
        wrong = finite & (error > allowed + _ENLARGED * change)
        if wrong.any():
            differing[port.tensor] = float(error[wrong].max()), largest
    return differing


def _float_outputs(
    mapped: MappedModel,
    numbers: Mapping[str, Reals],
    ports: Sequence[Value],
    *,
    steps: bool,
) -> dict[str, Reals]:
    """Tensors of mapped layers in floating point: images x elements; ``steps`` as of
    :func:`microkernels.onnx_models.model.real_layers`."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    images = np.arange(len(next(iter(numbers.values()))))
    maps = {port.layer: port.maps(numbers[port.tensor], len(images)) for port in mapped.inputs}
    maps |= {name: of_images(values, images) for name, values in mapped.constants.items()}
    if _products(mapped) > _MOST_PRODUCTS:
        maps = {name: values.astype(np.float32) for name, values in maps.items()}
    names = {port.layer for port in ports}
    # Threads that wait for each other's small products take more time than they save.
    with threadpool_limits(1, "blas"):
        layers = {
            layer.name: values
            for layer, values in real_layers(with_norms(mapped, maps), maps, steps=steps)
            if layer.name in names
        }
    return {port.tensor: port.images(layers[port.layer]).reshape(len(images), -1) for port in ports}
