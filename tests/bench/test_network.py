"""Measurement of the network: cases, limits, cached rows, and the picture."""

from types import SimpleNamespace

import pytest
from matplotlib.image import imread

from bench import network as network_bench
from bench.network import (
    SIZES,
    LoadCurve,
    bisection_limit,
    draw_curves,
    measure_curve,
    port_limit,
    senders,
    stress_cases,
)
from noc.config import NetworkConfig
from sim_tb.harness.network import Destinations, NetworkResult
from sim_tb.harness.traffic import TrafficOutcome


def test_cases_share_the_flits_and_cover_all_traffic():
    cases = stress_cases(flits=105_000_000, seed=1)
    assert sum(job.flits for _, job in cases.values()) >= 105_000_000
    assert len(cases) == 8 * len(SIZES)
    assert all(job.take < 1 and job.pause for _, job in cases.values())
    assert all(job.longest == config.packet_flits for config, job in cases.values())


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
                outcome=TrafficOutcome.DONE,
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

    def measure():
        return {item.name: item.value for item in network_bench.network(8000, only=["2x2"])}

    with pytest.raises(KeyboardInterrupt):
        measure()
    figures = measure()
    assert len(made) == 4 + 1 + 4, "four cases were kept"
    assert figures["flits"] == 8056
    assert figures["cases"] == 8
    assert figures["2x2_uniform_both_classes_flits"] == 1007
    measure()
    assert len(made) == 9, "all was kept"
    key.key = "another design"
    measure()
    assert len(made) == 17, "another network's rows do not count"


def test_curves_are_kept_and_end_above_the_limit(runs):
    made, _ = runs
    curve = measure_curve((4, 4), Destinations.UNIFORM, 1)
    assert curve.saturation == pytest.approx(0.495)
    hot = measure_curve((4, 4), Destinations.HOT_SPOT, 1)
    assert hot.points[-1][0] <= 3 * hot.limit < 1
    again = measure_curve((4, 4), Destinations.UNIFORM, 1)
    assert [tuple(point) for point in again.points] == curve.points
    assert len(made) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--only", "7x7"), "--only: unknown part '7x7'; there are: 2x2, 3x3, 4x2, 5x3, 4x4, 8x4"),
        (("--only", "3x3", "--picture", "n.png"), "--picture: latency is measured for 4x4 and 8x4"),
        (("--picture", "missing/n.png"), "missing/n.png: can't be written"),
    ],
)
def test_what_cannot_be_measured_is_refused_at_once(vip, arguments, message):
    code, _, error = vip("bench", "network", *arguments)
    assert code == 2
    assert message in error
    assert error.count("\n") == 1


def test_the_picture_shows_each_network(tmp_path):
    points = tuple((rate, min(rate, 0.6), 8 / (1.01 - rate)) for rate in (0.1, 0.5, 0.9))
    curves = [
        LoadCurve(
            columns=columns,
            rows=4,
            destinations="uniform",
            limit=0.9,
            bisection=1.1,
            points=points,
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
