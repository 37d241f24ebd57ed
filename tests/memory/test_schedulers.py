"""Scheduling policies: their choices, and that no requester starves."""

from dataclasses import replace

import pytest
from amaranth.hdl import Fragment, Module, Signal

from memory.config import VaultConfig
from memory.controller.controller import Controller
from memory.controller.first_ready import FirstReady
from memory.controller.policies import SCHEDULERS, InOrder
from memory.controller.scheduler import first_stamp, oldest_of, scheduler_members
from memory.controller.starvation import GROUP_BURSTS, PATIENCE_CYCLES, starvation_bound
from memory.controller.transaction import stamp_bits
from memory.timing import DramTiming
from tests.executed_lines import design_of
from tests.memory.dram_stub import ALL, Access, run_accesses

CONFIG = VaultConfig(banks=4, rows=16, row_bytes=128, transaction_queue=8, tag_bits=5)

TIMED = replace(CONFIG, scheduler="first-ready-timed")


def test_oldest_of(simulate, rng):
    candidates = Signal(6)
    older = [Signal(6, name=f"older_{n}") for n in range(6)]
    m = Module()
    found = oldest_of(m, candidates, older, "found")

    async def bench(ctx):
        for _ in range(200):
            order = rng.sample(range(6), 6)
            for place, number in enumerate(order):
                ctx.set(older[number], sum(1 << other for other in order[:place]))
            chosen = rng.randrange(64)
            ctx.set(candidates, chosen)
            first = next((1 << number for number in order if chosen >> number & 1), 0)
            assert ctx.get(found) == first

    simulate(m, bench, combinational=True)


def test_first_stamp_across_the_wrap(simulate, rng):
    candidates = Signal(8)
    stamps = [Signal(6, name=f"stamp_{n}") for n in range(8)]
    m = Module()
    found = first_stamp(m, candidates, stamps, "found")

    async def bench(ctx):
        for _ in range(300):
            base = rng.randrange(64)
            ages = rng.sample(range(32), 8)
            for signal, age in zip(stamps, ages, strict=True):
                ctx.set(signal, (base + age) % 64)
            chosen = rng.randrange(256)
            ctx.set(candidates, chosen)
            among = [number for number in range(8) if chosen >> number & 1]
            first = 1 << min(among, key=ages.__getitem__) if among else 0
            assert ctx.get(found) == first

    simulate(m, bench, combinational=True)


def _set_banks(ctx, dut, **members):
    for name in ("column", "row", "urgent", "waiting", "hit", "write"):
        ctx.set(getattr(dut, name), members.get(name, 0))
    for number, stamp in enumerate(members.get("stamps", (0, 1, 2, 3))):
        ctx.set(dut.stamps[number], stamp)


def test_first_ready_prefers(simulate):
    dut = design_of(FirstReady, CONFIG)

    async def bench(ctx):
        def issue(**members):
            _set_banks(ctx, dut, **members)
            return ctx.get(dut.issue)

        assert issue() == 0
        # A refresh's command, a column of the present direction (reads), another one, a row.
        assert issue(row=0b1001, urgent=0b1000, column=0b0110, write=0b0010) == 0b1000
        assert issue(row=0b1001, column=0b0110, write=0b0010) == 0b0100
        assert issue(row=0b1001, column=0b0010, write=0b0010) == 0b0010
        assert issue(row=0b1001) == 0b0001
        # A bank that wants a refresh but has no command now is no reason to wait.
        assert issue(row=0b0001, urgent=0b1000) == 0b0001
        # Among equals the one whose request came first.
        assert issue(column=0b1111, stamps=(7, 5, 4, 6)) == 0b0100
        assert issue(row=0b1011, stamps=(7, 5, 4, 6)) == 0b0010

    simulate(dut, bench)


def test_first_ready_turns_after_a_group(simulate):
    dut = design_of(FirstReady, CONFIG)

    async def bench(ctx):
        # Reads are always possible in bank 0; a write waits in bank 1.
        members = {"column": 0b0011, "hit": 0b0011, "write": 0b0010, "stamps": (9, 0, 0, 0)}
        seen = ""
        for _ in range(3 * GROUP_BURSTS + 3):
            _set_banks(ctx, dut, **members)
            seen += {0b01: "r", 0b10: "w"}[ctx.get(dut.issue)]
            await ctx.tick()
        read, write = "r" * GROUP_BURSTS, "w" * GROUP_BURSTS
        assert seen == (read + write + read + write)[: len(seen)]
        # While the write that is due can't be given, reads wait for it.
        _set_banks(ctx, dut, column=0b0001, hit=0b0011, write=0b0010)
        for _ in range(GROUP_BURSTS):
            _set_banks(ctx, dut, column=0b0001, hit=0b0001)
            await ctx.tick()
        _set_banks(ctx, dut, column=0b0001, hit=0b0011, write=0b0010)
        assert ctx.get(dut.issue) == 0
        # But not for one whose row is not open.
        _set_banks(ctx, dut, column=0b0001, hit=0b0001, write=0b0010, waiting=0b0011)
        assert ctx.get(dut.issue) == 0b0001

    simulate(dut, bench)


def test_first_ready_timed_turns_when_a_bank_is_ready(simulate):
    """The write that is due can't be given yet: reads go on until its bank's timers allow it."""
    dut = design_of(FirstReady, TIMED)

    async def bench(ctx):
        def issue(ready):
            _set_banks(ctx, dut, column=0b0001, hit=0b0011, write=0b0010)
            ctx.set(dut.ready, ready)
            return ctx.get(dut.issue)

        for _ in range(GROUP_BURSTS + 20):
            assert issue(ready=0b0001) == 0b0001
            await ctx.tick()
        # The rules across banks may still forbid it; the reads make room for it nevertheless.
        assert issue(ready=0b0011) == 0

    simulate(dut, bench)


