"""The logistic functions against the mathematical ones, for every element and every FX."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.logistic import (
    ERROR_BOUND,
    LOGISTIC,
    MOST_FRACTION,
    REGIONS,
    SEGMENTS,
    LogisticOp,
    logistic,
)
from isa.table import BY_KEY, MAX_FX, encode

EVERY = np.arange(-(1 << 15), 1 << 15).astype("<i2")
EXACT: dict[LogisticOp, Callable[[np.ndarray], np.ndarray]] = {
    LogisticOp.SIGMOID: lambda x: 0.5 + np.tanh(x / 2) / 2,
    LogisticOp.TANH: np.tanh,
}


@pytest.mark.parametrize("function", LogisticOp)
@pytest.mark.parametrize("fx", range(MOST_FRACTION + 1))
def test_error_over_the_whole_range(function: LogisticOp, fx: int) -> None:
    found = logistic(function, EVERY, fx)
    assert found.dtype == EVERY.dtype
    wanted = EXACT[function](EVERY / 2.0**fx) * 2.0**fx
    assert np.abs(found - wanted).max() < ERROR_BOUND
    assert np.diff(found.astype(int)).min() >= -1


@pytest.mark.parametrize("function", LogisticOp)
def test_more_fraction_bits_count_as_the_most(function: LogisticOp) -> None:
    most = logistic(function, EVERY, MOST_FRACTION)
    for fx in (MOST_FRACTION + 1, 32, MAX_FX):
        assert np.array_equal(logistic(function, EVERY, fx), most)


@pytest.mark.parametrize("fx", range(MOST_FRACTION + 1))
def test_far_from_zero_the_functions_reach_their_ends(fx: int) -> None:
    """Beyond 16 both functions have reached their limits, within the resolution of any element."""
    one = 1 << fx
    far = EVERY[EVERY.astype(int) >= 16 * one]
    for function, low in ((LogisticOp.SIGMOID, 0), (LogisticOp.TANH, -one)):
        assert np.all(logistic(function, far, fx) == one)
        assert np.all(logistic(function, -far, fx) == low)


def test_values_worked_out_by_hand() -> None:
    zero = np.zeros(1, "<i2")
    assert logistic(LogisticOp.TANH, zero, 12)[0] == 0
    assert logistic(LogisticOp.SIGMOID, zero, 12)[0] == 2048
    # sigmoid(1) = 0.731059 and tanh(-1) = -0.761594, times 4096.
    assert logistic(LogisticOp.SIGMOID, np.array([4096], "<i2"), 12)[0] == 2994
    assert logistic(LogisticOp.TANH, np.array([-4096], "<i2"), 12)[0] == -3119
    # Whole numbers: sigmoid(0) is a half, which is rounded up.
    small = np.arange(-3, 4).astype("<i2")
    assert list(logistic(LogisticOp.SIGMOID, small, 0)) == [0, 0, 0, 1, 1, 1, 1]
    assert list(logistic(LogisticOp.TANH, small, 0)) == [-1, -1, -1, 0, 1, 1, 1]


def test_the_table_is_that_of_the_function() -> None:
    """The parabola of each segment passes within a few units of tanh at many places of it."""
    assert len(SEGMENTS) == 56
    for number, region in enumerate(REGIONS):
        ends = [other.first for other in REGIONS[number + 1 :]] + [len(SEGMENTS)]
        for index in range(region.first, ends[0]):
            start = region.start + (index - region.first << region.shift)
            constant, slope, curve = SEGMENTS[index]
            assert min(constant, slope, curve) >= 0
            for part in range(17):
                t = Fraction(part, 16)
                y = constant + slope * t - curve * t * t
                u = (start + float(t * (1 << region.shift))) / 2**16
                assert abs(float(y) / 2**18 - np.tanh(u)) < 3.1 / 2**18


@pytest.mark.parametrize("key", ["v.sigmoid[16]", "v.tanh[16]"])
def test_the_simulator_executes_them(key: str) -> None:
    row = BY_KEY[key]
    values = EVERY[::257][:250]
    pad = np.zeros(2048, "<i2")
    pad[3 : 3 + len(values)] = values
    for fx in (0, 7, 12, 15, 40):
        words = [
            word
            for name, value in (("set.vl", len(values)), ("set.fx", fx))
            for word in (
                encode(BY_KEY["mov.imm"], (10, value)),
                encode(BY_KEY[name], (10,)),
            )
        ]
        words += [
            encode(BY_KEY["mov.imm"], (10, 2049)),
            encode(BY_KEY["mov.imm"], (11, 6)),
            encode(row, (10, 11)),
            encode(BY_KEY["halt"], ()),
        ]
        with DramImage(64) as memory:
            simulator = Simulator(words, memory, scratchpad=pad.tobytes())
            assert simulator.run().state == "halted"
            after = simulator.scratchpad.tobytes()
        found = np.frombuffer(after[2049 : 2049 + 2 * len(values)], "<i2")
        assert np.array_equal(found, logistic(LOGISTIC.function_of(row), values, fx))
        assert after[:2049] == pad.tobytes()[:2049]
        assert not any(after[2049 + 2 * len(values) :])
