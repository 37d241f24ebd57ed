"""Amaranth's simulator with quick processes."""

import subprocess
import sys
from pathlib import Path

import pytest
from amaranth.hdl import Cat, Const, DriverConflict, Module, Signal, signed
from amaranth.lib import data
from amaranth.lib.enum import Enum
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, Signature, flipped
from amaranth.sim import Simulator, _async
from amaranth.sim.pysim import PySimEngine

from tests import quick_simulator
from tests.executed_lines import simulator_of
from tests.quick_processes import quick
from tests.quick_simulator import _CONST

ROOT = Path(__file__).parents[1]
HEAD = "def run(slot_7=slots[7], slot_12=slots[12], slot_3=slots[3]):\n"


def test_what_stays_is_compared_and_slots_are_local() -> None:
    code = (
        "def run():\n    next_7 = slots[7].next\n    next_7 = slots[12].curr\n"
        "    slots[3].write(0, 1, en_2)\n    slots[7].update(next_7, 255)\n"
    )
    registers = "    next_7 = slot_7.next\n    next_7 = slot_12.curr\n"
    memory = "    if en_2: slot_3.write(0, 1, en_2)\n"
    ends = {
        True: "    if slot_7.next != next_7: slot_7.update(next_7, 255)\n\n",
        False: "    if slot_7.next != next_7: slot_7.next = next_7; slot_7.pending.add(slot_7)\n\n",
    }
    for part, end in ends.items():
        assert quick(code, lambda number, mask, part=part: part) == (
            f"{HEAD}{registers}{memory}{end}run.drives = [slots[7]]\n"
            "run.reads = [slots[7], slots[12], slots[3]]\n"
        )
    assert quick("slots[7].update(next_7)\n", lambda *_: False) == "slots[7].update(next_7)\n"


def test_wires_are_read_after_they_are_driven() -> None:
    """But where that goes round, and not what another process drives in part."""
    code = (
        "def run():\n    next_1 = 0\n    next_2 = 5\n    next_3 = 0\n    next_4 = 0\n"
        "    test_0 = slots[2].curr\n    match test_0:\n        case 1:\n"
        "            next_1 = 3 & slots[3].curr\n    next_2 = slots[9].curr\n"
        "    next_3 = slots[4].curr\n    next_4 = slots[3].curr + slots[1].curr\n"
        + "".join(f"    slots[{number}].update(next_{number}, 3)\n" for number in (1, 2, 3, 4))
    )
    whole = quick(code, lambda number, mask: False)
    driven = whole.index("next_2 = slot_9.curr")
    tested = whole.index("test_0 = next_2\n")
    assert driven < tested < whole.index("match test_0:\n        case 1:\n")
    # In the ring of 3 and 4 one is read as it was.
    assert whole.index("next_1 = 3 & slot_3.curr") < whole.index("next_3 = slot_4.curr")
    assert whole.index("next_3 = slot_4.curr") < whole.index("next_4 = next_3 + next_1\n")
    assert "run.reads = [slots[9], slots[3], slots[4]]" in whole
    assert "test_0 = slot_2.curr" in quick(code, lambda number, mask: number == 2)


