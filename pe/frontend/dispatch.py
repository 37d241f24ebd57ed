"""Dispatch: the stage after issue, where vector and load-store instructions wait for their turn."""

from typing import Any

from amaranth.hdl import Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hdl.bundle import Bundle
from hdl.component import Component, Probes
from isa.faults import FaultCause
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.interface import PeCounter
from pe.lsu.ports import COLUMN_BITS, load_store_command
from pe.lsu.workspace import workspace_bounds
from pe.ports import vector_command

from .arc import (
    RANGES,
    UNIT_BYTES,
    allocation,
    column_count_bits,
    end_unit_bits,
    free_entry,
    overwriting,
    scratchpad_range,
)
from .range_check import byte_bits, cause_of, operand_cause_bits, value_faults

__all__ = ["EVENT_BITS", "Dispatch", "dispatched", "held_instruction", "moved_bytes"]

_UNIT_SHIFT = (UNIT_BYTES - 1).bit_length()
#: Bits of a counter's index.
EVENT_BITS = max(PeCounter).bit_length()


def dispatched(config: PeConfig) -> data.StructLayout:
    """A vector or load-store instruction with its operands' values and the bytes that it touches.

    Members:
        vector: it goes to the vector unit. kind, vertical, reduction, pairs, width: as decoded.
        used: which of the operands A, B and C are scratchpad ranges.
        operands: ``places``, where those start and end (as in
            :func:`pe.frontend.arc.scratchpad_range`), or ``value``, of a register to store.
        settings: ``vector``, vector settings, or ``dram``, the address of a load or store.
        bytes: of a load or store; without counters and workspace only the bits that a place in a
            column has.
        columns: of a load or store. is_empty: it has no bytes. index: register to load.
        faults: :func:`pe.frontend.range_check.value_faults` of its operands. pc: its address.

    Members that no instruction of ``config`` needs have no bits. With a workspace there is also
    ``end``, the DRAM byte behind a load or store.
    """
    caps = Capabilities.of(config)
    command = vector_command(config)
    place = data.StructLayout({"start": config.scratchpad_bits, "end": end_unit_bits(config)})
    lengths = config.counters or config.workspace
    settings = data.StructLayout({name: command[name].shape for name in ("vl", "mr", "fx")})
    return data.StructLayout(
        {
            "vector": int(bool(caps.vector and caps.memory)),
            "kind": caps.kind.shape,
            "vertical": caps.vertical.shape,
            "reduction": caps.reduction.shape,
            "pairs": caps.pairs.shape,
            "width": caps.width.shape,
            "used": RANGES,
            "operands": data.UnionLayout(
                {
                    "places": data.ArrayLayout(place, RANGES),
                    "value": config.register_width if caps.registers.stores else 0,
                }
            ),
            "settings": data.UnionLayout(
                {"vector": settings, "dram": config.address_bits if caps.memory else 0}
            ),
            "bytes": (byte_bits(config) if lengths else COLUMN_BITS) if caps.memory else 0,
            "columns": column_count_bits(config) if caps.transfers else 0,
            "is_empty": int(bool(caps.transfers)),
            "index": config.register_bits if caps.registers.loads else 0,
            "faults": value_faults(config),
            "pc": config.pc_bits,
            **({"end": config.address_bits + 1} if config.workspace else {}),
        }
    )


def held_instruction(config: PeConfig) -> Bundle:
    """State of dispatch that the issue stage needs.

    Members:
        empty: no instruction is held. cause, pc: fault of the held instruction, or ``NONE``, and
            its address.
        stall: :class:`pe.interface.PeCounter` of the held instruction's wait; only with counters.
    """
    return Bundle(empty=1, cause=operand_cause_bits(config), pc=config.pc_bits, stall=EVENT_BITS)


def moved_bytes(config: PeConfig) -> Bundle:
    """``loaded``, ``stored``: bytes that the load or store dispatched in this cycle moves; only
    with counters."""
    return Bundle(loaded=byte_bits(config), stored=byte_bits(config))


