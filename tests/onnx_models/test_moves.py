"""Operators that move elements, with random shapes and attributes, against onnxruntime.

Of an input, and of constants, which are folded.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, helper

from microkernels.onnx_models.mapping import map_graph
from microkernels.onnx_models.operators.arrange import movement
from microkernels.onnx_models.operators.table import OPERATORS
from microkernels.onnx_models.read import read_graph
from tests.onnx_models.graphs import model, reference
from tests.onnx_models.test_mapping import check_layers

FEW = settings(
    max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


class Move(NamedTuple):
    """A node of an operator: further inputs, attributes, and the opset."""

    shape: tuple[int, ...]
    more: dict[str, np.ndarray]
    attributes: dict[str, Any]
    opset: int = 13
    outputs: int = 1


def integers(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def shapes(draw: st.DrawFn, least: int = 1, most: int = 4) -> tuple[int, ...]:
    return tuple(draw(st.lists(st.integers(1, 4), min_size=least, max_size=most)))


def maps(draw: st.DrawFn) -> tuple[int, ...]:
    return (draw(st.integers(1, 2)), draw(st.integers(1, 3)), *(
        draw(st.integers(2, 7)) for _ in range(2)
    ))  # fmt: skip


def axis_of(draw: st.DrawFn, rank: int) -> int:
    return draw(st.integers(-rank, rank - 1))


def some_axes(draw: st.DrawFn, rank: int) -> list[int]:
    return draw(st.lists(st.integers(0, rank - 1), min_size=1, max_size=rank, unique=True))


def center_crop_pad(draw: st.DrawFn) -> Move:
    shape = shapes(draw)
    axes = some_axes(draw, len(shape))
    sizes = integers([draw(st.integers(1, 6)) for _ in axes])
    return Move(shape, {"s": sizes}, {"axes": axes}, 18)


def compress(draw: st.DrawFn) -> Move:
    shape = shapes(draw)
    axis = axis_of(draw, len(shape))
    taken = draw(st.lists(st.booleans(), min_size=1, max_size=shape[axis]))
    return Move(shape, {"c": np.array(taken)}, {"axis": axis})


def concat(draw: st.DrawFn) -> Move:
    shape = shapes(draw)
    axis = axis_of(draw, len(shape))
    other = list(shape)
    other[axis] = draw(st.integers(1, 3))
    constant = np.arange(1.0, np.prod(other) + 1).reshape(other).astype(np.float32)
    return Move(shape, {"c": constant}, {"axis": axis})


def depth_to_space(draw: st.DrawFn) -> Move:
    batch, _, *sizes = maps(draw)
    block = draw(st.integers(1, 3))
    shape = (batch, block**2 * draw(st.integers(1, 2)), *sizes)
    return Move(shape, {}, {"blocksize": block, "mode": draw(st.sampled_from(("DCR", "CRD")))})


def space_to_depth(draw: st.DrawFn) -> Move:
    batch, channels, *_ = maps(draw)
    block = draw(st.integers(1, 3))
    sizes = (block * draw(st.integers(1, 3)), block * draw(st.integers(1, 3)))
    return Move((batch, channels, *sizes), {}, {"blocksize": block})


def expand(draw: st.DrawFn) -> Move:
    shape = shapes(draw)
    wide = [size if size > 1 or draw(st.booleans()) else draw(st.integers(1, 3)) for size in shape]
    return Move(shape, {"s": integers([*shapes(draw, 0, 2), *wide])}, {})


def gather(draw: st.DrawFn) -> Move:
    shape = shapes(draw)
    axis = axis_of(draw, len(shape))
    size = shape[axis]
    chosen = draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=4))
    index = integers(chosen[0] if draw(st.booleans()) else chosen)
    return Move(shape, {"i": index}, {"axis": axis})


def gather_elements(draw: st.DrawFn) -> Move:
    shape = shapes(draw)
    axis = axis_of(draw, len(shape))
    wide = list(shape)
    wide[axis] = draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    index = random.integers(-shape[axis], shape[axis], wide)
    return Move(shape, {"i": index}, {"axis": axis})


def gather_nd(draw: st.DrawFn) -> Move:
    shape = shapes(draw, 2)
    dims = draw(st.integers(0, 1))
    last = draw(st.integers(1, len(shape) - dims))
    lead = (*shape[:dims], draw(st.integers(1, 3)))
    random = np.random.default_rng(draw(st.integers(0, 99)))
    sizes = shape[dims : dims + last]
    index = np.stack([random.integers(-size, size, lead) for size in sizes], axis=-1)
    return Move(shape, {"i": index}, {"batch_dims": dims})


def pad(draw: st.DrawFn) -> Move:
    shape = shapes(draw)
    mode = draw(st.sampled_from(("constant", "constant", "reflect", "edge", "wrap")))
    opset = 19 if mode == "wrap" else draw(st.sampled_from((2, 13, 18)))
    axes = some_axes(draw, len(shape)) if opset > 17 else list(range(len(shape)))
    pads = [draw(st.integers(-2, 2)) for _ in range(2 * len(axes))]
    if mode == "reflect":
        pads = [min(p, shape[axis] - 1) for p, axis in zip(pads, axes * 2, strict=True)]
    if opset == 2:
        return Move(shape, {}, {"mode": mode, "pads": pads}, 9)
    more = {"p": integers(pads)}
    if opset > 17:
        more |= {"": np.zeros(0), "a": integers(axes)}
    return Move(shape, more, {"mode": mode}, opset)


def resize(draw: st.DrawFn) -> Move:
    shape = maps(draw)
    opset = draw(st.sampled_from((10, 11, 13, 18, 19)))
    scales = [1.0, draw(st.sampled_from((1.0, 1.0, 2.0)))]
    scales += [draw(st.integers(8, 60)) / draw(st.sampled_from((20, 16))) for _ in range(2)]
    by_scales = np.array(scales, np.float32)
    if opset == 10:
        return Move(shape, {"s": by_scales}, {"mode": "nearest"}, opset)
    places = ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
    places += ["half_pixel_symmetric"] if opset == 19 else []
    attributes = {
        "mode": "nearest",
        "coordinate_transformation_mode": draw(st.sampled_from(places)),
        "nearest_mode": draw(
            st.sampled_from(("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
        ),
    }
    more = {"r" if opset == 11 else "": np.zeros(0, np.float32)}
    if draw(st.booleans()):
        return Move(shape, {**more, "s": by_scales}, attributes, opset)
    sizes = np.maximum(np.array(shape) * by_scales, 1).astype(np.int64)
    if opset == 11:
        return Move(shape, {**more, "e": np.zeros(0, np.float32), "z": sizes}, attributes, opset)
    return Move(shape, {**more, " ": np.zeros(0), "z": sizes}, attributes, opset)


def slice_(draw: st.DrawFn) -> Move:
    shape = shapes(draw)
    axes = some_axes(draw, len(shape))
    ends = st.integers(-6, 6) | st.sampled_from((-(2**63), 2**63 - 1))
    first, last = ([draw(ends) for _ in axes] for _ in range(2))
    if draw(st.booleans()):
        attributes = {"axes": axes, "starts": first, "ends": last}
        return Move(shape, {}, attributes, 9)
    steps = [draw(st.sampled_from((-3, -2, -1, 1, 1, 2))) for _ in axes]
    names = zip("seat", (first, last, axes, steps), strict=True)
    return Move(shape, {name: integers(values) for name, values in names}, {})


def split(draw: st.DrawFn) -> Move:
    shape = shapes(draw)
    axis = axis_of(draw, len(shape))
    size = shape[axis]
    first = draw(st.integers(1, max(size - 1, 1)))
    assume(first < size)
    return Move(shape, {"s": integers([first, size - first])}, {"axis": axis}, outputs=2)


def tile(draw: st.DrawFn) -> Move:
    shape = shapes(draw)
    return Move(shape, {"r": integers([draw(st.integers(1, 3)) for _ in shape])}, {})


def transpose(draw: st.DrawFn) -> Move:
    shape = shapes(draw)
    return Move(shape, {}, {"perm": draw(st.permutations(range(len(shape))))})


def trilu(draw: st.DrawFn) -> Move:
    shape = shapes(draw, 2)
    return Move(
        shape, {"k": integers(draw(st.integers(-3, 3)))}, {"upper": draw(st.integers(0, 1))}, 14
    )


def upsample(draw: st.DrawFn) -> Move:
    shape = maps(draw)
    scales = [1.0, 1.0, *(draw(st.integers(16, 50)) / 16 for _ in range(2))]
    if draw(st.booleans()):
        return Move(shape, {}, {"scales": scales}, 7)
    return Move(shape, {"s": np.array(scales, np.float32)}, {}, 9)


MOVES: dict[str, Callable[[st.DrawFn], Move]] = {
    "CenterCropPad": center_crop_pad, "Compress": compress, "Concat": concat,
    "DepthToSpace": depth_to_space, "Expand": expand, "Gather": gather,
    "GatherElements": gather_elements, "GatherND": gather_nd, "Pad": pad, "Resize": resize,
    "Slice": slice_, "SpaceToDepth": space_to_depth, "Split": split, "Tile": tile,
    "Transpose": transpose, "Trilu": trilu, "Upsample": upsample,
}  # fmt: skip
#: Those that ``test_selection.py`` has, and one by lengths.
FURTHER = {"ReverseSequence", "Scatter", "ScatterElements", "ScatterND"}
#: Those whose constants are folded.
FOLDED = ("Concat", "Expand", "Gather", "Slice", "Split", "Tile", "Transpose")


def test_all_movements_are_here() -> None:
    others = {"Gather", "Pad", "Resize", "Upsample"}
    moved = {op for op, operator in OPERATORS.items() if operator.maps is movement}
    assert moved - FURTHER == MOVES.keys() - others


def node_of(op: str, move: Move, data: str) -> Any:
    inputs = [data, *(name.strip() for name in move.more)]
    outputs = ["y", "z"][: move.outputs]
    return helper.make_node(op, inputs, outputs, **move.attributes)


def expected(proto: ModelProto, x: np.ndarray) -> list[np.ndarray]:
    """onnxruntime's outputs; no example if it has none, or empty ones."""
    try:
        exact = reference(proto, x)
    except Exception:  # onnxruntime has many, without a common base.
        assume(False)
    assume(all(values.size for values in exact))
    return exact


