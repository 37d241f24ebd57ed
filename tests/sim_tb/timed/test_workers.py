"""How many threads do the work of a chip's model."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from sim_tb.timed.chip.chip_model import Workers


def test_all_work_where_none_waits() -> None:
    workers = Workers(6)
    assert [workers.choose(now / 10) for now in range(100)] == [6] * 100


def test_one_works_after_a_wait_and_two_again_later() -> None:
    workers = Workers(2)
    assert workers.choose(100.0) == 2
    workers.waited(100.5, 0.01)
    assert [workers.choose(100.5 + after) for after in (0.0, 0.079, 0.081, 9.0)] == [1, 1, 2, 2]


def test_waits_that_follow_each_other_cost_ever_less() -> None:
    """With two threads waiting at once, one works longer each time, up to 64 times the wait; a wait
    after long work begins again."""
    workers = Workers(2)
    now, pauses = 100.0, []
    for _ in range(7):
        workers.waited(now, 0.01)
        began = now
        while workers.choose(now) == 1:
            now += 0.001
        pauses.append(round((now - began) / 0.01))
    assert pauses == [8, 16, 32, 64, 64, 64, 64]
    workers.waited(now + 10, 0.01)
    assert (workers.choose(now + 10.079), workers.choose(now + 10.081)) == (1, 2)


def test_a_wait_soon_after_fewer_threads_began_makes_the_pause_longer() -> None:
    workers = Workers(4)
    workers.waited(100.0, 0.01)
    assert workers.choose(100.0) == 2
    workers.waited(100.02, 0.01)
    assert [workers.choose(100.02 + after) for after in (0.0, 0.159, 0.161, 0.162)] == [1, 1, 2, 4]


def test_many_threads_become_as_many_as_there_are_processors_for() -> None:
    for limit, processors in ((32, 9), (3, 2), (3, 1), (7, 7)):
        workers = Workers(limit)
        now, counts = 100.0, []
        for _ in range(2000):
            now += 0.001
            counts.append(workers.choose(now))
            if counts[-1] > processors:
                workers.waited(now, 0.001)
        assert all(1 <= count <= limit for count in counts)
        assert all(after <= 2 * before for before, after in pairwise(counts))
        fitting = [count for count in counts if count <= processors]
        # Mostly a number that has processors, of at least half of these.
        assert len(fitting) > 0.9 * len(counts)
        assert sum(2 * count > processors for count in fitting) > 0.8 * len(counts)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    waits=st.lists(st.floats(0.001, 0.2), min_size=1, max_size=60),
    works=st.floats(0.0, 0.5),
    step=st.floats(0.001, 1.0),
)
def test_waits_take_a_small_share_of_the_time(
    waits: list[float], works: float, step: float
) -> None:
    """On a machine where two threads always wait soon, one works for most of the time."""
    workers = Workers(2)
    began = now = 50.0
    alone = 0.0
    for wait in waits:
        while workers.choose(now) == 1:
            now += step
            alone += step
        now += works + wait
        workers.waited(now, wait)
    while workers.choose(now) == 1:
        now += step
    assert sum(waits) <= (now - began) / 8
