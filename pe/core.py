"""The processing engine: all its units, connected."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import Out, connect, flipped

from hdl.component import Component
from hdl.emission import once
from hdl.ports import MemoryPort
from isa.faults import FaultCause
from pe.frontend.arc import Arc
from pe.frontend.decode import Decode
from pe.frontend.dispatch import Dispatch
from pe.frontend.fetch import Fetch
from pe.frontend.issue import Issue
from pe.frontend.operands import Operands
from pe.frontend.register_file import READ_PORTS, RegisterFile
from pe.frontend.scalar import Scalar
from pe.lsu.unit import LoadStore
from pe.vector.unit import VectorUnit

from .config import PeConfig
from .counters import Counters
from .interface import ControlPort, IdentityPort, PeCounter
from .scratchpad import Scratchpad, read_roles, write_roles
from .sequencer import Sequencer

__all__ = ["Pe"]


class Pe(Component):
    """One VIP processing engine (thesis chapter 5).

    An instruction is fetched in one cycle, its registers are addressed in the next, it is decoded
    while they are read in the third, and issued in the fourth at the earliest. Scalar results are
    ready for the next instruction; a taken branch costs three cycles more. Vector and load-store
    instructions go on to dispatch, for two cycles at least, and complete on their own.

    Parameters:
        config: what to build.

    Members:
        memory: :class:`hdl.ports.MemoryPort`, out.
        control: :class:`pe.interface.ControlPort`, out (seen from the engine).
        identity: :class:`pe.interface.IdentityPort`, out (seen from the engine).
    """

    def __init__(self, config: PeConfig) -> None:
        self.config = config
        super().__init__(
            {
                "memory": Out(
                    MemoryPort(address_bits=config.address_bits, tag_bits=config.tag_bits)
                ),
                "control": Out(ControlPort(config)),
                "identity": Out(IdentityPort()),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        config = self.config
        sequencer = Sequencer(config)
        fetch = Fetch(config)
        decode = Decode(config)
        operands = Operands(config)
        issue = Issue(config)
        dispatch = Dispatch(config)
        arc = Arc(config)
        registers = RegisterFile(config)
        scalar = Scalar(config)
        vector = VectorUnit(config)
        load_store = LoadStore(config)
        scratchpad = Scratchpad(config)
        counters = Counters(config)
        m.submodules.sequencer = once(sequencer, platform)
        m.submodules.fetch = once(fetch, platform)
        m.submodules.decode = once(decode, platform)
        m.submodules.operands = once(operands, platform)
        m.submodules.issue = once(issue, platform)
        m.submodules.dispatch = once(dispatch, platform)
        m.submodules.arc = once(arc, platform)
        m.submodules.registers = once(registers, platform)
        m.submodules.scalar = once(scalar, platform)
        m.submodules.vector = once(vector, platform)
        m.submodules.load_store = once(load_store, platform)
        m.submodules.scratchpad = once(scratchpad, platform)
        m.submodules.counters = once(counters, platform)

        # Host.
        connect(m, flipped(self.control.load), fetch.load)
        connect(m, flipped(self.control.launch), sequencer.launch)
        connect(m, flipped(self.identity), sequencer.identity)
        m.d.comb += [
            sequencer.stop.eq(self.control.stop),
            self.control.status.eq(sequencer.status),
            counters.index.eq(self.control.counter_index),
            self.control.counter_value.eq(counters.value),
        ]

        # Front end.
        m.d.comb += [
            fetch.run.eq(sequencer.run),
            fetch.start.eq(sequencer.start),
            fetch.words.eq(sequencer.words),
            fetch.redirect.eq(issue.redirect),
            fetch.target.eq(issue.target),
            fetch.ready.eq(operands.ready),
            operands.run.eq(sequencer.run),
            operands.redirect.eq(issue.redirect),
            operands.next_valid.eq(fetch.valid),
            operands.next_pc.eq(fetch.pc),
            operands.next_outside.eq(fetch.outside),
            operands.next_word.eq(fetch.word),
            decode.word.eq(operands.word),
            operands.decoded.eq(decode.out),
            operands.ahead.eq(issue.decoded.a),
            operands.writes.eq(issue.writes),
            operands.loads.eq(issue.loads),
            operands.result.eq(scalar.result),
            issue.run.eq(sequencer.run),
            issue.reset.eq(sequencer.start),
            issue.next_waits.eq(operands.waits),
            issue.next_pc.eq(operands.pc),
            sequencer.halt.eq(issue.halt),
            sequencer.cause.eq(issue.cause),
            sequencer.pc.eq(issue.fault_pc),
            sequencer.waiting_pc.eq(issue.waiting_pc),
            sequencer.done.eq(dispatch.empty & ~vector.busy & load_store.idle),
            sequencer.error.eq(load_store.error),
            sequencer.unfit.eq(load_store.unfit),
        ]

        connect(m, operands.offer, issue.next)

        # Dispatch and array range check.
        connect(m, issue.offer, dispatch.offer)
        for mine, theirs in zip(arc.ranges, dispatch.ranges, strict=True):
            m.d.comb += mine.eq(theirs)
        m.d.comb += [
            dispatch.run.eq(sequencer.run),
            dispatch.drop.eq(sequencer.drop),
            issue.dispatch_empty.eq(dispatch.empty),
            issue.dispatch_cause.eq(dispatch.cause),
            issue.dispatch_pc.eq(dispatch.pc),
            issue.dispatch_stall.eq(dispatch.stall),
            dispatch.conflict.eq(arc.conflict),
            dispatch.full.eq(arc.full),
            dispatch.entry.eq(arc.entry),
            arc.allocate.eq(dispatch.allocate),
            arc.allocated.eq(dispatch.allocated),
            arc.start.eq(dispatch.start),
            arc.end.eq(dispatch.end),
            arc.columns.eq(dispatch.columns),
            arc.store.eq(dispatch.store),
            arc.arrived.eq(load_store.arrived),
            arc.arrived_entry.eq(load_store.arrived_entry),
            arc.released.eq(load_store.released),
            arc.released_entry.eq(load_store.released_entry),
        ]

        # Registers: launch, then scalar results, then loads, which can wait.
        loaded = Signal()
        m.d.comb += registers.read.eq(operands.read)
        for number in range(READ_PORTS):
            m.d.comb += [
                registers.index[number].eq(operands.index[number]),
                operands.value[number].eq(registers.value[number]),
            ]
        m.d.comb += [
            operands.valid.eq(registers.valid),
            registers.invalidate.eq(issue.invalidate),
            registers.pending.eq(issue.decoded.a),
            loaded.eq(load_store.result_valid & ~issue.writes),
            load_store.result_ready.eq(loaded),
            registers.write.eq(issue.write | loaded | sequencer.clear),
            registers.target.eq(Mux(issue.writes, issue.decoded.a, load_store.result_index)),
            registers.data.eq(Mux(issue.writes, scalar.result, load_store.result)),
        ]
        with m.If(sequencer.clear):
            m.d.comb += [
                registers.target.eq(sequencer.index),
                registers.data.eq(sequencer.value),
            ]

        # Execution.
        m.d.comb += [
            scalar.decoded.eq(issue.decoded),
            scalar.first.eq(issue.first),
            scalar.second.eq(issue.second),
            issue.taken.eq(scalar.taken),
            issue.unfit.eq(scalar.unfit),
            issue.vector_busy.eq(vector.busy),
            issue.load_store_idle.eq(load_store.idle),
        ]
        connect(m, dispatch.vector, vector.command)
        connect(m, dispatch.load_store, load_store.command)
        connect(m, flipped(self.memory), load_store.memory)
        readers = {"first": vector.read[0], "second": vector.read[1], "store": load_store.read}
        for role, port in zip(read_roles(config), scratchpad.read, strict=True):
            connect(m, readers[role], port)
        writers = {"result": vector.write, "load": load_store.write}
        for role, port in zip(write_roles(config), scratchpad.write, strict=True):
            connect(m, writers[role], port)

        # Counters.
        m.d.comb += [
            counters.clear.eq(sequencer.clear),
            counters.count.eq(sequencer.active),
            counters.event.eq(Mux(sequencer.run, issue.event, PeCounter.STALL_FENCE)),
            counters.waits.eq(operands.waits),
            counters.stays.eq(dispatch.cause != FaultCause.NONE),
            counters.busy.eq(vector.beat),
            counters.loaded.eq(dispatch.loaded),
            counters.stored.eq(dispatch.stored),
        ]
        return m
