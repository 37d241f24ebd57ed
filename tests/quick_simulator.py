"""Amaranth's simulator, with less work for what stays the same.

Of the registers and wires that a process drives, most keep their value in most cycles, but its
code calls a method for each, and looks each up in a list. With :func:`install` the code compares
first, and has what it reads and drives as local variables. What changes names the processes that
have to run: no other is asked. What a testbench sets goes through the circuit when the testbench
reads something or waits, once for all that was set until then; before a signal is set again, and
where it is a clock, at once. The same code is compiled once. A signal is looked up by its identity.
Expressions, flipped interfaces and layouts keep what they have answered once, and constants of a
layout are packed by its offsets.
"""

import builtins
from collections.abc import Callable
from functools import lru_cache
from heapq import heappop, heappush
from typing import Any

from amaranth.hdl import Const, ShapeCastable, Signal
from amaranth.hdl._ast import Concat, Operator
from amaranth.lib import data
from amaranth.lib.wiring import FlippedInterface
from amaranth.sim import Simulator, _async, _pyrtl, pysim

from tests.quick_processes import quick

#: Whether simulators of this process are quick.
installed = False


def install() -> None:
    """Let all simulators of this process be quick."""
    global installed
    installed = True
    _pyrtl._FragmentCompiler.__call__ = _compile
    _pyrtl.compile = lru_cache(4096)(builtins.compile)
    _pyrtl.PyRTLProcess = Process
    wakers: dict[str, Callable[..., Any]] = {
        "comb_waker": lambda process: None,
        "memory_waker": lambda process: None,
        "edge_waker": lambda process, polarity: (process, polarity),
    }
    for name, waker in wakers.items():
        setattr(_pyrtl, name, waker)
    pysim._PySignalState = SignalState
    pysim._PyMemoryState = MemoryState
    pysim._PyEngineState.get_signal = _get_signal
    pysim.PySimEngine.__init__ = _begin
    pysim.PySimEngine.step_design = _step_design
    pysim.PySimEngine.advance = _advance
    pysim.PySimEngine.add_trigger_combination = _add_trigger
    _async.TestbenchContext.set = _set
    _async.TestbenchContext.get = _get
    pysim.PySimEngine.get_value = _value
    FlippedInterface.__getattr__ = _attribute
    for kind in (Operator, Concat):
        kind.shape = _once(kind.shape)
    data.Field.width = property(_once(data.Field.width.fget))
    data.StructLayout.size = property(_once(data.StructLayout.size.fget))
    data.Layout.const = _const
    data.Const.__init__ = _initialise


_FLUSH = _pyrtl._PythonEmitter.flush
_GET_SIGNAL = pysim._PyEngineState.get_signal
_COMPILE = _pyrtl._FragmentCompiler.__call__
_BEGIN = pysim.PySimEngine.__init__
_ADD_TRIGGER = pysim.PySimEngine.add_trigger_combination
_SET = _async.TestbenchContext.set
_VALUE = pysim.PySimEngine.get_value
_GET = _async.TestbenchContext.get
_ATTRIBUTE = FlippedInterface.__getattr__
_CONST = data.Layout.const
_INITIALISE = data.Const.__init__


def _get_signal(state: Any, signal: Signal) -> int:
    # The slot keeps the signal, so no other gets its identity.
    try:
        return state.places[id(signal)]
    except AttributeError:
        state.places = {}
    except KeyError:
        pass
    place = _GET_SIGNAL(state, signal)
    state.places[id(signal)] = place
    return place


class Process(_pyrtl.PyRTLProcess):
    """A process of wires has to run if it is ``runnable``, that of a clock at its next edge."""

    __slots__ = ("number",)


class SignalState(pysim._PySignalState):
    """A signal, the processes of wires and registers that read it, and those that run when it
    becomes 0 or 1."""

    __slots__ = ("followers", "of_edges", "registers")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.followers: list[Any] = []
        self.registers: list[Any] = []
        self.of_edges: tuple[list[Any], list[Any]] | None = None

    def add_waker(self, waker: Any) -> None:
        if type(waker) is tuple:
            self.of_edges = self.of_edges or ([], [])
            self.of_edges[waker[1]].append(waker[0])
        elif waker is not None:
            super().add_waker(waker)


