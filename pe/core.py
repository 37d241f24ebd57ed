"""The processing engine: its units, connected."""

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import Out, connect, flipped

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.ports import MemoryPort
from isa.faults import FaultCause
from pe.extensions.units import links
from pe.frontend.arc import Arc, allocation, free_entry
from pe.frontend.decode import Decode
from pe.frontend.dispatch import Dispatch, held_instruction, moved_bytes
from pe.frontend.fetch import Fetch, fetched, redirection, run
from pe.frontend.issue import Issue
from pe.frontend.operands import Operands, waiting
from pe.frontend.register_file import READ_PORTS, RegisterFile
from pe.frontend.scalar import Scalar, at_issue
from pe.lsu.unit import LoadStore
from pe.vector.unit import VectorUnit

from .config import PeConfig
from .counters import Counters
from .interface import ControlPort, IdentityPort, PeCounter
from .ports import FAILURE, arrival, release
from .scratchpad import Scratchpad, read_roles, write_roles
from .sequencer import Sequencer


class Pe(Component):
    """One VIP processing engine (thesis chapter 5).

    An instruction is fetched in the first cycle, addresses its registers in the second, is decoded
    while they are read in the third, and issues in the fourth at the earliest. Scalar results are
    ready for the next instruction; a taken branch costs three extra cycles. Vector and load-store
    instructions go on to dispatch, for at least two cycles, and complete independently.

    Parameters:
        config: of the engine.

    Members:
        memory (out, :class:`hdl.ports.MemoryPort`): to the memory.
        control (out, :class:`pe.interface.ControlPort`): from the host.
        identity (out, :class:`pe.interface.IdentityPort`): which engine this is.
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
        units = _Units(self.config)
        for name, unit in vars(units).items():
            m.submodules[name] = shared_instance(unit, platform)
        self._host(m, units)
        self._front_end(m, units)
        self._dispatch(m, units)
        self._registers(m, units)
        self._execution(m, units)
        self._counters(m, units)
        return m

    def _host(self, m: Module, units: "_Units") -> None:
        """Loading, launching, status and counters."""
        fetch, sequencer, counters = units.fetch, units.sequencer, units.counters
        connect(m, flipped(self.control.load), fetch.load)
        connect(m, flipped(self.control.launch), sequencer.launch)
        connect(m, flipped(self.identity), sequencer.identity)
        m.d.comb += [
            sequencer.stop.eq(self.control.stop),
            self.control.status.eq(sequencer.status),
            counters.index.eq(self.control.counter_index),
            self.control.counter_value.eq(counters.value),
        ]

    def _front_end(self, m: Module, units: "_Units") -> None:
        """From the instruction buffer to the issue stage, and the sequencer beside them."""
        config = self.config
        sequencer, fetch, operands, issue = (
            units.sequencer,
            units.fetch,
            units.operands,
            units.issue,
        )
        run(config).join(m, sequencer, fetch)
        redirection(config).join(m, issue, fetch)
        m.d.comb += [
            fetch.ready.eq(operands.ready),
            operands.run.eq(sequencer.run),
            operands.redirect.eq(issue.redirect),
        ]
        fetched(config).join(m, fetch, operands, sink_prefix="next_")
        m.d.comb += [
            units.decode.word.eq(operands.word),
            operands.decoded.eq(units.decode.out),
            operands.ahead.eq(issue.decoded.a),
            operands.writes.eq(issue.writes),
            operands.loads.eq(issue.loads),
            operands.result.eq(units.scalar.result),
            issue.run.eq(sequencer.run),
            issue.reset.eq(sequencer.start),
        ]
        waiting(config).join(m, operands, issue, sink_prefix="next_")
        m.d.comb += [
            sequencer.halt.eq(issue.halt),
            sequencer.cause.eq(issue.cause),
            sequencer.pc.eq(issue.fault_pc),
            sequencer.waiting_pc.eq(issue.waiting_pc),
            sequencer.done.eq(units.dispatch.empty & ~units.vector.busy & units.load_store.idle),
        ]
        FAILURE.join(m, units.load_store, sequencer)
        for source, sink, bundle in links(config):
            bundle.join(m, getattr(units, source), getattr(units, sink))
        connect(m, operands.offer, issue.next)

    def _dispatch(self, m: Module, units: "_Units") -> None:
        """Dispatch and the array range check."""
        config = self.config
        issue, dispatch, arc, load_store = (
            units.issue,
            units.dispatch,
            units.arc,
            units.load_store,
        )
        connect(m, issue.offer, dispatch.offer)
        for mine, theirs in zip(arc.ranges, dispatch.ranges, strict=True):
            m.d.comb += mine.eq(theirs)
        m.d.comb += [
            dispatch.run.eq(units.sequencer.run),
            dispatch.drop.eq(units.sequencer.drop),
        ]
        held_instruction(config).join(m, dispatch, issue, sink_prefix="dispatch_")
        free_entry(config).join(m, arc, dispatch)
        allocation(config).join(m, dispatch, arc)
        arrival(config).join(m, load_store, arc)
        release(config).join(m, load_store, arc)

    def _registers(self, m: Module, units: "_Units") -> None:
        """Reads; writes by the launch, scalar results, then loads, which can wait."""
        registers, operands, issue, sequencer, load_store = (
            units.registers,
            units.operands,
            units.issue,
            units.sequencer,
            units.load_store,
        )
        loaded = Signal()
        for number in range(READ_PORTS):
            m.d.comb += [
                registers.index[number].eq(operands.index[number]),
                registers.read[number].eq(operands.read[number]),
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
            registers.data.eq(Mux(issue.writes, units.scalar.result, load_store.result)),
        ]
        with m.If(sequencer.clear):
            m.d.comb += [
                registers.target.eq(sequencer.index),
                registers.data.eq(sequencer.value),
            ]

    def _execution(self, m: Module, units: "_Units") -> None:
        """The units that execute, memory and scratchpad."""
        config = self.config
        issue, vector, load_store = units.issue, units.vector, units.load_store
        at_issue(config).join(m, issue, units.scalar)
        m.d.comb += [
            issue.taken.eq(units.scalar.taken),
            issue.overflow.eq(units.scalar.overflow),
            issue.vector_busy.eq(vector.busy),
            issue.load_store_idle.eq(load_store.idle),
        ]
        connect(m, units.dispatch.vector, vector.command)
        connect(m, units.dispatch.load_store, load_store.command)
        connect(m, flipped(self.memory), load_store.memory)
        readers = {"first": vector.read[0], "second": vector.read[1], "store": load_store.read}
        for role, port in zip(read_roles(config), units.scratchpad.read, strict=True):
            connect(m, readers[role], port)
        writers = {"result": vector.write, "load": load_store.write}
        for role, port in zip(write_roles(config), units.scratchpad.write, strict=True):
            connect(m, writers[role], port)

    def _counters(self, m: Module, units: "_Units") -> None:
        """Connect the counters to the units they observe."""
        counters, sequencer, dispatch = units.counters, units.sequencer, units.dispatch
        m.d.comb += [
            counters.clear.eq(sequencer.clear),
            counters.settle.eq(sequencer.settles),
            counters.count.eq(sequencer.active),
            counters.event.eq(Mux(sequencer.run, units.issue.event, PeCounter.STALL_FENCE)),
            counters.waits.eq(units.operands.waits),
            counters.stays.eq(dispatch.cause != FaultCause.NONE),
            counters.busy.eq(units.vector.beat),
        ]
        moved_bytes(self.config).join(m, dispatch, counters)


class _Units:
    """The units of an engine, by instance name."""

    def __init__(self, config: PeConfig) -> None:
        self.sequencer = Sequencer(config)
        self.fetch = Fetch(config)
        self.decode = Decode(config)
        self.operands = Operands(config)
        self.issue = Issue(config)
        self.dispatch = Dispatch(config)
        self.arc = Arc(config)
        self.registers = RegisterFile(config)
        self.scalar = Scalar(config)
        self.vector = VectorUnit(config)
        self.load_store = LoadStore(config)
        self.scratchpad = Scratchpad(config)
        self.counters = Counters(config)
