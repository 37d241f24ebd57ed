"""Layers and problems that don't fit, and data of a wrong shape: one line that says what would."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from microkernels.apps.digits import DigitNetwork
from microkernels.bp.kernel import MatrixPlan
from microkernels.bp.levels import between_program
from microkernels.bp.problem import BpProblem
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements
from microkernels.data.stereo import motorcycle
from microkernels.networks.parameters import Weights
from microkernels.nn.jobs import conv_job, dense_job, lstm_job, pool_job
from microkernels.nn.lstm_shape import LstmShape
from microkernels.nn.window_shape import ConvShape, PoolShape
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import ONE_ENGINE
from tests.microkernels.nn.lstm_case import lstm_case


def zeros(*shape: int) -> Elements:
    return np.zeros(shape, np.int16)


CONV = ConvShape(width=8, height=8, channels=64, filters=8)
LSTM = LstmShape(inputs=4, cells=8, outputs=4, batch=2)
WEIGHTS, _, _ = lstm_case(LSTM, zeros)
MLP = DigitNetwork(connected=(Weights(weights=np.zeros((10, 64)), bias=np.zeros(10)),))


def conv(shape: ConvShape = CONV, *, room: int = 4096, **data: Any) -> KernelJob:
    given = {
        "image": zeros(shape.height, shape.width, shape.channels),
        "weights": zeros(shape.filters, shape.kernel, shape.kernel, shape.channels),
        "bias": zeros(shape.filters),
    }
    return conv_job(shape, **(given | data), fraction=8, scratchpad_bytes=room)


def pooled(shape: PoolShape, *, room: int = 4096) -> KernelJob:
    maps = zeros(shape.segments, shape.height, shape.width, shape.channels)
    return pool_job(shape, maps, scratchpad_bytes=room)


def dense(batch: int = 1, **data: Any) -> KernelJob:
    given = {"inputs": zeros(batch, 10), "weights": zeros(12, 10), "bias": zeros(12)}
    return dense_job(**(given | data), fraction=8)


def lstm(batch: int = 2, **changed: Elements) -> KernelJob:
    shape = replace(LSTM, batch=batch)
    weights = replace(WEIGHTS, **changed)
    return lstm_job(shape, weights, zeros(1, batch, 4), fraction=8, engines=ONE_ENGINE)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: conv(replace(CONV, width=300, height=300, kernel=90, channels=1)),
            "at most 28 x 28 pixels do",
        ),
        (lambda: conv(room=64), "even one channel at a time: none does"),
        (lambda: conv(depth=100), "slices of at most 85 channels"),
        (lambda: conv(weights=zeros(8, 64, 3, 3)), "weights must have the shape (8, 3, 3, 64)"),
        (lambda: conv(bias=zeros(7)), "bias must have the shape (8,), not (7,)"),
        (lambda: conv(image=zeros(64, 8, 8)), "image must have the shape (8, 8, 64)"),
        (
            lambda: pooled(PoolShape(width=9, height=9, channels=20, kernel=9), room=512),
            "slices of at most 11 channels",
        ),
        (lambda: pooled(PoolShape(width=4, height=4, channels=3), room=16), "no slice does"),
        (lambda: dense(5000), "at most 64 at a time"),
        (lambda: dense(weights=zeros(12)), "weights must have the shape outputs x inputs"),
        (lambda: dense(inputs=zeros(2, 9)), "inputs must have the shape batch x 10"),
        (lambda: lstm(4000), "at most 64 vectors for each"),
        (lambda: lstm(peepholes=zeros(4, 8)), "peepholes must have the shape (3, 8)"),
        (lambda: BpProblem(zeros(2, 2, 257), zeros(257, 257)), "at most 256 fit in a vector"),
        (lambda: MatrixPlan(labels=257).pad, "1 to 34 fit"),
        (lambda: between_program("construct", 257), "1 to 256 fit"),
        (lambda: between_program("copy", 300, 32), "1 to 128 fit"),
        (lambda: between_program("construct", 3, scratchpad_bytes=16), "none fit"),
        (lambda: motorcycle(64, 48, 257), "labels must be from 2 to 54"),
        (lambda: MLP.scores(np.zeros((3, 9, 9, 1))), "the shape (count, 8, 8, 1), not (3, 9, 9"),
        (
            lambda: MLP.fixed_scores(np.zeros((3, 64)), lambda job: job.expected),
            "the shape (count, 8, 8, 1), not (3, 64)",
        ),
        (
            lambda: DigitNetwork(
                connected=(Weights(weights=np.zeros((10, 63)), bias=np.zeros(10)),)
            ),
            "layer 0 must have the shape (10, 64), not (10, 63)",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(make: Callable[[], object], message: str) -> None:
    with pytest.raises(KernelError) as error:
        make()
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_what_is_said_to_fit_does() -> None:
    shape = PoolShape(width=9, height=9, channels=5, kernel=9)
    assert pooled(shape, room=256).expected.shape == (1, 1, 5)
    with pytest.raises(KernelError, match="at most 5 channels"):
        pooled(replace(shape, channels=6), room=256)
    largest = ConvShape(width=28, height=28, channels=1, filters=1, kernel=28)
    assert conv(largest).expected.shape == (1, 1, 1)
