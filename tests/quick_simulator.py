"""Amaranth's simulator, with less work for what stays the same.

Of the registers and wires that a process drives, most keep their value in most cycles, but its
code calls a method for each, and looks each up in a list. With :func:`install` the code compares
first, and has what it reads and drives as local variables. Testbenches, too, mostly set what is so
already: then no process is asked whether it has to run. A signal is looked up by its identity.
Expressions, flipped interfaces and layouts keep what they have answered once, and constants of a
layout are packed by its offsets.
"""

import re
from collections.abc import Callable
from typing import Any

from amaranth.hdl import Const, ShapeCastable, Signal
from amaranth.hdl._ast import Concat, Operator
from amaranth.lib import data
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
_COMMIT = pysim._PyEngineState.commit
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
    if type(expression) is data.View and type(value) is dict:
        value = expression.shape().const(value).as_bits()
        expression = expression.as_value()
    if type(expression) is Signal and isinstance(value, int):
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
