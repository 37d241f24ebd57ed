"""Recorded traces of engines, and their replay at a vault's memory."""

import random
from dataclasses import replace

import numpy as np
import pytest

from bench.schedulers import TRACED_MIXES, application_trace, mix_patterns
from isa.image import DramImage
from microkernels.bp.jobs import bp_job
from microkernels.data.stereo import motorcycle
from microkernels.runtime.ring import ChipEngines
from sim_tb.harness.traffic import Pattern, TrafficJob, moved, trace_end
from sim_tb.harness.traffic_runs import TrafficError, run_traffic
from sim_tb.timed.vault.vault_model import VaultModel, record_trace, run_traffic_model
from sim_tb.workloads.stress import random_case
from soc.generate.presets import tile_preset

#: A random vault that other tests build, too.
SEED = 2668
PART = 16 << 10


#: Fields of an access, from the least bit on, and their bits; 1 word is 0.
FIELDS = {"present": 1, "words": 2, "write": 1, "gap": 20, "address": 40}


def joined(accesses):
    """The trace of these accesses."""
    words = []
    for access in accesses:
        word = place = 0
        for name, bits in FIELDS.items():
            word |= {"present": 1, **access, "words": access["words"] - 1}[name] << place
            place += bits
        words.append(word)
    return np.array(words, "<u8").tobytes()


def parted(trace):
    """The fields of the accesses of a trace."""
    words, fields = np.frombuffer(trace, "<u8").astype(object), {}
    for name, bits in FIELDS.items():
        fields[name] = words % (1 << bits)
        words = words >> bits
    fields["words"] += 1
    return fields


def _random_trace(seed, accesses=300):
    rng = random.Random(seed)
    return [
        {
            "address": 32 * rng.randrange(PART // 32),
            "gap": rng.choice((0, 0, 3, 40)),
            "words": rng.randint(1, 4),
            "write": rng.random() < 0.4,
        }
        for _ in range(accesses)
    ]


def _job(case, traces, **options):
    patterns = tuple(
        Pattern(trace=joined(trace), accesses=len(trace), seed=number, **options)
        for number, trace in enumerate(traces)
    )
    return replace(case.jobs[0], patterns=patterns, begin=0, span=PART * len(traces))


def test_a_replay_is_the_same_on_verilog_and_model():
    case = random_case(SEED, 1000)
    traces = [_random_trace(seed) for seed in range(case.requesters)]
    jobs = [_job(case, traces), _job(case, traces, window=1)]
    both = [run(case.config, case.requesters, jobs) for run in (run_traffic, run_traffic_model)]
    for verilog, model in zip(*both, strict=True):
        assert model.ends == verilog.ends
        assert model.latencies == verilog.latencies
        assert verilog.reads + verilog.writes == 300 * case.requesters
        assert verilog.writes == sum(access["write"] for trace in traces for access in trace)
        assert verilog.bytes == sum(8 * access["words"] for trace in traces for access in trace)
    assert both[0][1].cycles > both[0][0].cycles


def test_gaps_are_kept():
    case = random_case(SEED, 1000)
    trace = [{"address": 32 * n, "gap": 500, "words": 1, "write": 0} for n in range(20)]
    (result,) = run_traffic_model(
        case.config, case.requesters, [_job(case, case.requesters * [trace])]
    )
    # The first offer is the run's first cycle, whatever its gap.
    assert 19 * 501 <= result.cycles <= 19 * 501 + result.longest * 20


@pytest.mark.parametrize("rule", ["trcd_ns", "tcl_ns"])
def test_a_replay_finds_a_controller_that_is_too_fast(rule):
    case = random_case(SEED, 1000)
    timing = case.config.timing
    dram = replace(timing, **{rule: getattr(timing, rule) + timing.tck_ns}, turnaround_clocks=0)
    dram = replace(dram, tras_ns=dram.tras_ns + timing.tck_ns)
    job = _job(case, [_random_trace(seed) for seed in range(case.requesters)])
    with pytest.raises(TrafficError, match=r"^run 0: (tRCD|tRAS|DATA|DATA_OVERLAP): "):
        run_traffic_model(case.config, case.requesters, [job], dram=dram)


def test_what_is_recorded_is_what_the_engine_does():
    tile = replace(tile_preset("vault-small"), pes=1)
    job = bp_job(
        motorcycle(9, 7, 8).problem,
        1,
        engines=ChipEngines(pes=1, scratchpad_bytes=tile.pe.scratchpad_bytes),
    )
    with DramImage(tile.vault.size_bytes) as image:
        job.prepare(image)
        (launch,) = job.launches
        launch = replace(launch, max_cycles=10**6)
        trace = record_trace(launch, image, accesses=10**5, config=tile)
        part = record_trace(launch, image, accesses=50, config=tile)
        job.prepare(image)
        result = VaultModel(tile).run(launch, image)
    fields = parted(trace)
    assert part == trace[: 8 * 50]
    assert fields["present"].all()
    writes = fields["write"].sum()
    counts = result.vaults[0]
    assert (len(fields["write"]) - writes, writes) == (counts["READS"], counts["WRITES"])
    beats = np.where(fields["write"], fields["words"], 1).sum()
    passed = fields["gap"].sum() + beats
    assert 0.9 * result.cycles < passed <= result.cycles
    assert trace_end(trace) <= job.end


def test_a_trace_is_of_one_engine():
    with DramImage(1 << 20) as image, pytest.raises(ValueError, match="records 1 engine, not 2"):
        record_trace(None, image, config=tile_preset("vault-small"), accesses=1)


def test_a_moved_trace_has_other_addresses_and_the_same_accesses():
    trace = joined(_random_trace(1))
    for hasty in (False, True):
        before, after = parted(trace), parted(moved(trace, 96, hasty=hasty))
        before["address"] = before["address"] + 96
        before["gap"] = before["gap"] * (not hasty)
        for name, values in before.items():
            assert (after[name] == values).all()


@pytest.mark.slow
def test_mixes_of_applications():
    for mix, members in TRACED_MIXES.items():
        patterns = mix_patterns(mix)
        assert len(patterns) == len(members) == 4
        hasty = [not parted(each.trace)["gap"].any() for each in patterns]
        assert hasty == [member.startswith("hasty") for member in members]
    assert len({application_trace(name) for name in TRACED_MIXES["applications"]}) == 4


def test_bad_traces():
    trace = joined([{"address": 0, "gap": 2**20 - 1, "words": 4, "write": 1}])
    with pytest.raises(ValueError, match="accesses must be 1 at most, as many as the trace has"):
        Pattern(trace=trace, accesses=2)
    pattern = Pattern(trace=trace, accesses=1)
    options = {"begin": 0, "patience": 1, "max_cycles": 1}
    with pytest.raises(ValueError, match="either all patterns have a trace, or none"):
        TrafficJob(patterns=(pattern, Pattern()), span=64, **options)
    far = moved(trace, 64, hasty=True)
    with pytest.raises(ValueError, match=r"trace of requester 1 goes to byte 96, .* has 64"):
        TrafficJob(patterns=(pattern, Pattern(trace=far, accesses=1)), span=128, **options)
