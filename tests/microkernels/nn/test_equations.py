"""Golden models that have the kernels' lists of instructions, against their equations."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microkernels.common.fixed_point import unpack
from microkernels.networks.curves import Function, evaluated
from microkernels.nn.curves import COEFFICIENTS, MOST_FRACTION, polynomial
from microkernels.nn.element_shape import OF_BYTES, OPERATIONS, ElementOperation, element
from microkernels.nn.rows_shape import normalize
from tests.microkernels.nn import equations
from tests.microkernels.nn.test_element import GIVEN, ODD, operation_of, operations
from tests.microkernels.nn.test_rows import normal_shape, softmax_shape

ALL = np.arange(-(1 << 15), 1 << 15)


@pytest.mark.parametrize("fraction", range(MOST_FRACTION))
@pytest.mark.parametrize("name", COEFFICIENTS)
def test_polynomials_of_every_element(name: str, fraction: int) -> None:
    expected = equations.polynomial(name, ALL, fraction)
    np.testing.assert_array_equal(polynomial(name, ALL.astype(np.int16), fraction), expected)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    operation=operations(),
    limit=st.sampled_from([50, 5000, 32767]),
    seed=st.integers(0, 1 << 20),
)
def test_elements(operation: ElementOperation, limit: int, seed: int) -> None:
    if operation.function not in ("tanh", "sigmoid"):
        check(operation, limit, seed)


@pytest.mark.parametrize("curve", [GIVEN["curve"]["curve"], ODD])
def test_curves_of_every_element(curve) -> None:
    operation = ElementOperation(function="curve", curve=curve)
    outputs = element(operation, ALL.astype(np.int16).reshape(16, 16, 256))
    np.testing.assert_array_equal(outputs.ravel(), equations.curve(curve, ALL))


@pytest.mark.parametrize("function", sorted({*OPERATIONS} - {"tanh", "sigmoid"}))
def test_every_operation(function: str) -> None:
    check(operation_of(function), 32767, 1)


@pytest.mark.parametrize("fraction", range(16))
@pytest.mark.parametrize("function", ["tanh", "sigmoid"])
def test_logistic_functions_of_every_element(function: str, fraction: int) -> None:
    """Within 0.75 units of the last place."""
    operation, one = ElementOperation(function=function, fraction=fraction), 1 << fraction
    outputs = element(operation, ALL.astype(np.int16).reshape(16, 16, 256)).ravel()
    wanted = evaluated(Function(function), ALL / one) * one
    assert np.abs(outputs - wanted).max() <= 0.75


@pytest.mark.parametrize("function", OF_BYTES)
def test_bytes(function: str) -> None:
    values = {name: max(min(value, 127), -128) for name, value in GIVEN[function].items()}
    values |= {"fraction": 5} if "fraction" in values else {}
    check(ElementOperation(function=function, bits=8, **values), 32767, 1)


def check(operation: ElementOperation, limit: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    maps = random.integers(-limit - 1, limit, (2, 3, 5, 40), np.int16, endpoint=True)
    outputs = element(operation, maps[0], maps[1] if operation.maps == 2 else None)
    first, second = (unpack(one, operation.bits).astype(np.int64) for one in maps)
    expected = equations.element(operation, first, second)
    np.testing.assert_array_equal(unpack(outputs, operation.bits), expected)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    operation=st.sampled_from(["softmax", "layer", "rms"]),
    channels=st.sampled_from([1, 2, 7, 40, 256, 257, 600, 1024]),
    source=st.integers(-3, 17),
    magnitude=st.integers(0, 15),
    seed=st.integers(0, 1 << 20),
)
def test_rows(operation: str, channels: int, source: int, magnitude: int, seed: int) -> None:
    size = (3, 2, channels)
    softmax = operation == "softmax"
    shape = softmax_shape(*size, source) if softmax else normal_shape(operation, *size)
    random = np.random.default_rng(seed)
    image = random.integers(-1 << magnitude, 1 << magnitude, (2, 3, channels))
    np.testing.assert_array_equal(normalize(shape, image), equations.normalize(shape, image))
