"""Amaranth's simulator with quick processes."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.sim import Simulator, _pyrtl
from amaranth.sim.pysim import _PySignalState

from tests.quick_simulator import _FLUSH, quick


def test_what_stays_is_compared_and_slots_are_local() -> None:
    code = (
        "def run():\n    next_7 = slots[7].next\n    next_7 = slots[12].curr\n"
        "    slots[7].update(next_7, 255)\n    slots[3].write(0, 1, 2)\n"
    )
    assert quick(code) == (
        "def run(slot_7=slots[7], slot_12=slots[12], slot_3=slots[3]):\n"
        "    next_7 = slot_7.next\n    next_7 = slot_12.curr\n"
        "    if slot_7.next != next_7: slot_7.update(next_7, 255)\n    slot_3.write(0, 1, 2)\n"
    )
    assert quick("slots[7].update(next_7)\n") == "slots[7].update(next_7)\n"


def _history() -> list[tuple[int, ...]]:
    """Of signed and unsigned registers, one of which two domains drive."""
    m = Module()
    count, signed, shared, wire = Signal(4), Signal(range(-8, 8)), Signal(8), Signal(8)
    m.d.sync += [count.eq(count + 3), signed.eq(signed - 5), shared[:4].eq(count)]
    m.d.comb += [shared[4:].eq(count ^ signed), wire.eq(Cat(count, shared))]
    values = []

    async def bench(ctx) -> None:
        for _ in range(50):
            await ctx.tick()
            values.append(tuple(ctx.get(each) for each in (count, signed, shared, wire)))

    simulator = Simulator(m)
    simulator.add_clock(1e-9)
    simulator.add_testbench(bench)
    simulator.run()
    return values


def test_a_simulation_is_the_same_with_fewer_calls(monkeypatch) -> None:
    calls = []
    update = _PySignalState.update
    monkeypatch.setattr(
        _PySignalState, "update", lambda *arguments: calls.append(0) or update(*arguments)
    )
    quickly, fewer = _history(), len(calls)
    monkeypatch.setattr(_pyrtl._PythonEmitter, "flush", _FLUSH)
    assert _history() == quickly
    assert len(set(quickly)) > 10
    assert fewer < len(calls) - fewer
