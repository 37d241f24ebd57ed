"""The timers and the bank machine as waveforms: one character a cycle."""

from dataclasses import replace
from itertools import product

import pytest
from amaranth.hdl import Module, Signal

from memory.config import VaultConfig
from memory.controller.bank_machine import BankMachine
from memory.controller.bus_rules import BusRules, read_to_write, write_to_read
from memory.controller.dram_port import DramCommand
from memory.controller.policies import SCHEDULERS
from memory.controller.refresher import Refresher, refresh_phase
from memory.controller.timer import CountDown
from memory.timing import DramTiming

#: One ns a clock, every time another number, so that no rule hides behind another.
TIMING = DramTiming(
    tck_ns=1.0,
    tccd_ns=3.0,
    tcl_ns=4.0,
    tcwl_ns=5.0,
    trcd_ns=6.0,
    trp_ns=7.0,
    tras_ns=14.0,
    twr_ns=9.0,
    trtp_ns=8.0,
    twtr_ns=2.0,
    trfc_ns=11.0,
    trefi_ns=400.0,
)
CONFIG = VaultConfig(banks=4, rows=16, row_bytes=128, timing=TIMING, tag_bits=3)
LETTER = {
    DramCommand.ACT: "A",
    DramCommand.READ: "R",
    DramCommand.WRITE: "W",
    DramCommand.PRE: "P",
    DramCommand.REFRESH: "F",
}


def gap(clocks):
    return "_" * (clocks - 1)


@pytest.mark.parametrize(
    ("waits", "done"),
    [
        ("    ", "----"),
        ("1   ", "----"),
        ("2   ", "-_--"),
        ("5      ", "-____--"),
        ("5 2     ", "-____---"),
        ("2 5      ", "-_-____--"),
        ("3 5     ", "-______-"),
        ("33      ", "-___----"),
    ],
)
def test_timer(simulate, waits, done):
    m = Module()
    start = {clocks: Signal(name=f"start_{clocks}") for clocks in (1, 2, 3, 5)}
    timer = CountDown(m, 5, "timer")
    for clocks, signal in start.items():
        with m.If(signal):
            timer.wait(clocks)

    async def bench(ctx):
        seen = ""
        for letter in waits:
            for clocks, signal in start.items():
                ctx.set(signal, letter == str(clocks))
            seen += "-" if ctx.get(timer.done) else "_"
            await ctx.tick()
        assert seen.ljust(len(done)) == done.ljust(len(seen))[: len(seen)]

    simulate(m, bench)


def commands(simulate, config, requests, *, cycles, refresh=(), blocked=()):
    """Commands of a bank that always gets a grant, for ``requests`` ((row, write) each): a letter a
    cycle, from its first command on. ``refresh``: cycles, counted likewise, in which one is due;
    ``blocked``: cycles in which the bank gets no grant."""
    dut = BankMachine(config)
    seen = ""

    async def bench(ctx):
        nonlocal seen
        for name in ("read_allowed", "write_allowed", "activate_allowed"):
            ctx.set(getattr(dut, name), 1)
        left = list(requests)
        first = not requests
        while len(seen) < cycles:
            ctx.set(dut.input.valid, bool(left))
            if left:
                row, write = left[0]
                ctx.set(dut.input.payload.row, row)
                ctx.set(dut.input.payload.write, write)
            offered = ctx.get(dut.column) | ctx.get(dut.row)
            assert not (ctx.get(dut.column) and ctx.get(dut.row))
            first = first or bool(offered)
            ctx.set(dut.refresh_due, first and len(seen) in refresh)
            grant = bool(offered) and len(seen) not in blocked
            ctx.set(dut.grant, grant)
            if first:
                seen += LETTER[DramCommand(ctx.get(dut.kind))] if grant else "_"
            if left and ctx.get(dut.input.ready):
                left.pop(0)
            await ctx.tick()

    simulate(dut, bench)
    return seen


READ, WRITE = False, True


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        # tRCD, then tCCD between hits.
        ([(1, READ)] * 3, "A" + gap(6) + "R" + gap(3) + "R" + gap(3) + "R_____"),
        # tRAS from ACT or tRTP from READ (6 + 8), whatever is later; tRP.
        ([(1, READ), (2, READ)], "A" + gap(6) + "R" + gap(8) + "P" + gap(7) + "A" + gap(6) + "R"),
        # Write recovery: tCWL + 4 + tWR.
        ([(1, WRITE), (2, READ)], "A" + gap(6) + "W" + gap(18) + "P" + gap(7) + "A"),
        # Write to read of the bank: tCWL + 4 + tWTR.
        ([(1, WRITE), (1, READ)], "A" + gap(6) + "W" + gap(11) + "R"),
        ([(1, READ), (1, WRITE)], "A" + gap(6) + "R" + gap(3) + "W"),
        # A read after a write does not shorten the write's recovery.
        (
            [(1, WRITE), (1, READ), (2, READ)],
            "A" + gap(6) + "W" + gap(11) + "R" + gap(8) + "P",
        ),
        ([(1, WRITE), (1, WRITE)], "A" + gap(6) + "W" + gap(3) + "W"),
    ],
)
def test_commands_of_a_bank(simulate, requests, expected):
    assert commands(simulate, CONFIG, requests, cycles=len(expected)) == expected


