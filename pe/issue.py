"""Issue: one instruction a cycle, in order, to the unit that executes it."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal, Value, signed
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import PeConfig
from hdl.counters import PeCounter
from hdl.emission import once
from hdl.ports import PC_BITS
from isa.faults import FaultCause

from .arc import RANGES, column_count_bits, entry_bits, scratchpad_range
from .decode import ControlOp, IssueClass, decoded
from .load_store_ports import load_store_command
from .ports import vector_command
from .range_check import CAUSE_BITS, RangeCheck, byte_bits
from .register_file import READ_PORTS, RegisterReadPort
from .vector_settings import VectorSettings

__all__ = ["EVENT_BITS", "Issue"]

#: Bits of a counter's index.
EVENT_BITS = max(PeCounter).bit_length()


class Issue(Component):
    """The instruction at issue, its hazards, its faults, and its dispatch (thesis 5.1).

    An instruction waits until the registers that it reads and writes hold their values, until no
    scratchpad range of it is in transfer, and until its unit takes it. Its registers are read in
    the cycle before it arrives here, and again in each cycle that it waits.

    Members:
        run: in; 0 discards the instruction at issue and takes none.
        reset: in; vector settings back to those of a launch.
        next_valid, next_pc, next_outside, next: in; instruction behind this one. take: out; it
            moves here at the end of this cycle.
        read: array of :class:`pe.register_file.RegisterReadPort`, out. valid: in, valid bits.
        invalidate, pending: out; register that a load will write.
        decoded, pc: out; instruction at issue.
        scalar: out; it is a scalar instruction and executes now. write: out; its result is to be
            written. taken: in; it branches. redirect, target: out.
        vector: stream of :func:`pe.ports.vector_command`, out. vector_busy: in.
        load_store: stream of :func:`pe.load_store_ports.load_store_command`, out.
            load_store_idle: in.
        ranges: out, and conflict, full, entry: in; allocate, start, end, columns, store: out; see
            :class:`pe.arc.Arc`.
        between: out; nothing is half done: no instruction waits here.
        halt: out; ``halt`` executes. cause: out; fault of the instruction at issue, or ``NONE``.
        event: out; :class:`hdl.counters.PeCounter` of this cycle. loaded, stored: out; bytes that
            the load or store issued in this cycle moves.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        bits = config.scratchpad_bits + 1
        super().__init__(
            {
                "run": In(1),
                "reset": In(1),
                "next_valid": In(1),
                "next_pc": In(signed(PC_BITS)),
                "next_outside": In(1),
                "next": In(decoded(config)),
                "take": Out(1),
                "read": Out(RegisterReadPort(config)).array(READ_PORTS),
                "valid": In(config.registers),
                "invalidate": Out(1),
                "pending": Out(config.register_bits),
                "decoded": Out(decoded(config)),
                "pc": Out(signed(PC_BITS)),
                "scalar": Out(1),
                "write": Out(1),
                "taken": In(1),
                "redirect": Out(1),
                "target": Out(signed(PC_BITS)),
                "vector": Out(stream.Signature(vector_command(config))),
                "vector_busy": In(1),
                "load_store": Out(stream.Signature(load_store_command(config))),
                "load_store_idle": In(1),
                "ranges": Out(scratchpad_range(config)).array(RANGES),
                "conflict": In(1),
                "full": In(1),
                "entry": In(entry_bits(config)),
                "allocate": Out(1),
                "start": Out(bits),
                "end": Out(bits),
                "columns": Out(column_count_bits(config)),
                "store": Out(1),
                "between": Out(1),
                "halt": Out(1),
                "cause": Out(CAUSE_BITS),
                "event": Out(EVENT_BITS),
                "loaded": Out(byte_bits(config)),
                "stored": Out(byte_bits(config)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        d = self.decoded
        held = Signal()
        outside = Signal()
        fire = Signal()

        # The instruction at issue.
        m.d.comb += self.take.eq(self.run & self.next_valid & (~held | fire) & ~self.redirect)
        with m.If(~self.run | fire):
            m.d.sync += held.eq(0)
        with m.If(self.take):
            m.d.sync += [
                held.eq(1),
                d.eq(self.next),
                self.pc.eq(self.next_pc),
                outside.eq(self.next_outside),
            ]
        numbers = (d.a, d.b, d.c)
        following = (self.next.a, self.next.b, self.next.c)
        for port, number, later in zip(self.read, numbers, following, strict=True):
            m.d.comb += port.index.eq(Mux(held & ~fire, number, later))
        a, b, c = (port.value for port in self.read)

        settings = VectorSettings(config)
        check = RangeCheck(config)
        m.submodules.settings = once(settings, platform)
        m.submodules.check = once(check, platform)
        m.d.comb += [
            check.decoded.eq(d),
            check.a.eq(a),
            check.b.eq(b),
            check.c.eq(c),
            check.vl.eq(settings.vl),
            check.mr.eq(settings.mr),
            check.elements.eq(settings.elements),
        ]
        ready = self._registers_ready(m)
        # The size of a matrix follows its settings by a cycle; until then its range is wrong.
        settled = Signal()
        m.d.comb += settled.eq(~settings.settling | (d.unit != IssueClass.VECTOR))
        sound = Signal()
        present = Signal()
        m.d.comb += present.eq(self.run & held)
        with m.If(outside):
            m.d.comb += self.cause.eq(Mux(present, FaultCause.PC_OUT_OF_PROGRAM, 0))
        with m.Elif(~d.legal):
            m.d.comb += self.cause.eq(Mux(present, FaultCause.ILLEGAL_INSTRUCTION, 0))
        with m.Else():
            m.d.comb += self.cause.eq(Mux(present & ready & settled, check.cause, 0))
            m.d.comb += sound.eq(present & ready & settled & (check.cause == FaultCause.NONE))

        vector = self._vector(m, settings, sound, (a, b, c))
        load_store = self._load_store(m, check, sound, (a, b))
        control = self._control(m, settings, sound, a)
        m.d.comb += self.scalar.eq(sound & (d.unit == IssueClass.SCALAR))
        m.d.comb += [
            fire.eq(self.scalar | vector | load_store | control),
            self.between.eq(~held | fire),
            self.write.eq(self.scalar & d.writes),
            self.redirect.eq(self.scalar & d.branch & self.taken),
            self.target.eq(self.pc + d.value),
            settings.reset.eq(self.reset),
        ]
        self._count(m, check, present, ready, fire)
        return m

    def _registers_ready(self, m: Module) -> Signal:
        """Whether the registers of the instruction at issue hold their values."""
        d = self.decoded
        ready = Signal()
        waits_a = (d.reads_a | d.writes) & ~self.valid.bit_select(d.a, 1)
        waits_b = d.reads_b & ~self.valid.bit_select(d.b, 1)
        waits_c = d.reads_c & ~self.valid.bit_select(d.c, 1)
        m.d.comb += ready.eq(~(waits_a | waits_b | waits_c))
        return ready

    def _vector(
        self, m: Module, settings: VectorSettings, sound: Signal, values: tuple[Value, ...]
    ) -> Value:
        """Dispatch to the vector unit; the result says that it happens now."""
        d = self.decoded
        a, b, c = values
        command = self.vector.payload
        m.d.comb += [
            self.vector.valid.eq(sound & (d.unit == IssueClass.VECTOR) & ~self.conflict),
            command.kind.eq(d.kind),
            command.vertical.eq(d.vertical),
            command.reduction.eq(d.reduction),
            command.width.eq(d.width),
            command.result.eq(a),
            command.first.eq(b),
            command.second.eq(c),
            command.vl.eq(settings.vl),
            command.mr.eq(settings.mr),
            command.fx.eq(settings.fx),
        ]
        return self.vector.valid & self.vector.ready

    def _load_store(
        self, m: Module, check: RangeCheck, sound: Signal, values: tuple[Value, ...]
    ) -> Signal:
        """Dispatch to the load-store unit; the result says that it happens now."""
        d = self.decoded
        a, b = values
        command = self.load_store.payload
        store, register = d.kind[0], d.kind[1]
        for r, given in zip(self.ranges, check.ranges, strict=True):
            m.d.comb += r.eq(given)
        clear = Signal()
        empty = Signal()
        done = Signal()
        target, source, _ = check.ranges
        m.d.comb += [
            clear.eq(
                sound
                & (d.unit == IssueClass.LOAD_STORE)
                & (register | (~self.conflict & ~self.full))
            ),
            empty.eq(~register & (check.bytes == 0)),
            self.load_store.valid.eq(clear & ~empty),
            command.store.eq(store),
            command.register.eq(register),
            command.width.eq(d.width),
            command.dram.eq(check.dram),
            command.bytes.eq(check.bytes),
            command.scratchpad.eq(Mux(store, b, a)),
            command.entry.eq(self.entry),
            command.index.eq(d.a),
            command.value.eq(b),
            done.eq(clear & (empty | self.load_store.ready)),
            self.allocate.eq(self.load_store.valid & self.load_store.ready & ~register),
            self.start.eq(Mux(store, source.start, target.start)),
            self.end.eq(Mux(store, source.end, target.end)),
            self.columns.eq(Mux(store, 1, check.columns)),
            self.store.eq(store),
            self.invalidate.eq(self.load_store.valid & self.load_store.ready & d.writes),
            self.pending.eq(d.a),
        ]
        with m.If(done):
            with m.If(store):
                m.d.comb += self.stored.eq(check.bytes)
            with m.Else():
                m.d.comb += self.loaded.eq(check.bytes)
        return done

    def _control(self, m: Module, settings: VectorSettings, sound: Signal, value: Value) -> Signal:
        """Instructions of the issue stage itself; the result says that one executes now."""
        d = self.decoded
        control = Signal()
        done = Signal()
        m.d.comb += [
            control.eq(sound & (d.unit == IssueClass.CONTROL)),
            settings.value.eq(value),
        ]
        with m.If(control):
            with m.Switch(d.control):
                with m.Case(ControlOp.SET_VL):
                    m.d.comb += [settings.set_vl.eq(1), done.eq(1)]
                with m.Case(ControlOp.SET_MR):
                    m.d.comb += [settings.set_mr.eq(1), done.eq(1)]
                with m.Case(ControlOp.SET_FX):
                    m.d.comb += [settings.set_fx.eq(1), done.eq(1)]
                with m.Case(ControlOp.DRAIN):
                    m.d.comb += done.eq(~self.vector_busy)
                with m.Case(ControlOp.MEMFENCE):
                    m.d.comb += done.eq(self.load_store_idle)
                with m.Case(ControlOp.HALT):
                    m.d.comb += [self.halt.eq(1), done.eq(1)]
        return done

    def _count(
        self, m: Module, check: RangeCheck, present: Signal, ready: Signal, fire: Signal
    ) -> None:
        """What this cycle counts as."""
        d = self.decoded
        event = self.event
        issued = {
            IssueClass.SCALAR: PeCounter.ISSUED_SCALAR,
            IssueClass.VECTOR: PeCounter.ISSUED_VECTOR,
            IssueClass.LOAD_STORE: PeCounter.ISSUED_LOAD_STORE,
            IssueClass.CONTROL: PeCounter.ISSUED_CONTROL,
        }
        transfer = (d.unit == IssueClass.LOAD_STORE) & ~d.kind[1]
        ranged = transfer | (d.unit == IssueClass.VECTOR)
        with m.If(~present):
            m.d.comb += event.eq(PeCounter.STALL_FETCH)
        with m.Elif(fire):
            with m.Switch(d.unit):
                for unit, counter in issued.items():
                    with m.Case(unit):
                        m.d.comb += event.eq(counter)
        with m.Elif(self.cause != FaultCause.NONE):
            m.d.comb += event.eq(PeCounter.STALL_FENCE)
        with m.Elif(~ready):
            m.d.comb += event.eq(PeCounter.STALL_REGISTER)
        with m.Elif(ranged & self.conflict):
            m.d.comb += event.eq(PeCounter.STALL_ARC_CONFLICT)
        with m.Elif(transfer & self.full):
            m.d.comb += event.eq(PeCounter.STALL_ARC_FULL)
        with m.Elif(d.unit == IssueClass.VECTOR):
            m.d.comb += event.eq(PeCounter.STALL_VECTOR)
        with m.Elif(d.unit == IssueClass.LOAD_STORE):
            m.d.comb += event.eq(PeCounter.STALL_LOAD_STORE)
        with m.Elif(d.control == ControlOp.DRAIN):
            m.d.comb += event.eq(PeCounter.STALL_DRAIN)
        with m.Else():
            m.d.comb += event.eq(PeCounter.STALL_FENCE)
