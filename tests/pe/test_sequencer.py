"""How a launch and its faults end, at full width and with narrow registers."""

import pytest

from hdl.config import PeConfig
from hdl.ports import PeState
from isa.faults import FaultCause
from pe.sequencer import Sequencer

NARROW = PeConfig(register_width=24, address_bits=16, registers=8, counters=False)
WIDE = PeConfig(address_bits=16, registers=8, counters=False)
#: Word at which something waits when an error comes.
WAITING = 7


async def _launch(ctx, dut, parameters):
    """Launch, and what register 5 gets."""
    ctx.set(dut.done, 1)
    ctx.set(dut.waiting_pc, WAITING)
    ctx.set(dut.launch.valid, 1)
    ctx.set(dut.launch.payload.words, 9)
    ctx.set(dut.launch.payload.parameters, parameters)
    assert ctx.get(dut.launch.ready)
    await ctx.tick()
    ctx.set(dut.launch.valid, 0)
    value = None
    while ctx.get(dut.clear):
        if ctx.get(dut.index) == 5:
            value = ctx.get(dut.value)
        await ctx.tick()
    return value


async def _end(ctx, dut):
    for _ in range(10):
        if ctx.get(dut.status.state) != PeState.RUNNING:
            break
        await ctx.tick()
    status = dut.status
    return PeState(ctx.get(status.state)), FaultCause(ctx.get(status.cause)), ctx.get(status.pc)


@pytest.mark.parametrize("parameters", [0, 0xFFFF, 0x1_0000, 1 << 63])
def test_a_parameter_that_is_no_address_faults_on_narrow_registers_alone(simulate, parameters):
    for config in (NARROW, WIDE):
        dut = Sequencer(config)

        async def bench(ctx, dut=dut, config=config):
            value = await _launch(ctx, dut, parameters)
            fits = not config.narrow or parameters < 1 << config.address_bits
            assert ctx.get(dut.run) == fits
            if fits:
                assert value == parameters
                ctx.set(dut.halt, 1)
                await ctx.tick()
                assert (await _end(ctx, dut))[0] is PeState.HALTED
            else:
                expected = PeState.FAULTED, FaultCause.REGISTER_RANGE, 0
                assert await _end(ctx, dut) == expected
                # The next launch is none the worse for it.
                await _launch(ctx, dut, 12)
                assert ctx.get(dut.run)

        simulate(dut, bench)


@pytest.mark.parametrize("ends", ["later", "halt before", "halt", "stop"])
@pytest.mark.parametrize(
    ("events", "cause"),
    [
        (("unfit",), FaultCause.REGISTER_RANGE),
        (("error",), FaultCause.MEMORY_ERROR),
        (("unfit", "error"), FaultCause.MEMORY_ERROR),
    ],
)
def test_what_loads_bring_stops_the_engine(simulate, events, cause, ends):
    """Whether the program goes on, ended before, or ends in the very cycle of the first event."""
    dut = Sequencer(NARROW)

    async def bench(ctx):
        await _launch(ctx, dut, 0)
        ctx.set(dut.done, 0)
        if ends == "halt before":
            ctx.set(dut.halt, 1)
            await ctx.tick()
            ctx.set(dut.halt, 0)
        elif ends == "stop":
            ctx.set(dut.stop, 1)
            await ctx.tick()
        elif ends == "halt":
            ctx.set(dut.halt, 1)
        for event in events:
            ctx.set(getattr(dut, event), 1)
            await ctx.tick()
            ctx.set(getattr(dut, event), 0)
            ctx.set(dut.halt, 0)
            assert not ctx.get(dut.run)
            assert ctx.get(dut.drop)
        await ctx.tick()
        ctx.set(dut.done, 1)
        assert await _end(ctx, dut) == (PeState.FAULTED, cause, WAITING)

    simulate(dut, bench)
