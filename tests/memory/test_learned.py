"""Policies with an agent, and in batches: what they prefer, and what they may not learn."""

from dataclasses import replace

import pytest

from memory.agent.config import ACTIONS, SLOTS, AgentConfig
from memory.config import VaultConfig
from memory.controller.controller import Controller
from memory.controller.learned import Learned
from memory.controller.meta import SHORT_BURSTS, Meta
from memory.controller.par_bs import ParBs
from memory.controller.snapshot import SNAPSHOT_CYCLES
from memory.controller.starvation import GROUP_BURSTS
from tests.memory.dram_stub import ALL, Access, run_accesses

#: One feature with a weight for each action, and next to no actions at random.
AGENT = AgentConfig(features=("direction",), epsilon_shift=10, epoch=4, window_base=0)
CONFIG = VaultConfig(
    banks=4,
    rows=16,
    row_bytes=128,
    transaction_queue=8,
    tag_bits=5,
    scheduler="learned",
    agent=AGENT,
)
NONE = ACTIONS - 1


def _set_banks(ctx, dut, **members):
    for name in ("column", "row", "urgent", "waiting", "hit", "ready", "write"):
        ctx.set(getattr(dut, name), members.get(name, 0))
    for number, stamp in enumerate(members.get("stamps", (0, 1, 2, 3))):
        ctx.set(dut.stamps[number], stamp)


async def _prefer(ctx, dut, action):
    """Give ``action`` the largest weight and the others the least."""
    port = dut.weights
    ctx.set(port.write, 1)
    ctx.set(port.request, 1)
    largest = (1 << AGENT.theta_bits - 1) - 1
    for number in range(ACTIONS):
        ctx.set(port.index, SLOTS * number)
        ctx.set(port.data, largest if number == action else -largest)
        while not ctx.get(port.done):
            await ctx.tick()
        await ctx.tick()
    ctx.set(port.request, 0)
    # Until the action is in force.
    await ctx.tick().repeat(4 * AGENT.epoch)


@pytest.mark.parametrize(
    ("action", "expected"), [(0, 0b0100), (1, 0b0010), (2, 0b0001), (NONE, 0b0000)]
)
def test_the_class_that_the_agent_prefers_goes_first(simulate, action, expected):
    dut = Learned(CONFIG)

    async def bench(ctx):
        await _prefer(ctx, dut, action)
        seen = set()
        for _ in range(3 * AGENT.epoch):
            # A row, a column of the other direction (writing), and one of the present direction.
            _set_banks(ctx, dut, row=0b0001, column=0b0110, write=0b0010, hit=0b0110)
            seen.add(ctx.get(dut.issue))
            # If the class is empty, the order is first-ready's. Nothing is issued at the edge.
            _set_banks(ctx, dut)
            await ctx.tick()
        # Not twice running, none at all is preferred: then it is the best of the others.
        assert expected in seen
        if action != NONE:
            assert seen == {expected}
        else:
            assert len(seen) > 1

    simulate(dut, bench)


@pytest.mark.parametrize("action", range(ACTIONS))
def test_a_refresh_goes_first(simulate, action):
    dut = Learned(CONFIG)

    async def bench(ctx):
        await _prefer(ctx, dut, action)
        members = {"row": 0b1001, "urgent": 0b1000, "column": 0b0110, "write": 0b0010}
        for cycle in range(3 * AGENT.epoch):
            _set_banks(ctx, dut, **members)
            # Rows that are preferred may keep it for a cycle.
            assert ctx.get(dut.issue) == 0b1000 or (action == 2 and cycle == 0)
            await ctx.tick()

    simulate(dut, bench)


def test_an_empty_class_leaves_the_order_of_first_ready(simulate):
    dut = Learned(CONFIG)

    async def bench(ctx):
        await _prefer(ctx, dut, 1)
        _set_banks(ctx, dut, row=0b1001, column=0b0100)
        assert ctx.get(dut.issue) == 0b0100
        await _prefer(ctx, dut, 2)
        _set_banks(ctx, dut, column=0b0110, write=0b0010)
        assert ctx.get(dut.issue) == 0b0100

    simulate(dut, bench)


@pytest.mark.parametrize("action", [2, NONE])
def test_no_weights_can_starve_a_bank(simulate, action):
    """Rows without end, which the agent prefers, or no command at all: when the snapshot is late,
    the column command goes, and the next one waits for the next late snapshot at most."""
    dut = Learned(CONFIG)

    async def bench(ctx):
        await _prefer(ctx, dut, action)
        waits = []
        since = 0
        for _ in range(3 * SNAPSHOT_CYCLES):
            _set_banks(ctx, dut, row=0b1000, column=0b0001, hit=0b0001, waiting=0b0001)
            since += 1
            if ctx.get(dut.issue) == 0b0001:
                waits.append(since)
                since = 0
            await ctx.tick()
        assert waits
        assert max(waits) <= SNAPSHOT_CYCLES + 4
        if action == 2:
            assert max(waits) > SNAPSHOT_CYCLES - 4

    simulate(dut, bench)


