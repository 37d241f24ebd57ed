"""Amaranth's simulator, with less work for what stays the same.

Of the registers and wires that a process drives, most keep their value in most cycles, but its
code calls a method for each, and looks each up in a list. With :func:`install` the code compares
first, and has what it reads and drives as local variables. Testbenches, too, mostly set what is so
already: then no process is asked whether it has to run. A signal is looked up by its identity, and
expressions and flipped interfaces keep what they have answered once.
"""

import re
from collections.abc import Callable
from typing import Any

from amaranth.hdl import Signal
from amaranth.hdl._ast import Concat, Operator
from amaranth.lib.wiring import FlippedInterface
from amaranth.sim import _async, _pyrtl, pysim

_HEAD = "def run():"
_UPDATE = re.compile(r"^( *)(slots\[\d+\])(\.update\((next_\d+), -?\d+\))$", re.MULTILINE)
_SLOT = re.compile(r"\bslots\[(\d+)\]")


def quick(code: str) -> str:
    """The code of a process with the same effects; other code as it is."""
    if not code.startswith(_HEAD):
        return code
    code = _UPDATE.sub(r"\1if \2.next != \4: \2\3", code)
    numbers = dict.fromkeys(_SLOT.findall(code))
    slots = ", ".join(f"slot_{number}=slots[{number}]" for number in numbers)
    return f"def run({slots}):" + _SLOT.sub(r"slot_\1", code.removeprefix(_HEAD))


def install() -> None:
    """Let all simulators of this process be quick."""
    _pyrtl._PythonEmitter.flush = lambda *arguments: quick(_FLUSH(*arguments))
    pysim._PyEngineState.get_signal = _get_signal
    pysim._PyEngineState.commit = _commit
    _async.TestbenchContext.set = _set
    _async.TestbenchContext.get = _get
    FlippedInterface.__getattr__ = _attribute
    for kind in (Operator, Concat):
        kind.shape = _once(kind.shape)


_FLUSH = _pyrtl._PythonEmitter.flush
_GET_SIGNAL = pysim._PyEngineState.get_signal
_COMMIT = pysim._PyEngineState.commit
_SET = _async.TestbenchContext.set
_GET = _async.TestbenchContext.get
_ATTRIBUTE = FlippedInterface.__getattr__


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


def _commit(state: Any, changed: Any = None) -> bool:
    if changed is not None:
        return _COMMIT(state, changed)
    converged = True
    for each in state.pending:
        if type(each) is not pysim._PySignalState:
            converged &= not each.commit()
        elif each.curr != each.next:
            if each.wakers:
                pysim._run_wakers(each.wakers, each.curr, each.next)
            each.curr = each.next
            converged = False
    state.pending.clear()
    return converged


def _set(context: Any, expression: Any, value: Any) -> None:
    engine = context._engine
    state = engine._state
    slot = None
    if type(expression) is Signal and type(value) is int:
        slot = state.slots[state.get_signal(expression)]
    if slot is None or slot.is_comb:
        # Which refuses wires.
        _async.ProcessContext.set(context, expression, value)
    else:
        value &= (1 << expression._width) - 1
        if expression._signed and value >> (expression._width - 1):
            value |= -1 << expression._width
        slot.update(value)
    if state.pending:
        engine.step_design()


def _get(context: Any, expression: Any) -> Any:
    if type(expression) is Signal:
        state = context._engine._state
        return state.slots[state.get_signal(expression)].curr
    return _GET(context, expression)


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