class Dispatch(Component):
    """Holds one instruction until no range of it is in transfer and its unit takes it.

    Its ranges are compared in its first cycle here; it goes in the second one at the earliest.

    The held instruction carries its fault, so the issue stage may go on whatever that instruction
    waits for: only a further vector or load-store instruction has to wait. An instruction with a
    fault stays until ``run`` falls.

    Members:
        offer: stream of :func:`dispatched`, in. run: in. drop: in; discard the held instruction:
            it waited for data that could not be loaded.
        empty, cause, pc, stall: :func:`held_instruction`, out.
        ranges: out, and conflict, full, entry: in; allocate, allocated, start, end, columns, store:
            out; see :class:`pe.frontend.arc.Arc`.
        vector: stream of :func:`pe.ports.vector_command`, out.
        load_store: stream of :func:`pe.lsu.ports.load_store_command`, out.
        loaded, stored: :func:`moved_bytes`, out.

    With a workspace also known, window, window_end, image, image_end:
    :func:`pe.lsu.workspace.workspace_bounds`, in. With a load history also overwrites, first_unit,
    end_unit: :func:`pe.frontend.arc.overwriting`, out.
    """

    probes = Probes("conflict", "fire_next", "full", "instruction", "occupied")

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        bounds = workspace_bounds(config).inputs() if config.workspace else {}
        history = overwriting(config).outputs() if config.load_history else {}
        super().__init__(
            {
                "offer": In(stream.Signature(dispatched(config))),
                "run": In(1),
                "drop": In(1),
                "empty": Out(1),
                "cause": Out(operand_cause_bits(config)),
                "pc": Out(config.pc_bits),
                "ranges": Out(scratchpad_range(config)).array(RANGES),
                **free_entry(config).inputs(),
                **allocation(config).outputs(),
                "vector": Out(stream.Signature(vector_command(config))),
                "load_store": Out(stream.Signature(load_store_command(config))),
                "stall": Out(EVENT_BITS),
                **moved_bytes(config).outputs(),
                **bounds,
                **history,
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        caps = Capabilities.of(config)
        occupied = Signal()
        instruction: Any = Signal(dispatched(config), reset_less=True)
        faulty = Signal()
        # Decided a cycle ahead: until this instruction goes, nothing new is in transfer, and a unit
        # that is ready stays so.
        fire_next = Signal()
        conflict = Signal()
        full = Signal()
        entry = Signal.like(self.entry, name="free_entry", reset_less=True)
        m.d.sync += entry.eq(self.entry)
        incoming: Any = self.offer.payload
        is_vector: Value = instruction.vector if caps.memory else Const(1, 1)
        if not caps.vector:
            is_vector = Const(0, 1)
        store, register = caps.is_store(instruction.kind), caps.is_register(instruction.kind)
        # Nothing to transfer: done without the unit.
        is_empty: Value = instruction.is_empty if caps.transfers else Const(0, 1)
        with m.If(fire_next | self.drop | (faulty & ~self.run)):
            m.d.sync += occupied.eq(0)
        with m.If(self.offer.ready):
            m.d.sync += instruction.eq(incoming)
            with m.If(self.offer.valid):
                m.d.sync += occupied.eq(1)
        cause = cause_of(instruction.faults)
        # What a transfer waits for: a store's last word, or the load itself.
        one_arrival = store
        if config.workspace:
            lowered, forbidden = self._workspace(m, instruction, store, register)
            cause = Mux(cause == FaultCause.NONE, Mux(is_vector, FaultCause.NONE, forbidden), cause)
            is_faulty = cause != FaultCause.NONE
            # The load-store unit adds columns to it.
            one_arrival = store | lowered
            m.d.comb += [
                self.load_store.payload.lowered.eq(lowered),
                self.load_store.payload.bytes.eq(instruction.bytes),
            ]
        else:
            is_faulty = instruction.faults.as_value().any()
        m.d.comb += [
            self.offer.ready.eq(~occupied | fire_next),
            self.empty.eq(~occupied),
            faulty.eq(is_faulty),
            self.cause.eq(Mux(occupied, cause, FaultCause.NONE)),
            self.pc.eq(instruction.pc),
        ]
        for number, r in enumerate(self.ranges):
            place = instruction.operands.places[number]
            m.d.comb += [
                r.used.eq(instruction.used[number]),
                r.start.eq(place.start),
                r.end.eq(place.end),
            ]
        m.d.comb += self.ranges[0].writes.eq(is_vector)

        stalled = Signal()
        fire = Signal()
        done = Signal()
        target, source, second = (instruction.operands.places[number] for number in range(RANGES))
        vector, transfer = self.vector.payload, self.load_store.payload
        of_vector, of_register = caps.vector, caps.registers
        width = caps.width.unpack(instruction.width)
        m.d.comb += [
            stalled.eq(occupied & ~fire_next),
            fire.eq(fire_next & ~self.drop),
            self.vector.valid.eq(fire & is_vector),
            vector.kind.eq(of_vector.kind.pack(caps.kind.unpack(instruction.kind))),
            vector.vertical.eq(instruction.vertical),
            vector.reduction.eq(instruction.reduction),
            vector.pairs.eq(instruction.pairs),
            vector.width.eq(of_vector.width.pack(width)),
            vector.result.eq(target.start),
            vector.first.eq(source.start),
            vector.second.eq(second.start),
            vector.vl.eq(instruction.settings.vector.vl),
            vector.mr.eq(instruction.settings.vector.mr),
            vector.fx.eq(instruction.settings.vector.fx),
            done.eq(fire & ~is_vector),
            self.load_store.valid.eq(done & ~is_empty),
            transfer.store.eq(store),
            transfer.register.eq(register),
            transfer.width.eq(of_register.width.pack(width)),
            transfer.dram.eq(instruction.settings.dram),
            transfer.columns.eq(instruction.columns),
            transfer.last.eq(instruction.settings.dram + instruction.bytes - 1),
            transfer.scratchpad.eq(Mux(store, source.start, target.start)),
            transfer.entry.eq(entry),
            transfer.index.eq(instruction.index),
            transfer.value.eq(instruction.operands.value),
            self.allocated.eq(entry),
            self.allocate.eq(self.load_store.valid & ~register),
            self.start.eq(Mux(store, source.start, target.start)),
            self.end.eq(Mux(store, source.end, target.end)),
            self.columns.eq(Mux(one_arrival, 1, instruction.columns)),
            self.store.eq(store),
        ]
        m.d.sync += [
            conflict.eq(stalled & self.conflict),
            full.eq(stalled & self.full),
            fire_next.eq(
                stalled
                & ~faulty
                & ~self.drop
                & Mux(
                    is_vector,
                    self.vector.ready & ~self.conflict,
                    (register | ~(self.conflict | self.full)) & (is_empty | self.load_store.ready),
                )
            ),
        ]
        if config.counters:
            self._count(m, instruction, is_vector, done, (conflict, full))
        if config.load_history:
            m.d.comb += [
                # Of a load or vector instruction; a store has no range A.
                self.overwrites.eq(fire & instruction.used[0]),
                self.first_unit.eq(target.start[_UNIT_SHIFT:]),
                self.end_unit.eq(target.end),
            ]
        return m

    def _workspace(
        self, m: Module, instruction: Any, store: Value, register: Value
    ) -> tuple[Signal, Signal]:
        """Whether a load or store is a load from the window, and the cause that the workspace
        gives to one that it forbids."""
        lowered = Signal()
        forbidden = Signal(operand_cause_bits(self.config))
        start, end = instruction.settings.dram, instruction.end
        in_window = Signal()
        in_image = Signal()
        touches = self.known & (instruction.bytes != 0)
        m.d.comb += [
            in_window.eq(touches & (start < self.window_end) & (self.window < end)),
            in_image.eq(touches & (start < self.image_end) & (self.image < end)),
            lowered.eq(
                in_window & ~store & ~register & (self.window <= start) & (end <= self.window_end)
            ),
        ]
        if self.config.load_history:
            inside = in_image & (self.image <= start) & (end <= self.image_end)
            m.d.comb += self.load_store.payload.recorded.eq(lowered | (inside & ~store & ~register))
        with m.If(store & (in_window | in_image)):
            m.d.comb += forbidden.eq(FaultCause.STORE_TO_WORKSPACE)
        with m.Elif(in_window & ~lowered):
            m.d.comb += forbidden.eq(FaultCause.WORKSPACE_EDGE)
        return lowered, forbidden

    def _count(
        self,
        m: Module,
        instruction: Any,
        is_vector: Value,
        done: Value,
        stalled: tuple[Value, Value],
    ) -> None:
        """Count the bytes of a load or store that is ``done``, and select the stall of the
        ``instruction``: it waits for a range in transfer, or for an entry, if that flag of
        ``waits`` is 1, else for its unit."""
        caps = Capabilities.of(self.config)
        conflict, full = stalled
        store, register = caps.is_store(instruction.kind), caps.is_register(instruction.kind)
        with m.If(done):
            with m.If(store):
                m.d.comb += self.stored.eq(instruction.bytes)
            with m.Else():
                m.d.comb += self.loaded.eq(instruction.bytes)

        ranged = is_vector | ~register
        with m.If(ranged & conflict):
            m.d.comb += self.stall.eq(PeCounter.STALL_ARC_CONFLICT)
        with m.Elif(is_vector):
            m.d.comb += self.stall.eq(PeCounter.STALL_VECTOR)
        with m.Elif(~register & full):
            m.d.comb += self.stall.eq(PeCounter.STALL_ARC_FULL)
        with m.Else():
            m.d.comb += self.stall.eq(PeCounter.STALL_LOAD_STORE)