class MemoryState(pysim._PyMemoryState):
    """A memory and the processes that read or write it."""

    __slots__ = ("followers", "registers")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.followers: list[Any] = []
        self.registers: list[Any] = []

    def add_waker(self, waker: Any) -> None:
        assert waker is None

    def read(self, addr: int) -> int:
        return self.data[addr] if addr < len(self.data) else 0

    def commit(self) -> bool:
        data = self.data
        changed = any(data[address] != value for address, value in self.write_queue.items())
        for address, value in self.write_queue.items():
            data[address] = value
        self.write_queue.clear()
        return changed


def _compile(compiler: Any, fragment: Any) -> Any:
    slots = compiler.state.slots

    def part(number: int, mask: int) -> bool:
        bits = (1 << len(slots[number].signal)) - 1
        return mask & bits != bits

    before = _pyrtl._PythonEmitter.flush
    _pyrtl._PythonEmitter.flush = lambda *arguments: quick(_FLUSH(*arguments), part)
    try:
        return _COMPILE(compiler, fragment)
    finally:
        _pyrtl._PythonEmitter.flush = before


class _Schedule:
    """Processes of an engine, and which of them have to run.

    Those of wires run one after the other, each before those that read its wires where that is
    possible; those of a clock together, if something that they read has changed since they ran.
    """

    def __init__(self, processes: set[Any]) -> None:
        own = [each for each in processes if type(each) is Process]
        for process in own:
            for slot in process.run.reads:
                (slot.followers if process.is_comb else slot.registers).append(process)
        self.registers = [process for process in own if not process.is_comb]
        self.wires = _in_order([process for process in own if process.is_comb])
        for number, process in enumerate(self.wires):
            process.number = number
        self.renew()

    def renew(self) -> None:
        """All processes have to run."""
        for process in (*self.wires, *self.registers):
            process.runnable = True
        #: Numbers of processes of wires, as a heap, and processes of a clock at its edge.
        self.numbers = list(range(len(self.wires)))
        self.clocked: list[Any] = []
        #: What changed since the simulator stepped, if it writes waveforms.
        self.changed: set[Any] | None = None

    def commit(self, pending: set[Any]) -> None:
        numbers = self.numbers
        for each in pending:
            if type(each) is SignalState:
                value = each.next
                if each.curr == value:
                    continue
                if each.of_edges:
                    self.clocked += [
                        process for process in each.of_edges[value] if process.runnable
                    ]
                if each.wakers:
                    pysim._run_wakers(each.wakers, each.curr, value)
                each.curr = value
            elif not each.commit():
                continue
            for process in each.registers:
                process.runnable = True
            for process in each.followers:
                if not process.runnable:
                    process.runnable = True
                    heappush(numbers, process.number)
        if self.changed is not None:
            self.changed |= pending
        pending.clear()


def _in_order(processes: list[Any]) -> list[Any]:
    """Each before those that read what it drives, but where that goes round."""
    order: list[Any] = []
    known: set[int] = set()
    for first in processes:
        stack = [(first, iter([first]))]
        while stack:
            process, readers = stack[-1]
            for reader in readers:
                if id(reader) not in known:
                    known.add(id(reader))
                    follow = (each for slot in reader.run.drives for each in slot.followers)
                    stack.append((reader, follow))
                    break
            else:
                stack.pop()
                if stack:
                    order.append(process)
    return order[::-1]


def _begin(engine: Any, design: Any) -> None:
    _BEGIN(engine, design)
    engine.schedule = _Schedule(engine._processes)
    #: Those of clocks are added.
    engine._processes = set()


def _step_design(engine: Any) -> None:
    pending, triggers, others = engine._state.pending, engine._active_triggers, engine._processes
    schedule = engine.schedule
    numbers, wires = schedule.numbers, schedule.wires
    schedule.changed = set() if engine._vcd_writers else None
    busy = True
    while busy:
        for trigger in triggers:
            trigger.run()
        triggers.clear()
        clocked, schedule.clocked = schedule.clocked, []
        for process in clocked:
            process.runnable = False
            process.run()
        for process in others:
            if process.runnable:
                process.runnable = False
                process.run()
        if pending:
            schedule.commit(pending)
        while numbers:
            process = wires[heappop(numbers)]
            process.runnable = False
            process.run()
            if pending:
                schedule.commit(pending)
        busy = bool(schedule.clocked or triggers) or any(each.runnable for each in others)
    for writer in engine._vcd_writers:
        for each in schedule.changed:
            if type(each) is SignalState:
                writer.update_signal(engine.now, each.signal)


