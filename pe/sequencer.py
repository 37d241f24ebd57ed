"""Sequencer: launch, end and fault of a program."""

from typing import Any

from amaranth.hdl import Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component, Probes
from isa.faults import FaultCause
from isa.launch import START_REGISTERS
from pe.frontend.dispatch import EVENT_BITS
from pe.frontend.range_check import cause_bits
from pe.ports import FAILURE

from .config import PeConfig
from .counters import FLUSH_CYCLES
from .interface import IdentityPort, PeState, launch_command, pc_shape, status_layout


def _index_bits(config: PeConfig) -> int:
    """Bits of the counter of the cycles of a launch's start."""
    # The counters are cleared meanwhile, and take a cycle each.
    return max(config.register_bits, EVENT_BITS) if config.counters else config.register_bits


def _flush_cycles(config: PeConfig) -> int:
    """Cycles that the counters take at the end."""
    return FLUSH_CYCLES if config.counters else 1


def overhead_cycles(config: PeConfig) -> int:
    """Cycles from launch to the report of the end without the program's: registers are written
    before it, counters completed after it."""
    return (1 << _index_bits(config)) + _flush_cycles(config)


class Sequencer(Component):
    """Brings the engine from launch to its end.

    Sources: docs/decisions/machine.md.

    A launch first writes every register, one per cycle, then runs the program. After ``halt``, a
    fault, or ``stop``, it waits until the vector and load-store units are idle, then until the
    counters are complete, and reports.

    Members:
        launch: stream of :func:`pe.interface.launch_command`, in. stop: in.
        identity: :class:`pe.interface.IdentityPort`, out.
        status: :func:`pe.interface.status_layout`, out.
        words: out, length of the program; not of one that is built in.
        start: out, one cycle: the program begins in the next one. run: out; it runs.
        active: out; the program runs, or its last instructions complete. settles: out; after that,
            counters are completed.
        clear: out; register ``index`` is to be written with ``value``.
        drop: out; memory answered with an error: waiting instructions must not be performed.
        halt, cause, pc, waiting_pc: in, from :class:`pe.frontend.issue.Issue`; ``pc`` belongs to
            ``cause``.
        done: in; vector and load-store unit are idle. error, overflow:
            :data:`pe.ports.FAILURE`, in.
    """

    probes = Probes("failed", "fsm_state", "going", "index", "report", "words")

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "launch": In(stream.Signature(launch_command(config))),
                "stop": In(1),
                "identity": Out(IdentityPort()),
                "status": Out(status_layout()),
                "words": Out(config.pc_bits + 1),
                "start": Out(1),
                "run": Out(1),
                "active": Out(1),
                "settles": Out(1),
                "clear": Out(1),
                "index": Out(_index_bits(config)),
                "value": Out(config.register_width),
                "halt": In(1),
                "cause": In(cause_bits(config)),
                "pc": In(pc_shape(config)),
                "waiting_pc": In(pc_shape(config)),
                "drop": Out(1),
                "done": In(1),
                **FAILURE.inputs(),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        launch = _Launch(self.config)
        stop = Signal(name="late_stop")
        m.d.sync += stop.eq(self.stop)
        m.d.comb += [
            launch.late.eq(self.error),
            self.drop.eq(launch.failed),
            self.run.eq(launch.going),
        ]
        with m.If(launch.late):
            m.d.sync += launch.failed.eq(1)
        late_cause = self._failure(m, launch)
        with m.FSM():
            with m.State("REST"):
                m.d.comb += self.launch.ready.eq(1)
                with m.If(self.launch.valid):
                    self._begin(m, launch)
                    m.next = "CLEAR"
            with m.State("CLEAR"):
                self._clear(m, launch)
            with m.State("RUN"):
                self._run(m, launch, stop)
            with m.State("DRAIN"):
                flush = self._drain(m, launch)
            with m.State("FLUSH"):
                # Without counters, this state is left at once.
                m.d.comb += self.settles.eq(1)
                m.d.sync += flush.eq(flush - 1)
                with m.If(flush == 0):
                    self._report(m, launch, late_cause)
                    m.next = "REST"
        # Nothing may issue with data of a failed load.
        with m.If(self.stop | launch.late):
            m.d.sync += launch.going.eq(0)
        return m

    def _failure(self, m: Module, launch: "_Launch") -> Value:
        """Errors of memory and of loaded values, for the status; the result is their cause."""
        late_cause: Value = Const(FaultCause.MEMORY_ERROR)
        memory_error = launch.failed
        if self.config.narrow:
            # The failure may also be a loaded value that does not fit.
            broken = memory_error = Signal(name="broken")
            with m.If(self.error):
                m.d.sync += broken.eq(1)
            with m.If(self.overflow):
                m.d.comb += launch.late.eq(1)
            with m.If(self.launch.valid & self.launch.ready):
                m.d.sync += broken.eq(0)
            late_cause = Mux(broken, FaultCause.MEMORY_ERROR, FaultCause.REGISTER_RANGE)
        m.d.comb += [
            self.status.state.eq(launch.report.state),
            self.status.cause.eq(launch.report.cause),
            self.status.pc.eq(launch.report.pc),
            self.status.memory_error.eq(memory_error),
        ]
        return late_cause

    def _begin(self, m: Module, launch: "_Launch") -> None:
        """Take a launch."""
        payload = self.launch.payload
        if self.config.program is None:
            m.d.sync += self.words.eq(payload.words)
        m.d.sync += [
            launch.parameters.eq(payload.parameters),
            launch.report.state.eq(PeState.RUNNING),
            launch.report.cause.eq(FaultCause.NONE),
            self.index.eq(0),
            launch.parameter_overflow.eq(payload.parameters[len(launch.parameters) :].any()),
            launch.failed.eq(0),
        ]

    def _clear(self, m: Module, launch: "_Launch") -> None:
        """Write the registers; then run."""
        identity = self.identity
        sources = {
            "pe_index": identity.pe_index,
            "vault": identity.vault,
            "slot": identity.slot,
            "pe_count": identity.pe_count,
            "parameters": launch.parameters,
        }
        last = (1 << len(self.index)) - 1
        m.d.comb += self.clear.eq(1)
        # A small engine has fewer registers than are cleared.
        with m.Switch(self.index[: self.config.register_bits]):
            for number, name in START_REGISTERS.items():
                with m.Case(number):
                    m.d.comb += self.value.eq(sources[name])
        m.d.sync += self.index.eq(self.index + 1)
        with m.If(self.index == last):
            m.d.comb += self.start.eq(1)
            m.d.sync += launch.going.eq(1)
            m.next = "RUN"
            if self.config.narrow:
                with m.If(launch.parameter_overflow):
                    m.d.sync += [
                        launch.going.eq(0),
                        launch.report.pc.eq(0),
                        launch.report.cause.eq(FaultCause.REGISTER_RANGE),
                    ]
                    m.next = "DRAIN"

    def _run(self, m: Module, launch: "_Launch", stop: Signal) -> None:
        """Run until ``halt``, a fault, or ``stop``."""
        m.d.comb += self.active.eq(1)
        m.d.sync += launch.report.pc.eq(self.pc)
        with m.If(self.cause != FaultCause.NONE):
            m.d.sync += launch.report.cause.eq(self.cause)
            m.next = "DRAIN"
        with m.Elif(launch.failed):
            m.d.sync += launch.report.pc.eq(self.waiting_pc)
            m.next = "DRAIN"
        with m.Elif(self.halt | stop):
            # In the next cycle the instruction that waited is no longer known.
            with m.If(launch.late):
                m.d.sync += launch.report.pc.eq(self.waiting_pc)
            m.next = "DRAIN"
        with m.If((self.cause != FaultCause.NONE) | launch.failed | self.halt | stop):
            m.d.sync += launch.going.eq(0)

    def _drain(self, m: Module, launch: "_Launch") -> Signal:
        """Wait for the units; the result counts the cycles after that."""
        flush_cycles = _flush_cycles(self.config)
        flush = Signal(range(flush_cycles))
        m.d.comb += self.active.eq(1)
        m.d.sync += flush.eq(flush_cycles - 1)
        # Instructions before a halt may still wait for data whose load fails now.
        report = launch.report
        with m.If(launch.late & ~launch.failed & (report.cause == FaultCause.NONE)):
            m.d.sync += report.pc.eq(self.waiting_pc)
        with m.If(self.done):
            m.next = "FLUSH"
        return flush

    def _report(self, m: Module, launch: "_Launch", late_cause: Value) -> None:
        """Report the end."""
        report = launch.report
        m.d.sync += report.state.eq(PeState.HALTED)
        with m.If(report.cause != FaultCause.NONE):
            m.d.sync += report.state.eq(PeState.FAULTED)
        with m.Elif(launch.failed):
            m.d.sync += [
                report.cause.eq(late_cause),
                report.state.eq(PeState.FAULTED),
            ]


class _Launch:
    """State of a launch.

    Attributes:
        parameters: of the host, only the bits of an address with narrow registers, which are sure
            to hold one. parameter_overflow: the host's value has more bits.
        report: fields of the status that are decided here; the others have registers elsewhere.
        failed: memory answered with an error, or a loaded value did not fit; late: this happens in
            this cycle.
        going: the program runs.
    """

    def __init__(self, config: PeConfig) -> None:
        bits = config.address_bits if config.narrow else 64
        self.parameters = Signal(bits, name="parameters", reset_less=True)
        self.parameter_overflow = Signal(name="parameter_overflow", reset_less=True)
        layout = status_layout()
        reported = {name: layout[name].shape for name in ("state", "cause", "pc")}
        report: Any = Signal(data.StructLayout(reported), name="report")
        self.report = report
        self.failed = Signal(name="failed")
        self.going = Signal(name="going")
        self.late = Signal(name="late")
