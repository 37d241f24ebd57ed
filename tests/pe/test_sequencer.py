"""How a launch and its faults end, at full width and with narrow registers."""

import pytest

from isa.faults import FaultCause
from pe.config import PeConfig
from pe.interface import PeState
from pe.sequencer import Sequencer

NARROW = PeConfig(register_width=20, address_bits=16, registers=8, counters=False)
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
        (("overflow",), FaultCause.REGISTER_RANGE),
        (("error",), FaultCause.MEMORY_ERROR),
        (("overflow", "error"), FaultCause.MEMORY_ERROR),
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


async def _run_with_errors(ctx, dut, fault, errors, cycles=6):
    """Launch, let the program fault in cycle ``fault`` of its run, and answer with an error in the
    cycles ``errors``; whether a memory error was reported in each cycle of the run."""
    await _launch(ctx, dut, 0)
    ctx.set(dut.done, 0)
    seen = []
    for cycle in range(cycles):
        ctx.set(dut.cause, FaultCause.PC_OUT_OF_PROGRAM if cycle == fault else FaultCause.NONE)
        ctx.set(dut.pc, 3)
        ctx.set(dut.error, cycle in errors)
        await ctx.tick()
        seen.append(ctx.get(dut.status.memory_error))
    ctx.set(dut.error, 0)
    ctx.set(dut.done, 1)
    return seen


@pytest.mark.parametrize("config", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("errors", [(), (0,), (1,), (2,), (3,), (5,), (0, 4)])
def test_a_memory_error_is_reported_beside_another_fault(simulate, config, errors):
    """Before the fault, in its cycle, and until the last access is complete; and until the next
    launch."""
    dut = Sequencer(config)
    fault = 1

    async def bench(ctx):
        for _ in range(2):
            seen = await _run_with_errors(ctx, dut, fault, errors)
            assert seen == [any(error <= cycle for error in errors) for cycle in range(6)]
            state, cause, pc = await _end(ctx, dut)
            assert state is PeState.FAULTED
            if 0 in errors:
                # The program stops at what came first or with it.
                assert cause in (FaultCause.PC_OUT_OF_PROGRAM, FaultCause.MEMORY_ERROR)
            else:
                assert (cause, pc) == (FaultCause.PC_OUT_OF_PROGRAM, 3)
            await ctx.tick().repeat(3)
            assert ctx.get(dut.status.memory_error) == bool(errors)
        # A launch forgets it, from the first cycle on.
        ctx.set(dut.launch.valid, 1)
        await ctx.tick()
        ctx.set(dut.launch.valid, 0)
        assert ctx.get(dut.status.state) == PeState.RUNNING
        assert not ctx.get(dut.status.memory_error)
        while ctx.get(dut.clear):
            await ctx.tick()
        ctx.set(dut.halt, 1)
        await ctx.tick()
        assert (await _end(ctx, dut))[:2] == (PeState.HALTED, FaultCause.NONE)
        assert not ctx.get(dut.status.memory_error)

    simulate(dut, bench)


@pytest.mark.parametrize("ends", ["halt", "stop"])
@pytest.mark.parametrize("config", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_memory_error_after_the_end_is_reported_and_a_value_too_large_is_none(
    simulate, config, ends
):
    dut = Sequencer(config)

    async def bench(ctx):
        for event, cause in (
            ("error", FaultCause.MEMORY_ERROR),
            ("overflow", FaultCause.REGISTER_RANGE),
        ):
            if event == "overflow" and not config.narrow:
                continue
            await _launch(ctx, dut, 0)
            ctx.set(dut.done, 0)
            ctx.set(getattr(dut, ends), 1)
            await ctx.tick().repeat(2)
            ctx.set(dut.halt, 0)
            ctx.set(dut.stop, 0)
            ctx.set(getattr(dut, event), 1)
            await ctx.tick()
            ctx.set(getattr(dut, event), 0)
            ctx.set(dut.done, 1)
            assert await _end(ctx, dut) == (PeState.FAULTED, cause, WAITING)
            assert ctx.get(dut.status.memory_error) == (event == "error")

    simulate(dut, bench)
