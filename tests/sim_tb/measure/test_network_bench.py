"""Measurement of the network: cases, limits, cached rows, and the picture."""

from types import SimpleNamespace

import pytest
from matplotlib.image import imread

from bench.network import (
    SIZES,
    Curve,
    Point,
    bisection_limit,
    draw_curves,
    measure_network,
    port_limit,
    senders,
    stress_cases,
)
from noc.config import NetworkConfig
from sim_tb.harness.network import Destinations, NetworkOutcome, NetworkResult
from sim_tb.measure import network as network_bench


def test_cases_share_the_flits_and_cover_all_traffic():
    cases = stress_cases(flits=105_000_000, seed=1)
    assert sum(case.job.flits for case in cases) >= 105_000_000
    assert len({case.name for case in cases}) == len(cases) == 8 * len(SIZES)
    assert all(case.job.take < 1 and case.job.pause for case in cases)
    assert all(case.job.longest == case.config.packet_flits for case in cases)


@pytest.mark.parametrize(
    ("columns", "rows", "destinations", "limit"),
    [
        # Eight links in each direction take half of what 32 vaults send to 31 others.
        (8, 4, Destinations.UNIFORM, 8 / (16 * 16 / 31)),
        (4, 4, Destinations.UNIFORM, 1.0),
        (8, 4, Destinations.NEIGHBOUR, 1.0),
        (1, 4, Destinations.NEIGHBOUR, 1.0),
        # The port of vault 0 takes what all others send it.
        (4, 4, Destinations.HOT_SPOT, 1 / (15 * (0.25 + 0.75 / 15))),
        (4, 4, Destinations.TRANSPOSE, 0.5),
    ],
)
def test_limits_follow_from_the_ways(columns, rows, destinations, limit):
    config = NetworkConfig(columns=columns, rows=rows)
    assert port_limit(config, destinations, 0.25) == pytest.approx(limit)


def test_the_bisection_is_a_limit_of_uniform_traffic():
    for columns, rows in SIZES:
        config = NetworkConfig(columns=columns, rows=rows)
        assert port_limit(config, Destinations.UNIFORM, 0) <= bisection_limit(config) + 1e-9
    assert bisection_limit(NetworkConfig(columns=8, rows=4)) == pytest.approx(8 * 31 / 256)


def test_vaults_on_the_diagonal_send_nothing_transposed():
    assert senders(NetworkConfig(columns=4, rows=4), Destinations.TRANSPOSE) == 12
    assert senders(NetworkConfig(columns=4, rows=4), Destinations.UNIFORM) == 16


@pytest.fixture
def runs(monkeypatch, tmp_path):
    """Networks without a simulator; the runs that were made."""
    made = []

    def run_network(config, jobs):
        made.append((config.columns, config.rows, len(jobs)))
        if len(made) == 5:
            raise KeyboardInterrupt
        return [
            NetworkResult(
                outcome=NetworkOutcome.DONE,
                violation="",
                cycles=1000,
                packets=(10, 10),
                flits=(job.flits, 7),
                measured_flits=round(job.rate * 10_000 * config.vaults / 2),
                latency_sum=9,
                latency_count=1,
                latencies=(0, 0, 5),
                longest=20,
                fastest=(0, 4, 7 - (job.rate > 0.5), 0),
                wall_seconds=0.5,
            )
            for job in jobs
        ]

    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path))
    monkeypatch.setattr(network_bench, "run_network", run_network)
    key = SimpleNamespace(key="design")
    monkeypatch.setattr(network_bench, "network_design", lambda config: key)
    return made, key


def test_a_broken_run_goes_on_where_it_was(runs):
    made, key = runs
    sizes = {"sizes": ((2, 2),), "curve_sizes": ((4, 4),)}
    with pytest.raises(KeyboardInterrupt):
        measure_network(flits=8000, **sizes)
    told = []
    report = measure_network(flits=8000, **sizes, progress=lambda *told_now: told.append(told_now))
    assert len(made) == 4 + 1 + 4 + 4, "four cases were kept"
    assert told[0] == ("2 x 2, uniform, both classes", 0, 12)
    assert told[-1] == ("4 x 4, hot_spot", 11, 12)
    assert [row.flits for row in report.stress] == [1007] * 8
    curve = report.curves[0]
    assert curve.saturation == pytest.approx(0.495)
    assert curve.fastest == (0, 4, 6)
    hot = report.curves[-1]
    assert hot.points[-1].offered <= 3 * hot.limit < 1
    totals = report.to_dict()
    assert totals["flits"] == 8056
    assert totals["saturation_4x4_uniform"] == curve.saturation
    measure_network(flits=8000, **sizes)
    assert len(made) == 13, "all was kept"
    key.key = "another design"
    measure_network(flits=8000, **sizes)
    assert len(made) == 25, "another network's rows do not count"


def test_the_picture_shows_each_network(tmp_path):
    points = tuple(
        Point(offered=rate, delivered=min(rate, 0.6), mean=8 / (1.01 - rate), p99=20)
        for rate in (0.1, 0.5, 0.9)
    )
    curves = [
        Curve(
            columns=columns,
            rows=4,
            destinations="uniform",
            limit=0.9,
            bisection=1.1,
            points=points,
            fastest=(0, 4),
        )
        for columns in (4, 8)
    ]
    sizes = []
    for count in (1, 2):
        path = tmp_path / f"{count}.png"
        draw_curves(curves[:count], path)
        sizes.append(imread(path).shape)
    assert sizes[1][0] == sizes[0][0]
    assert sizes[1][1] == 2 * sizes[0][1]
