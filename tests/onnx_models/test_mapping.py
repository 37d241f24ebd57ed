"""Random ONNX graphs: real numbers as onnxruntime's, elements as the simulator's."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import ModelProto, helper

from isa.table import INSTRUCTIONS
from microkernels.common.fixed_point import as_elements, real_of
from microkernels.networks.jobs import NetworkLayout, network_job
from microkernels.networks.network import INPUT
from microkernels.networks.plan import plan_network
from microkernels.onnx_models.calibrate import Calibration
from microkernels.onnx_models.mapping import map_graph
from microkernels.onnx_models.model import MappedModel, real_layers
from microkernels.onnx_models.operators.table import OPERATORS
from microkernels.onnx_models.read import read_graph
from microkernels.runtime.job import execute
from microkernels.runtime.ring import ChipEngines
from tests.onnx_models.graphs import model, reference

EVERY = frozenset(row.key for row in INSTRUCTIONS)
RANDOM = np.random.default_rng(5)
SEVERAL = ChipEngines(columns=2, rows=1, address_bits=20, pes=2)


def mapped(made: ModelProto) -> MappedModel:
    coverage = map_graph(read_graph(made), OPERATORS)
    assert coverage.model is not None, coverage.refused
    return coverage.model


def calibrated(found: MappedModel, x: np.ndarray, engines: ChipEngines) -> Calibration:
    plan = plan_network(found.network, batch=found.batch, engines=engines)
    maps = found.inputs[0].maps(x, found.batch)
    return Calibration(found, NetworkLayout(plan), {INPUT: maps})


def check_layers(
    made: ModelProto, x: np.ndarray
) -> tuple[MappedModel, dict[str, np.ndarray], list]:
    """Check the mapping of a model of one input against onnxruntime: the model, the map of its
    input, and onnxruntime's outputs."""
    found = mapped(made)
    exact = reference(made, x)
    maps = {INPUT: found.inputs[0].maps(x, found.batch)}
    real = {layer.name: values for layer, values in real_layers(found, maps | found.constants)}
    for port, wanted in zip(found.outputs, exact, strict=True):
        assert port.shape == wanted.shape
        values = port.images(real[port.layer]).reshape(wanted.shape)
        # onnxruntime computes with 32 bits, and tanh by an approximation.
        limit = max(1e-4 * np.abs(wanted).max(), 3e-5)
        np.testing.assert_allclose(values, wanted, rtol=1e-4, atol=limit)
    return found, maps, exact


def check(made: ModelProto, x: np.ndarray, *, bound: float = 2e-3, engines=None) -> Calibration:
    """Check a model on ``x``: the mapping against onnxruntime, the golden model against that
    within ``bound`` of the outputs' magnitude, and the simulator against the golden model."""
    found, maps, exact = check_layers(made, x)
    machine = engines or ChipEngines()
    done = calibrated(found, x, machine)
    job = network_job(
        done.network,
        done.weights,
        as_elements(maps[INPUT], done.formats[INPUT].output),
        engines=machine,
        further=done.constants,
    )
    run = execute(job, instructions=EVERY)
    assert run.match
    outputs = job.of_layers(run.outputs)
    for port, wanted in zip(found.outputs, exact, strict=True):
        values = real_of(outputs[port.layer], done.formats[port.layer].output)
        values = port.images(values).reshape(wanted.shape)
        # Maps between input and output may be much larger than an output near 0.
        assert np.abs(values - wanted).max() <= bound * max(np.abs(wanted).max(), 0.05)
    return done


@pytest.mark.parametrize("down", [1, 3])
def test_windows_of_one_row_above_and_below_a_map_of_one(down: int) -> None:
    random = np.random.default_rng(5)
    constants = {"w": random.normal(0, 0.5, (6, 8, 1, 5)), "b": random.normal(0, 0.5, 6)}
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], strides=[down, 2], pads=[1, 0, 1, 0])
    check(model([node], (1, 8, 1, 16), constants), random.normal(0, 1, (1, 8, 1, 16)).astype("f4"))


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[ModelProto, np.ndarray]:
    random = np.random.default_rng(draw(st.integers(0, 9999)))
    rank = draw(st.integers(1, 2))
    sizes = [draw(st.integers(3, 9)) for _ in range(rank)]
    groups = draw(st.sampled_from((1, 1, 2, 3)))
    each, of_group = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
    dilations = [draw(st.integers(1, 2)) if k > 1 else 1 for k in kernel]
    extents = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    attributes: dict[str, object] = {
        "group": groups,
        "dilations": dilations,
        "strides": [draw(st.integers(1, 3)) for _ in range(rank)],
    }
    auto = draw(st.sampled_from(("NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")))
    if auto != "NOTSET":
        # onnxruntime refuses dilations with padding of its own choice.
        strides = [draw(st.integers(1, k)) for k in kernel]
        attributes |= {"auto_pad": auto, "dilations": [1] * rank, "strides": strides}
        extents = kernel
    else:
        pads = [draw(st.integers(0, 2)) for _ in range(2 * rank)]
        attributes["pads"] = pads
    for axis in range(rank):
        sizes[axis] = max(sizes[axis], extents[axis])
    weights = random.normal(0, 0.5, (groups * of_group, each, *kernel))
    constants = {"w": weights, "b": random.normal(0, 0.5, groups * of_group)}
    nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes)]
    activation = draw(st.sampled_from(("Relu", "Identity", "LeakyRelu", "Tanh", "HardSwish")))
    nodes.append(helper.make_node(activation, ["c"], ["y"]))
    shape = (draw(st.integers(1, 2)), groups * each, *sizes)
    return model(nodes, shape, constants), random.normal(0, 1, shape).astype(np.float32)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(convolutions(), st.booleans())
