"""The policy with an agent: what it prefers, and what it may not learn."""

import pytest
from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from memory.agent.config import ACTIONS, AgentConfig
from memory.config import VaultConfig
from memory.controller.learned import Learned
from memory.controller.starvation import GROUP_BURSTS, SNAPSHOT_CYCLES

AGENT = AgentConfig(features=("direction",), epoch=4)
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


class Single(Component):
    """An agent with the action ``wanted``, but for none at all twice running."""

    def __init__(self, config: AgentConfig, wanted: Signal) -> None:
        self.config, self.wanted = config, wanted
        states = {f"state_{n}": In(feature.bits) for n, feature in enumerate(config.state)}
        super().__init__({**states, "reward": In(1), "action": Out(ACTIONS), "begins": Out(1)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        phase, none = Signal(range(self.config.epoch)), Signal()
        again = none & (self.wanted == NONE)
        m.d.comb += [self.begins.eq(phase == 0), self.action.eq(Mux(again, 1, 1 << self.wanted))]
        m.d.sync += phase.eq(phase + 1)
        with m.If(phase == self.config.epoch - 1):
            m.d.sync += none.eq((self.wanted == NONE) & ~none)
        return m


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch) -> Learned:
    """A scheduler whose agent does what ``wanted`` says."""
    wanted = Signal(range(ACTIONS))
    monkeypatch.setattr("memory.controller.learned.Sarsa", lambda config: Single(config, wanted))
    dut = Learned(CONFIG)
    dut.wanted = wanted
    return dut


def _set_banks(ctx, dut, **members):
    for name in ("column", "row", "urgent", "waiting", "hit", "ready", "write"):
        ctx.set(getattr(dut, name), members.get(name, 0))
    for number, stamp in enumerate(members.get("stamps", (0, 1, 2, 3))):
        ctx.set(dut.stamps[number], stamp)


async def _prefer(ctx, dut, action):
    """Have the agent choose ``action`` from now on."""
    ctx.set(dut.wanted, action)
    # Until the action is in force.
    await ctx.tick().repeat(4 * AGENT.epoch)


@pytest.mark.parametrize(
    ("action", "expected"), [(0, 0b0100), (1, 0b0010), (2, 0b0001), (NONE, 0b0000)]
)
def test_the_class_that_the_agent_prefers_goes_first(simulate, learned, action, expected):
    async def bench(ctx):
        await _prefer(ctx, learned, action)
        seen = set()
        for _ in range(3 * AGENT.epoch):
            # A row, a column of the other direction (writing), and one of the present direction.
            _set_banks(ctx, learned, row=0b0001, column=0b0110, write=0b0010, hit=0b0110)
            seen.add(ctx.get(learned.issue))
            # If the class is empty, the order is first-ready's. Nothing is issued at the edge.
            _set_banks(ctx, learned)
            await ctx.tick()
        # Not twice running, none at all is preferred: then it is the best of the others.
        assert expected in seen
        if action != NONE:
            assert seen == {expected}
        else:
            assert len(seen) > 1

    simulate(learned, bench)


@pytest.mark.parametrize("action", range(ACTIONS))
def test_a_refresh_goes_first(simulate, learned, action):
    async def bench(ctx):
        await _prefer(ctx, learned, action)
        members = {"row": 0b1001, "urgent": 0b1000, "column": 0b0110, "write": 0b0010}
        for cycle in range(3 * AGENT.epoch):
            _set_banks(ctx, learned, **members)
            # Rows that are preferred may keep it for a cycle.
            assert ctx.get(learned.issue) == 0b1000 or (action == 2 and cycle == 0)
            await ctx.tick()

    simulate(learned, bench)


def test_an_empty_class_leaves_the_order_of_first_ready(simulate, learned):
    async def bench(ctx):
        await _prefer(ctx, learned, 1)
        _set_banks(ctx, learned, row=0b1001, column=0b0100)
        assert ctx.get(learned.issue) == 0b0100
        await _prefer(ctx, learned, 2)
        _set_banks(ctx, learned, column=0b0110, write=0b0010)
        assert ctx.get(learned.issue) == 0b0100

    simulate(learned, bench)


@pytest.mark.parametrize("action", [2, NONE])
def test_no_weights_can_starve_a_bank(simulate, learned, action):
    """Rows without end, which the agent prefers, or no command at all: when the snapshot is late,
    the column command goes, and the next one waits for the next late snapshot at most."""

    async def bench(ctx):
        await _prefer(ctx, learned, action)
        waits = []
        since = 0
        for _ in range(3 * SNAPSHOT_CYCLES):
            _set_banks(ctx, learned, row=0b1000, column=0b0001, hit=0b0001, waiting=0b0001)
            since += 1
            if ctx.get(learned.issue) == 0b0001:
                waits.append(since)
                since = 0
            await ctx.tick()
        assert waits
        assert max(waits) <= SNAPSHOT_CYCLES + 4
        if action == 2:
            assert max(waits) > SNAPSHOT_CYCLES - 4

    simulate(learned, bench)


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


def test_the_agent_can_not_extend_a_group(simulate, learned):
    async def bench(ctx):
        await _prefer(ctx, learned, 0)
        seen = await _bursts(ctx, learned, 60)
        assert max(map(len, seen.split("w"))) <= GROUP_BURSTS
        assert "r" * GROUP_BURSTS in seen

    simulate(learned, bench)
