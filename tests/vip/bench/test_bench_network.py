"""``vip bench network``: its report and what it refuses."""

import json

import pytest

from bench.network import Curve, NetworkReport, Point, StressRow
from vip.cli.app import main
from vip.cli.commands.bench import network as bench_network


@pytest.fixture
def bench(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["vip", "bench", "network", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return ended.value.code or 0, captured.out, captured.err

    return run


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--size", "7x7"), "--size 7x7: there are 2x2, 3x3, 4x2, 5x3, 4x4, 8x4"),
        (("--size", "3x3", "--image", "n.png"), "--image: latency is measured for 4x4 and 8x4"),
        (("--image", "missing/n.png"), "missing/n.png: can't be written"),
    ],
)
def test_what_cannot_be_measured_is_refused_at_once(bench, arguments, message):
    code, _, error = bench(*arguments)
    assert code == 2
    assert message in error
    assert error.count("\n") == 1


def test_the_report_has_totals_cases_and_curves(bench, monkeypatch, tmp_path):
    asked = {}

    def measure(**options):
        asked.update(options)
        stress = StressRow(
            case="4 x 4, uniform, answers",
            flits=1000,
            packets=300,
            cycles=99,
            longest=50,
            cycles_per_second=7,
        )
        point = Point(offered=0.02, delivered=0.02, mean=9.5, p99=12)
        curve = Curve(
            columns=4,
            rows=4,
            destinations="hot_spot",
            limit=0.22,
            bisection=1.875,
            points=(point,),
            fastest=(0, 4),
        )
        return NetworkReport(stress=(stress,), curves=(curve,))

    monkeypatch.setattr(bench_network, "measure_network", measure)
    target, image = tmp_path / "network.json", tmp_path / "network.png"
    arguments = ("--size", "4x4", "--flits", "1000", "--json", str(target), "--image", str(image))
    code, out, _ = bench(*arguments)
    assert code == 0
    assert asked["sizes"] == asked["curve_sizes"] == ((4, 4),)
    assert asked["flits"] == 1000
    assert "4 x 4, hot spot" in out
    report = json.loads(target.read_text())
    assert report["flits"] == 1000
    assert report["saturation_4x4_hot_spot"] == 0.02
    assert report["stress"][0]["longest"] == 50
    assert report["curves"][0]["points"][0]["mean"] == 9.5
    assert image.read_bytes().startswith(b"\x89PNG")
