"""Commands of the host in the very cycles in which what they are about changes."""

import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import MemoryPort
from isa.assembly.assembler import assemble
from pe.config import PeConfig
from pe.core import Pe
from pe.interface import PeState
from soc.chip.control_bus import ControlCommand, ControlLink, ControlSpace
from soc.host.control import HostControl
from soc.host.register_map import CHIP
from soc.tile.control import TileControl
from tests.soc.host_dut import small
from tests.soc.lite_manager import LiteManager

#: An engine that needs all 64 cycles to clear its registers.
CONFIG = PeConfig(
    instructions=frozenset({"jmp", "halt", "st.reg[64]", "memfence"}),
    instruction_words=16,
    scratchpad_bytes=64,
    arc_entries=1,
    load_store_queue=2,
    address_bits=12,
    counters=False,
)
CLEARING = 1 << CONFIG.register_bits
ENDLESS = assemble("loop: st.reg [64-bit] r5, r1\njmp loop\n").words
SHORT = assemble("st.reg [64-bit] r5, r1\nmemfence\nhalt\n").words
#: More cycles than a stopped engine needs to complete its stores.
PATIENCE = 40
DONE, FAULT = (field.place(1) for field in CHIP.register("INTERRUPT_STATUS").fields)


class Tile(Component):
    """A tile's control with one engine."""

    def __init__(self) -> None:
        memory = MemoryPort(address_bits=CONFIG.address_bits, tag_bits=CONFIG.tag_bits)
        super().__init__({"input": In(ControlLink()), "memory": Out(memory)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        control, pe = TileControl(pe=CONFIG, pes=1), Pe(CONFIG)
        m.submodules.control = shared_instance(control, platform)
        m.submodules.pe = shared_instance(pe, platform)
        connect(m, flipped(self.input), control.input)
        connect(m, control.control[0], pe.control)
        connect(m, pe.memory, flipped(self.memory))
        m.d.comb += control.output.message.ready.eq(1)
        self.status = pe.control.status
        return m


class TileBench:
    """Sends messages to a tile; a memory that answers each store a few cycles later."""

    def __init__(self, ctx, dut) -> None:
        self.ctx = ctx
        self.dut = dut
        self.stores = 0
        self.answers = []

    async def cycle(self, command=None, index=0, data=0):
        """One clock cycle, with a message of ``command`` or none."""
        ctx, dut = self.ctx, self.dut
        message = dut.input.message
        ctx.set(message.valid, command is not None)
        if command is not None:
            payload = message.payload
            ctx.set(payload.write, 1)
            ctx.set(payload.space, ControlSpace.COMMAND)
            ctx.set(payload.register, command.value)
            ctx.set(payload.index, index)
            ctx.set(payload.data, data)
        request, response = dut.memory.request, dut.memory.response
        ctx.set(request.ready, 1)
        due = self.answers and self.answers[0][0] == 0
        ctx.set(response.valid, bool(due))
        if due:
            ctx.set(response.payload.tag, self.answers.pop(0)[1])
            ctx.set(response.payload.last, 1)
        self.answers = [(left - 1, tag) for left, tag in self.answers]
        if command is not None:
            assert ctx.get(message.ready)
        if ctx.get(request.valid):
            self.stores += 1
            self.answers.append((3, ctx.get(request.payload.tag)))
        await ctx.tick()

    @property
    def state(self):
        return PeState(self.ctx.get(self.dut.status.state))

    async def load(self, words):
        for index, word in enumerate(words):
            await self.cycle(ControlCommand.LOAD, index, word)

    async def ended(self):
        """The state in which the engine ends."""
        for _ in range(CLEARING + PATIENCE):
            if self.state is not PeState.RUNNING:
                break
            await self.cycle()
        return self.state


def test_a_stop_in_any_cycle_of_a_launch_holds_and_not_for_the_next_launch(simulate):
    dut = Tile()

    async def bench(ctx):
        tile = TileBench(ctx, dut)
        stored = []
        for delay in range(CLEARING + 12):
            await tile.load(ENDLESS)
            tile.stores = 0
            await tile.cycle(ControlCommand.START, data=len(ENDLESS))
            for _ in range(delay):
                await tile.cycle()
            assert tile.state is PeState.RUNNING
            await tile.cycle(ControlCommand.STOP)
            assert await tile.ended() is PeState.HALTED, delay
            assert not tile.answers
            stored.append(tile.stores)
            if delay % 8 and delay < CLEARING - 2:
                continue
            # At once, as the engine is free in this cycle for the first time.
            await tile.cycle(ControlCommand.START, data=len(ENDLESS))
            for _ in range(CLEARING + 20):
                await tile.cycle()
            assert tile.state is PeState.RUNNING, delay
            assert tile.stores > stored[-1]
            await tile.cycle(ControlCommand.STOP)
            assert await tile.ended() is PeState.HALTED
        # Stopped before its first instruction, it does none; later it does some.
        assert stored[:CLEARING] == [0] * CLEARING
        assert stored[-1] > 0
        assert sorted(stored) == stored

    simulate(dut, bench)


def test_a_stop_around_the_end_of_a_program_is_forgotten(simulate):
    """It may find the engine running, in its last cycle, or free already."""
    dut = Tile()

    async def bench(ctx):
        tile = TileBench(ctx, dut)
        await tile.load(SHORT)
        await tile.cycle(ControlCommand.START, data=len(SHORT))
        length = 0
        while tile.state is PeState.RUNNING:
            await tile.cycle()
            length += 1
        for early in range(4, -3, -1):
            await tile.cycle(ControlCommand.START, data=len(SHORT))
            for _ in range(length - early):
                await tile.cycle()
            await tile.cycle(ControlCommand.STOP)
            assert await tile.ended() is PeState.HALTED
            before = tile.stores
            await tile.cycle(ControlCommand.START, data=len(SHORT))
            assert tile.state is PeState.RUNNING
            assert await tile.ended() is PeState.HALTED
            assert tile.stores == before + 1, early

    simulate(dut, bench)


@pytest.mark.parametrize("event", ["done", "fault"])
def test_an_event_in_the_cycle_of_its_clear_is_not_lost(simulate, rng, event):
    """Of all distances between a write that clears and a new event, none loses the event: it is
    seen on the interrupt before it is cleared, or it stays."""
    dut = HostControl(small())
    bit = {"done": DONE, "fault": FAULT}[event]
    status, enable = CHIP.address("INTERRUPT_STATUS"), CHIP.address("INTERRUPT_ENABLE")

    async def bench(ctx):
        manager = LiteManager(dut.axi, rng, pause=0.0)
        summary = dut.last.summary
        returning = []
        left = None
        seen = False

        async def each(ctx):
            """The ring without tiles, and the event when it is due."""
            nonlocal left, seen
            message = dut.first.message
            ctx.set(message.ready, 1)
            ctx.set(dut.last.message.valid, bool(returning))
            if returning:
                ctx.set(dut.last.message.payload, returning.pop())
            await ctx.delay(0)
            if ctx.get(message.valid):
                returning.append(ctx.get(message.payload))
            now = left == 0
            if event == "fault":
                ctx.set(summary.fault, now)
            else:
                ctx.set(summary.running, left is not None and left > 0)
            if left is not None:
                left -= 1
            seen = seen or bool(ctx.get(dut.host_interrupt))

        async def access(**what):
            return await manager.access(ctx, each=each, **what)

        await access(writes=[(enable, bit, 0xF)])
        ends = []
        for distance in range(1, 24):
            await access(writes=[(status, bit, 0xF)])
            assert not ctx.get(dut.host_interrupt)
            left, seen = distance, False
            await access(writes=[(status, bit, 0xF)])
            while left >= -3:
                await each(ctx)
                await ctx.tick()
            await each(ctx)
            assert seen, distance
            _, ((_, value),) = await access(reads=[status])
            assert value in (0, bit)
            ends.append(bool(value))
            left = None
        # Early ones are cleared, late ones stay.
        assert ends == sorted(ends)
        assert set(ends) == {False, True}

    simulate(dut, bench)