async def _bursts(ctx, dut, count):
    """Directions of ``count`` bursts, of a bank that reads and one that writes all the time."""
    seen = ""
    for cycle in range(4 * count):
        bus = cycle % 4 == 0
        members = {"hit": 0b0011, "ready": 0b0011, "write": 0b0010}
        _set_banks(ctx, dut, column=0b0011 * bus, **members)
        if bus:
            seen += {0b01: "r", 0b10: "w", 0: "-"}[ctx.get(dut.issue)]
        await ctx.tick()
    return seen


def test_the_agent_can_not_extend_a_group(simulate):
    dut = Learned(CONFIG)

    async def bench(ctx):
        await _prefer(ctx, dut, 0)
        seen = await _bursts(ctx, dut, 60)
        assert max(map(len, seen.split("w"))) <= GROUP_BURSTS
        assert "r" * GROUP_BURSTS in seen

    simulate(dut, bench)


def test_meta_has_short_groups(simulate):
    dut = Meta(replace(CONFIG, scheduler="meta"))

    async def bench(ctx):
        await _prefer(ctx, dut, 1)
        seen = await _bursts(ctx, dut, 24)
        assert ("r" * SHORT_BURSTS + "w" * SHORT_BURSTS) * 2 in seen

    simulate(dut, bench)


def test_batches_of_banks(simulate):
    """Banks of the snapshot go first, though a later request has an earlier stamp."""
    dut = ParBs(replace(CONFIG, scheduler="par-bs", agent=AgentConfig()))

    async def bench(ctx):
        _set_banks(ctx, dut, waiting=0b0110, column=0, stamps=(0, 2, 3, 1))
        await ctx.tick()
        issued = []
        waiting = 0b1111
        for _ in range(4):
            _set_banks(ctx, dut, waiting=waiting, column=waiting, hit=waiting, stamps=(0, 2, 3, 1))
            issued.append(ctx.get(dut.issue))
            waiting &= ~issued[-1]
            await ctx.tick()
        assert issued == [0b0010, 0b0100, 0b0001, 0b1000]

    simulate(dut, bench)


def test_batches_of_requests(simulate):
    """Requests of the batch first; of these, those of the requester with the fewest left."""
    config = replace(CONFIG, scheduler="par-bs", agent=AgentConfig(), requester_bits=1)
    dut = ParBs(config)

    async def bench(ctx):
        for number in range(config.transaction_queue):
            ctx.set(dut.older[number], (1 << number) - 1)
            ctx.set(dut.sources[number], number == 2)
        ctx.set(dut.occupied, 0b0111)
        await ctx.tick().repeat(2)
        occupied, picked = 0b1111, []
        for _ in range(4):
            ctx.set(dut.occupied, occupied)
            ctx.set(dut.eligible, occupied)
            ctx.set(dut.row_hit, 0b1000)
            picked.append(ctx.get(dut.pick))
            occupied &= ~picked[-1]
            await ctx.tick()
        # Entry 3 hits the row, but came after the batch was made.
        assert picked == [0b0100, 0b0001, 0b0010, 0b1000]

    simulate(dut, bench)


def test_weights_are_words_of_the_vault(simulate):
    """The window reads what was written, with its sign, and the DRAM never sees it; around it
    other accesses go on."""
    size = 8 * SLOTS * ACTIONS
    config = replace(CONFIG, agent=replace(AGENT, window_base=size))
    all_words = (ALL,) * 4
    accesses = []

    def others(count):
        accesses.extend(
            Access(
                2 * size + 32 * (n % 8), n % 3 == 0, 1, (n,) * (n % 3 == 0), (ALL,) * (n % 3 == 0)
            )
            for n in range(count)
        )

    def weight(action, value):
        value %= 1 << 64
        data = (value, 0, 0, 0)
        accesses.append(Access(size + 8 * SLOTS * action, True, 4, data, all_words))

    # The first action is the best by far, so that the other weights do not change meanwhile.
    weight(0, 32767)
    others(60)
    for action in range(1, ACTIONS):
        weight(action, -1000 * action)
    others(60)
    for action in range(1, ACTIONS):
        accesses.append(Access(size + 8 * SLOTS * action, words=4))
        # A weight that does not exist, and one written without all strobes.
        accesses.append(Access(size + 8 * SLOTS * action + 32, words=2))
        data = (5,)
        accesses.append(Access(size + 8 * SLOTS * action, True, 1, data, (0,)))
        accesses.append(Access(size + 8 * SLOTS * action, words=1))
    dram = run_accesses(simulate, Controller(config), accesses)
    assert {kind for _, kind, _ in dram.log} >= {"READ", "WRITE"}
    reads = [access for access in accesses if not access.write and access.address < 2 * size]
    for access in reads:
        assert access.read[1:] == [0] * (access.words - 1)
    columns = {access.address // 32 for access in accesses if access.address >= 2 * size}
    served = sum(kind in ("READ", "WRITE") for _, kind, _ in dram.log)
    assert served == 120
    assert len(columns) == 8