def test_convolutions(case: tuple[ModelProto, np.ndarray], several: bool) -> None:
    check(*case, engines=SEVERAL if several else None)


@st.composite
def pools(draw: st.DrawFn) -> tuple[ModelProto, np.ndarray]:
    random = np.random.default_rng(draw(st.integers(0, 9999)))
    rank = draw(st.integers(1, 2))
    kernel = [draw(st.integers(1, 3)) for _ in range(rank)]
    sizes = [draw(st.integers(3, 8)) for _ in range(rank)]
    kind = draw(st.sampled_from(("MaxPool", "AveragePool")))
    attributes: dict[str, object] = {
        "kernel_shape": kernel,
        "strides": [draw(st.integers(1, 3)) for _ in range(rank)],
    }
    auto = draw(st.sampled_from(("NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")))
    if auto == "NOTSET":
        attributes["pads"] = [draw(st.integers(0, k - 1)) for k in kernel * 2]
        attributes["ceil_mode"] = draw(st.integers(0, 1))
    else:
        # onnxruntime refuses the negative pads of windows that leave pixels out.
        attributes |= {"auto_pad": auto, "strides": [draw(st.integers(1, k)) for k in kernel]}
    if kind == "AveragePool" and not attributes.get("ceil_mode"):
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    nodes = [helper.make_node(kind, ["x"], ["y"], **attributes)]
    shape = (1, draw(st.integers(1, 20)), *sizes)
    return model(nodes, shape), random.normal(0, 1, shape).astype(np.float32)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(pools(), st.booleans())
def test_pools(case: tuple[ModelProto, np.ndarray], several: bool) -> None:
    check(*case, engines=SEVERAL if several else None)


def _node(op: str, *inputs: str, output: str = "y", **attributes: object) -> object:
    return helper.make_node(op, list(inputs), [output], **attributes)


