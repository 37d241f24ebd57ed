"""The barrier of all engines of a chip: every order of its steps on small chips, and its code under
hostile timing."""

from collections import deque

import numpy as np
import pytest

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.program import Program
from microkernels.common.builder import KernelBuilder
from microkernels.common.errors import KernelError
from microkernels.runtime.barrier import FLAG_BYTES, ChipBarrierCode, ChipFlags, FlagCode
from microkernels.runtime.interleave import Schedule, Together
from microkernels.runtime.ring import VaultRing
from tests.microkernels.runtime.schedules import in_bursts, one_behind

BITS = 16

#: An engine's step: marks a flag, waits for a flag, or passes the barrier.
Step = tuple[str, int]


def steps_of(flags: ChipFlags, vault: int, member: int) -> list[Step]:
    """Steps of an engine at each barrier, from the words that its program reads."""
    arrival, release, first, end, leads, *rounds = flags.parameters(vault, member)
    steps: list[Step] = [("mark", arrival)]
    full = set(range(flags.members * FLAG_BYTES + first, end, FLAG_BYTES))
    steps += [("wait", flag) for flag in range(first, end, FLAG_BYTES) if flag not in full]
    if leads:
        for other, own in zip(rounds[::2], rounds[1::2], strict=True):
            steps += [("mark", other), ("wait", own)]
        steps.append(("mark", release))
    else:
        steps.append(("wait", release))
    return [*steps, ("pass", 0)]


def explore(flags: ChipFlags, barriers: int, *, broken: Step | None = None) -> tuple[int, bool]:
    """All orders of all engines' steps, with stores that become visible at any later time.

    Returns the number of states, and whether in each of them every engine that has passed a barrier
    was right to do so and the end was always reachable.
    """
    vaults = range(flags.ring.vaults)
    engines = [
        [step for step in steps_of(flags, vault, member) if step != broken]
        for vault in vaults
        for member in range(flags.members)
    ]
    start = (tuple((0, 1) for _ in engines), (), ())
    seen, queue, right = {start}, deque([start]), True
    while queue:
        places, held, flying = queue.popleft()
        memory = dict(held)
        following = []
        for number, (at, event) in enumerate(places):
            if event > barriers:
                continue
            kind, flag = engines[number][at]
            fresh = flying
            if kind == "mark":
                fresh = tuple(sorted((*flying, (flag, event))))
            elif kind == "wait" and memory.get(flag, 0) < event:
                continue
            place = (at + 1, event)
            if kind == "pass":
                # All have signalled: each has at least begun the steps after its arrival.
                right = right and all((now, then) >= (event, 1) for then, now in places)
                place = (0, event + 1)
            following.append(((*places[:number], place, *places[number + 1 :]), held, fresh))
        for index, (flag, value) in enumerate(flying):
            # Stores to one flag stay in order.
            if any(other == flag and less < value for other, less in flying):
                continue
            fresh = flying[:index] + flying[index + 1 :]
            after = tuple(sorted((memory | {flag: value}).items()))
            following.append((places, after, fresh))
        ended = all(event > barriers for _, event in places)
        right = right and bool(following or ended)
        for state in following:
            if state not in seen:
                seen.add(state)
                queue.append(state)
    return len(seen), right


def flags_of(columns: int, rows: int, members: int) -> ChipFlags:
    ring = VaultRing(columns=columns, rows=rows, address_bits=BITS)
    return ChipFlags(base=0, members=members, ring=ring)


@pytest.mark.parametrize(
    ("columns", "rows", "members", "barriers"),
    [(1, 1, 1, 3), (1, 1, 3, 2), (2, 1, 1, 3), (2, 1, 2, 2), (3, 1, 1, 2), (2, 2, 1, 1)],
)
def test_no_order_of_steps_lets_an_engine_through_too_early(
    columns: int, rows: int, members: int, barriers: int
) -> None:
    states, right = explore(flags_of(columns, rows, members), barriers)
    assert states > 4
    assert right


def test_a_barrier_without_one_of_its_waits_is_found_wrong() -> None:
    flags = flags_of(2, 1, 1)
    own = flags.parameters(1, 0)[-1]
    assert not explore(flags, 2, broken=("wait", own))[1]


VALUES, WRONG = 0x1000, 0x2000
ROUNDS = 4


