"""Any value in any field of a shape, layout or plan: it works, or one line says what is wrong."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microkernels.apps.bitonic_sort import bitonic_sort_program
from microkernels.apps.convolve_image import ImageFilter
from microkernels.apps.digits import DigitNetwork
from microkernels.apps.gauss import gauss_program
from microkernels.apps.matrix_add import matrix_add_program
from microkernels.apps.matrix_multiply import matrix_multiply_program
from microkernels.apps.matrix_transpose import matrix_transpose_program
from microkernels.apps.median_pool import median_pool_job
from microkernels.bp.golden import coarse_problem
from microkernels.bp.jobs import bp_job, bp_levels_job
from microkernels.bp.kernel import MatrixPlan
from microkernels.bp.layout import BpLayout
from microkernels.bp.levels import LevelsLayout, between_program, coarse_base
from microkernels.bp.problem import BpProblem
from microkernels.bp.tiles import TileGrid
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import FeatureMap, vectors
from microkernels.common.fixed_point import Elements
from microkernels.data.networks import usual_network_weights
from microkernels.networks.jobs import network_job
from microkernels.networks.maps import MapCut
from microkernels.networks.network import Conv, Dense, ElementWise, MapSize, Network, Pool
from microkernels.networks.parameters import Weights
from microkernels.networks.plan import plan_network
from microkernels.networks.vgg16 import vgg16
from microkernels.nn.conv_kernel import conv_program
from microkernels.nn.conv_layout import ConvLayout
from microkernels.nn.conv_search import best_depth, plan_conv
from microkernels.nn.dense import DenseLayout, dense_program
from microkernels.nn.dense_plan import plan_dense
from microkernels.nn.element import ElementLayout
from microkernels.nn.element_shape import ElementOperation
from microkernels.nn.jobs import conv_job, dense_job, lstm_job, pool_job
from microkernels.nn.line import line_program
from microkernels.nn.lstm_kernel import lstm_program
from microkernels.nn.lstm_layout import LstmLayout
from microkernels.nn.lstm_shape import LstmShape, plan_lstm
from microkernels.nn.pool import PoolLayout
from microkernels.nn.product import ProductShape
from microkernels.nn.window_shape import ConvShape, PoolShape
from microkernels.runtime.barrier import FlagTable
from microkernels.runtime.ring import ChipEngines
from tests.junk import SMALL_JUNK
from tests.microkernels.nn.lstm_case import lstm_case


def zeros(*shape: int) -> Elements:
    return np.zeros(shape, np.int16)


CONV = ConvShape(width=8, height=8, channels=16, filters=8)
POOL = PoolShape(width=8, height=8, channels=16)
PRODUCT = ProductShape(groups=1, rows=3, columns=5, inner=4, fraction=8)
RELU = ElementOperation(function="relu")
LSTM = LstmShape(inputs=4, cells=8, outputs=4, batch=2)
WEIGHTS, INPUTS, _ = lstm_case(LSTM, zeros)
MAP = FeatureMap(base=0, width=8, height=8, channels=16, depth=16)
SMALL = FeatureMap(base=8192, width=4, height=4, channels=16, depth=16)
TARGET = FeatureMap(base=8192, width=6, height=6, channels=8, depth=8)
PLAN = plan_conv(CONV, depth=16, out_depth=8)
DENSE_PLAN = plan_dense(inputs=10, outputs=12)
LAYERS = Network(
    input=MapSize(6, 6, 3),
    layers=(
        Conv(name="conv", filters=4, fraction=8),
        Pool(name="pool"),
        Dense(name="fc", outputs=5, fraction=8),
    ),
)
ENGINES = ChipEngines(pes=2)
LSTM_LAYOUT = LstmLayout(plan=plan_lstm(LSTM, ENGINES), engines=ENGINES, steps=2)
PROBLEM = BpProblem(zeros(6, 8, 4), zeros(4, 4))
BY_MATRIX = MatrixPlan(labels=4)
FINE = BpLayout.of(PROBLEM, BY_MATRIX, block=2)
COARSE = BpLayout.of(coarse_problem(PROBLEM), BY_MATRIX, base=coarse_base(FINE))

INSTANCES: tuple[Any, ...] = (
    CONV,
    POOL,
    LSTM,
    MAP,
    PROBLEM,
    FlagTable(base=0, members=4),
    BY_MATRIX,
    BpLayout(grid=TileGrid(width=8, height=6, ring=ChipEngines()), plan=BY_MATRIX),
    LevelsLayout(fine=FINE, coarse=COARSE),
    TileGrid(width=8, height=6, ring=ChipEngines()),
    ConvLayout(plan=PLAN, source=MAP, target=TARGET, fraction=8, base=16384),
    PoolLayout(shape=POOL, source=MAP, target=SMALL, base=16384),
    DenseLayout(
        plan=DENSE_PLAN,
        target=vectors(256, 12, 1),
        fraction=8,
        base=512,
    ),
    ImageFilter(((1, 2, 1), (2, 4, 2), (1, 2, 1)), shift=4),
    DigitNetwork(connected=(Weights(weights=np.zeros((10, 64)), bias=np.zeros(10)),)),
    LSTM_LAYOUT,
    LSTM_LAYOUT.plan,
    *LAYERS.layers,
    ElementWise(name="sum", function="add", other="conv"),
    ElementWise(name="relu", function="relu"),
    LAYERS,
    ENGINES,
    MapCut(size=MapSize(8, 8, 16), depth=8),
    PRODUCT,
    RELU,
    ElementLayout(shape=RELU, source=replace(TARGET, base=0), target=TARGET, base=16384),
)
#: Those that need more than the class promises (a ring of flags, say) are left out.
PROPERTIES = {
    type(instance): [
        name
        for name in dir(type(instance))
        if isinstance(getattr(type(instance), name), property) and hasattr(instance, name)
    ]
    for instance in INSTANCES
    if not isinstance(instance, FlagTable)
} | {FlagTable: []}
CASES = [
    pytest.param(instance, item.name, id=f"{type(instance).__name__}.{item.name}")
    for instance in INSTANCES
    for item in fields(instance)
]


@pytest.mark.parametrize(("instance", "name"), CASES)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_field_is_used_or_refused(instance: Any, name: str, data: st.DataObject) -> None:
    value = data.draw(SMALL_JUNK)
    message = ""
    try:
        made = replace(instance, **{name: value})
        for follows in PROPERTIES[type(made)]:
            # Later uses of the value must not end in another error either.
            getattr(made, follows)
    except KernelError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("instance", "name"),
    [case for case in CASES if isinstance(getattr(*case.values), (int, bool))],
)
@pytest.mark.parametrize("value", [(3, 1), "3", 2.0, None, np.int64(3)])
def test_a_number_of_another_type_is_refused_by_name(
    instance: Any, name: str, value: object
) -> None:
    """``ConvShape(kernel=(3, 1))`` ended in a bare TypeError."""
    with pytest.raises(KernelError, match=rf"^{name} must be (a whole number|True or False), not "):
        replace(instance, **{name: value})


def _conv(**given: Any) -> object:
    data = (zeros(8, 8, 16), zeros(8, 3, 3, 16), zeros(8))
    return conv_job(CONV, *data, **({"fraction": 8} | given))


def _instance(kind: type[object]) -> object:
    return next(one for one in INSTANCES if isinstance(one, kind))


def _pool(**given: Any) -> object:
    return pool_job(POOL, zeros(1, 8, 8, 16), **given)


def _dense(**given: Any) -> object:
    data = (zeros(1, 10), zeros(12, 10), zeros(12))
    return dense_job(*data, **({"fraction": 8} | given))


def _network(**given: Any) -> object:
    data = {"network": LAYERS, "weights": usual_network_weights(LAYERS)}
    return network_job(**(data | {"images": zeros(1, 6, 6, 3)} | given))  # type: ignore[arg-type]


def _lstm(**given: Any) -> object:
    data = {"shape": LSTM, "weights": WEIGHTS, "x": INPUTS, "fraction": 8}
    return lstm_job(**(data | given))  # type: ignore[arg-type]


FUNCTIONS: tuple[tuple[Callable[..., object], dict[str, Any]], ...] = (
    (
        _conv,
        dict.fromkeys(
            (
                *("fraction", "relu", "depth", "filters", "out_depth", "out_padding", "strips"),
                *("sharers", "base", "scratchpad_bytes"),
            )
        ),
    ),
    (
        _pool,
        dict.fromkeys(("relu", "depth", "out_padding", "sharers", "base", "scratchpad_bytes")),
    ),
    (
        _dense,
        dict.fromkeys(("fraction", "relu", "sharers", "chunk", "base", "scratchpad_bytes")),
    ),
    (_network, dict.fromkeys(("network", "weights", "images", "engines", "keep"))),
    (
        _lstm,
        dict.fromkeys(
            (
                *("shape", "weights", "x", "state", "fraction", "weight_fraction", "engines"),
                *("vaults", "vault"),
            )
        ),
    ),
    (plan_network, {"network": LAYERS, "batch": 1, "engines": ENGINES}),
    (vgg16, {"side": 32, "narrower": 8}),
    (plan_conv, {"shape": CONV, "depth": 16, "out_depth": 8, "filters": None, "strips": False}),
    (best_depth, {"shape": CONV, "out_depth": 8, "scratchpad_bytes": 4096}),
    (plan_dense, {"inputs": 10, "outputs": 12, "segments": 1, "sharers": 1, "chunk": None}),
    (plan_lstm, {"shape": LSTM, "engines": ENGINES, "vaults": 1}),
    (
        bp_job,
        {"problem": PROBLEM, "iterations": 1, "engines": ENGINES},
    ),
    (
        bp_levels_job,
        {"problem": PROBLEM, "coarse_iterations": 1, "iterations": 1, "smoothness": None},
    ),
    (between_program, {"name": "construct", "labels": 4, "bits": 16, "scratchpad_bytes": 4096}),
    (conv_program, {"layout": _instance(ConvLayout)}),
    (dense_program, {"layout": _instance(DenseLayout)}),
    (line_program, {"layout": INSTANCES[-1]}),
    (lstm_program, {"layout": LSTM_LAYOUT, "fraction": 8, "weight_fraction": 8}),
    (gauss_program, {"systems": 2, "unknowns": 4}),
    (bitonic_sort_program, {"rows": 2, "length": 8}),
    (matrix_add_program, {"elements": 100}),
    (matrix_multiply_program, {"shape": PRODUCT}),
    (matrix_transpose_program, {"rows": 9, "columns": 10}),
    (median_pool_job, {"image": zeros(9, 9), "stride": 1}),
)
ARGUMENTS = [
    pytest.param(function, given, name, id=f"{function.__name__.strip('_')}.{name}")
    for function, given in FUNCTIONS
    for name in given
    if name != "image"
]


@pytest.mark.parametrize(("function", "given_", "name"), ARGUMENTS)
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_an_argument_is_used_or_refused(
    function: Callable[..., object], given_: dict[str, Any], name: str, data: st.DataObject
) -> None:
    value = data.draw(SMALL_JUNK)
    others = {} if function.__name__.startswith("_") else given_
    message = ""
    try:
        function(**(others | {name: value}))
    except KernelError as error:
        message = str(error)
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize(("function", "given_", "name"), ARGUMENTS)
def test_a_tuple_is_refused_by_the_arguments_name(
    function: Callable[..., object], given_: dict[str, Any], name: str
) -> None:
    others = {} if function.__name__.startswith("_") else given_
    # A tuple is an array, of the wrong shape.
    with pytest.raises(KernelError, match=rf"^{name} must (be|have the shape) "):
        function(**(others | {name: (3, 1)}))
