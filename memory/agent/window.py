"""The weights of an agent as a range of a vault's addresses."""

from typing import Any

from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.ports import COLUMN_WORDS, WORD_BITS, MemoryPort
from memory.response_merge import merge_responses

from .config import WINDOW_BYTES
from .weight_port import WeightPort

_WORD_BYTES = WORD_BITS // 8
_WORD_SHIFT = (_WORD_BYTES - 1).bit_length()


class WeightWindow(Component):
    """Serves :data:`memory.agent.config.WINDOW_BYTES` from an agent's weights instead of DRAM, so
    that the host reads and writes them as it does memory; the other accesses pass.

    Word ``SLOTS * action + feature`` is a weight, with its sign in all upper bits; weights that
    don't exist read 0. A write without all strobes changes nothing. A word takes two epochs.

    The guarantees of :class:`hdl.ports.MemoryPort` hold: a column is on one side, and each side
    keeps the order.

    Parameters:
        base: first byte address, a multiple of WINDOW_BYTES.
        address_bits: of a byte address on the port. tag_bits: of the port.
        theta_bits: of a weight.

    Members:
        port (in, :class:`hdl.ports.MemoryPort`): from the requesters.
        memory (out, ``MemoryPort``): to the back end.
        weights (out, :class:`memory.agent.weight_port.WeightPort`): to the agent.
    """

    def __init__(self, *, base: int, address_bits: int, tag_bits: int, theta_bits: int) -> None:
        self.base = base
        self.address_bits = address_bits
        self.tag_bits = tag_bits
        self.theta_bits = theta_bits
        port = MemoryPort(address_bits=address_bits, tag_bits=tag_bits)
        super().__init__(
            {"port": In(port), "memory": Out(port), "weights": Out(WeightPort(theta_bits))}
        )

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        request = self.port.request
        weights = self.weights
        own_bits = (WINDOW_BYTES - 1).bit_length()
        inside, arrives = Signal(), Signal()
        beat: Any = Signal.like(request.payload, name="beat")
        words = Signal(range(COLUMN_WORDS))
        # The beat waits for the agent; its answer waits for the requester.
        asking, valid, take = Signal(), Signal(), Signal()
        m.d.comb += [
            inside.eq(request.payload.address[own_bits:] == self.base >> own_bits),
            arrives.eq(request.valid & inside & ~asking & ~valid),
            request.ready.eq(Mux(inside, ~asking & ~valid, self.memory.request.ready)),
            self.memory.request.valid.eq(request.valid & ~inside),
            self.memory.request.payload.eq(request.payload),
            weights.request.eq(asking),
            weights.index.eq(beat.address[_WORD_SHIFT:own_bits] + words),
            weights.write.eq(beat.write & beat.strobe.all()),
            weights.data.eq(beat.data),
        ]
        answer: Any = Signal.like(self.port.response.payload, name="answer")
        last = Signal()
        m.d.comb += [
            last.eq(beat.write | (words == beat.words)),
            answer.tag.eq(beat.tag),
            answer.data.eq(weights.value.as_signed()),
            answer.last.eq(last),
        ]
        with m.If(arrives):
            m.d.sync += [beat.eq(request.payload), words.eq(0), asking.eq(1)]
        with m.If(asking & weights.done):
            m.d.sync += [asking.eq(0), valid.eq(~beat.write | beat.last)]
        with m.If(valid & take):
            m.d.sync += [valid.eq(0), words.eq(words + 1), asking.eq(~last)]
        merge_responses(m, self.port.response, self.memory.response, valid, take, answer)
        return m