def rounds(flags: ChipFlags, *, waits: bool = True) -> Program:
    """Each engine writes the number of the barrier into its own vault, passes the barrier, and
    looks at the numbers of all engines of all vaults; again."""
    w = KernelBuilder("rounds", launch=("vault", "slot", "parameters"))
    names = "one event table left seen wrong value look end base vaults step a b c d e f x y z"
    for name in names.split():
        w.register(name, "")
    code = FlagCode(w, event="event", scratch=("a", "b", "c", "d", "e", "f"), one="one")
    barrier = ChipBarrierCode(
        w, flags=code, rounds=flags.rounds, table="table", scratch=("x", "y", "z")
    )
    w.op("mov", "one", 1)
    w.op("sll", "base", "vault", BITS)
    w.op("add", "table", "parameters", "base")
    w.op("li", "a", flags.words * 8)
    w.op("mov", "b", "slot")
    w.label("mine")
    w.op("beq", "b", w.zero, "found")
    w.op("add", "table", "table", "a")
    w.op("sub", "b", "b", 1)
    w.op("jmp", "mine")
    w.label("found")
    w.op("sll", "value", "slot", FLAG_BYTES.bit_length() - 1)
    w.op("add", "value", "value", "base")
    w.offset("value", "value", VALUES)
    barrier.resume()
    w.op("li", "left", ROUNDS)
    w.label("round")
    w.op("st.reg [64-bit]", "value", "event")
    w.op("mov", "step", "event")
    if waits:
        barrier.wait()
    else:
        code.count()
    w.op("mov", "base", w.zero)
    w.op("li", "vaults", flags.ring.vaults)
    w.label("vaults_loop")
    w.offset("look", "base", VALUES)
    w.offset("end", "look", flags.members * FLAG_BYTES)
    w.label("look_loop")
    w.op("ld.reg [64-bit]", "seen", "look")
    w.op("bge", "seen", "step", "right")
    w.op("add", "wrong", "wrong", 1)
    w.label("right")
    w.op("add", "look", "look", FLAG_BYTES)
    w.op("bne", "look", "end", "look_loop")
    w.op("li", "a", 1 << BITS)
    w.op("add", "base", "base", "a")
    w.op("sub", "vaults", "vaults", 1)
    w.op("bne", "vaults", w.zero, "vaults_loop")
    w.op("sub", "left", "left", 1)
    w.op("bne", "left", w.zero, "round")
    w.offset("value", "value", WRONG - VALUES)
    w.op("st.reg [64-bit]", "value", "wrong")
    w.op("halt")
    return assemble(w.text(), name="rounds.s")


def wrong(flags: ChipFlags, schedule: Schedule, *, seed: int = 0, waits: bool = True) -> int:
    """Numbers that were missing, in two launches on the same memory."""
    program = rounds(flags, waits=waits)
    parameters = 0x800
    found = 0
    with DramImage(flags.ring.vaults << BITS) as memory:
        for vault in range(flags.ring.vaults):
            memory.write(flags.ring.address(vault, flags.base), flags.contents())
            words = [
                word for member in range(flags.members) for word in flags.parameters(vault, member)
            ]
            at = flags.ring.address(vault, parameters)
            memory.write(at, np.array(words, "<i8").tobytes())
        for launch in range(2):
            together = Together(
                program,
                memory,
                members=flags.members,
                ring=flags.ring,
                parameters=parameters,
                seed=seed + launch,
            )
            for outcome in together.run(schedule):
                assert outcome.state == "halted", outcome
            for vault in range(flags.ring.vaults):
                for member in range(flags.members):
                    at = flags.ring.address(vault, WRONG + member * FLAG_BYTES)
                    found += int.from_bytes(memory.read(at, 8), "little")
    return found


@pytest.mark.parametrize(
    ("columns", "rows", "members"), [(1, 1, 1), (1, 1, 4), (2, 1, 2), (3, 1, 1), (3, 2, 2)]
)
def test_every_engine_sees_what_all_stored_before_the_barrier(
    columns: int, rows: int, members: int
) -> None:
    flags = flags_of(columns, rows, members)
    engines = columns * rows * members
    schedules = [in_bursts(seed, 60) for seed in range(3)]
    schedules += [one_behind(slow, 20) for slow in {0, engines - 1}]
    for seed, schedule in enumerate(schedules):
        assert wrong(flags, schedule, seed=10 * seed) == 0


def test_without_the_barrier_engines_miss_what_others_stored() -> None:
    assert wrong(flags_of(3, 2, 2), in_bursts(1, 60), waits=False) > 0


@pytest.mark.parametrize(("base", "members"), [(8, 1), (-32, 1), (0, 0)])
def test_values_outside_their_range_are_refused(base: int, members: int) -> None:
    with pytest.raises(KernelError):
        ChipFlags(base=base, members=members)