def _advance(engine: Any) -> bool:
    engine.step_design()
    converged = False
    while not converged:
        converged = True
        for testbench in engine._testbenches:
            if testbench.runnable:
                testbench.runnable = False
                testbench.run()
                _settle(engine)
                converged = False
    engine._state.timeline.advance()
    return any(each.critical for each in (*engine._testbenches, *engine._processes))


def renew(simulator: Simulator) -> None:
    """Let ``simulator`` begin anew, without clocks and testbenches, as one of the same design."""
    engine: Any = simulator._engine
    engine._testbenches.clear()
    engine._processes.clear()
    engine._active_triggers.clear()
    engine._state.reset()
    for slot in engine._state.slots:
        slot.wakers.clear()
    engine.schedule.renew()
    simulator._clocked.clear()
    simulator._running = False


def _settle(engine: Any) -> None:
    if engine._state.pending:
        engine.step_design()


def _add_trigger(engine: Any, *arguments: Any, **options: Any) -> Any:
    # What was set before is no event to wait for.
    _settle(engine)
    return _ADD_TRIGGER(engine, *arguments, **options)


def _set(context: Any, expression: Any, value: Any) -> None:
    engine = context._engine
    state = engine._state
    slot = None
    if type(expression) is data.View and type(value) is dict:
        value = expression.shape().const(value).as_bits()
        expression = expression.as_value()
    if type(expression) is Signal and isinstance(value, int):
        slot = state.slots[state.get_signal(expression)]
    if slot is None or slot.is_comb:
        # Which refuses wires.
        _settle(engine)
        _async.ProcessContext.set(context, expression, value)
        _settle(engine)
        return
    value &= (1 << expression._width) - 1
    if expression._signed and value >> (expression._width - 1):
        value |= -1 << expression._width
    if slot.next == value:
        return
    at_once = slot.of_edges or slot.wakers
    if at_once or slot.next != slot.curr:
        _settle(engine)
    slot.update(value)
    if at_once:
        _settle(engine)


def _get(context: Any, expression: Any) -> Any:
    _settle(context._engine)
    if type(expression) is Signal:
        return _value(context._engine, expression)
    return _GET(context, expression)


def _value(engine: Any, expression: Any) -> int:
    if type(expression) is Signal:
        state = engine._state
        return state.slots[state.get_signal(expression)].curr
    return _VALUE(engine, expression)


def _const(layout: Any, init: Any) -> Any:
    if type(init) is not dict or type(layout) is not data.StructLayout:
        return _CONST(layout, init)
    try:
        places = layout._places
    except AttributeError:
        places = layout._places = {
            name: (
                field.shape if isinstance(field.shape, ShapeCastable) else None,
                field.offset,
                (1 << field.width) - 1,
            )
            for name, field in layout
        }
    bits = 0
    for name, value in init.items():
        if name not in places:
            return _CONST(layout, init)
        shape, offset, mask = places[name]
        if shape is not None:
            value = Const(value, shape)
        if type(value) is not int:
            value = Const.cast(value).value
        bits |= (value & mask) << offset
    return data.Const(layout, bits)


def _initialise(constant: Any, layout: Any, target: Any) -> None:
    width = getattr(layout, "_width", None)
    if width is not None and type(target) is int and 0 <= target < 1 << width:
        constant._Const__orig_layout = constant._Const__layout = layout
        constant._Const__target = target
    else:
        # Which refuses targets that are too wide and layouts with names that hide methods.
        _INITIALISE(constant, layout, target)
        if type(layout) is data.StructLayout:
            layout._width = layout.size


def _attribute(interface: Any, name: str) -> Any:
    value = _ATTRIBUTE(interface, name)
    if name in interface.signature.members:
        object.__setattr__(interface, name, value)
    return value


def _once(shape: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def known(value: Any) -> Any:
        try:
            return value._known_shape
        except AttributeError:
            value._known_shape = shape(value)
            return value._known_shape

    return known
