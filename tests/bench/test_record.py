"""Records of measurements: what they keep and what they tell apart."""

from pathlib import Path

import pytest

from bench.__main__ import _verdict
from bench.measure import Measurement
from bench.record import Record, made_with, read_record, write_record


def test_a_new_value_keeps_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "results" / "it.json"
    assert read_record(path) == Record()
    for value in (5.0, 4.0, 4.0):
        write_record(path, [Measurement("a", value, "ns")], read_record(path))
    known = read_record(path)
    assert known.results == {"a": {"value": 4.0, "unit": "ns", "before": 5.0}}
    assert known.made_with == made_with()
    assert list(known.changes(made_with())) == []


def test_other_tools_and_configurations_are_told() -> None:
    known = Record({}, {**made_with(), "pyosys": "0.1", "configurations": "x"})
    told = list(known.changes(made_with()))
    assert len(told) == 2
    assert told[0].startswith("pyosys 0.1; now it is 0.")
    assert told[1].startswith("configurations x; now it is ")


@pytest.mark.parametrize(
    ("value", "old", "more_is_better", "verdict"),
    [
        (1.0, None, False, "new"),
        (1.01, 1.0, False, "as recorded"),
        (1.03, 1.0, False, "WORSE"),
        (1.03, 1.0, True, "better: record it"),
        (0.9, 1.0, True, "WORSE"),
        (0.9, 1.0, False, "better: record it"),
    ],
)
def test_verdicts(value: float, old: float | None, more_is_better: bool, verdict: str) -> None:
    new = Measurement("a", value, "ns", 0.02, more_is_better)
    assert _verdict(new, old) == verdict