C3 = np.array([0.5, -2.0, 1.5]).reshape(3, 1, 1)
#: Name -> nodes and constants, on an input of 2 x 3 x 4 x 5.
GRAPHS = {
    "residual": (
        [_node("Conv", "x", "w", output="c", pads=[1] * 4), _node("Add", "c", "x", output="s"),
         _node("Relu", "s")],
        {"w": RANDOM.normal(0, 0.3, (3, 3, 3, 3))},
    ),
    "batch normalization": (
        [_node("Conv", "x", "w", output="c"), _node("BatchNormalization", "c", "a", "b", "m", "v")],
        {"w": RANDOM.normal(0, 0.3, (4, 3, 1, 1)), "a": np.array([0.5, 1, 2, -1]),
         "b": np.array([0.1, 0, -1, 2]), "m": np.array([0.3, 0, 1, -1]),
         "v": np.array([1, 0.5, 2, 0.1])},
    ),
    "batch normalization alone": (
        [_node("BatchNormalization", "x", "a", "b", "m", "v")],
        {"a": np.array([0.5, 1, -2]), "b": np.array([0.1, 0, -1]), "m": np.array([0.3, 0, 1]),
         "v": np.array([1, 0.5, 2])},
    ),
    "by channel": ([_node("Mul", "x", "c", output="m"), _node("Sub", "c", "m")], {"c": C3}),
    "by pixel": (
        [_node("Add", "x", "c", output="a"), _node("Mul", "a", "c", output="m"),
         _node("Max", "m", "c")],
        {"c": RANDOM.normal(0, 1, (4, 5))},
    ),
    "scalars": (
        [_node("Div", "x", "c", output="d"), _node("Sub", "d", "c", output="s"),
         _node("Neg", "s", output="n"), _node("Abs", "n")],
        {"c": np.array(0.7)},
    ),
    "gate": ([_node("Sigmoid", "x", output="s"), _node("Mul", "x", "s")], {}),
    "clip": ([_node("Clip", "x", "l", "h")], {"l": np.array(-0.5), "h": np.array(1.2)}),
    "open clip": ([_node("Clip", "x", "", "h")], {"h": np.array(0.2)}),
    "slopes": ([_node("PRelu", "x", "s")], {"s": np.array([0.2, -0.5, 1.5]).reshape(3, 1, 1)}),
    "mean": ([_node("Relu", "x", output="r"), _node("Mean", "x", "r", "x")], {}),
    "head": (
        [_node("GlobalAveragePool", "x", output="g"), _node("Flatten", "g", output="f"),
         _node("Gemm", "f", "w", "b", alpha=0.5, beta=2.0)],
        {"w": RANDOM.normal(0, 1, (3, 7)), "b": RANDOM.normal(0, 1, 7)},
    ),
    "whole input": (
        [_node("Reshape", "x", "s", output="f"), _node("MatMul", "f", "w", output="m"),
         _node("Add", "m", "b")],
        {"s": np.array([0, -1]), "w": RANDOM.normal(0, 0.2, (60, 5)), "b": np.ones(5)},
    ),
    "pad": ([_node("Pad", "x", "p", output="q"), _node("MaxPool", "q", kernel_shape=[2, 2])],
            {"p": np.array([0, 0, 1, 2, 0, 0, 0, 1])}),
    "moves": (
        [_node("Transpose", "x", output="t", perm=[0, 3, 1, 2]),
         _node("Concat", "t", "k", output="c", axis=2),
         _node("Slice", "c", "first", "last", "axes", "steps")],
        {"k": RANDOM.normal(0, 1, (2, 5, 2, 4)), "first": np.array([1, 4]),
         "last": np.array([5, -9]), "axes": np.array([1, 2]), "steps": np.array([2, -1])},
    ),
    "split": (
        [helper.make_node("Split", ["x"], ["a", "b"], axis=2),
         _node("Sub", "b", "a", output="d"), _node("Mul", "d", "d")], {},
    ),
    "reductions": (
        [_node("ReduceMax", "x", output="a", axes=[3]),
         _node("ReduceMin", "x", output="b", axes=[3]),
         _node("ReduceMean", "x", output="c", axes=[1, 2]), _node("Sub", "a", "b", output="d"),
         _node("Add", "d", "c", output="e"),
         _node("ReduceSumSquare", "e", axes=[2], keepdims=0)],
        {},
    ),
    "three dimensions": (
        [_node("Reshape", "x", "s", output="r"), _node("MaxPool", "r", kernel_shape=[2, 1, 2],
                                                     dilations=[1, 1, 2], pads=[1, 0, 0, 0, 0, 1])],
        {"s": np.array([2, 3, 2, 2, 5])},
    ),
    "convolution of three dimensions": (
        [_node("Reshape", "x", "s", output="r"),
         _node("Conv", "r", "w", "b", group=3, strides=[1, 1, 2], pads=[1, 0, 0, 0, 0, 1],
               dilations=[1, 1, 2])],
        {"s": np.array([2, 3, 2, 2, 5]), "w": RANDOM.normal(0, 1, (6, 1, 2, 2, 2)),
         "b": np.arange(6.0)},
    ),
    "reshaped maps": (
        [_node("Reshape", "x", "s", output="r"), _node("Relu", "r", output="q"),
         _node("Reshape", "q", "t", output="p"), _node("Conv", "p", "w")],
        {"s": np.array([2, 60]), "t": np.array([2, 5, 4, 3]),
         "w": RANDOM.normal(0, 1, (2, 5, 2, 2))},
    ),
    "a reshaped map and another": (
        [_node("Flatten", "x", output="r"), _node("MatMul", "r", "w", output="q"),
         _node("Reshape", "q", "t", output="p"), _node("Add", "p", "x")],
        {"w": RANDOM.normal(0, 0.1, (60, 60)), "t": np.array([2, 3, 4, 5])},
    ),
    "transposed": (
        [_node("ConvTranspose", "x", "w", "b", strides=[2, 3], group=3, pads=[0, 1, 2, 1],
               output_padding=[1, 2])],
        {"w": RANDOM.normal(0, 1, (3, 2, 3, 4)), "b": np.arange(6.0)},
    ),
    "hard sigmoid": ([_node("HardSigmoid", "x", alpha=0.3)], {}),
}  # fmt: skip


