"""Flags and the barrier, under any timing of the PEs and with stores that become visible late."""

import numpy as np
import pytest

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.program import Program
from microkernels.common.builder import KernelBuilder
from microkernels.common.errors import KernelError
from microkernels.runtime.barrier import FLAG_BYTES, PAUSE, FlagCode, FlagTable
from microkernels.runtime.interleave import Schedule, Together
from tests.microkernels.runtime.schedules import in_bursts, one_behind

MEMBERS = 5
ROUNDS = 6
VALUES = 2048  # where each PE writes its round number, one column each
WRONG = 4096  # where it writes how often it did not find that of the others


def rounds(table: FlagTable, *, fence: bool = True, wait: bool = True) -> Program:
    """Each PE writes a number, then passes the barrier, then looks at all others' numbers; again.

    The second barrier of a round keeps a number until all have seen it.
    """
    w = KernelBuilder("rounds", launch=("slot",))
    zero, slot = w.zero, "slot"
    names = "one event own first end value look last seen wrong left base a b c d e f"
    for name in names.split():
        w.register(name, "")
    flags = FlagCode(w, event="event", scratch=("a", "b", "c", "d", "e", "f"), one="one")

    def barrier() -> None:
        if fence:
            flags.signal("own")
        else:
            w.op("st.reg [64-bit]", "own", "event")
        flags.gather("first", "end" if wait else "first")

    w.op("mov", "one", 1)
    w.op("sll", "own", slot, FLAG_BYTES.bit_length() - 1)
    w.op("add", "value", "own", VALUES)
    w.op("add", "own", "own", table.base)
    first, end = table.everyone
    w.op("mov", "first", first)
    w.op("mov", "end", end)
    w.op("mov", "last", VALUES + FLAG_BYTES * table.members)
    flags.resume("own")
    w.op("mov", "left", ROUNDS)
    w.label("round")
    w.op("st.reg [64-bit]", "value", "event")
    w.op("mov", "base", "event")
    barrier()
    w.op("mov", "look", VALUES)
    w.label("others")
    w.op("ld.reg [64-bit]", "seen", "look")
    w.op("beq", "seen", "base", "right")
    w.op("add", "wrong", "wrong", 1)
    w.label("right")
    w.op("add", "look", "look", FLAG_BYTES)
    w.op("bne", "look", "last", "others")
    barrier()
    w.op("sub", "left", "left", 1)
    w.op("bne", "left", zero, "round")
    w.op("add", "value", "value", WRONG - VALUES)
    w.op("st.reg [64-bit]", "value", "wrong")
    w.op("halt")
    return assemble(w.text(), name="rounds.s")


