"""A vault's Verilog between random requesters and a DRAM that checks each command."""

from dataclasses import replace

import pytest

from memory.config import PagePolicy, SchedulerPolicy, VaultConfig
from memory.controller.counters import VaultCounter
from memory.controller.starvation import starvation_bound
from sim_tb.dut.memory import vault_design
from sim_tb.harness.traffic import Pattern, TrafficJob, Walk
from sim_tb.harness.traffic_runs import TrafficError, run_traffic
from sim_tb.workloads.stress import random_case, run_stress, stress_totals
from sim_tb.workloads.traffic import TRAFFICS, VARIANTS, run_variant

#: A random vault with few banks, several requesters and an open page: quick to build.
SEED = 2668


def test_random_accesses_to_a_random_vault():
    runs = run_stress(accesses=30_000, vaults=1, seed=SEED)
    totals = stress_totals(runs)
    assert totals["accesses"] >= 30_000
    assert totals["reads"] > 3000
    assert totals["writes"] > 3000
    assert 0 < totals["longest"] <= totals["bound"]
    commands = [result.commands for _, result in runs]
    sums = {name: sum(one[name] for one in commands) for name in commands[0]}
    assert sums["read"] + sums["write"] <= totals["accesses"]
    assert min(sums.values()) > 10


def test_memories_that_differ_in_one_number_have_verilog_of_their_own() -> None:
    config = VaultConfig()
    slower = replace(config, timing=config.timing.refresh_mode(1))
    designs = [vault_design(one, 1) for one in (config, slower)]
    first, second = (design.verilog["vault_memory.v"] for design in designs)
    assert first != second


@pytest.mark.parametrize(
    ("rule", "parameter"),
    [("tRCD", "trcd_ns"), ("tRP", "trp_ns"), ("tCCD", "tccd_ns"), ("tRAS", "tras_ns")],
)
def test_controller_that_is_too_fast_for_its_dram_is_found_out(rule, parameter):
    case = random_case(SEED, 4000)
    timing = case.config.timing
    # The whole set stays one that a DRAM can have.
    longer = {parameter: getattr(timing, parameter) + timing.tck_ns}
    if parameter == "trcd_ns":
        longer["tras_ns"] = timing.tras_ns + timing.tck_ns
    with pytest.raises(TrafficError, match=rf"^run 0: ({rule}|tRAS): .* \(bank \d+, cycle \d+\)$"):
        run_traffic(case.config, case.requesters, case.jobs, dram=replace(timing, **longer))


def test_dram_that_answers_later_than_the_controller_thinks_is_found_out():
    case = random_case(SEED, 4000)
    timing = case.config.timing
    dram = replace(timing, tcl_ns=timing.tcl_ns + timing.tck_ns, turnaround_clocks=0)
    with pytest.raises(TrafficError, match=r"^run 0: (DATA|DATA_OVERLAP): "):
        run_traffic(case.config, case.requesters, case.jobs, dram=dram)


def test_cases_differ_and_repeat():
    cases = [random_case(seed, 1000) for seed in range(40)]
    assert cases == [random_case(seed, 1000) for seed in range(40)]
    assert len({case.config for case in cases}) == 40
    assert {case.requesters for case in cases} == set(range(9))
    for name in ("page_policy", "address_map", "scheduler", "banks", "row_bytes"):
        assert len({getattr(case.config, name) for case in cases}) > 1


def test_jobs_that_do_not_fit_are_refused():
    config = VaultConfig(banks=2, rows=2, row_bytes=64)
    job = TrafficJob(patterns=(Pattern(),), begin=0, span=512, patience=1, max_cycles=1)
    with pytest.raises(TrafficError, match="up to byte 512 of a vault of 256"):
        run_traffic(config, 1, [job])
    with pytest.raises(TrafficError, match="1 requesters given to a vault with 4"):
        run_traffic(config, 4, [job])


def test_variants_are_those_of_the_thesis():
    base = VARIANTS[0]
    assert base.config == VaultConfig()
    assert len({variant.name for variant in VARIANTS}) == 10
    assert len({(variant.config, variant.requesters) for variant in VARIANTS}) == 10
    assert {variant.config.size_bytes for variant in VARIANTS} == {256 << 20}


@pytest.mark.slow
def test_bandwidth_of_the_thesis_vault(tmp_path):
    """The figures that the project promises; a variant moves them as the thesis's Figure 7.2."""
    chosen = [
        variant for variant in VARIANTS if variant.name in ("open-page", "banks-fewer", "crossbar")
    ]
    runs = [run_variant(variant, accesses=40_000, seed=1) for variant in chosen]
    base, fewer, crossbar = (
        {
            traffic: result.bytes / result.cycles / variant.config.timing.tck_ns
            for traffic, result in run.items()
        }
        for variant, run in zip(chosen, runs, strict=True)
    )
    assert base["sequential_read"] >= 9.7
    assert base["random_read"] >= 9.0
    assert base["mixed"] >= 8.3
    assert set(base) == set(TRAFFICS)
    for traffic in ("sequential_read", "random_read", "mixed"):
        assert crossbar[traffic] >= 0.98 * base[traffic]
    assert fewer["random_read"] < 0.5 * base["random_read"]
    assert all(0 < gbs <= 10 for row in (base, fewer, crossbar) for gbs in row.values())
    hits = {}
    for run in runs:
        for traffic, result in run.items():
            counters = {item.name: result.counters[item] for item in VaultCounter}
            served = counters["READS"] + counters["WRITES"]
            kinds = [counters[f"ROW_{kind}"] for kind in ("HITS", "MISSES", "CONFLICTS")]
            assert sum(kinds) == served == sum(result.latencies)
            hits.setdefault(traffic, counters["ROW_HITS"] / served)
    assert hits["sequential_read"] > 0.8 > 0.1 > hits["random_read"]


@pytest.mark.slow
def test_more_random_vaults():
    runs = run_stress(accesses=600_000, vaults=4, seed=50)
    assert stress_totals(runs)["accesses"] >= 600_000
    assert len({case.name for case, _ in runs}) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheduler", "policy"),
    [
        ("first-ready", "open"),
        ("in-order", "adaptive"),
        ("in-order", "closed"),
        ("first-ready-timed", "adaptive"),
        ("learned", "open"),
    ],
)
def test_refreshes_wait_as_long_as_they_can(scheduler: SchedulerPolicy, policy: PagePolicy) -> None:
    """Bursts of accesses to one row end in each state of the refreshes owed."""
    timing = VaultConfig().timing
    config = VaultConfig(
        banks=2,
        rows=16,
        row_bytes=256,
        timing=replace(timing, trefi_ns=300 * timing.tck_ns, trfc_ns=40 * timing.tck_ns),
        scheduler=scheduler,
        page_policy=policy,
    )
    jobs = [
        TrafficJob(
            patterns=(
                Pattern(walk=walk, hot=4, accesses=accesses, writes=0.2, burst=burst, seed=burst),
            ),
            begin=0,
            span=config.size_bytes,
            patience=4 * starvation_bound(config),
            max_cycles=4_000_000,
        )
        for walk, accesses, bursts in (
            (Walk.HOT, 6000, (20, 60, 0)),
            (Walk.SEQUENTIAL, 12_000, range(230, 300, 10)),
        )
        for burst in bursts
    ]
    for result in run_traffic(config, 1, jobs):
        counters = {item.name: result.counters[item] for item in VaultCounter}
        assert counters["READS"] + counters["WRITES"] >= 6000
        assert counters["REFRESHES"] > 10
