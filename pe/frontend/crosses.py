"""Bins of the crosses of instructions with what they meet, for functional coverage (hdl.lines).

Nothing of this is in the hardware: without ``VIP_COVERAGE`` the functions do nothing. An
instruction is a row of the table, with its width.

- At operands, each instruction that goes on: nothing delayed it; it waited for a loaded register;
  or it took the result of the scalar instruction ahead.
- At dispatch, each one that goes to its unit: it waited for nothing, for a range in transfer, for a
  free entry of the array range check, or for its unit. For the vector unit, also where its result
  lies: apart from both sources, exactly on one, or overlapping one.
"""

from typing import Any

from amaranth.hdl import Const, Module, Signal, Value

from hdl.lines import cover
from isa.limits import RANGE_BYTES
from isa.table import Instruction, Unit
from pe.capabilities import OPERATION, Capabilities
from pe.config import PeConfig
from support.coverage import coverage_folder

_SHIFT = RANGE_BYTES.bit_length() - 1


def cover_operands(
    m: Module, config: PeConfig, word: Value, fire: Value, waits: Value, passed: Value
) -> None:
    """At operands.

    Parameters:
        word: the instruction, whole. fire: it goes on. waits: it waits for a register.
        passed: it takes the result of the instruction ahead.
    """
    if not coverage_folder():
        return
    loads = bool(Capabilities.of(config).registers.loads)
    waited = Signal()
    with m.If(fire):
        m.d.sync += waited.eq(0)
    with m.Elif(waits):
        m.d.sync += waited.eq(1)
    for row in config.rows:
        matches = Signal(name=f"operands_{row.key}")
        m.d.comb += matches.eq(fire & ((word & row.mask) == row.match))
        cover(m, f"operands {row.key} none", matches & ~waited & ~passed)
        if loads and (row.reads or row.writes is not None):
            cover(m, f"operands {row.key} register", matches & waited)
        if row.reads:
            cover(m, f"operands {row.key} passed", matches & passed)


def cover_dispatch(
    m: Module, config: PeConfig, instruction: Any, starts: Value, leaves: Value, **waits: Value
) -> None:
    """At dispatch.

    Parameters:
        instruction: :func:`pe.frontend.dispatch.dispatched`. starts: it arrives. leaves: it goes to
            its unit.
        waits: for each cause, whether the instruction is waiting for it in this cycle.
    """
    if not coverage_folder():
        return
    caps = Capabilities.of(config)
    waited = {cause: Signal(name=f"waited_{cause}") for cause in waits}
    for cause, signal in waited.items():
        with m.If(starts):
            m.d.sync += signal.eq(0)
        with m.Elif(waits[cause]):
            m.d.sync += signal.eq(1)
    met = {cause: signal | waits[cause] for cause, signal in waited.items()}
    nothing: Value = Const(1, 1)
    for value in met.values():
        nothing = nothing & ~value
    met["none"] = nothing
    met = {cause: _named(m, f"met_{cause}", value) for cause, value in met.items()}
    target, *sources = instruction.operands.places
    same: Value = Const(0, 1)
    partial: Value = Const(0, 1)
    for number, source in enumerate(sources, 1):
        overlaps = instruction.used[number] & instruction.used[0]
        overlaps &= (source.start >> _SHIFT) < target.end
        overlaps &= (target.start >> _SHIFT) < source.end
        same |= overlaps & (source.start == target.start)
        partial |= overlaps & (source.start != target.start)
    places = {"apart": ~same & ~partial, "same": same, "overlapping": partial}
    places = {place: _named(m, f"lies_{place}", value) for place, value in places.items()}
    for row in config.rows:
        if row.unit not in (Unit.VECTOR, Unit.LOAD_STORE):
            continue
        matches = Signal(name=f"dispatch_{row.key}")
        m.d.comb += matches.eq(leaves & _matches(row, instruction, caps))
        for cause, value in met.items():
            if row.unit is Unit.VECTOR:
                if cause != "full":
                    for place, condition in places.items():
                        cover(m, f"dispatch {row.key} {cause} {place}", matches & value & condition)
            elif cause in ("none", "unit") or "reg" not in row.key:
                cover(m, f"dispatch {row.key} {cause}", matches & value)


def _matches(row: Instruction, instruction: Any, caps: Capabilities) -> Value:
    """Whether ``instruction`` is one of ``row``."""
    found: Value = Const(1, 1)
    if caps.vector and caps.memory:
        found = instruction.vector == (row.unit is Unit.VECTOR)
    for name, packing in caps.operation.items():
        field = OPERATION[name]
        code = packing.code(row.match >> field.low & ((1 << field.bits) - 1))
        found = found & (Value.cast(instruction[name]) == code)
    return found


def _named(m: Module, name: str, value: Value) -> Signal:
    signal = Signal(name=name)
    m.d.comb += signal.eq(value)
    return signal
