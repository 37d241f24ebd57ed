"""The boundary between the engines' clock and that of a vault's memory."""

from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.clocks import ENGINE_DOMAIN, MEMORY_DOMAIN
from hdl.component import Component
from hdl.config import SramKind
from hdl.counter_bank import COUNTER_BITS
from hdl.crossing import MIN_CROSSING_DEPTH, StreamCrossing
from hdl.emission import shared_instance
from hdl.ports import MemoryPort, memory_request, memory_response
from hdl.sram import Sram
from memory.controller.counters import INDEX_BITS


class MemoryCrossing(Component):
    """A memory port from the clock of the engines to that of the memory
    (:class:`hdl.crossing.StreamCrossing` each way).

    The guarantees of :class:`hdl.ports.MemoryPort` hold: the order of beats does not change.

    Parameters:
        address_bits, tag_bits: of the port.
        request_depth, response_depth: beats that wait each way, as
            :class:`hdl.crossing.StreamCrossing` has them; elaboration refuses others.

    Members:
        port (in, ``MemoryPort``): from the requesters, in their clock domain.
        memory (out, ``MemoryPort``): to the back end, in its clock domain.
    """

    def __init__(
        self, *, address_bits: int, tag_bits: int, request_depth: int, response_depth: int
    ) -> None:
        self.address_bits = address_bits
        self.tag_bits = tag_bits
        self.request_depth = request_depth
        self.response_depth = response_depth
        port = MemoryPort(address_bits=address_bits, tag_bits=tag_bits)
        super().__init__({"port": In(port), "memory": Out(port)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        requests = StreamCrossing(
            shape=memory_request(self.address_bits, self.tag_bits),
            depth=self.request_depth,
            source=ENGINE_DOMAIN,
            target=MEMORY_DOMAIN,
        )
        responses = StreamCrossing(
            shape=memory_response(self.tag_bits),
            depth=self.response_depth,
            source=MEMORY_DOMAIN,
            target=ENGINE_DOMAIN,
        )
        m.submodules.requests = shared_instance(requests, platform)
        m.submodules.responses = shared_instance(responses, platform)
        connect(m, flipped(self.port.request), requests.input)
        connect(m, requests.output, flipped(self.memory.request))
        connect(m, flipped(self.memory.response), responses.input)
        connect(m, responses.output, flipped(self.port.response))
        return m


#: Cycles of the memory's clock from a counter's number to its value, which some back ends take.
_READ_CYCLES = 2


class CounterMirror(Component):
    """Copies the counters of the memory's clock domain for readers in that of the engines.

    All counters are read in turn, and their values sent through a
    :class:`hdl.crossing.StreamCrossing`, so that a reader never sees half of one value and half of
    another. A value's age is 32 times the longer of three memory clock cycles and one engine clock
    cycle, plus some ten cycles of each; after a reset it is undefined for that long.

    Parameters:
        sram: of the copies.

    Members:
        index (in, INDEX_BITS): counter to read, in the engines' clock domain.
        value (out, COUNTER_BITS): one cycle after ``index``.
        counter_index (out, INDEX_BITS): counter to copy, in the memory's clock domain.
        counter_value (in, COUNTER_BITS): one or two cycles later.
    """

    def __init__(self, *, sram: SramKind) -> None:
        self.sram = sram
        super().__init__(
            {
                "index": In(INDEX_BITS),
                "value": Out(COUNTER_BITS),
                "counter_index": Out(INDEX_BITS),
                "counter_value": In(COUNTER_BITS),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        crossing = StreamCrossing(
            shape=data.StructLayout({"index": INDEX_BITS, "value": COUNTER_BITS}),
            depth=MIN_CROSSING_DEPTH,
            source=MEMORY_DOMAIN,
            target=ENGINE_DOMAIN,
        )
        m.submodules.crossing = shared_instance(crossing, platform)
        copies = Sram(
            width=COUNTER_BITS, depth=1 << INDEX_BITS, read_ports=1, write_ports=1, kind=self.sram
        )
        m.submodules.copies = shared_instance(copies, platform)
        (read,), (write,) = copies.read, copies.write

        step = Signal(range(_READ_CYCLES + 1))
        incoming, outgoing = crossing.input, crossing.output
        m.d.comb += [
            incoming.valid.eq(step == _READ_CYCLES),
            incoming.payload.index.eq(self.counter_index),
            incoming.payload.value.eq(self.counter_value),
            outgoing.ready.eq(1),
            write.enable.eq(outgoing.valid),
            write.address.eq(outgoing.payload.index),
            write.data.eq(outgoing.payload.value),
            read.enable.eq(1),
            read.address.eq(self.index),
            self.value.eq(read.data),
        ]
        with m.If(~incoming.valid):
            m.d[MEMORY_DOMAIN] += step.eq(step + 1)
        with m.Elif(incoming.ready):
            m.d[MEMORY_DOMAIN] += [step.eq(0), self.counter_index.eq(self.counter_index + 1)]
        return m