def test_long_row_time_counts_from_activate(simulate):
    config = replace(CONFIG, timing=replace(TIMING, tras_ns=30.0))
    expected = "A" + gap(6) + "R" + gap(24) + "P"
    seen = commands(simulate, config, [(1, READ), (2, READ)], cycles=len(expected))
    assert seen == expected


def test_open_page_stays_and_others_close_when_none_waits(simulate):
    request = [(1, READ)]
    body = "A" + gap(6) + "R" + gap(8)
    assert commands(simulate, CONFIG, request, cycles=25) == body + "_" * (25 - len(body))
    for policy in ("closed", "adaptive"):
        config = replace(CONFIG, page_policy=policy)
        seen = commands(simulate, config, request, cycles=25)
        assert seen == body + "P" + "_" * (24 - len(body))


def test_closed_page_closes_after_each_access_and_adaptive_keeps_what_is_wanted(simulate):
    requests = [(1, READ), (1, READ)]
    access = "A" + gap(6) + "R" + gap(8) + "P"
    closed = replace(CONFIG, page_policy="closed")
    expected = access + gap(7) + access
    assert commands(simulate, closed, requests, cycles=len(expected)) == expected
    adaptive = replace(CONFIG, page_policy="adaptive")
    expected = "A" + gap(6) + "R" + gap(3) + "R" + gap(8) + "P"
    assert commands(simulate, adaptive, requests, cycles=len(expected)) == expected


def test_refresh_of_an_idle_bank(simulate):
    expected = "__F" + gap(11) + "___"
    assert commands(simulate, CONFIG, [], cycles=len(expected), refresh=(1,)) == expected


def test_refresh_waits_for_the_hits_at_hand(simulate):
    requests = [(1, READ), (1, READ), (2, READ)]
    reads = "A" + gap(6) + "R" + gap(3) + "R" + gap(8)
    expected = reads + "P" + gap(7) + "F" + gap(11) + "A" + gap(6) + "R"
    assert commands(simulate, CONFIG, requests, cycles=len(expected), refresh=(2,)) == expected


def test_four_owed_refreshes_wait_for_nothing(simulate):
    requests = [(1, READ)] * 4
    seen = commands(simulate, CONFIG, requests, cycles=110, refresh=(1, 2, 3, 7))
    head = "A" + gap(6) + "R__"
    assert seen.startswith(head)
    rest = seen[len(head) :].replace("_", "")
    assert rest == "PFFFFARRR"


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_row_that_waited_closes_for_the_refreshes_owed(simulate, scheduler):
    """After hits, maybe with a refresh due, the bank gets no grant until more are; then another
    row, or none, is wanted."""
    config = replace(CONFIG, scheduler=scheduler, page_policy="adaptive")
    others = {"": [], "R": [(2, READ)], "W": [(2, WRITE)]}
    for (owed, kind), (other, after) in product(((0, "R"), (1, "R"), (4, "W")), others.items()):
        expected = "A" + gap(6) + kind + gap(3) + kind + "_" * 30
        expected += "P" + gap(7) + ("F" + gap(11)) * owed
        if after:
            expected += "A" + gap(6) + other
        seen = commands(
            simulate,
            config,
            [(1, kind == "W")] * 2 + after,
            cycles=len(expected),
            refresh=range(8, 8 + owed),
            blocked=range(10, 40),
        )
        assert seen == expected


def test_blocked_commands_are_offered_again(simulate):
    expected = "___A" + gap(6) + "_R"
    seen = commands(simulate, CONFIG, [(1, READ)], cycles=len(expected), blocked=(0, 1, 2, 9))
    assert seen == expected


@pytest.mark.parametrize(("member", "write"), [("read_allowed", READ), ("write_allowed", WRITE)])
def test_rules_across_banks_hold_columns_up(simulate, member, write):
    dut = BankMachine(CONFIG)

    async def bench(ctx):
        ctx.set(dut.activate_allowed, 1)
        ctx.set(dut.input.valid, 1)
        ctx.set(dut.input.payload.write, write)
        for _ in range(30):
            ctx.set(dut.grant, ctx.get(dut.row))
            assert not ctx.get(dut.column)
            await ctx.tick()
        ctx.set(dut.grant, 0)
        ctx.set(getattr(dut, member), 1)
        assert ctx.get(dut.column)

    simulate(dut, bench)


