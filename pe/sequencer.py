"""Sequencer: launch, end and fault of a program."""

from amaranth.hdl import Elaboratable, Module, Signal, signed
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.config import PeConfig
from hdl.ports import PC_BITS, IdentityPort, PeState, launch_command, status_layout
from isa.faults import FaultCause
from isa.launch import START_REGISTERS

from .counters import FLUSH_CYCLES
from .dispatch import EVENT_BITS
from .range_check import CAUSE_BITS
from .scalar import REGISTER_WIDTH

__all__ = ["Sequencer"]


class Sequencer(Component):
    """Brings the engine from launch to its end (design decisions 4 and 5).

    A launch first writes every register, one a cycle, then runs the program. After ``halt``, a
    fault, or ``stop``, it waits until vector and load-store unit are done, then until the counters
    are, and reports.

    Members:
        launch: stream of :func:`hdl.ports.launch_command`, in. stop: in.
        identity: :class:`hdl.ports.IdentityPort`, out.
        status: :func:`hdl.ports.status_layout`, out.
        words: out, length of the program.
        start: out, one cycle: the program begins in the next one. run: out; it runs.
        active: out; the program runs, or its last instructions complete.
        clear: out; register ``index`` is to be written with ``value``.
        drop: out; memory answered with an error: what waits must not be done.
        halt, cause, pc, waiting_pc: in, from :class:`pe.issue.Issue`; ``pc`` belongs to ``cause``.
        done: in; vector and load-store unit are idle. error: in; memory answered with an error.
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
                "index": Out(max(config.register_bits, EVENT_BITS)),
                "value": Out(REGISTER_WIDTH),
                "halt": In(1),
                "cause": In(CAUSE_BITS),
                "pc": In(signed(PC_BITS)),
                "waiting_pc": In(signed(PC_BITS)),
                "drop": Out(1),
                "done": In(1),
                "error": In(1),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        parameters = Signal(REGISTER_WIDTH, reset_less=True)
        sources = {
            "pe_index": self.identity.pe_index,
            "vault": self.identity.vault,
            "slot": self.identity.slot,
            "pe_count": self.identity.pe_count,
            "parameters": parameters,
        }
        last = (1 << len(self.index)) - 1
        flush = Signal(range(FLUSH_CYCLES))
        failed = Signal()
        going = Signal()
        stop = Signal(name="late_stop")
        m.d.sync += stop.eq(self.stop)
        # Nothing may issue on the data of a failed load.
        m.d.comb += [self.drop.eq(failed), self.run.eq(going & ~stop & ~failed)]
        with m.If(self.error):
            m.d.sync += failed.eq(1)

        with m.FSM():
            with m.State("REST"):
                m.d.comb += self.launch.ready.eq(1)
                with m.If(self.launch.valid):
                    m.d.sync += [
                        self.words.eq(self.launch.payload.words),
                        parameters.eq(self.launch.payload.parameters),
                        self.status.state.eq(PeState.RUNNING),
                        self.status.cause.eq(FaultCause.NONE),
                        self.index.eq(0),
                        failed.eq(0),
                    ]
                    m.next = "CLEAR"
            with m.State("CLEAR"):
                m.d.comb += self.clear.eq(1)
                # More words are cleared than a small engine has registers.
                with m.Switch(self.index[: self.config.register_bits]):
                    for number, name in START_REGISTERS.items():
                        with m.Case(number):
                            m.d.comb += self.value.eq(sources[name])
                m.d.sync += self.index.eq(self.index + 1)
                with m.If(self.index == last):
                    m.d.comb += self.start.eq(1)
                    m.d.sync += going.eq(1)
                    m.next = "RUN"
            with m.State("RUN"):
                m.d.comb += self.active.eq(1)
                m.d.sync += self.status.pc.eq(self.pc)
                with m.If(self.cause != FaultCause.NONE):
                    m.d.sync += self.status.cause.eq(self.cause)
                    m.next = "DRAIN"
                with m.Elif(failed):
                    m.d.sync += self.status.pc.eq(self.waiting_pc)
                    m.next = "DRAIN"
                with m.Elif(self.halt | stop):
                    m.next = "DRAIN"
                with m.If((self.cause != FaultCause.NONE) | failed | self.halt | stop):
                    m.d.sync += going.eq(0)
            with m.State("DRAIN"):
                m.d.comb += self.active.eq(1)
                m.d.sync += flush.eq(FLUSH_CYCLES - 1)
                # Instructions before a halt may still wait for what now fails to come.
                with m.If(self.error & ~failed & (self.status.cause == FaultCause.NONE)):
                    m.d.sync += self.status.pc.eq(self.waiting_pc)
                with m.If(self.done):
                    m.next = "FLUSH"
            with m.State("FLUSH"):
                m.d.sync += flush.eq(flush - 1)
                with m.If(flush == 0):
                    m.d.sync += self.status.state.eq(PeState.HALTED)
                    with m.If(self.status.cause != FaultCause.NONE):
                        m.d.sync += self.status.state.eq(PeState.FAULTED)
                    with m.Elif(failed):
                        m.d.sync += [
                            self.status.cause.eq(FaultCause.MEMORY_ERROR),
                            self.status.state.eq(PeState.FAULTED),
                        ]
                    m.next = "REST"
        return m
