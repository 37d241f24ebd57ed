"""Dispatch: the stage after issue, where vector and load-store instructions wait."""

from typing import Any

from amaranth.hdl import Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hdl.bundle import Bundle
from hdl.component import Component, Probes
from hdl.ports import COLUMN_BITS
from isa.faults import FaultCause
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.extensions.extension import DispatchStep
from pe.extensions.units import extension_members, extensions, link_members
from pe.interface import PeCounter
from pe.ports import load_store_command, vector_command

from .arc import (
    RANGES,
    allocation,
    free_entry,
    scratchpad_range,
)
from .crosses import cover_dispatch
from .range_check import byte_bits, cause_of, operand_cause_bits, value_faults

#: Bits of a counter's index.
EVENT_BITS = max(PeCounter).bit_length()


def dispatched(config: PeConfig) -> data.StructLayout:
    """A vector or load-store instruction with its operands' values and the bytes that it touches.

    Members:
        vector: it goes to the vector unit; :data:`pe.capabilities.OPERATION`, as decoded.
        used: which of the operands A, B and C are scratchpad ranges.
        operands: ``places``, where those start and end (as in
            :func:`pe.frontend.arc.scratchpad_range`), or ``value``, of a register to store.
        settings: ``vector``, vector settings, or ``dram``, the address of a load or store.
        bytes: of a load or store; only the bits that a place in a column has if nothing else needs
            them.
        columns: of a load or store. is_empty: it has no bytes. index: register to load.
        faults: :func:`pe.frontend.range_check.value_faults` of its operands. pc: its address.

    Members that no instruction of ``config`` needs have no bits. Extensions have further ones.
    """
    caps = Capabilities.of(config)
    command = vector_command(config)
    place = data.StructLayout({"start": config.scratchpad_bits, "end": config.end_unit_bits})
    lengths = config.counters or any(e.needs_lengths for e in extensions(config))
    settings = data.StructLayout({name: command[name].shape for name in ("vl", "mr", "fx")})
    return data.StructLayout(
        {
            "vector": int(bool(caps.vector and caps.memory)),
            **caps.operation_members,
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
            "columns": config.column_count_bits if caps.transfers else 0,
            "is_empty": int(bool(caps.transfers)),
            "index": config.register_bits if caps.registers.loads else 0,
            "faults": value_faults(config),
            "pc": config.pc_bits,
            **extension_members(config, "dispatched"),
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

    Ranges are compared in the first cycle; the instruction leaves in the second at the earliest.

    The held instruction carries its fault, so issue continues while it waits: only another vector
    or load-store instruction has to wait. An instruction with a fault stays until ``run`` falls.

    Members:
        offer: stream of :func:`dispatched`, in.
        run: in.
        drop: in; discard the held instruction: it waited for data that could not be loaded.
        empty, cause, pc, stall: :func:`held_instruction`, out.
        ranges: array of :func:`pe.frontend.arc.scratchpad_range`, out.
        conflict, full, entry: :func:`pe.frontend.arc.free_entry`, in.
        allocate, allocated, start, end, columns, store: :func:`pe.frontend.arc.allocation`, out.
        vector: stream of :func:`pe.ports.vector_command`, out.
        load_store: stream of :func:`pe.ports.load_store_command`, out.
        loaded, stored: :func:`moved_bytes`, out.

    Extensions have further members (:meth:`pe.extensions.extension.LsuExtension.links`).
    """

    probes = Probes("conflict", "fire_next", "full", "instruction", "occupied")

    def __init__(self, config: PeConfig) -> None:
        self.config = config
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
                **link_members(config, "dispatch"),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        caps = Capabilities.of(self.config)
        occupied = Signal()
        instruction: Any = Signal(dispatched(self.config), reset_less=True)
        faulty = Signal()
        # Decided a cycle ahead: until this instruction leaves, no transfer starts, and a ready unit
        # stays ready.
        fire_next = Signal()
        fire = Signal()
        stalled = Signal()
        entry = Signal.like(self.entry, name="free_entry", reset_less=True)
        m.d.sync += entry.eq(self.entry)
        is_vector: Value = instruction.vector if caps.memory else Const(1, 1)
        if not caps.vector:
            is_vector = Const(0, 1)
        store = caps.is_store(instruction.kind)
        step = DispatchStep(
            instruction=instruction,
            is_vector=is_vector,
            store=store,
            register=caps.is_register(instruction.kind),
            fire=fire,
            cause=cause_of(instruction.faults),
            faulty=instruction.faults.as_value().any(),
            # A store waits only for its last word.
            one_arrival=store,
        )
        for extension in extensions(self.config):
            extension.dispatch(m, self, step)
        with m.If(fire_next | self.drop | (faulty & ~self.run)):
            m.d.sync += occupied.eq(0)
        with m.If(self.offer.ready & self.offer.valid):
            m.d.sync += [instruction.eq(self.offer.payload), occupied.eq(1)]
        m.d.comb += [
            self.offer.ready.eq(~occupied | fire_next),
            self.empty.eq(~occupied),
            faulty.eq(step.faulty),
            self.cause.eq(Mux(occupied, step.cause, FaultCause.NONE)),
            self.pc.eq(instruction.pc),
            stalled.eq(occupied & ~fire_next),
            fire.eq(fire_next & ~self.drop),
        ]
        for number, r in enumerate(self.ranges):
            place = instruction.operands.places[number]
            m.d.comb += [
                r.used.eq(instruction.used[number]),
                r.start.eq(place.start),
                r.end.eq(place.end),
            ]
        m.d.comb += self.ranges[0].writes.eq(is_vector)
        self._to_vector_unit(m, step)
        self._to_load_store_unit(m, step, entry)
        self._wait(m, step, stalled, faulty, fire_next)
        return m

    def _to_vector_unit(self, m: Module, step: DispatchStep) -> None:
        """Offer a vector instruction, encoded for the vector unit."""
        caps = Capabilities.of(self.config)
        instruction, vector = step.instruction, self.vector.payload
        target, source, second = instruction.operands.places
        m.d.comb += [
            self.vector.valid.eq(step.fire & step.is_vector),
            *caps.vector.carry(vector, instruction, caps),
            vector.result.eq(target.start),
            vector.first.eq(source.start),
            vector.second.eq(second.start),
            vector.vl.eq(instruction.settings.vector.vl),
            vector.mr.eq(instruction.settings.vector.mr),
            vector.fx.eq(instruction.settings.vector.fx),
        ]

    def _to_load_store_unit(self, m: Module, step: DispatchStep, entry: Value) -> None:
        """Offer a load or store, with ``entry`` of the ARC for its range in the scratchpad."""
        caps = Capabilities.of(self.config)
        instruction, transfer, store = step.instruction, self.load_store.payload, step.store
        target, source, _ = instruction.operands.places
        done = Signal()
        m.d.comb += [
            done.eq(step.fire & ~step.is_vector),
            self.load_store.valid.eq(done & ~self._is_empty(instruction)),
            transfer.store.eq(store),
            transfer.register.eq(step.register),
            transfer.width.eq(caps.registers.width.pack(caps.width.unpack(instruction.width))),
            transfer.dram.eq(instruction.settings.dram),
            transfer.columns.eq(instruction.columns),
            transfer.last.eq(instruction.settings.dram + instruction.bytes - 1),
            transfer.scratchpad.eq(Mux(store, source.start, target.start)),
            transfer.entry.eq(entry),
            transfer.index.eq(instruction.index),
            transfer.value.eq(instruction.operands.value),
            self.allocated.eq(entry),
            self.allocate.eq(self.load_store.valid & ~step.register),
            self.start.eq(Mux(store, source.start, target.start)),
            self.end.eq(Mux(store, source.end, target.end)),
            self.columns.eq(Mux(step.one_arrival, 1, instruction.columns)),
            self.store.eq(store),
        ]
        if self.config.counters:
            with m.If(done):
                with m.If(store):
                    m.d.comb += self.stored.eq(instruction.bytes)
                with m.Else():
                    m.d.comb += self.loaded.eq(instruction.bytes)

    def _wait(
        self, m: Module, step: DispatchStep, stalled: Value, faulty: Value, fire_next: Signal
    ) -> None:
        """Decide whether the instruction goes in the next cycle, and what it waits for."""
        conflict = Signal()
        full = Signal()
        ready = (step.register | ~(self.conflict | self.full)) & (
            self._is_empty(step.instruction) | self.load_store.ready
        )
        m.d.sync += [
            conflict.eq(stalled & self.conflict),
            full.eq(stalled & self.full),
            fire_next.eq(
                stalled
                & ~faulty
                & ~self.drop
                & Mux(step.is_vector, self.vector.ready & ~self.conflict, ready)
            ),
        ]
        is_vector, register = step.is_vector, step.register
        cover_dispatch(
            m,
            self.config,
            step.instruction,
            self.offer.ready & self.offer.valid,
            step.fire,
            arc=stalled & self.conflict & (is_vector | ~register),
            full=stalled & self.full & ~is_vector & ~register,
            unit=stalled & ~Mux(is_vector, self.vector.ready, self.load_store.ready),
        )
        if not self.config.counters:
            return
        with m.If((is_vector | ~register) & conflict):
            m.d.comb += self.stall.eq(PeCounter.STALL_ARC_CONFLICT)
        with m.Elif(is_vector):
            m.d.comb += self.stall.eq(PeCounter.STALL_VECTOR)
        with m.Elif(~register & full):
            m.d.comb += self.stall.eq(PeCounter.STALL_ARC_FULL)
        with m.Else():
            m.d.comb += self.stall.eq(PeCounter.STALL_LOAD_STORE)

    def _is_empty(self, instruction: Any) -> Value:
        """Whether there is nothing to transfer, so the unit is not needed."""
        transfers = Capabilities.of(self.config).transfers
        return Value.cast(instruction.is_empty) if transfers else Const(0, 1)
