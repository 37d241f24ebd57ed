"""Traffic against the timing model of a vault's memory: what the Verilog does, in its cycles."""

from dataclasses import fields, replace

import pytest

from bench.harness.record import values
from bench.schedulers import LENGTHS, MIXES, REQUESTERS, measure_bandwidth, mix_job, policy_vault
from memory.agent.config import AgentConfig
from memory.controller.counters import LAG_CYCLES, LATENCY_LIMITS, VaultCounter
from sim_tb.harness.traffic import Pattern, Walk
from sim_tb.harness.traffic_runs import TrafficError, run_traffic
from sim_tb.timed.vault.vault_model import run_traffic_model
from sim_tb.workloads.stress import random_case
from sim_tb.workloads.traffic import TRAFFICS, VARIANTS, run_variant

#: A random vault that other tests build, too.
SEED = 2668
#: Counters that the host reads after the run.
LATE = ("CYCLES", "REFRESHES", "REFRESH_BLOCKED")
#: Random vaults, with each scheduler several times.
COVERED = range(2, 22)


def check_equal(seed, accesses):
    case = random_case(seed, accesses)
    check_traffic(case.config, case.requesters, case.jobs)


def check_traffic(config, requesters, jobs):
    runs = [run(config, requesters, jobs) for run in (run_traffic, run_traffic_model)]
    assert len(runs[0]) == len(runs[1]) == len(jobs)
    for verilog, model in zip(*runs, strict=True):
        for field in fields(verilog):
            if field.name not in ("counters", "wall_seconds"):
                assert getattr(model, field.name) == getattr(verilog, field.name), field.name
        for item in VaultCounter:
            late = item.name in LATE
            difference = model.counters[item] - verilog.counters[item]
            assert abs(difference) <= (LAG_CYCLES if late else 0), item.name
        buckets = slice(VaultCounter.LATENCY_0, VaultCounter.LATENCY_0 + len(LATENCY_LIMITS) + 1)
        assert model.counters[buckets] == verilog.counters[buckets]
        assert sum(verilog.latencies) == verilog.reads + verilog.writes > 0


def test_equals_the_verilog_of_a_random_vault():
    check_equal(SEED, 6000)


def test_equals_the_verilog_whose_queues_are_full():
    """All tags in flight, on few rows and on many, with latencies in all counters' ranges; rows
    that starve each other, writes in all slots, and responses that fill their buffer."""
    case = random_case(SEED, 1)
    jobs = [
        replace(
            case.jobs[0],
            patterns=tuple(
                Pattern(walk=walk, accesses=accesses, hot=hot, writes=writes, take=take, seed=seed)
                for seed in range(case.requesters)
            ),
            span=span,
        )
        for walk, accesses, hot, writes, take, span in (
            (Walk.RANDOM, 1200, 1, 0.5, 1.0, 4 << 10),
            (Walk.HOT, 1200, 6, 0.3, 1.0, case.jobs[0].span),
            (Walk.RANDOM, 1200, 1, 0.1, 0.3, case.jobs[0].span),
            (Walk.SEQUENTIAL, 1200, 1, 0.05, 1.0, 8 << 10),
            (Walk.HOT, 600, 1, 0.1, 1.0, case.jobs[0].span),
        )
    ]
    others = (case.requesters - 1) * [Pattern(accesses=1)]
    jobs += [
        replace(case.jobs[0], patterns=patterns)
        for patterns in (
            # Hits in a queue that is now full, now empty, before what waits longest.
            tuple(
                Pattern(walk=Walk.HOT, accesses=900, hot=1, offer=offer, seed=seed)
                for seed, offer in enumerate((0.06, 0.02, 0.01, 0.1))
            ),
            tuple(
                Pattern(accesses=600, writes=1.0, partial=True, seed=seed)
                for seed in range(case.requesters)
            ),
            (Pattern(accesses=200, take=0.05), *others),
        )
    ]
    check_traffic(case.config, case.requesters, jobs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", COVERED)
def test_equals_the_verilog_of_many_random_vaults(seed):
    check_equal(seed, 40_000)


#: Agents: two lanes; all features, few buckets, and the other lag of the weights.
AGENTS = (
    AgentConfig(),
    AgentConfig(epoch=4, epsilon_shift=4),
    AgentConfig(
        features=("queue", "waiting", "sweep", "reads:3", "patience:8,16,32,64,100,150,200"),
        epoch=8,
        alpha_shift=3,
        gamma_shift=6,
        theta_bits=18,
        seed=77,
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("agent", AGENTS)
def test_policies_that_learn(agent):
    config = replace(policy_vault("learned"), agent=agent)
    check_traffic(
        config, REQUESTERS, [mix_job(config, MIXES[mix], REQUESTERS * [5000]) for mix in MIXES]
    )


def test_equals_what_is_recorded_of_the_verilog():
    """Bandwidths of the learned policy, to the digits of the record."""
    found = values("schedulers")
    config = policy_vault("learned")
    lengths = LENGTHS[:3]
    for mix, gbs in measure_bandwidth(config, lengths, run=run_traffic_model).items():
        expected = [found[f"learned_after_{length}_{mix}"] for length in lengths]
        assert gbs == expected, mix


@pytest.mark.slow
def test_equals_the_verilog_in_all_variants():
    for variant in VARIANTS:
        runs = [run_variant(variant, accesses=20_000, seed=7, on=on) for on in ("rtl", "model")]
        for traffic in TRAFFICS:
            verilog, model = (run[traffic] for run in runs)
            for name in ("bytes", "cycles", "reads", "writes", "latencies"):
                assert getattr(model, name) == getattr(verilog, name), (variant.name, traffic, name)
            for counter in VaultCounter:
                if counter.name not in LATE:
                    assert model.counters[counter] == verilog.counters[counter], counter


@pytest.mark.parametrize("parameter", ["trcd_ns", "tcl_ns"])
def test_a_dram_that_is_too_slow_is_found_out_at_the_same_place(parameter):
    case = random_case(SEED, 4000)
    timing = case.config.timing
    dram = replace(timing, **{parameter: getattr(timing, parameter) + timing.tck_ns})
    dram = replace(dram, tras_ns=dram.tras_ns + timing.tck_ns, turnaround_clocks=0)
    messages = []
    for run in (run_traffic, run_traffic_model):
        with pytest.raises(TrafficError) as caught:
            run(case.config, case.requesters, case.jobs, dram=dram)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]
