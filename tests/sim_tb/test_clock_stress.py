"""Random traffic at vaults whose memory has a clock of its own."""

from fractions import Fraction

import pytest

from memory.config import VaultConfig
from memory.controller.counters import VaultCounter
from memory.line_buffer.layout import LineCounter
from sim_tb.dut.memory import vault_design
from sim_tb.harness.models import clock_arguments
from sim_tb.harness.traffic import Pattern, TrafficJob, Walk
from sim_tb.harness.traffic_runs import TrafficError, run_traffic
from sim_tb.runner.build import BuildError
from sim_tb.workloads import stress
from sim_tb.workloads.stress import RATIOS, clocks_of, run_stress, stress_totals
from soc.tile.config import ClockConfig

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
        run_stress(accesses=100, vaults=1, seed=SEED, clocks=True)


@pytest.mark.slow
def test_random_accesses_at_every_ratio() -> None:
    runs = run_stress(accesses=60_000, vaults=1, seed=SEED, clocks=True)
    assert len(runs) == len(RATIOS)
    totals = stress_totals(runs)
    assert totals["accesses"] >= 60_000
    assert min(totals["reads"], totals["writes"]) > 10_000


#: A vault of two clocks with a line buffer, small to be built quickly.
LINES = 8
CLOCKS = ClockConfig(domains="two", request_depth=4, response_depth=4)
WITH_LINES = VaultConfig(
    banks=2, rows=16, row_bytes=128, transaction_queue=4, command_queue=2, tag_bits=5
)
#: For each ratio: cycles and the sum of latencies in each run, and of all runs the line buffer's
#: counters.
KEPT = {
    0: (
        [(4694, 21773), (6849, 41888), (12605, 97305), (5915, 37734)],
        [1019, 242, 1084, 94, 337],
    ),
    9: (
        [(6363, 62168), (19143, 276432), (12444, 99354), (13462, 200036)],
        [947, 267, 965, 70, 513],
    ),
    20: (
        [(34267, 667490), (173874, 2808075), (15130, 184631), (97402, 1815989)],
        [856, 304, 941, 72, 596],
    ),
}


@pytest.mark.parametrize("ratio", [0, 9, 20])
def test_lines_and_crossings_keep_data_counts_and_cycles(ratio: int) -> None:
    """A change that costs or gains a cycle is seen, too; if it is intended, so are its figures."""
    periods = RATIOS[ratio]
    jobs = [
        TrafficJob(
            patterns=tuple(
                Pattern(
                    walk=walk,
                    accesses=250,
                    hot=hot,
                    writes=writes,
                    partial=writes > 0,
                    offer=offer,
                    take=take,
                    burst=60,
                    seed=seed,
                )
                for seed in range(3)
            ),
            begin=0,
            span=32 * 3 * 40,
            patience=100_000,
            max_cycles=1_000_000,
        )
        for walk, hot, writes, offer, take in (
            (Walk.HOT, 2, 0.1, 1.0, 1.0),
            (Walk.RANDOM, 1, 0.3, 0.7, 0.4),
            (Walk.HOT, 1, 0.0, 1.0, 0.2),
            (Walk.SEQUENTIAL, 1, 0.02, 1.0, 1.0),
        )
    ]
    results = run_traffic(
        WITH_LINES,
        3,
        jobs,
        clocks=CLOCKS,
        line_buffer=LINES,
        arguments=clock_arguments(**vars(periods)),
    )
    for result in results:
        count = result.counters
        fetched = count[LineCounter.LINE_FILLS] + count[LineCounter.LINE_PASSED]
        answered = count[LineCounter.LINE_HITS] + count[LineCounter.LINE_MERGED]
        assert result.commands["read"] == count[VaultCounter.READS] == fetched
        assert result.reads == fetched + answered
        assert result.commands["write"] == count[VaultCounter.WRITES] == result.writes
        # Copies of all counters reach the engines' clock.
        served = fetched + result.writes
        rows = slice(VaultCounter.ROW_HITS, VaultCounter.ROW_CONFLICTS + 1)
        assert sum(count[rows]) == sum(count[VaultCounter.LATENCY_0 :][:8]) == served
        assert count[VaultCounter.BUS_BUSY] == 4 * served
        assert count[VaultCounter.CYCLES] >= count[VaultCounter.BUS_BUSY]
    found = (
        [(result.cycles, result.latency_sum) for result in results],
        [sum(result.counters[item] for result in results) for item in LineCounter],
    )
    assert found == KEPT[ratio]
