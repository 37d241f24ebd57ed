"""The crossbar of a vault (the thesis's star, 5.2): engines, network and host share one memory."""

from typing import Any

from amaranth.hdl import Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out, connect, flipped

from hdl.component import Component
from hdl.config import ConfigurationError
from hdl.emission import shared_instance
from hdl.ports import MemoryPort, memory_request, memory_response
from hdl.round_robin import RoundRobin
from hdl.stream_buffer import StreamBuffer

#: Most requesters of a crossbar: the engines of a vault, the network and the host.
MAX_REQUESTERS = 16


class Crossbar(Component):
    """Joins the memory ports of several requesters to one, whose tags name the requester, too.

    **Requests.** The arbitration among whole requests is round robin: a request is accepted after
    at most one request (up to four beats) of each other requester. One beat passes per cycle, from
    one requester or many, with no gap between requests; a beat takes one cycle. Each requester's
    requests stay in order, so it has the same guarantees as a port of the memory: accesses to one
    column are performed in the order of the requests. Between requesters there is no order before a
    write's response.

    During a write of one requester, the others wait. A requester that has offered the first beat
    of a write must therefore offer the others without waiting for anything but ``ready``.

    **Responses.** One beat passes per cycle, in one cycle, to one requester or in turns to many.
    Each requester has a buffer of ``response_words`` beats. The memory, and with it every other
    requester, waits only when the buffer for the next beat is full. A requester must therefore
    accept responses in finite time, whether its own requests are accepted or not; then no requester
    waits forever.

    Parameters:
        requesters: 1..16.
        address_bits: byte address width.
        tag_bits: tag width of each requester.
        always_ready: number of requesters, from port 0 on, that are always ready for responses.
            They share one register instead of a buffer each.
        response_words: beats of responses buffered for each other requester, 2..64. 4 hold the
            longest response, so a pause of four cycles costs the others nothing.

    Members:
        ports (in, ``requesters`` :class:`hdl.ports.MemoryPort`): from the requesters.
        memory (out, :class:`hdl.ports.MemoryPort`): to the memory; the number of the requester
            is above its tag, so tags have ``memory_tag_bits``.

    Attributes:
        memory_tag_bits: tag width towards the memory.

    Raises:
        ConfigurationError: ``requesters`` or ``always_ready`` outside its range.
        hdl.config.ConfigurationError: ``response_words`` outside its range.
    """

    def __init__(
        self,
        *,
        requesters: int,
        address_bits: int,
        tag_bits: int,
        always_ready: int = 0,
        response_words: int = 4,
    ) -> None:
        if not 1 <= requesters <= MAX_REQUESTERS:
            raise ConfigurationError(
                f"a crossbar has 1 to {MAX_REQUESTERS} requesters, not {requesters!r}"
            )
        if not 0 <= always_ready <= requesters:
            raise ConfigurationError(
                f"of {requesters} requesters, {always_ready!r} can't be always ready"
            )
        self.requesters = requesters
        self.always_ready = always_ready
        self.address_bits = address_bits
        self.tag_bits = tag_bits
        self.response_words = response_words
        self.memory_tag_bits = tag_bits + (requesters - 1).bit_length()
        port = MemoryPort(address_bits=address_bits, tag_bits=tag_bits)
        super().__init__(
            {
                "ports": In(port).array(requesters),
                "memory": Out(MemoryPort(address_bits=address_bits, tag_bits=self.memory_tag_bits)),
            }
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        self._requests(m, platform)
        self._responses(m, platform)
        return m

    def _requests(self, m: Module, platform: object) -> None:
        layout = memory_request(self.address_bits, self.memory_tag_bits)
        arbiter = RoundRobin(count=self.requesters)
        buffer = StreamBuffer(shape=layout)
        m.submodules["arbiter"] = shared_instance(arbiter, platform)
        m.submodules.requests = shared_instance(buffer, platform)
        connect(m, buffer.output, flipped(self.memory.request))

        locked = Signal()
        owner = Signal(self.requesters)
        selected = Signal(self.requesters)
        beat: Any = Signal(layout)
        valid = Signal()
        m.d.comb += selected.eq(Mux(locked, owner, arbiter.grant))
        for number, port in enumerate(self.ports):
            m.d.comb += [
                arbiter.requests[number].eq(port.request.valid),
                port.request.ready.eq(selected[number] & buffer.input.ready),
            ]
            with m.If(selected[number]):
                m.d.comb += [valid.eq(port.request.valid), *_copy(beat, port.request.payload)]
                m.d.comb += beat.tag.eq(self._widened(number, port.request.payload.tag))
        fire = Signal()
        m.d.comb += [
            buffer.input.valid.eq(valid),
            buffer.input.payload.eq(beat),
            fire.eq(valid & buffer.input.ready),
            arbiter.advance.eq(fire & ~locked),
        ]
        with m.If(fire):
            m.d.sync += [locked.eq(~beat.last), owner.eq(selected)]

    def _responses(self, m: Module, platform: object) -> None:
        response = self.memory.response
        source = response.payload.tag[self.tag_bits :]
        response_valid = Signal(self.always_ready)
        response_beat: Any = Signal(memory_response(self.tag_bits), reset_less=True)
        if self.always_ready:
            m.d.sync += [
                *_copy(response_beat, response.payload),
                response_beat.tag.eq(response.payload.tag),
            ]
        for number, port in enumerate(self.ports[: self.always_ready]):
            match = source == number
            m.d.sync += response_valid[number].eq(response.valid & match)
            m.d.comb += [
                port.response.valid.eq(response_valid[number]),
                port.response.payload.eq(response_beat),
            ]
            with m.If(match):
                m.d.comb += response.ready.eq(1)
        for number, port in list(enumerate(self.ports))[self.always_ready :]:
            buffer = StreamBuffer(shape=memory_response(self.tag_bits), depth=self.response_words)
            m.submodules[f"responses_{number}"] = shared_instance(buffer, platform)
            connect(m, buffer.output, flipped(port.response))
            match = Signal(name=f"match_{number}")
            m.d.comb += [
                match.eq(source == number),
                buffer.input.valid.eq(response.valid & match),
                *_copy(buffer.input.payload, response.payload),
                buffer.input.payload.tag.eq(response.payload.tag[: self.tag_bits]),
            ]
            with m.If(match):
                m.d.comb += response.ready.eq(buffer.input.ready)

    def _widened(self, number: int, tag: Value) -> Value:
        """``tag`` with the number of its requester above it."""
        return tag | number << self.tag_bits


def _copy(target: Any, source: Any) -> list[Any]:
    """Assignments of all members but the tag."""
    names = [name for name, _ in source.shape() if name != "tag"]
    return [target[name].eq(source[name]) for name in names]