@pytest.mark.parametrize("op", MOVES)
def test_movements_of_an_input(op: str) -> None:
    @FEW
    @given(st.data())
    def run(data: st.DataObject) -> None:
        move = MOVES[op](data.draw)
        constants = {name: values for name, values in move.more.items() if name.strip()}
        proto = model(
            [node_of(op, move, "x")],
            move.shape,
            constants,
            outputs=("y", "z")[: move.outputs],
            opset=move.opset,
        )
        x = np.arange(1, np.prod(move.shape) + 1, dtype=np.float32).reshape(move.shape)
        expected(proto, x)
        check_layers(proto, x)

    run()


@pytest.mark.parametrize("op", FOLDED)
def test_movements_of_constants(op: str) -> None:
    @FEW
    @given(st.data())
    def run(data: st.DataObject) -> None:
        move = MOVES[op](data.draw)
        numbers = np.arange(1, np.prod(move.shape) + 1, dtype=np.float32).reshape(move.shape)
        constants = {name: values for name, values in move.more.items() if name.strip()}
        nodes = [node_of(op, move, "numbers"), helper.make_node("Mul", ["x", "y"], ["w"])]
        proto = model(
            nodes, (1,), {"numbers": numbers, **constants}, outputs=("w",), opset=move.opset
        )
        x = np.ones(1, np.float32)
        (exact,) = expected(proto, x)
        np.testing.assert_array_equal(read_graph(proto).constants["y"], exact)
        assert map_graph(read_graph(proto), OPERATORS).model is not None
        check_layers(proto, x)

    run()