@pytest.mark.parametrize("engines", [ChipEngines(), SEVERAL], ids=["vault", "chip"])
@pytest.mark.parametrize("name", GRAPHS)
def test_graphs(name: str, engines: ChipEngines) -> None:
    nodes, constants = GRAPHS[name]
    x = RANDOM.normal(0, 1, (2, 3, 4, 5)).astype(np.float32)
    check(model(nodes, x.shape, constants), x, engines=engines)


@pytest.mark.parametrize(
    ("size", "kernel", "pads"), [((12, 9), (20, 20), [9, 9, 10, 10]), ((24,), (48,), [4, 43])]
)
def test_vaults_share_the_input_of_a_large_depthwise_window(
    size: tuple[int, ...], kernel: tuple[int, ...], pads: list[int]
) -> None:
    # The last tile's region begins below the map, or to the right of it.
    random = np.random.default_rng(54)
    constants = {"w": random.normal(0, 0.05, (3, 1, *kernel))}
    node = _node("Conv", "x", "w", group=3, pads=pads)
    x = random.normal(0, 1, (1, 3, *size)).astype(np.float32)
    check(model([node], x.shape, constants), x, engines=SEVERAL)


@pytest.mark.parametrize("engines", [ChipEngines(), SEVERAL], ids=["vault", "chip"])
def test_two_inputs_of_which_one_is_a_source(engines: ChipEngines) -> None:
    nodes = [_node("Mul", "z", "z", output="square"), _node("Sub", "x", "square")]
    made = model(nodes, (1, 2, 3, 3), inputs=("x", "z"))
    found = mapped(made)
    values = {port.layer: RANDOM.normal(0, 1, (1, 3, 3, 2)) for port in found.inputs}
    plan = plan_network(found.network, engines=engines)
    done = Calibration(found, NetworkLayout(plan), values)
    elements = {name: as_elements(real, done.formats[name].output) for name, real in values.items()}
    job = network_job(
        done.network, done.weights, elements.pop(INPUT), engines=engines, further=elements
    )
    run = execute(job)
    assert run.match
    (output,) = found.outputs
    first, second = values.values()
    got = real_of(job.of_layers(run.outputs)[output.layer], done.formats[output.layer].output)
    np.testing.assert_allclose(got, first - second * second, atol=2e-3)


#: Shape of the input, opset, and nodes: c is a convolution of single pixels, w its weights.
OPERATORS_ALONE = {
    "sign": ((1, 3, 2, 2), 17, [_node("Conv", "x", "w", output="c"), _node("Sign", "c")]),
    "shrink": (
        (1, 3, 2, 2),
        17,
        [_node("Conv", "x", "w", output="c"), _node("Shrink", "c", bias=0.2, lambd=0.3)],
    ),
    "thresholded": (
        (1, 3, 2, 2),
        17,
        [_node("Conv", "x", "w", output="c"), _node("ThresholdedRelu", "c", alpha=0.2)],
    ),
    "choice": (
        (1, 3, 2, 2),
        17,
        [
            _node("Conv", "x", "w", output="c"),
            _node("Greater", "x", "half", output="g"),
            _node("Where", "g", "half", "c"),
        ],
    ),
    "names of further tensors": (
        (1, 5),
        17,
        [
            _node("Relu", "x", output="q 1"),
            _node("Shrink", "x", output="q", lambd=0.1),
            _node("Add", "q", "q 1"),
        ],
    ),
    "usual axes of a definition": ((1, 2, 3, 2), 13, [_node("MeanVarianceNormalization", "x")]),
    "a vector times a matrix": ((3,), 17, [_node("MatMul", "x", "m")]),
    "sums of a vector": ((3,), 17, [_node("CumSum", "x", "first")]),
    "fewer pixels than stride": (
        (1, 3, 2, 4),
        17,
        [_node("ConvTranspose", "x", "w", strides=[3, 2], auto_pad="SAME_UPPER")],
    ),
    "more pixels than windows": (
        (1, 3, 2, 4),
        17,
        [_node("ConvTranspose", "x", "w", strides=[3, 2], output_shape=[6, 8])],
    ),
}


@pytest.mark.parametrize("name", OPERATORS_ALONE)
def test_layers_of_an_operator_are_its_real_numbers(name: str) -> None:
    shape, opset, nodes = OPERATORS_ALONE[name]
    constants = {
        "w": RANDOM.normal(0, 0.5, (3, 3, 1, 1)),
        "m": RANDOM.normal(0, 0.5, (3, 4)),
        "half": np.array(0.5),
        "first": np.array(0),
    }
    check_layers(model(nodes, shape, constants, opset=opset), RANDOM.normal(size=shape))