def wrong(
    members: int,
    schedules: list[Schedule],
    *,
    seed: int = 0,
    fence: bool = True,
    wait: bool = True,
) -> int:
    """Numbers that were not found, in one launch after the other on the same memory."""
    table = FlagTable(0, members)
    program = rounds(table, fence=fence, wait=wait)
    total = 0
    with DramImage(8192) as memory:
        memory.write(table.base, table.words())
        for schedule in schedules:
            together = Together(program, memory, members=members, seed=seed)
            outcomes = together.run(schedule, limit=200_000)
            assert {outcome.state for outcome in outcomes} == {"halted"}
            found = np.frombuffer(memory.read(WRONG, members * FLAG_BYTES), "<i8")
            total += int(found[:: FLAG_BYTES // 8].sum())
        arrivals = np.frombuffer(memory.read(table.base, members * FLAG_BYTES), "<i8")
        assert (arrivals[:: FLAG_BYTES // 8] == 2 * ROUNDS * len(schedules)).all()
    return total


@pytest.mark.parametrize("members", range(1, 7))
@pytest.mark.parametrize("longest", [1, 7, 400])
def test_nobody_passes_before_all_have_come(members: int, longest: int) -> None:
    """Again and again, also in launches that follow without clearing the flags."""
    schedules = [in_bursts(members * 10 + launch, longest) for launch in range(3)]
    assert wrong(members, schedules, seed=longest) == 0


@pytest.mark.parametrize("slow", range(MEMBERS))
def test_one_far_behind_is_waited_for(slow: int) -> None:
    assert wrong(MEMBERS, [one_behind(slow, 100)]) == 0


@pytest.mark.parametrize("left_out", ["fence", "wait"])
def test_fence_and_wait_are_needed(left_out: str) -> None:
    seeds = range(10)
    failures = sum(
        wrong(4, [in_bursts(seed, 40)], seed=seed, **{left_out: False}) > 0 for seed in seeds
    )
    assert failures > 0


def test_waiting_is_light_on_the_memory() -> None:
    """PEs that wait read one flag at a time, no more often than the pause allows."""
    table = FlagTable(0, 4)
    with DramImage(8192) as memory:
        memory.write(table.base, table.words())
        together = Together(rounds(table), memory, members=4)
        # The PE in slot 3 never comes.
        outcomes = together.run(lambda alive: together.in_step([0, 1, 2]), limit=60_000)
    assert [outcome.state for outcome in outcomes] == ["running"] * 4
    for waiting in range(3):
        reads = together.executed(waiting)["ld.reg[64]"]
        # An iteration of the empty loop has two instructions.
        assert 10 < reads < together.executed(waiting).total() / (2 * PAUSE)


@pytest.mark.parametrize("ring", [False, True])
@pytest.mark.parametrize("members", range(1, 9))
def test_flags_have_columns_of_their_own(members: int, ring: bool) -> None:
    team = -(-members // 2)
    table = FlagTable(640, members, ring=ring, team=team)
    flags = [table.arrival(m) for m in range(members)]
    others = [table.handover(m) for m in range(members)]
    if ring:
        flags += [table.from_before(m) for m in range(members)]
        flags += [table.from_after(m) for m in range(members)]
        others += [table.step_from_before(n) for n in range(team)]
        others += [table.step_from_after(n) for n in range(team)]
    everything = flags + others
    assert len({flag // FLAG_BYTES for flag in everything}) == len(everything)
    assert all(flag % FLAG_BYTES == 0 for flag in everything)
    assert all(table.base <= flag < table.end for flag in everything)
    assert len(table.words()) == table.end - table.base
    # Exactly the flags that somebody writes are empty at the start.
    words = np.frombuffer(table.words(), "<i8")[:: FLAG_BYTES // 8]
    empty = {table.base + FLAG_BYTES * int(place) for place in np.flatnonzero(words == 0)}
    assert empty == set(everything)
    # Each range has the flags that it should, and none with another meaning.
    ranges = {"everyone": flags if members > 1 else [f for f in flags if f != table.arrival(0)]}
    if ring:
        ranges["steps_before"] = [table.step_from_before(n) for n in range(team)]
        ranges["steps_after"] = [table.step_from_after(n) for n in range(team)]
    for name, expected in ranges.items():
        first, end = getattr(table, name)
        assert (end - first) % (4 * FLAG_BYTES) == 0
        assert {flag for flag in everything if first <= flag < end} == set(expected)


def test_a_pe_that_is_alone_reads_no_flag() -> None:
    first, end = FlagTable(0, 1).everyone
    assert first == end


@pytest.mark.parametrize(
    ("base", "members", "team", "message"),
    [
        (16, 1, 1, "multiple of 32"),
        (-32, 1, 1, "multiple of 32"),
        (0, 0, 1, "members must be at least 1"),
        (0, 2, 0, "team must be from 1 to 2"),
        (0, 2, 3, "team must be from 1 to 2"),
    ],
)
def test_bad_flags_are_refused_in_one_line(
    base: int, members: int, team: int, message: str
) -> None:
    with pytest.raises(KernelError) as error:
        FlagTable(base, members, team=team)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