def _set_queue(ctx, dut, order, **members):
    """``order``: entries, the oldest first."""
    for place, number in enumerate(order):
        ctx.set(dut.older[number], sum(1 << other for other in order[:place]))
    ctx.set(dut.occupied, sum(1 << number for number in order))
    for name in ("eligible", "row_hit", "turnaround"):
        ctx.set(getattr(dut, name), members.get(name, 0))
    for number in order:
        ctx.set(dut.banks[number], members.get("banks", {}).get(number, 0))


def test_first_ready_picks(simulate):
    dut = design_of(FirstReady, CONFIG)

    async def bench(ctx):
        def pick(**members):
            _set_queue(ctx, dut, (3, 0, 2, 1), **members)
            return ctx.get(dut.pick)

        assert pick(eligible=0) == 0
        assert pick(eligible=0b1111) == 0b1000
        assert pick(eligible=0b0111) == 0b0001
        assert pick(eligible=0b1111, row_hit=0b0110) == 0b0100
        assert pick(eligible=0b1111, row_hit=0b0110, turnaround=0b0100) == 0b0010
        assert pick(eligible=0b1111, row_hit=0b0110, turnaround=0b0110) == 0b0100
        assert pick(eligible=0b1001, row_hit=0b0110) == 0b1000

    simulate(dut, bench)


def test_first_ready_loses_patience(simulate):
    dut = design_of(FirstReady, CONFIG)

    async def bench(ctx):
        banks = {3: 1, 0: 1, 2: 2}
        for cycle in range(PATIENCE_CYCLES + 20):
            # Entry 3, the oldest, can't go yet; the others can.
            _set_queue(ctx, dut, (3, 0, 2), eligible=0b0001, row_hit=0b0001, banks=banks)
            assert ctx.get(dut.pick) == (0b0001 if cycle < PATIENCE_CYCLES else 0)
            await ctx.tick()
        _set_queue(ctx, dut, (3, 0, 2), eligible=0b0101, row_hit=0b0001, banks=banks)
        assert ctx.get(dut.pick) == 0b0100
        _set_queue(ctx, dut, (3, 0, 2), eligible=0b1001, row_hit=0b0001, banks=banks)
        assert ctx.get(dut.pick) == 0b1000
        await ctx.tick()
        _set_queue(ctx, dut, (0, 2), eligible=0b0101, row_hit=0b0001, banks=banks)
        assert ctx.get(dut.pick) == 0b0001

    simulate(dut, bench)


def test_in_order(simulate):
    dut = design_of(InOrder, CONFIG)

    async def bench(ctx):
        _set_queue(ctx, dut, (3, 0, 2), eligible=0b0101, row_hit=0b0001)
        assert ctx.get(dut.pick) == 0
        _set_queue(ctx, dut, (3, 0, 2), eligible=0b1101)
        assert ctx.get(dut.pick) == 0b1000

        def issue(**members):
            _set_banks(ctx, dut, waiting=0b1110, stamps=(0, 5, 4, 6), **members)
            return ctx.get(dut.issue)

        assert issue(column=0b1110) == 0b0100
        assert issue(column=0b1010) == 0
        assert issue(column=0b1000, row=0b0010) == 0b0010
        assert issue(row=0b0011, urgent=0b0010) == 0b0010

    simulate(dut, bench, combinational=True)


@pytest.mark.parametrize("name", SCHEDULERS)
def test_policies_are_components_with_one_interface(name):
    config = replace(CONFIG, scheduler=name)
    policy = SCHEDULERS[name](config)
    assert dict(policy.signature.members) == scheduler_members(config)
    Fragment.get(policy, None)


def test_a_stamp_outlives_every_request():
    largest = VaultConfig(banks=64, transaction_queue=64, command_queue=32)
    policies = [replace(largest, scheduler=name) for name in SCHEDULERS]
    for config in (VaultConfig(), *policies):
        assert 1 << stamp_bits(config) > 2 * starvation_bound(config)


#: One row of one bank would take every request; a few want another row of the bank.
HAMMERED = replace(CONFIG, timing=DramTiming(trefi_ns=800.0), command_queue=4)


def test_a_stream_of_hits_starves_nobody(simulate):
    accesses = []
    for n in range(700):
        write = n // 8 % 2 == 1
        data = {"data": (n,), "strobes": (ALL,)} if write else {}
        accesses.append(Access(32 * (n % 4), write, 1, **data))
    victim = Access(5 * HAMMERED.banks * HAMMERED.row_bytes, words=1)
    accesses.insert(80, victim)
    run_accesses(simulate, Controller(HAMMERED), accesses)
    last = max(access.answered for access in accesses)
    assert PATIENCE_CYCLES < victim.answered - victim.accepted < PATIENCE_CYCLES + 600
    assert victim.answered < last - 2000


@pytest.mark.parametrize("name", [name for name in SCHEDULERS if name != "in-order"])
def test_one_direction_starves_not_the_other(simulate, name):
    """Reads of open rows without end, and one write to an open row of another bank."""
    accesses = [Access(32 * (n % 4) + 128 * (n % 3), words=1) for n in range(400)]
    write = Access(3 * 128, True, 1, (7,), (ALL,))
    accesses.insert(100, write)
    run_accesses(simulate, Controller(replace(HAMMERED, scheduler=name)), accesses)
    assert write.answered - write.accepted < 400
