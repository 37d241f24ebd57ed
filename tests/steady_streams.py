"""What a stream offers stays until it is accepted: checked of all components of a simulation."""

from typing import Any

from amaranth.hdl import Assert, Cat, Elaboratable, Fragment, Module, Signal, Value
from amaranth.lib import data, wiring

from hdl.crossing import StreamCrossing
from memory.controller.request_decoder import RequestDecoder
from memory.crossing import MemoryCrossing
from pe.frontend.issue import Issue
from pe.frontend.operands import Operands
from pe.lsu.history import History
from pe.lsu.lowering import Lowering

_AXI = ("aw", "w", "b", "ar", "r")
#: The streams of a crossing of memory ports are those of its two crossings, each of another clock.
#: Stages of an engine discard the instruction that they offer when the program ends or branches.
_UNCHECKED = (MemoryCrossing, Operands, Issue)
#: Members of payloads that may change. A piece of a load has those of the command behind it that a
#: load to the scratchpad does not need; a read needs no slot for words to write, and a transaction
#: has the time of the cycle in which it is taken.
_CHANGING = {
    Lowering: {"width", "index", "value", "bytes"},
    History: {"width", "index", "value", "bytes"},
    RequestDecoder: {"slot", "arrival"},
}


def with_checks(dut: Elaboratable) -> Fragment:
    """``dut`` for Amaranth's simulator, with checks of its streams.

    Every stream or channel of AXI that it or a part of it (:func:`hdl.emission.shared_instance`)
    offers is checked at each edge of its clock: after a cycle with ``valid`` and without ``ready``
    come ``valid`` and the same payload. Otherwise the simulation ends with an ``AssertionError``.
    """
    platform = _Platform()
    checked = platform.instance(dut) if isinstance(dut, wiring.Component) else dut
    return Fragment.get(checked, platform)


class _Platform:
    def instance(self, component: "wiring.Component[Any]") -> Elaboratable:
        return _Checked(component)


class _Checked(Elaboratable):
    def __init__(self, component: "wiring.Component[Any]") -> None:
        self._component = component

    def elaborate(self, platform: object) -> Elaboratable:
        component = self._component
        offered = {} if isinstance(component, _UNCHECKED) else streams(component)
        if not offered:
            return component
        m = Module()
        m.submodules.checked = component
        domain = component.target if isinstance(component, StreamCrossing) else "sync"
        for name, (valid, ready, payload) in offered.items():
            waits, before = (
                Signal(name=f"{name}_waits"),
                Signal(len(payload), name=f"{name}_before"),
            )
            m.d[domain] += [waits.eq(valid & ~ready), before.eq(payload)]
            steady = ~waits | (valid & (payload == before))
            what = f"{type(component).__name__}: {name} changed before it was taken"
            m.d[domain] += Assert(steady, what)
        return m


def streams(
    component: "wiring.Component[Any]", flow: wiring.Flow = wiring.Out
) -> dict[str, tuple[Value, Value, Value]]:
    """Valid, ready and payload of each stream, or channel of AXI, that ``component`` offers, or, if
    ``flow`` is In, takes."""
    outputs: dict[str, Value] = {}
    inputs: dict[str, Value] = {}
    payloads: dict[str, Any] = {}
    for path, member, signal in component.signature.flatten(component):
        names = outputs if member.flow == flow else inputs
        name = "__".join(map(str, path))
        names[name], payloads[name] = Value.cast(signal), signal
    found = {}
    for name, valid in outputs.items():
        stem = name.removesuffix("valid")
        if stem == name or f"{stem}ready" not in inputs:
            continue
        label, ready = stem.strip("_"), inputs[f"{stem}ready"]
        if f"{stem}payload" in outputs:
            changing = _CHANGING.get(type(component), set())
            payload = Cat(_members(payloads[f"{stem}payload"], changing))
            found[label] = (valid, ready, payload)
        elif stem.rpartition("__")[2] in _AXI:
            channel = [value for other, value in outputs.items() if other.startswith(stem)]
            found[label] = (valid, ready, Cat(channel))
    return found


def _members(payload: Any, without: set[str]) -> list[Value]:
    """The parts of ``payload`` whose names are not among ``without``."""
    if not isinstance(payload, data.View) or not isinstance(payload.shape(), data.StructLayout):
        return [Value.cast(payload)]
    names = [name for name, _ in payload.shape() if name not in without]
    return [part for name in names for part in _members(payload[name], without)]
