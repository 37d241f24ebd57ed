"""Issue: one instruction per cycle, in order, executed here or passed on to its unit."""

from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component, Probes
from hdl.emission import shared_instance
from isa.faults import FaultCause
from isa.table import Opcode, Unit
from pe.capabilities import Capabilities
from pe.codes import ControlOp, IssueClass
from pe.config import PeConfig
from pe.extensions.extension import ControlRules
from pe.extensions.units import extension_members, extensions, link_members
from pe.interface import PeCounter, pc_shape
from pe.vector.settings import VectorSettings

from .dispatch import EVENT_BITS, dispatched, held_instruction
from .fetch import redirection
from .operands import waiting, with_operands
from .range_check import RangeCheck, cause_bits
from .scalar import at_issue


class Issue(Component):
    """The instruction at issue, its faults, and where it goes (thesis 5.1).

    Scalar and control instructions execute here; others go on to
    :class:`pe.frontend.dispatch.Dispatch` with their operands' values, and wait there for their
    scratchpad ranges and for their unit. In the cycle after a taken branch no instruction is at
    issue, and the instructions after the branch are discarded.

    Members:
        run: in; 0 discards the instruction at issue and the one that comes; ``redirect`` discards
            only the latter.
        reset: in; vector settings back to those of a launch.
        next: stream of :func:`pe.frontend.operands.with_operands`, in.
        next_waits, next_pc: :func:`pe.frontend.operands.waiting`, in.
        writes: out; the instruction at issue is a scalar one that writes its register A when it
            executes.
        loads: out; it is a load that will write it.
        invalidate: out; that load goes on to dispatch.
        decoded, first, second: :func:`pe.frontend.scalar.at_issue`, out.
        write: out; a scalar instruction executes and writes.
        taken: in; its branch is taken.
        overflow: in; registers can't hold its result.
        redirect, target: :func:`pe.frontend.fetch.redirection`, out; in the cycle after a taken
            branch. After ``halt``, ``redirect`` too.
        offer: stream of :func:`pe.frontend.dispatch.dispatched`, out.
        dispatch_empty, dispatch_cause, dispatch_pc, dispatch_stall:
            :func:`pe.frontend.dispatch.held_instruction`, in.
        vector_busy, load_store_idle: in.
        halt: out; ``halt`` executes.
        cause: out; fault of the instruction at dispatch, or else of that at issue, or ``NONE``.
        fault_pc: out; address of the instruction at dispatch if it has a fault, else of that at
            issue.
        waiting_pc: out; address of the oldest instruction that waits, else of the last one.
        event: out; :class:`pe.interface.PeCounter` of this cycle, as if an instruction that moves
            on to dispatch had no fault there; only with counters.

    Extensions have further members (:meth:`pe.extensions.extension.LsuExtension.links`).
    """

    probes = Probes(
        "check",
        "halt",
        "instruction",
        "next__ready",
        "next__valid",
        "occupied",
        "offer__valid",
        "redirect",
        "redirects",
        "settings",
        "target",
    )

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "run": In(1),
                "reset": In(1),
                "next": In(stream.Signature(with_operands(config))),
                **waiting(config).inputs("next_"),
                "writes": Out(1),
                "loads": Out(1),
                "invalidate": Out(1),
                **at_issue(config).outputs(),
                "write": Out(1),
                "taken": In(1),
                "overflow": In(1),
                **redirection(config).outputs(),
                "offer": Out(stream.Signature(dispatched(config))),
                **held_instruction(config).inputs("dispatch_"),
                "vector_busy": In(1),
                "load_store_idle": In(1),
                "halt": Out(1),
                "cause": Out(cause_bits(config)),
                "fault_pc": Out(pc_shape(config)),
                "waiting_pc": Out(pc_shape(config)),
                "event": Out(EVENT_BITS),
                **link_members(config, "issue"),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        d = self.decoded
        caps = Capabilities.of(config)
        occupied = Signal()
        # The instruction at issue leaves if it has no fault; with a fault the engine stops.
        fire = Signal()
        scalar = Signal()

        # The instruction at issue.
        instruction: Any = Signal(with_operands(config), reset_less=True)
        redirects = Signal()
        m.d.comb += [
            self.next.ready.eq(~occupied | fire),
            d.eq(instruction.decoded),
            self.first.eq(instruction.first),
            self.second.eq(instruction.second),
        ]
        m.d.sync += [self.redirect.eq(redirects), self.target.eq(instruction.target)]
        last_pc = Signal(pc_shape(config), reset_less=True)
        with m.If(occupied):
            m.d.sync += last_pc.eq(instruction.pc)
        with m.If(self.next.ready):
            m.d.sync += [
                # Its validity is known too late to gate all these registers.
                instruction.eq(self.next.payload),
                occupied.eq(self.next.valid & ~redirects & ~self.redirect),
            ]
        with m.If(~self.run):
            m.d.sync += occupied.eq(0)

        settings = VectorSettings(config)
        check = RangeCheck(config)
        m.submodules.settings = shared_instance(settings, platform)
        m.submodules.check = shared_instance(check, platform)
        m.d.comb += [
            check.decoded.eq(d),
            check.a.eq(instruction.a),
            check.b.eq(instruction.first),
            check.c.eq(instruction.second),
            check.vl.eq(settings.vl),
            check.mr.eq(settings.mr),
            check.elements.eq(settings.elements),
            settings.value.eq(instruction.a),
            settings.reset.eq(self.reset),
        ]
        present = Signal()
        is_legal = Signal()
        dispatch_fault = Signal()
        is_scalar = caps.is_unit(d.unit, IssueClass.SCALAR)
        overflow = is_scalar & d.writes & self.overflow if config.narrow else Const(0, 1)
        issue_cause = Signal(cause_bits(config))
        m.d.comb += [
            present.eq(self.run & occupied),
            dispatch_fault.eq(self.dispatch_cause != FaultCause.NONE),
            # An instruction also executes during a fault at dispatch: the engine stops, so its
            # effects are never seen.
            is_legal.eq(present & ~instruction.outside & d.legal),
            self.cause.eq(Mux(dispatch_fault, self.dispatch_cause, issue_cause)),
            self.fault_pc.eq(Mux(dispatch_fault, self.dispatch_pc, instruction.pc)),
            self.waiting_pc.eq(
                Mux(
                    self.dispatch_empty,
                    Mux(occupied, instruction.pc, Mux(self.next_waits, self.next_pc, last_pc)),
                    self.dispatch_pc,
                )
            ),
        ]
        self._fault(m, present, instruction, check, overflow, issue_cause)
        moves = self._offer(m, settings, check, instruction, is_legal)
        # A bad setting is stored as well: no instruction after its fault can use it.
        ends = self._control(m, settings, check, is_legal)
        m.d.comb += [
            scalar.eq(is_legal & is_scalar),
            fire.eq(is_scalar | moves | ends),
            self.write.eq(scalar & d.writes & ~overflow),
            self.writes.eq(occupied & is_scalar & d.writes),
            self.loads.eq(occupied & caps.is_unit(d.unit, IssueClass.LOAD_STORE) & d.writes),
            redirects.eq((scalar & d.branch & self.taken) | self.halt),
        ]
        if config.counters:
            self._count(m, present, fire)
        return m

    def _fault(
        self,
        m: Module,
        present: Value,
        instruction: Any,
        check: RangeCheck,
        overflow: Value,
        cause: Signal,
    ) -> None:
        """Set ``cause`` to that of the fault at issue, the first of several."""
        faults: list[tuple[Value, FaultCause | Value]] = [
            (instruction.outside, FaultCause.PC_OUT_OF_PROGRAM),
            (~self.decoded.legal, FaultCause.ILLEGAL_INSTRUCTION),
            (check.bad_setting, FaultCause.VECTOR_SETTING),
        ]
        for extension in extensions(self.config):
            faults += extension.faults(self, check)
        if self.config.narrow:
            faults.append((overflow, FaultCause.REGISTER_RANGE))
        for number, (condition, value) in enumerate(faults):
            with m.Elif(present & condition) if number else m.If(present & condition):
                m.d.comb += cause.eq(value)

    def _offer(
        self,
        m: Module,
        settings: VectorSettings,
        check: RangeCheck,
        instruction: Any,
        is_legal: Signal,
    ) -> Value:
        """Pass on to dispatch; the result says that it happens now, if there is an instruction and
        no fault."""
        d = self.decoded
        config = self.config
        caps = Capabilities.of(config)
        offer: Any = self.offer.payload
        vector = caps.is_unit(d.unit, IssueClass.VECTOR)
        transfer = caps.is_unit(d.unit, IssueClass.LOAD_STORE)
        moves = Signal()
        sized = Signal()
        to_dispatch = Signal()
        m.d.comb += [
            # The size of a matrix follows its settings late; until then its range is wrong.
            sized.eq(~settings.settling | ~caps.is_form(d.kind, Opcode.MATRIX_VECTOR)),
            to_dispatch.eq((vector & sized) | transfer),
            self.offer.valid.eq(is_legal & to_dispatch),
            offer.vector.eq(vector),
            *caps.carry(offer, d, caps),
            offer.bytes.eq(check.bytes),
            offer.columns.eq(check.columns),
            offer.is_empty.eq(check.is_empty),
            offer.index.eq(d.a),
            offer.faults.eq(check.faults),
            offer.pc.eq(instruction.pc),
            moves.eq(to_dispatch & self.offer.ready),
            self.invalidate.eq(is_legal & self.offer.ready & transfer & d.writes),
        ]
        m.d.comb += [
            offer[name].eq(getattr(check, name)) for name in extension_members(config, "dispatched")
        ]
        places = offer.operands.places
        m.d.comb += offer.used.eq(Cat(r.used for r in check.ranges))
        ranges = [
            assignment
            for number, r in enumerate(check.ranges)
            for assignment in (places[number].start.eq(r.start), places[number].end.eq(r.end))
        ]
        # A single choice gets no multiplexer: Yosys emits wrong Verilog for those.
        if caps.registers.stores:
            with m.If(transfer & caps.is_register(d.kind)):
                m.d.comb += offer.operands.value.eq(instruction.first)
            with m.Else():
                m.d.comb += ranges
        else:
            m.d.comb += ranges
        vector_settings = [
            offer.settings.vector.vl.eq(settings.vl),
            offer.settings.vector.mr.eq(settings.mr),
            offer.settings.vector.fx.eq(settings.fx),
        ]
        dram = offer.settings.dram.eq(check.dram)
        if not config.rows_of(Unit.VECTOR):
            m.d.comb += dram
        elif not config.rows_of(Unit.LOAD_STORE):
            m.d.comb += vector_settings
        else:
            with m.If(vector):
                m.d.comb += vector_settings
            with m.Else():
                m.d.comb += dram
        return moves

    def _control(
        self, m: Module, settings: VectorSettings, check: RangeCheck, is_legal: Value
    ) -> Signal:
        """Instructions of the issue stage itself; the result says that one executes now, if there
        is one and no fault."""
        d = self.decoded
        caps = Capabilities.of(self.config)
        done = Signal()
        # State of the previous cycle; an instruction that went to dispatch since is still there.
        quiet = Signal()
        m.d.sync += quiet.eq(self.dispatch_empty & self.load_store_idle)
        rules: ControlRules = {
            ControlOp.SET_VL.value: (1, [settings.set_vl.eq(1)]),
            ControlOp.SET_MR.value: (1, [settings.set_mr.eq(1)]),
            ControlOp.SET_FX.value: (1, [settings.set_fx.eq(1)]),
            ControlOp.DRAIN.value: (self.dispatch_empty & ~self.vector_busy, []),
            ControlOp.MEMFENCE.value: (self.dispatch_empty & quiet, []),
            ControlOp.HALT.value: (1, [self.halt.eq(1)]),
        }
        for extension in extensions(self.config):
            extension.control(m, self, check, quiet, rules)
        is_control = caps.is_unit(d.unit, IssueClass.CONTROL)
        for op, (ends, effects) in rules.items():
            with m.If(is_control & caps.control.is_one_of(d.control, [op])):
                m.d.comb += done.eq(ends)
                with m.If(is_legal):
                    m.d.comb += effects
        return done

    def _count(self, m: Module, present: Signal, fire: Signal) -> None:
        """Select the counter of this cycle, as if an instruction that moves on to dispatch did not
        stop there."""
        d = self.decoded
        caps = Capabilities.of(self.config)
        event = self.event
        issued = {
            IssueClass.SCALAR: PeCounter.ISSUED_SCALAR,
            IssueClass.VECTOR: PeCounter.ISSUED_VECTOR,
            IssueClass.LOAD_STORE: PeCounter.ISSUED_LOAD_STORE,
            IssueClass.CONTROL: PeCounter.ISSUED_CONTROL,
        }
        vector = caps.is_unit(d.unit, IssueClass.VECTOR)
        to_dispatch = vector | caps.is_unit(d.unit, IssueClass.LOAD_STORE)
        with m.If(~present):
            m.d.comb += event.eq(PeCounter.STALL_FETCH)
        with m.Elif(self.cause != FaultCause.NONE):
            m.d.comb += event.eq(PeCounter.STALL_FENCE)
        with m.Elif(fire):
            for unit, counter in issued.items():
                with m.If(caps.is_unit(d.unit, unit)):
                    m.d.comb += event.eq(counter)
        with m.Elif(to_dispatch & ~self.offer.ready):
            m.d.comb += event.eq(self.dispatch_stall)
        with m.Elif(vector):
            m.d.comb += event.eq(PeCounter.STALL_VECTOR)
        with m.Elif(caps.control.is_one_of(d.control, [ControlOp.DRAIN.value])):
            m.d.comb += event.eq(PeCounter.STALL_DRAIN)
        with m.Else():
            m.d.comb += event.eq(PeCounter.STALL_FENCE)
