"""Whether images of a model that leaves their number open stay apart."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from microkernels.onnx_models.graph import Graph
from microkernels.onnx_models.mapping import Refusal
from microkernels.onnx_models.read import load_proto

from .reference import OnnxModel, UnrunnableError

__all__ = ["mixed_images", "with_every_output"]

#: Largest difference of tensors of two images from those of each, as a share; with integers, whose
#: steps may be rounded otherwise.
_APART, _APART_INTEGERS = 1e-3, 5e-2


def mixed_images(model: Path, session: OnnxModel, graph: Graph) -> Refusal | None:
    """The node that mixes images, of a model that leaves their number open: outputs of two images
    together are not those of each alone; None: none does, or constants say that there is one.

    Parameters:
        model: ONNX file. session, graph: of it, for one image.

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
    return Refusal(op=op, node=node, why=why)


def _mixed(
    session: OnnxModel,
    tensors: Sequence[str],
    feeds: Mapping[str, NDArray[Any]],
    graph: Graph,
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
    ones, others = (each.ravel().astype(np.float64) for each in (values, expected))
    finite = np.isfinite(ones) & np.isfinite(others)
    largest = np.abs(others[finite]).max(initial=0.0)
    return bool((np.abs(ones - others)[finite] <= share * largest).all())


def with_every_output(model: Path) -> tuple[bytes, dict[str, tuple[str, str]]]:
    """The contents of a model whose nodes' outputs are all outputs of it, and the operator and the
    node of each."""
    from onnx import helper

    proto = load_proto(model)
    outputs = {each.name for each in proto.graph.output}
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