def _history() -> list[tuple[int, ...]]:
    """Of signed and unsigned registers, one of which two domains drive, of a memory, and of wires
    of two modules that read each other's."""
    m = Module()
    m.submodules.inner = inner = Module()
    m.submodules.memory = memory = Memory(shape=8, depth=4, init=[1, 2, 3])
    write, early, late = memory.write_port(), memory.read_port(domain="comb"), memory.read_port()
    count, signed, shared, wire = Signal(4), Signal(range(-8, 8)), Signal(8), Signal(8)
    down, up, first, given = Signal(8), Signal(8), Signal(8), Signal(8)
    m.d.sync += [count.eq(count + 3), signed.eq(signed - 5), shared[:4].eq(count)]
    m.d.comb += [shared[4:].eq(count ^ signed), wire.eq(Cat(count, shared)), down.eq(first + 1)]
    m.d.comb += [first.eq(wire + given), late.addr.eq(up), early.addr.eq(down >> 1)]
    m.d.comb += [write.addr.eq(down), write.en.eq(up[0]), write.data.eq(up), late.en.eq(down[1])]
    with inner.If(down[0]):
        inner.d.comb += up.eq(down ^ early.data)
    seen = (count, signed, shared, wire, down, up, first, early.data, late.data)
    values = []

    async def bench(ctx) -> None:
        for number in range(50):
            ctx.set(given, number)
            ctx.set(given, number // 2)
            values.append(tuple(ctx.get(each) for each in seen))
            await ctx.tick()
            values.append(tuple(ctx.get(each) for each in seen))

    with simulator_of(m) as simulator:
        simulator.add_clock(1e-9)
        simulator.add_testbench(bench)
        simulator.run()
    once = list(values)
    values.clear()
    with simulator_of(m) as simulator:
        simulator.add_clock(1e-9)
        simulator.add_testbench(bench)
        simulator.run()
    assert values == once
    return values


#: What Amaranth's own simulator does, in a process of its own.
PLAIN = """
import contextlib
from amaranth.sim import Simulator
import tests.test_quick_simulator as own
own.simulator_of = contextlib.contextmanager(lambda design: iter([Simulator(design)]))
print(own._history())
"""


def test_a_simulation_is_amaranths() -> None:
    """Also when its simulator begins anew."""
    quickly = _history()
    run = subprocess.run([sys.executable, "-c", PLAIN], capture_output=True, text=True, check=True)
    assert run.stdout == f"{quickly}\n"
    assert len(set(quickly)) > 50


@pytest.mark.slow
@pytest.mark.parametrize("room", ["pe", "memory", "noc", "hdl", "soc"])
def test_hardware_passes_in_amaranths_own_simulator(room: str) -> None:
    command = [sys.executable, "-m", "pytest", "--plain", "-q", "-m", "not slow", f"tests/{room}"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def _steps(values: list[int], monkeypatch: pytest.MonkeyPatch) -> tuple[list[tuple[int, ...]], int]:
    """What a signed register, a word of a memory and a wire are after each of ``values`` is set,
    and how often all processes were asked."""
    m = Module()
    m.submodules.memory = memory = Memory(shape=8, depth=2, init=[])
    register, wire = Signal(signed(4)), Signal(8)
    m.d.comb += wire.eq(register + 1)
    seen = []

    async def bench(ctx) -> None:
        for value in values:
            ctx.set(register, value)
            ctx.set(memory.data[1], value & 3)
            seen.append((ctx.get(register), ctx.get(memory.data[1]), ctx.get(wire)))
        with pytest.raises(DriverConflict):
            ctx.set(wire, 1)

    calls = []
    step = PySimEngine.step_design
    with monkeypatch.context() as patch:
        patch.setattr(PySimEngine, "step_design", lambda engine: calls.append(0) or step(engine))
        simulator = Simulator(m)
        simulator.add_testbench(bench)
        simulator.run()
    return seen, len(calls)


def test_setting_what_is_so_already_runs_nothing(monkeypatch) -> None:
    values = [3, 3, 3, -2, 14, 14, 0, 0, 0, 0]
    quickly, fewer = _steps(values, monkeypatch)
    assert quickly[:5] == [(3, 3, 4), (3, 3, 4), (3, 3, 4), (-2, 2, 255), (-2, 2, 255)]
    monkeypatch.setattr(_async.TestbenchContext, "set", quick_simulator._SET)
    assert _steps(values, monkeypatch) == (quickly, 1 + 2 * len(values))
    # At the start, for each write of the memory, and for three new values of the register.
    assert fewer == 1 + len(values) + 3


def test_a_flipped_interface_gives_the_same_members() -> None:
    plain = Signature({"a": Out(3), "b": Out(Signature({"c": In(2)}))}).create()
    interface = flipped(plain)
    for _ in range(2):
        assert interface.a is plain.a
        assert interface.b == flipped(plain.b)
        assert interface.b.c is plain.b.c


class Kind(Enum, shape=2):
    FIRST = 0
    LAST = 3


PAIR = data.StructLayout({"low": 3, "high": signed(4)})
MIXED = data.StructLayout(
    {"kind": Kind, "pair": PAIR, "words": data.ArrayLayout(3, 2), "flag": 1, "rest": range(-4, 9)}
)


@pytest.mark.parametrize(
    "init",
    [
        {},
        {"kind": Kind.LAST, "pair": {"low": 9, "high": -3}, "rest": -4},
        {"pair": PAIR.const({"high": 5}), "words": [7, 9], "flag": True},
        {"rest": Const(6), "flag": 3, "kind": 3, "words": [1]},
    ],
)
def test_constants_of_a_layout_are_amaranths(init: dict[str, object]) -> None:
    for layout in (MIXED, data.StructLayout(MIXED.members)):
        assert layout.const(init).as_bits() == _CONST(layout, init).as_bits()
        assert layout.const(init).pair.high == _CONST(layout, init).pair.high


def test_constants_that_amaranth_refuses() -> None:
    layout = data.StructLayout({"one": 4})
    for _ in range(2):
        with pytest.raises(ValueError, match="'other', which is not"):
            layout.const({"one": 1, "other": 1})
        for target in (16, -1):
            with pytest.raises(ValueError, match="does not fit in 4 bit"):
                layout.from_bits(target)
        assert layout.from_bits(15).one == 15
    with pytest.warns(data.SyntaxWarning, match="shadowed by the attribute"):
        data.StructLayout({"shape": 4}).from_bits(0)


def test_a_view_is_set_and_read() -> None:
    """A register, a wire, which is refused, and part of a register."""
    m = Module()
    register, wire = Signal(MIXED), Signal(PAIR)
    m.d.comb += wire.eq(register.pair)
    seen = []

    async def bench(ctx) -> None:
        ctx.set(register, {"kind": Kind.LAST, "pair": {"low": 2, "high": -1}})
        seen.append((ctx.get(register).pair.high, ctx.get(wire).low, ctx.get(register.kind)))
        ctx.set(register.pair, {"low": 5})
        seen.append((ctx.get(register).as_bits(), ctx.get(wire).as_bits()))
        with pytest.raises(DriverConflict):
            ctx.set(wire, {"low": 1})

    simulator = Simulator(m)
    simulator.add_testbench(bench)
    simulator.run()
    assert seen == [(-1, 2, Kind.LAST), (3 + (5 << 2), 5)]
