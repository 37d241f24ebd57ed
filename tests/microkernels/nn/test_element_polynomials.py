"""Functions of elements that are polynomials: golden model against real numbers, and the kernel."""

from math import erf, sqrt

import numpy as np
import pytest

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import count_saturation
from microkernels.nn.curves import Curve, Piece, polynomial
from microkernels.nn.element_shape import ElementOperation
from microkernels.runtime.job import simulate
from tests.microkernels.nn.element_jobs import element_job

ALL = np.arange(-(1 << 15), 1 << 15).astype(np.int16)


@pytest.mark.parametrize("fraction", [0, 2, 6, 11, 12, 13, 14])
@pytest.mark.parametrize("name", ["gelu", "erf"])
def test_every_element_is_within_the_bound(name: str, fraction: int) -> None:
    real = ALL[::7] / 2.0**fraction
    if name == "erf":
        wanted = np.array([erf(each) for each in real])
    else:
        wanted = np.array([each * (1 + erf(each / sqrt(2))) / 2 for each in real])
    found = polynomial(name, ALL[::7], fraction) / 2.0**fraction
    assert np.abs(found - wanted).max() <= 2e-4 + 2.0**-fraction


@pytest.mark.parametrize("fraction", [0, 8, 12, 13])
def test_every_hyperbolic_tangent_is_within_the_bound_and_none_saturates(fraction: int) -> None:
    with count_saturation() as count:
        found = polynomial("tanh", ALL[1:], fraction) / 2.0**fraction
    error = np.abs(found - np.tanh(ALL[1:] / 2.0**fraction)).max()
    assert error <= 1.5e-4 + 2.0**-fraction
    assert not count()


@pytest.mark.parametrize("fraction", [0, 9, 14])
@pytest.mark.parametrize("name", ["gelu", "erf"])
def test_the_kernel_equals_the_golden_model(name: str, fraction: int) -> None:
    shape = ElementOperation(function=name, fraction=fraction)
    image = np.random.default_rng(fraction).choice(ALL, (11, 3, 20))
    job = element_job(shape, image, depth=16, sharers=2)
    outputs, hazards = simulate(job)
    np.testing.assert_array_equal(outputs, job.expected)
    assert not hazards


def test_too_many_fraction_bits_are_refused() -> None:
    with pytest.raises(KernelError, match="fraction bits must be"):
        ElementOperation(function="gelu", fraction=15)
    # Its offset would be no element.
    with pytest.raises(KernelError, match="fraction bits must be a whole number from 0 to 13"):
        polynomial("tanh", ALL, 14)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"shift": 16}, "shift must be a whole number from 0 to 15"),
        ({"coefficients": (1,)}, "coefficients of a piece must be a whole number from 2 to 12"),
        ({"factor": 1 << 15}, "number of a curve must be a whole number from -32768 to 32767"),
    ],
)
def test_bad_numbers_of_a_curve_are_refused(changed: dict[str, object], message: str) -> None:
    piece = Piece(0, 100, 3, 1, 4, (3, 4))._replace(**changed)
    with pytest.raises(KernelError, match=message):
        _shape(Curve(0, -9, 9, (piece,)))


def test_a_curve_without_pieces_is_refused() -> None:
    with pytest.raises(KernelError, match="pieces of a curve must be"):
        _shape(Curve(0, -9, 9, ()))
    with pytest.raises(KernelError, match="low must be at most high, 4, not 5"):
        _shape(Curve(0, 5, 4, (Piece(0, 100, 3, 1, 4, (3, 4)),)))
    with pytest.raises(KernelError, match="curve needs curve"):
        _shape(None)


def _shape(curve: Curve | None) -> ElementOperation:
    return ElementOperation(function="curve", curve=curve)
