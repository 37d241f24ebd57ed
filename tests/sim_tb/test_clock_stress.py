"""Random traffic at vaults whose memory has a clock of its own."""

from fractions import Fraction

import pytest

from memory.config import VaultConfig
from sim_tb.dut.memory import vault_design
from sim_tb.harness.traffic_runs import TrafficError
from sim_tb.runner.build import BuildError
from sim_tb.workloads import stress
from sim_tb.workloads.stress import RATIOS, clocks_of, run_clock_stress
from soc.tile.clocks import ClockConfig

#: A random vault with few banks and several requesters.
SEED = 13


def test_ratios_reach_from_an_eighth_to_eight() -> None:
    found = [Fraction(each.memory_ps, each.engine_ps) for each in RATIOS]
    assert len(set(found)) == len(RATIOS) > 20
    assert (min(found), max(found)) == (Fraction(1, 8), 8)
    # SCRATCH's 50:200 MHz, and a ratio near it that has no small common multiple.
    assert {Fraction(50, 200), Fraction(97, 200)} <= set(found)
    assert sum(each.jitter_ps > 0 for each in RATIOS) > 3


def test_depths_of_crossings_are_drawn() -> None:
    drawn = {clocks_of(seed) for seed in range(60)}
    assert all(clocks.two for clocks in drawn)
    assert {clocks.request_depth for clocks in drawn} == {4, 8, 16, 64}
    assert {clocks.response_depth for clocks in drawn} == {4, 8, 16, 64}
    assert clocks_of(7) == clocks_of(7)


def test_a_controller_alone_has_one_clock() -> None:
    clocks = ClockConfig(domains="two")
    with pytest.raises(BuildError, match=r"^a controller without a crossbar can.t have two clocks"):
        vault_design(VaultConfig(banks=2, rows=2, row_bytes=64), 0, clocks)


def test_a_fault_names_seed_and_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_, **__):
        raise TrafficError("an access is lost")

    monkeypatch.setattr(stress, "run_traffic", broken)
    with pytest.raises(
        TrafficError, match=r"^vault of seed 13, clocks of 1600 and 200 ps, jitter 0 ps: an access"
    ):
        run_clock_stress(accesses=100, vaults=1, seed=SEED)


@pytest.mark.slow
def test_random_accesses_at_every_ratio() -> None:
    report = run_clock_stress(accesses=60_000, vaults=1, seed=SEED)
    assert report.accesses >= 60_000
    assert len(report.runs) == len(RATIOS)
    assert min(report.reads, report.writes) > 10_000
