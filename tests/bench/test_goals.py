"""The recorded figures reach the goals."""

import pytest

from bench.harness.record import values

#: Record and figure -> the most that it may be: an iteration of BP-M on full HD and the launches of
#: the hierarchical run, VGG-16, a step of ESE's LSTM, all on 128 engines.
GOALS = {
    ("full_hd", "flat_fine_ms"): 4.4,
    ("full_hd", "levels_construct_ms"): 0.29,
    ("full_hd", "levels_coarse_ms"): 1.15,
    ("full_hd", "levels_copy_ms"): 1.1,
    ("networks", "vgg16_8x4_batch_1_ms"): 27,
    ("sequences", "ese_us"): 230,
}


@pytest.mark.parametrize(("record", "figure"), GOALS)
def test_goals_are_reached(record: str, figure: str) -> None:
    assert values(record)[figure] <= GOALS[record, figure]
