"""On-chip memory that serves a memory port: of a whole vault, or of a range of one."""

from dataclasses import dataclass
from typing import Any, get_args

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In

from hdl.component import Component
from hdl.config import ConfigurationError, SramKind
from hdl.emission import shared_instance
from hdl.ports import COLUMN_WORDS, WORD_BITS, MemoryPort
from hdl.sram import Sram
from support.checks import Checks, shown

#: An on-chip vault is a multiple of this: eight block RAMs of ECP5, one for each byte of a word.
BANK_BYTES = 1 << 14
_MOST_BYTES = 1 << 24
_BYTES = WORD_BITS // 8
_WORD_ADDRESS_BITS = (_BYTES - 1).bit_length()

_CHECK = Checks(ConfigurationError)


@dataclass(frozen=True, kw_only=True)
class OnChipConfig:
    """A back end of a vault: memory on the chip, without a bus.

    Attributes:
        bytes: of the vault; a multiple of 16 KiB, up to 16 MiB. Accesses beyond fail.
        tag_bits: tag width of the port, 1..16.
        sram: implementation of the memories.

    Raises:
        ConfigurationError: a value outside its range.
    """

    bytes: int = 1 << 18
    tag_bits: int = 8
    sram: SramKind = "behavioural"

    def __post_init__(self) -> None:
        _CHECK.within("bytes", self.bytes, BANK_BYTES, _MOST_BYTES)
        if self.bytes % BANK_BYTES:
            raise ConfigurationError(
                f"bytes must be a multiple of {BANK_BYTES}, not {shown(self.bytes)}"
            )
        _CHECK.within("tag_bits", self.tag_bits, 1, 16)
        _CHECK.one_of("sram", self.sram, get_args(SramKind))

    @property
    def address_bits(self) -> int:
        """Bits of a byte address within the vault."""
        return (self.bytes - 1).bit_length()

    @property
    def request_address_bits(self) -> int:
        """Bits of a byte address on the port."""
        return self.address_bits

    @property
    def size_bytes(self) -> int:
        """Bytes of the vault."""
        return self.bytes

    @property
    def counters(self) -> bool:
        """Whether the back end has counters: never."""
        return False

    @property
    def preload_bytes(self) -> int:
        """Bytes of a preload memory beside it: none."""
        return 0


class OnChipMemory(Component):
    """Serves a memory port from on-chip memory, whose contents are undefined after reset.

    A read is answered from two cycles after its request on, a write two cycles after its last beat;
    one word passes per cycle. Requests are performed in their order. A request that begins beyond
    the memory is answered with ``error``, and writes nothing.

    Parameters:
        size: bytes; a multiple of 32.
        address_bits: of a byte address on the port. tag_bits: of the port.
        sram: of the memories: one for each byte of a word, in banks that are powers of two.

    Members:
        port (in, :class:`hdl.ports.MemoryPort`): from the requesters.
    """

    #: Whether the word's address has a register of its own before the banks.
    registered = False

    def __init__(self, *, size: int, address_bits: int, tag_bits: int, sram: SramKind) -> None:
        self.size = size
        self.address_bits = address_bits
        self.tag_bits = tag_bits
        self.sram = sram
        super().__init__({"port": In(MemoryPort(address_bits=address_bits, tag_bits=tag_bits))})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        request, response = self.port.request, self.port.response
        beat: Any = Signal.like(request.payload, name="beat")
        waiting, done, last, free = Signal(), Signal(), Signal(), Signal()
        words = Signal(range(COLUMN_WORDS))
        answer: Any = Signal.like(response.payload, name="answer")
        valid, taken = Signal(name="valid"), response.ready
        if self.registered:
            valid, taken = Signal(), Signal()
        inside = beat.address < self.size
        m.d.comb += [
            request.ready.eq(~waiting | done),
            free.eq(~valid | taken),
            last.eq(beat.write | (words == beat.words) | ~inside),
        ]
        with m.If(request.ready):
            m.d.sync += [waiting.eq(request.valid), beat.eq(request.payload)]
        ends_beat = waiting & (~beat.write | beat.last)
        word = Signal(range((1 << self.address_bits) // _BYTES))
        # What the banks perform, and what is answered.
        access, place, fails = beat, word, ~inside
        if self.registered:
            access, place = Signal.like(beat, name="access"), Signal.like(word, name="place")
            fails, performs, answers, ends = Signal(), Signal(), Signal(), Signal()
            moves = ~answers | free
            acts = waiting & moves
            with m.If(moves):
                m.d.sync += [access.eq(beat), place.eq(word), fails.eq(~inside)]
                m.d.sync += [performs.eq(waiting & inside), answers.eq(ends_beat), ends.eq(last)]
            active, answered = performs & moves, answers & free
        else:
            acts = waiting & (free | ~ends_beat)
            active, answered, ends = acts & inside, ends_beat & free, last
        m.d.comb += done.eq(acts & last)
        with m.If(acts & ~beat.write):
            m.d.sync += words.eq(Mux(last, 0, words + 1))
        with m.If(answered):
            m.d.sync += [
                valid.eq(1),
                answer.tag.eq(access.tag),
                answer.last.eq(ends),
                answer.error.eq(fails),
            ]
        with m.Elif(taken):
            m.d.sync += valid.eq(0)
        begins = word.eq(beat.address[_WORD_ADDRESS_BITS:] + words)
        m.d.comb += begins if self.registered else []
        responds = [
            response.valid.eq(valid),
            response.payload.eq(answer),
            response.payload.data.eq(self._banks(m, active, access, place, platform)),
        ]
        if self.registered:
            m.d.comb += taken.eq(~response.valid | response.ready)
            with m.If(taken):
                m.d.sync += responds
        else:
            m.d.comb += [begins, *responds]
        return m

    def _banks(self, m: Module, acts: Value, beat: Any, word: Signal, platform: object) -> Signal:
        """The memories, which perform ``beat`` at ``word`` if it ``acts``; the word read last."""
        data = Signal(WORD_BITS)
        base, left = 0, self.size // _BYTES
        while left:
            depth = 1 << (left.bit_length() - 1)
            bits = depth.bit_length() - 1
            name = f"bank_{base}"
            here, read_here = Signal(name=name), Signal(name=f"{name}_read")
            m.d.comb += here.eq(acts & (word[bits:] == base >> bits))
            with m.If(acts & ~beat.write):
                m.d.sync += read_here.eq(here)
            parts: list[Value] = []
            for number in range(_BYTES):
                column = Sram(width=8, depth=depth, read_ports=1, write_ports=1, kind=self.sram)
                m.submodules[f"bytes_{base}_{number}"] = shared_instance(column, platform)
                (read,), (write,) = column.read, column.write
                m.d.comb += [
                    read.enable.eq(here & ~beat.write),
                    read.address.eq(word),
                    write.enable.eq(here & beat.write & beat.strobe[number]),
                    write.address.eq(word),
                    write.data.eq(beat.data.word_select(number, 8)),
                ]
                parts.append(read.data)
            with m.If(read_here):
                m.d.comb += data.eq(Cat(*parts))
            base, left = base + depth, left - depth
        return data


class RegisteredMemory(OnChipMemory):
    """The same, two cycles later: a large memory's longest wires, from an address to all banks and
    from their outputs, begin and end at registers."""

    registered = True
