"""Pareto fronts, winners, and searches, without measurements."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.sweeps.specification import Choice, Specification, explore
from vip.sweeps.table import Summary, pareto, summaries, winner, write_parquet

NAMES = ("time_us", "luts")


def summary(number: int, values: tuple[int, int], failed: str = "") -> Summary:
    found = dict(zip(NAMES, map(float, values), strict=True))
    return Summary(number=number, choice={}, values=found, failed=failed)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=30))
def test_no_configuration_beats_one_of_the_front(points: Sequence[tuple[int, int]]) -> None:
    found = [summary(number, values) for number, values in enumerate(points)]
    front = pareto(found, NAMES)
    for one in found:
        beaten = any(
            a <= c and b <= d and (a, b) != (c, d)
            for a, b in points
            for c, d in [points[one.number]]
        )
        assert (one in front) != beaten
    best = winner(found, NAMES)
    assert best is not None
    assert best in front
    a, b = points[best.number]
    assert all(a * b <= (c * d) * (1 + 1e-9) for c, d in points)


def test_failed_configurations_win_nothing() -> None:
    found = [summary(0, (1, 1), failed="it faulted"), summary(1, (5, 5))]
    assert [one.number for one in pareto(found, NAMES)] == [1]
    assert winner(found[:1], NAMES) is None


def test_cycles_are_the_geometric_mean_over_kernels() -> None:
    rows = [
        {"number": 3, "x": 1, "kernel": "a", "on": "model", "status": "ok", "message": ""},
        {"number": 3, "x": 1, "kernel": "b", "on": "model", "status": "ok", "message": ""},
    ]
    rows[0] |= {"cycles": 100, "luts": 7}
    rows[1] |= {"cycles": 400, "luts": 7}
    (found,) = summaries(rows, ("x",))
    assert found.values["cycles"] == pytest.approx(200)
    assert found.values["luts"] == 7
    rows[1] |= {"status": "refused", "message": "too small"}
    assert summaries(rows, ("x",))[0].failed == "too small"


def test_parquet_files_depend_on_the_rows_alone(tmp_path: Path) -> None:
    rows = [{"number": 0, "mixed": 3, "status": "ok"}, {"number": 1, "mixed": "open", "luts": 5}]
    files = [tmp_path / name for name in ("one", "two")]
    for file in files:
        write_parquet(rows, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    table = pyarrow.parquet.read_table(files[0]).to_pylist()
    assert table[1] == {"number": 1, "mixed": "open", "status": None, "luts": 5}


def specification(method: str, count: int) -> Specification:
    return Specification(
        base={},
        vary={"x": list(range(12)), "y": [[1], [2], [3]]},
        kernels=[{"kernel": "bp"}],
        objectives=("cycles",),
        method=method,
        configurations=count,
        batch=4,
    )


@pytest.mark.parametrize("method", ["random", "tpe", "nsga2"])
def test_searches_choose_alike_and_learn(method: str) -> None:
    """The least cycles are at x = 3, y = [2]; what is chosen follows from seed and results."""

    def chosen() -> list[tuple[int, list[int]]]:
        found = []

        def measure(batch: Sequence[Choice]) -> list[tuple[float] | None]:
            found.extend((choice["x"], choice["y"]) for choice in batch)
            return [
                None if choice["x"] == 11 else (1 + abs(choice["x"] - 3) + (choice["y"] != [2]),)
                for choice in batch
            ]

        explore(specification(method, 32), measure)
        return found

    first = chosen()
    assert first == chosen()
    assert len(first) == 32
    if method == "tpe":
        near = [abs(x - 3) for x, _ in first]
        assert sum(near[16:]) < sum(near[:16])
