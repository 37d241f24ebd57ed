"""Several engines on one tile: the partition, and bit-exact results under any timing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.image import DramImage
from microkernels.bp import golden as bp_golden
from microkernels.bp import runs as bp_runs
from microkernels.bp.contents import pack, unpack
from microkernels.bp.jobs import bp_job
from microkernels.bp.kernel import MatrixPlan
from microkernels.bp.layout import BpLayout
from microkernels.bp.problem import BpProblem, MessageDirection
from microkernels.bp.runs import PAIR, SweepRun, share_sweep, sweep_team
from microkernels.common.errors import KernelError
from microkernels.data.stereo import motorcycle
from microkernels.runtime.barrier import FlagTable
from microkernels.runtime.interleave import Schedule, Together
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import tile_preset
from tests.microkernels.runtime.schedules import in_bursts, one_behind

#: Bytes from line to line; those from update to update are 1.
PITCH = 1 << 20


def shares_of(lines: int, updates: int, sharers: int) -> list[list[SweepRun[int]]]:
    """The runs of each engine."""
    tile = SweepRun[int](line_pitch=PITCH, pixel_pitch=1, last_pitch=1, updates=updates)
    return share_sweep(tile, lines, range(sharers), FlagTable(0, max(1, sharers)))


def cut(share: list[SweepRun[int]]) -> tuple[list[SweepRun[int]], list[SweepRun[int]]]:
    """Heads and tails of a share."""
    return [run for run in share if run.signal_1], [run for run in share if run.wait]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(1, 40), st.integers(0, 40), st.integers(1, 9))
def test_every_update_is_made_once_and_evenly(lines: int, updates: int, sharers: int) -> None:
    made = np.zeros((lines, updates), int)
    times = []
    shares = shares_of(lines, updates, sharers)
    assert len(shares) == sharers
    for pe, share in enumerate(shares):
        times.append(0.0)
        for run in share:
            assert run.updates > 0
            line, first = divmod(run.first_message, PITCH)
            assert (line * PITCH + first, run.updates < updates) == (
                run.load_start,
                bool(run.signal_1 or run.wait),
            )
            for group in range(run.groups):
                begin = line + group * run.lane_pitch // PITCH
                made[begin : begin + run.lanes, first : first + run.updates] += 1
            rate = 1 if run.lanes == PAIR else 1.2
            times[-1] += rate * run.lanes * run.groups * run.updates
        heads, tails = cut(share)
        if heads:
            assert heads == share[:1] != share
            _, (tail,) = cut(shares[pe + 1])
            assert tail.wait == heads[0].signal_1
            assert tail.first_message == heads[0].first_message + heads[0].updates
        if tails:
            assert tails == share[-1:]
            assert cut(shares[pe - 1])[0]
    assert (made == 1).all()
    most = 1.2 if lines <= sharers else 2 * -(-lines // (2 * sharers)) + 1.2 * (lines % 2)
    assert max(times) <= most * updates
    if lines >= 4 * sharers:
        # The shares include the overhead of each cut, so they are even to a few runs' beginnings.
        even = (lines + 0.2 * (lines % 2)) * updates / sharers
        assert max(times) <= even + 4 * bp_runs.START_UPDATES


def test_34_lines_for_4_pes_are_eight_and_a_half_each() -> None:
    """But for what it takes to begin: the PEs with three runs have less than those with two."""
    amounts = [
        sum(run.lanes * run.groups * run.updates for run in share) for share in shares_of(34, 59, 4)
    ]
    assert sum(amounts) == 34 * 59
    assert amounts == [502, 500, 500, 504]


@pytest.mark.parametrize("sharers", range(1, 9))
def test_half_of_the_pes_sweep_each_way(sharers: int) -> None:
    everyone = range(sharers)
    for forward, backward in (
        (MessageDirection.RIGHT, MessageDirection.LEFT),
        (MessageDirection.DOWN, MessageDirection.UP),
    ):
        teams = sweep_team(forward, sharers), sweep_team(backward, sharers)
        if sharers % 2:
            assert teams == (everyone, everyone)
        else:
            assert len(teams[0]) == len(teams[1])
            assert [*teams[0], *teams[1]] == [*everyone]


def problem_of(seed: int, width: int, height: int, labels: int) -> BpProblem:
    rng = np.random.default_rng(seed)
    return BpProblem(
        rng.integers(-300, 300, (height, width, labels)),
        rng.integers(-300, 300, (labels, labels)),
    )


def run(
    problem: BpProblem,
    sharers: int,
    schedule: Schedule,
    *,
    iterations: int = 2,
    seed: int = 0,
    launches: int = 1,
    slots: int = 8,
) -> bool:
    """Whether all messages are right; asserts that all PEs ended and none ran into a hazard."""
    plan = MatrixPlan(labels=problem.labels, slots=slots)
    layout = BpLayout.of(problem, plan, base=4096, engines=ChipEngines(pes=sharers))
    program = plan.program(None)
    expected = bp_golden.iterate(problem, iterations * launches)
    with DramImage(layout.end) as memory:
        pack(problem, layout, memory, iterations=iterations)
        for _ in range(launches):
            together = Together(
                program, memory, members=sharers, parameters=layout.parameters, seed=seed
            )
            outcomes = together.run(schedule)
            assert {outcome.state for outcome in outcomes} == {"halted"}
            for log in together.hazards:
                assert [str(hazard) for hazard in log.hazards] == []
        return bool((unpack(layout, memory) == expected).all())


@settings(max_examples=36, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 1 << 20),
    sharers=st.integers(1, 5),
    width=st.integers(1, 13),
    height=st.integers(1, 13),
    labels=st.sampled_from([3, 5, 16]),
    longest=st.sampled_from([1, 30, 1000]),
    slots=st.sampled_from([4, 8]),
    start=st.sampled_from([0, bp_runs.START_UPDATES]),
)
def test_equals_the_golden_model_under_any_timing(
    seed: int,
    sharers: int,
    width: int,
    height: int,
    labels: int,
    longest: int,
    slots: int,
    start: int,
) -> None:
    problem = problem_of(seed, width, height, labels)
    with pytest.MonkeyPatch.context() as patch:
        # With 0, lines are cut wherever that makes shares more even.
        patch.setattr(bp_runs, "START_UPDATES", start)
        assert run(problem, sharers, in_bursts(seed, longest), seed=seed, slots=slots)


@pytest.mark.parametrize("slow", range(4))
def test_one_pe_far_behind(monkeypatch: pytest.MonkeyPatch, slow: int) -> None:
    # 10 rows and 9 columns: lines are cut in both directions.
    monkeypatch.setattr(bp_runs, "START_UPDATES", 0)
    assert run(problem_of(slow, 9, 10, 4), 4, one_behind(slow, 20), seed=slow, iterations=1)


def test_a_launch_may_follow_without_clearing_anything() -> None:
    assert run(problem_of(5, 9, 7, 4), 3, in_bursts(5, 200), launches=3, iterations=1)


@pytest.mark.parametrize("sharers", [2, 4])
def test_the_barrier_is_needed(monkeypatch: pytest.MonkeyPatch, sharers: int) -> None:
    """Without it most timings give wrong messages: the other tests are not blind."""
    problem = problem_of(1, 6, 6, 4)
    timings = [in_bursts(seed, 500) for seed in range(3)] + [one_behind(0, 20)]
    monkeypatch.setattr(FlagTable, "everyone", property(lambda table: (table.base, table.base)))
    right = [run(problem, sharers, timing) for timing in timings]
    assert not all(right)


def test_the_rest_of_a_cut_line_waits_for_its_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    """With all flags for pieces of lines full from the start, a slow PE's piece comes too late."""
    rng = np.random.default_rng(2)
    # Dear changes of label: what a message says is not forgotten on its way.
    problem = BpProblem(rng.integers(-300, 300, (9, 16, 4)), 2000 * (1 - np.eye(4, dtype=int)))
    assert any(cut(share)[0] for share in shares_of(9, 15, 4))
    assert run(problem, 4, one_behind(0, 30), iterations=1)
    words = FlagTable.words

    def full(self: FlagTable) -> bytes:
        flags = np.frombuffer(words(self), "<i8").copy()
        flags[(self.handover(0) - self.base) // 8 :: 4] = 1 << 40
        return flags.tobytes()

    monkeypatch.setattr(FlagTable, "words", full)
    assert not run(problem, 4, one_behind(0, 30), iterations=1)


def test_a_pe_without_a_slot_of_the_tile_does_nothing() -> None:
    problem = problem_of(3, 4, 4, 4)
    layout = BpLayout.of(problem, MatrixPlan(labels=4), engines=ChipEngines(pes=2))
    with DramImage(layout.end) as memory:
        pack(problem, layout, memory, iterations=1)
        together = Together(layout.program, memory, members=4, parameters=layout.parameters)
        outcomes = together.run(in_bursts(0, 100))
        assert {outcome.state for outcome in outcomes} == {"halted"}
        assert (unpack(layout, memory) == bp_golden.iterate(problem, 1)).all()


def cycles_per_update(problem: BpProblem) -> float:
    """Cycles an update and engine, of the four of a vault."""
    outcome = run_on(
        bp_job(problem, engines=ChipEngines(pes=4), sums=False), tile_preset("vault"), on="model"
    )
    assert outcome.match
    return outcome.cycles_per_update


def test_four_pes_on_a_tile_lose_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece of the thesis's tile, so short that begin and end of a sweep count several times."""
    problem = motorcycle(30, 18, 16).problem
    cut = cycles_per_update(problem)
    assert cut <= 91
    monkeypatch.setattr(bp_runs, "START_UPDATES", 1 << 20)
    assert cycles_per_update(problem) >= cut + 3, "whole lines: 5 rows for some PEs, 4 for others"


@pytest.mark.parametrize(("lines", "updates", "sharers"), [(0, 1, 1), (1, -1, 1), (1, 1, 0)])
def test_bad_shares_are_refused_in_one_line(lines: int, updates: int, sharers: int) -> None:
    with pytest.raises(KernelError) as error:
        shares_of(lines, updates, sharers)
    assert "allowed are at least" in str(error.value)
    assert "\n" not in str(error.value)