def test_ready_follows_the_timers_of_the_bank_alone(simulate):
    """A write, then a read of the same row: the read is ready tWTR after the write's data."""
    dut = BankMachine(replace(CONFIG, scheduler="first-ready-timed"))

    async def bench(ctx):
        for name in ("activate_allowed", "write_allowed"):
            ctx.set(getattr(dut, name), 1)
        ctx.set(dut.input.valid, 1)
        ctx.set(dut.input.payload.write, WRITE)
        waited = None
        for _ in range(60):
            offers = ctx.get(dut.row) or ctx.get(dut.column)
            written = ctx.get(dut.column)
            ctx.set(dut.grant, offers)
            await ctx.tick()
            ctx.set(dut.input.payload.write, READ)
            if written:
                waited = 0
                # No column of the read is granted: the rules across banks never allow it.
            elif waited is not None:
                waited += 1
                assert not ctx.get(dut.column)
                if ctx.get(dut.ready):
                    break
                assert ctx.get(dut.hit)
        assert waited == TIMING.write_to_read - 1

    simulate(dut, bench)


def test_rules_across_banks_hold_activates_up_but_not_refreshes(simulate):
    dut = BankMachine(CONFIG)

    async def bench(ctx):
        ctx.set(dut.input.valid, 1)
        for _ in range(6):
            await ctx.tick()
        assert not ctx.get(dut.row)
        ctx.set(dut.refresh_due, 1)
        await ctx.tick()
        ctx.set(dut.refresh_due, 0)
        assert ctx.get(dut.row)
        assert ctx.get(dut.urgent)
        assert ctx.get(dut.kind) == DramCommand.REFRESH

    simulate(dut, bench)


def test_refreshes_fall_due_in_turn(simulate):
    dut = Refresher(CONFIG)

    async def bench(ctx):
        seen = [[], [], [], []]
        for cycle in range(3 * TIMING.trefi):
            due = ctx.get(dut.due)
            for bank in range(4):
                if due >> bank & 1:
                    seen[bank].append(cycle)
            await ctx.tick()
        for bank in range(4):
            first = refresh_phase(CONFIG, bank)
            assert first == 100 * bank
            assert seen[bank] == [first + n * TIMING.trefi for n in range(3)]

    simulate(dut, bench)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"turnaround_clocks": 0},
        {"turnaround_clocks": 3, "tcwl_ns": 2.0},
        {"tcl_ns": 2.0, "tcwl_ns": 20.0},
        {"trrd_ns": 3.0, "tfaw_ns": 20.0},
    ],
)
def test_bus_rules_allow_exactly_what_may_be(simulate, rng, changes):
    """A command is allowed if and only if its burst keeps apart from those before it."""
    timing = replace(TIMING, **changes)
    dut = BusRules(replace(CONFIG, timing=timing))

    async def bench(ctx):
        bursts = []
        activates = []
        kinds = set()
        for now in range(600):
            for write, allowed in ((False, dut.read_allowed), (True, dut.write_allowed)):
                start = now + (timing.tcwl if write else timing.tcl)
                free = all(
                    start >= other + 4 + (timing.turnaround_clocks if write != was_write else 0)
                    for other, was_write in bursts
                )
                assert ctx.get(allowed) == free
            spaced = not activates or now - activates[-1] >= timing.trrd
            windowed = len(activates) < 4 or now - activates[-4] >= timing.tfaw
            assert ctx.get(dut.activate_allowed) == (spaced and windowed)
            # Long enough without writes for a read to become possible after them.
            column = rng.choice(("read", "write")) if now // 40 % 2 else "read"
            choice = rng.choice((column, column, "activate", "none"))
            possible = choice != "none" and ctx.get(getattr(dut, f"{choice}_allowed"))
            for name in ("read", "write", "activate"):
                ctx.set(getattr(dut, name), possible and name == choice)
            if possible:
                kinds.add(choice)
                if choice == "activate":
                    activates.append(now)
                else:
                    start = now + (timing.tcwl if choice == "write" else timing.tcl)
                    turnaround = bool(bursts) and bursts[-1][1] != (choice == "write")
                    if bursts:
                        assert ctx.get(dut.turnaround) == turnaround
                    bursts.append((start, choice == "write"))
            await ctx.tick()
        assert kinds == {"read", "write", "activate"}

    simulate(dut, bench)


def test_turning_costs_what_the_bus_needs():
    assert read_to_write(TIMING) == 4 + 4 + 1 - 5
    assert write_to_read(TIMING) == 5 + 4 + 1 - 4
    assert read_to_write(DramTiming()) == write_to_read(DramTiming()) == 5
