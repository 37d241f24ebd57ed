"""The recorded figures reach the goals."""

import pytest

from bench.record import values

#: Most milliseconds for a kernel on 32 vaults.
GOALS = {
    "bp_m_batch_1": 4.4,
    "bp_construct_batch_1": 0.29,
    "bp_coarse_batch_1": 1.15,
    "bp_copy_batch_1": 1.1,
    "conv1_1_batch_1": 0.18,
    "conv3_2_batch_1": 3.05,
    "conv5_1_batch_1": 0.85,
    "fc6_batch_1": 0.72,
    "fc7_batch_1": 0.14,
    "fc8_batch_1": 0.05,
    "VGG-16 convolutions_batch_1": 26,
    "VGG-16_batch_1": 27,
    "lstm_batch_32": 0.23,
}


@pytest.mark.parametrize("key", GOALS)
def test_goals_are_reached(key: str) -> None:
    assert values("kernels")[key] <= GOALS[key]
