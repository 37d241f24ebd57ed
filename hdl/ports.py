"""Signatures shared between units: the memory port and the control port of a processing engine.

The memory port is made to suit a vault's star, a torus packet and an AXI master alike: a request
touches one 32-byte column, moves whole 64-bit words, and is named by a tag.
"""

from amaranth.hdl import Shape, signed
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from isa.faults import FaultCause
from isa.table import IMM14

from .config import PeConfig
from .counters import COUNTER_BITS

__all__ = [
    "COLUMN_BYTES",
    "COLUMN_WORDS",
    "EXACT_PC_WORDS",
    "PC_BITS",
    "WORD_BITS",
    "ControlPort",
    "IdentityPort",
    "MemoryPort",
    "PeState",
    "launch_command",
    "load_word",
    "memory_request",
    "memory_response",
    "pc_shape",
    "status_layout",
]

#: Bytes of a DRAM column, the unit of a request (thesis 5.2).
COLUMN_BYTES = 32
#: Width of the data path between processing engine and memory.
WORD_BITS = 64
#: Signed width of a program counter: the largest instruction buffer and a branch out of it.
PC_BITS = IMM14.bits + 1
#: Engines with fewer words of program keep program counters short; see :func:`pc_shape`.
EXACT_PC_WORDS = 1024
#: Words in a column.
COLUMN_WORDS = COLUMN_BYTES * 8 // WORD_BITS


def memory_request(address_bits: int, tag_bits: int) -> data.StructLayout:
    """One beat of a request.

    Members:
        address: byte address of the 64-bit word of this beat; bits 2:0 are 0.
        tag: names the request; not reused before its response is complete.
        write: 1 for a write.
        words: on a read, words wanted less one; they start at ``address`` and stay within its
            column. On a write, words that this beat and those after it carry, less one.
        data: word to write. Byte 0 of memory order is in bits 7:0.
        strobe: bytes of the word to write (any pattern, also none); all ones on a read.
        last: last beat. A read is one beat; a write is one beat a word, at consecutive addresses
            within one column.
    """
    return data.StructLayout(
        {
            "address": address_bits,
            "tag": tag_bits,
            "write": 1,
            "words": (COLUMN_WORDS - 1).bit_length(),
            "data": WORD_BITS,
            "strobe": WORD_BITS // 8,
            "last": 1,
        }
    )


def memory_response(tag_bits: int) -> data.StructLayout:
    """One beat of a response.

    Members:
        tag: of the request answered.
        data: on a read, the words in the order of their addresses, one a beat.
        last: last beat; a write is acknowledged by one beat with ``last`` set.
        error: the access failed (valid on the last beat); the data is then meaningless.
    """
    return data.StructLayout({"tag": tag_bits, "data": WORD_BITS, "last": 1, "error": 1})


class MemoryPort(wiring.Signature):
    """Port of one requester to memory, seen from the requester.

    The beats of one request, and those of one response, are contiguous. Responses to different tags
    may come in any order and any time after their request. The memory performs the accesses of one
    port to the same 32-byte column in the order of the requests; accesses to different columns in
    any order. A write's response means that it has been performed.

    Parameters:
        address_bits: byte address width.
        tag_bits: tag width, so that ``2 ** tag_bits`` requests may be in flight.

    Members:
        request: stream of :func:`memory_request`, out.
        response: stream of :func:`memory_response`, in.
    """

    def __init__(self, *, address_bits: int, tag_bits: int) -> None:
        self.address_bits = address_bits
        self.tag_bits = tag_bits
        super().__init__(
            {
                "request": Out(stream.Signature(memory_request(address_bits, tag_bits))),
                "response": In(stream.Signature(memory_response(tag_bits))),
            }
        )


class PeState(enum.Enum, shape=2):
    """What a processing engine is doing."""

    #: Never launched since reset.
    IDLE = 0
    RUNNING = 1
    #: Ended by ``halt`` or by the host's ``stop``; all its accesses are complete.
    HALTED = 2
    #: Stopped by a fault; all its accesses are complete.
    FAULTED = 3


def pc_shape(config: PeConfig) -> Shape:
    """A program counter within the engine.

    From :data:`EXACT_PC_WORDS` words of instruction buffer on it holds every place that a branch
    can reach. Smaller engines keep the address within the buffer and, as sign, whether it lies
    outside; so the address reported with ``PC_OUT_OF_PROGRAM`` is right modulo the buffer's words.
    """
    if config.instruction_words >= EXACT_PC_WORDS:
        return signed(PC_BITS)
    return signed(config.pc_bits + 1)


def load_word(config: PeConfig) -> data.StructLayout:
    """One word for the instruction buffer: ``address`` (words) and ``word``."""
    return data.StructLayout({"address": config.pc_bits, "word": 32})


def launch_command(config: PeConfig) -> data.StructLayout:
    """A launch: ``words``, the program's length (words), and ``parameters``, a DRAM address."""
    return data.StructLayout({"words": config.pc_bits + 1, "parameters": 64})


def status_layout() -> data.StructLayout:
    """Status of an engine.

    Members:
        state: :class:`PeState`.
        cause, pc: after a fault, why (see :class:`isa.faults.FaultCause`) and the address of the
            faulting instruction (signed, and wide enough for every place that a branch can reach,
            as it may leave the program on either side; :func:`pc_shape` has the exception).
        memory_error: memory answered an access of this launch with an error, whatever ``cause``
            says; cleared by a launch.
    """
    return data.StructLayout(
        {
            "state": PeState,
            "cause": max(FaultCause).bit_length(),
            "pc": signed(PC_BITS),
            "memory_error": 1,
        }
    )


class ControlPort(wiring.Signature):
    """How the host controls a processing engine, seen from the engine.

    Members:
        load: stream of :func:`load_word`, in; accepted while the engine is not running.
        launch: stream of :func:`launch_command`, in; accepted while the engine is not running.
        stop: in; while 1, a running engine issues nothing more, finishes and halts.
        status: :func:`status_layout`, out.
        counter_index: in; which :class:`hdl.counters.PeCounter` to read.
        counter_value: out, one cycle after ``counter_index``.
    """

    def __init__(self, config: PeConfig) -> None:
        super().__init__(
            {
                "load": In(stream.Signature(load_word(config))),
                "launch": In(stream.Signature(launch_command(config))),
                "stop": In(1),
                "status": Out(status_layout()),
                "counter_index": In(4),
                "counter_value": Out(COUNTER_BITS),
            }
        )


class IdentityPort(wiring.Signature):
    """Which processing engine this is, seen from the engine: inputs, so that all share one module.

    Members (in): ``pe_index``, ``vault``, ``slot``, ``pe_count``; they reach the program in
    :data:`isa.launch.START_REGISTERS`.
    """

    def __init__(self) -> None:
        super().__init__({"pe_index": In(16), "vault": In(16), "slot": In(16), "pe_count": In(16)})
