"""Issue: one instruction a cycle, in order, executed here or passed on to its unit."""

from typing import Any

from amaranth.hdl import Elaboratable, Module, Mux, Signal, Value, signed
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import PeConfig
from hdl.counters import PeCounter
from hdl.emission import once
from hdl.ports import PC_BITS
from isa.faults import FaultCause

from .decode import ControlOp, IssueClass, decoded
from .dispatch import EVENT_BITS, dispatched
from .range_check import CAUSE_BITS, RangeCheck
from .register_file import READ_PORTS
from .scalar import REGISTER_WIDTH
from .vector_settings import VectorSettings

__all__ = ["Issue"]


class Issue(Component):
    """The instruction at issue, its registers, its faults, and where it goes (thesis 5.1).

    An instruction waits until the registers that it reads and writes hold their values. Scalar and
    control instructions execute here; all others go on to :class:`pe.dispatch.Dispatch` with their
    operands' values, and wait there for what they touch and for their unit.

    Members:
        run: in; 0 discards the instruction at issue and takes none.
        reset: in; vector settings back to those of a launch.
        next_valid, next_pc, next_outside, next: in; instruction behind this one. take: out; it
            moves here at the end of this cycle.
        index, read: out; read the registers ``index``, if ``read`` is 1, to have their ``value``,
            in, in the next cycle, held while ``read`` is 0. valid: in, valid bits.
        invalidate, pending: out; register that a load will write.
        decoded, pc: out; instruction at issue.
        scalar: out; it is a scalar instruction and executes now. write: out; its result is to be
            written. taken: in; it branches. redirect, target: out.
        offer: stream of :func:`pe.dispatch.dispatched`, out. dispatch_empty, dispatch_cause,
            dispatch_pc, dispatch_stall: in, of the dispatch stage.
        vector_busy, load_store_idle: in.
        halt: out; ``halt`` executes. cause: out; fault of the instruction at dispatch, or else of
            that at issue, or ``NONE``. fault_pc: out; its address, without one that at issue.
            waiting_pc: out; address of the oldest instruction that waits, else of the last one.
        event: out; :class:`hdl.counters.PeCounter` of this cycle.
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "run": In(1),
                "reset": In(1),
                "next_valid": In(1),
                "next_pc": In(signed(PC_BITS)),
                "next_outside": In(1),
                "next": In(decoded(config)),
                "take": Out(1),
                "index": Out(config.register_bits).array(READ_PORTS),
                "read": Out(1),
                "value": In(REGISTER_WIDTH).array(READ_PORTS),
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
                "offer": Out(stream.Signature(dispatched(config))),
                "dispatch_empty": In(1),
                "dispatch_cause": In(CAUSE_BITS),
                "dispatch_pc": In(signed(PC_BITS)),
                "dispatch_stall": In(EVENT_BITS),
                "vector_busy": In(1),
                "load_store_idle": In(1),
                "halt": Out(1),
                "cause": Out(CAUSE_BITS),
                "fault_pc": Out(signed(PC_BITS)),
                "waiting_pc": Out(signed(PC_BITS)),
                "event": Out(EVENT_BITS),
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
        ready = self._registers_ready(m)
        # Registers are read again while one of them is not valid, and only then: all the values of
        # an instruction that waits for anything else are here. So the choice of an address does
        # not depend on what happens to the instruction in this cycle.
        again = Signal()
        m.d.comb += [again.eq(held & ~ready), self.read.eq(again | self.take)]
        numbers = (d.a, d.b, d.c)
        following = (self.next.a, self.next.b, self.next.c)
        for index, number, later in zip(self.index, numbers, following, strict=True):
            m.d.comb += index.eq(Mux(again, number, later))
        a, b, c = self.value

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
            settings.value.eq(a),
            settings.reset.eq(self.reset),
        ]
        present = Signal()
        sound = Signal()
        own_cause = Signal(CAUSE_BITS)
        dispatch_fault = Signal()
        m.d.comb += [
            present.eq(self.run & held),
            dispatch_fault.eq(self.dispatch_cause != FaultCause.NONE),
            sound.eq(present & ready & ~outside & d.legal & ~dispatch_fault),
            self.cause.eq(Mux(dispatch_fault, self.dispatch_cause, own_cause)),
            self.fault_pc.eq(Mux(dispatch_fault, self.dispatch_pc, self.pc)),
            self.waiting_pc.eq(Mux(self.dispatch_empty, self.pc, self.dispatch_pc)),
        ]
        with m.If(present & outside):
            m.d.comb += own_cause.eq(FaultCause.PC_OUT_OF_PROGRAM)
        with m.Elif(present & ~d.legal):
            m.d.comb += own_cause.eq(FaultCause.ILLEGAL_INSTRUCTION)
        with m.Elif(present & ready & check.bad_setting):
            m.d.comb += own_cause.eq(FaultCause.VECTOR_SETTING)

        moves = self._offer(m, settings, check, sound)
        control = self._control(m, settings, sound & ~check.bad_setting)
        m.d.comb += [
            self.scalar.eq(sound & (d.unit == IssueClass.SCALAR)),
            fire.eq(self.scalar | moves | control),
            self.write.eq(self.scalar & d.writes),
            self.redirect.eq(self.scalar & d.branch & self.taken),
            self.target.eq(self.pc + d.value),
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

    def _offer(
        self, m: Module, settings: VectorSettings, check: RangeCheck, sound: Signal
    ) -> Value:
        """Pass on to dispatch; the result says that it happens now."""
        d = self.decoded
        offer: Any = self.offer.payload
        vector = d.unit == IssueClass.VECTOR
        transfer = d.unit == IssueClass.LOAD_STORE
        moves = Signal()
        m.d.comb += [
            # The size of a matrix follows its settings by a cycle; until then its range is wrong.
            self.offer.valid.eq(sound & ((vector & ~settings.settling) | transfer)),
            offer.vector.eq(vector),
            offer.kind.eq(d.kind),
            offer.vertical.eq(d.vertical),
            offer.reduction.eq(d.reduction),
            offer.width.eq(d.width),
            offer.vl.eq(settings.vl),
            offer.mr.eq(settings.mr),
            offer.fx.eq(settings.fx),
            offer.dram.eq(check.dram),
            offer.bytes.eq(check.bytes),
            offer.columns.eq(check.columns),
            offer.index.eq(d.a),
            offer.value.eq(self.value[1]),
            offer.cause.eq(check.cause),
            offer.pc.eq(self.pc),
            moves.eq(self.offer.valid & self.offer.ready),
            self.invalidate.eq(moves & transfer & d.writes),
            self.pending.eq(d.a),
        ]
        m.d.comb += [offer.ranges[number].eq(r) for number, r in enumerate(check.ranges)]
        return moves

    def _control(self, m: Module, settings: VectorSettings, sound: Value) -> Signal:
        """Instructions of the issue stage itself; the result says that one executes now."""
        d = self.decoded
        done = Signal()
        with m.If(sound & (d.unit == IssueClass.CONTROL)):
            with m.Switch(d.control):
                with m.Case(ControlOp.SET_VL):
                    m.d.comb += [settings.set_vl.eq(1), done.eq(1)]
                with m.Case(ControlOp.SET_MR):
                    m.d.comb += [settings.set_mr.eq(1), done.eq(1)]
                with m.Case(ControlOp.SET_FX):
                    m.d.comb += [settings.set_fx.eq(1), done.eq(1)]
                with m.Case(ControlOp.DRAIN):
                    m.d.comb += done.eq(self.dispatch_empty & ~self.vector_busy)
                with m.Case(ControlOp.MEMFENCE):
                    m.d.comb += done.eq(self.dispatch_empty & self.load_store_idle)
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
        passed_on = (d.unit == IssueClass.VECTOR) | (d.unit == IssueClass.LOAD_STORE)
        with m.If(~present):
            m.d.comb += event.eq(PeCounter.STALL_FETCH)
        with m.Elif(self.cause != FaultCause.NONE):
            m.d.comb += event.eq(PeCounter.STALL_FENCE)
        with m.Elif(fire):
            with m.Switch(d.unit):
                for unit, counter in issued.items():
                    with m.Case(unit):
                        m.d.comb += event.eq(counter)
            # It stops at dispatch.
            with m.If(passed_on & (check.cause != FaultCause.NONE)):
                m.d.comb += event.eq(PeCounter.STALL_FENCE)
        with m.Elif(~ready):
            m.d.comb += event.eq(PeCounter.STALL_REGISTER)
        with m.Elif(passed_on & ~self.offer.ready):
            m.d.comb += event.eq(self.dispatch_stall)
        with m.Elif(d.unit == IssueClass.VECTOR):
            m.d.comb += event.eq(PeCounter.STALL_VECTOR)
        with m.Elif(d.control == ControlOp.DRAIN):
            m.d.comb += event.eq(PeCounter.STALL_DRAIN)
        with m.Else():
            m.d.comb += event.eq(PeCounter.STALL_FENCE)
