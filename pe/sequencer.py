"""Sequencer: launch, end and fault of a program."""

from typing import Any

from amaranth.hdl import Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from isa.faults import FaultCause
from isa.launch import START_REGISTERS
from pe.frontend.dispatch import EVENT_BITS
from pe.frontend.range_check import cause_bits
from pe.lsu.ports import FAILURE

from .config import PeConfig
from .counters import FLUSH_CYCLES
from .interface import IdentityPort, PeState, launch_command, pc_shape, status_layout

__all__ = ["Sequencer", "overhead_cycles"]


def _index_bits(config: PeConfig) -> int:
    """Bits of what counts the cycles of a launch's start."""
    # The counters are cleared meanwhile, and take a cycle each.
    return max(config.register_bits, EVENT_BITS) if config.counters else config.register_bits


def _flush_cycles(config: PeConfig) -> int:
    """Cycles that the counters take at the end."""
    return FLUSH_CYCLES if config.counters else 1


def overhead_cycles(config: PeConfig) -> int:
    """Cycles from a launch to the report of the end that are not the program's own: registers are
    written before it, counters completed after it."""
    return (1 << _index_bits(config)) + _flush_cycles(config)


class Sequencer(Component):
    """Brings the engine from launch to its end.

    Sources: docs/decisions/machine/start_state.md, docs/decisions/machine/faults.md.

    A launch first writes every register, one a cycle, then runs the program. After ``halt``, a
    fault, or ``stop``, it waits until vector and load-store unit are done, then until the counters
    are, and reports.

    Members:
        launch: stream of :func:`pe.interface.launch_command`, in. stop: in.
        identity: :class:`pe.interface.IdentityPort`, out.
        status: :func:`pe.interface.status_layout`, out.
        words: out, length of the program; not of one that is built in.
        start: out, one cycle: the program begins in the next one. run: out; it runs.
        active: out; the program runs, or its last instructions complete.
        clear: out; register ``index`` is to be written with ``value``.
        drop: out; memory answered with an error: what waits must not be done.
        halt, cause, pc, waiting_pc: in, from :class:`pe.frontend.issue.Issue`; ``pc`` belongs to
            ``cause``.
        done: in; vector and load-store unit are idle. error, unfit:
            :data:`pe.lsu.ports.FAILURE`, in.
    """

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
        config = self.config
        # Narrow registers are sure to hold an address, and a parameter that is none faults.
        parameters = Signal(config.address_bits if config.narrow else 64, reset_less=True)
        unfit_parameters = Signal(reset_less=True)
        sources = {
            "pe_index": self.identity.pe_index,
            "vault": self.identity.vault,
            "slot": self.identity.slot,
            "pe_count": self.identity.pe_count,
            "parameters": parameters,
        }
        last = (1 << len(self.index)) - 1
        flush_cycles = _flush_cycles(config)
        flush = Signal(range(flush_cycles))
        # What of the status is decided here; the rest has its register anyway.
        layout = status_layout()
        report: Any = Signal(
            data.StructLayout({name: layout[name].shape for name in ("state", "cause", "pc")})
        )
        failed = Signal()
        going = Signal()
        stop = Signal(name="late_stop")
        m.d.sync += stop.eq(self.stop)
        late = Signal()
        m.d.comb += [
            late.eq(self.error),
            self.drop.eq(failed),
            self.run.eq(going),
        ]
        with m.If(late):
            m.d.sync += failed.eq(1)
        late_cause: Value = Const(FaultCause.MEMORY_ERROR)
        memory_error = failed
        if config.narrow:
            # What failed may as well be a value that does not fit.
            broken = memory_error = Signal()
            with m.If(self.error):
                m.d.sync += broken.eq(1)
            with m.If(self.unfit):
                m.d.comb += late.eq(1)
            with m.If(self.launch.valid & self.launch.ready):
                m.d.sync += broken.eq(0)
            late_cause = Mux(broken, FaultCause.MEMORY_ERROR, FaultCause.REGISTER_RANGE)
        m.d.comb += [
            self.status.state.eq(report.state),
            self.status.cause.eq(report.cause),
            self.status.pc.eq(report.pc),
            self.status.memory_error.eq(memory_error),
        ]

        with m.FSM():
            with m.State("REST"):
                m.d.comb += self.launch.ready.eq(1)
                with m.If(self.launch.valid):
                    if config.program is None:
                        m.d.sync += self.words.eq(self.launch.payload.words)
                    m.d.sync += [
                        parameters.eq(self.launch.payload.parameters),
                        report.state.eq(PeState.RUNNING),
                        report.cause.eq(FaultCause.NONE),
                        self.index.eq(0),
                        unfit_parameters.eq(
                            self.launch.payload.parameters[len(parameters) :].any()
                        ),
                        failed.eq(0),
                    ]
                    m.next = "CLEAR"
            with m.State("CLEAR"):
                m.d.comb += self.clear.eq(1)
                # More words are cleared than a small engine has registers.
                with m.Switch(self.index[: config.register_bits]):
                    for number, name in START_REGISTERS.items():
                        with m.Case(number):
                            m.d.comb += self.value.eq(sources[name])
                m.d.sync += self.index.eq(self.index + 1)
                with m.If(self.index == last):
                    m.d.comb += self.start.eq(1)
                    m.d.sync += going.eq(1)
                    m.next = "RUN"
                    if config.narrow:
                        with m.If(unfit_parameters):
                            m.d.sync += [
                                going.eq(0),
                                report.pc.eq(0),
                                report.cause.eq(FaultCause.REGISTER_RANGE),
                            ]
                            m.next = "DRAIN"
            with m.State("RUN"):
                m.d.comb += self.active.eq(1)
                m.d.sync += report.pc.eq(self.pc)
                with m.If(self.cause != FaultCause.NONE):
                    m.d.sync += report.cause.eq(self.cause)
                    m.next = "DRAIN"
                with m.Elif(failed):
                    m.d.sync += report.pc.eq(self.waiting_pc)
                    m.next = "DRAIN"
                with m.Elif(self.halt | stop):
                    # In the next cycle it is too late to see what waited.
                    with m.If(late):
                        m.d.sync += report.pc.eq(self.waiting_pc)
                    m.next = "DRAIN"
                with m.If((self.cause != FaultCause.NONE) | failed | self.halt | stop):
                    m.d.sync += going.eq(0)
            with m.State("DRAIN"):
                m.d.comb += self.active.eq(1)
                m.d.sync += flush.eq(flush_cycles - 1)
                # Instructions before a halt may still wait for what now fails to come.
                with m.If(late & ~failed & (report.cause == FaultCause.NONE)):
                    m.d.sync += report.pc.eq(self.waiting_pc)
                with m.If(self.done):
                    m.next = "FLUSH"
            with m.State("FLUSH"):
                # Without counters this state is left at once.
                m.d.sync += flush.eq(flush - 1)
                with m.If(flush == 0):
                    m.d.sync += report.state.eq(PeState.HALTED)
                    with m.If(report.cause != FaultCause.NONE):
                        m.d.sync += report.state.eq(PeState.FAULTED)
                    with m.Elif(failed):
                        m.d.sync += [
                            report.cause.eq(late_cause),
                            report.state.eq(PeState.FAULTED),
                        ]
                    m.next = "REST"
        # Nothing may issue on the data of a failed load.
        with m.If(self.stop | late):
            m.d.sync += going.eq(0)
        return m
