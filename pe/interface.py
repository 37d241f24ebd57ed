"""The control interface of a processing engine: launch by the host, status and counters.

Counters run from launch to the end of the program. Every cycle of a running program is counted once
in ``CYCLES`` and once in exactly one of the ``ISSUED_*`` and ``STALL_*`` counters.
"""

from enum import IntEnum

from amaranth.hdl import Shape, signed
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import In, Out

from hdl.counter_bank import COUNTER_BITS
from isa.faults import FaultCause
from isa.table import IMM14

from .config import PeConfig

#: Signed width of a program counter: the largest instruction buffer and a branch out of it.
PC_BITS = IMM14.bits + 1
#: Engines with fewer words of program keep program counters short; see :func:`pc_shape`.
EXACT_PC_WORDS = 1024
#: Note of a control port whose engine has its program built in.
BUILT_IN_NOTE = (
    "The program of this engine is built in, so offer only `launch`: words on `load` are taken and "
    "ignored, as is the length in `launch`."
)


class PeCounter(IntEnum):
    """Index of each counter on the control port."""

    CYCLES = 0
    #: Instructions issued, by functional unit; ``ISSUED_CONTROL`` are those of the issue stage.
    ISSUED_SCALAR = 1
    ISSUED_VECTOR = 2
    ISSUED_LOAD_STORE = 3
    ISSUED_CONTROL = 4
    #: No instruction at the issue stage: start-up and taken branches.
    STALL_FETCH = 5
    #: A register to read or write waits for its value from memory.
    STALL_REGISTER = 6
    #: The instruction's scratchpad range overlaps a transfer in flight.
    STALL_ARC_CONFLICT = 7
    #: A transfer found all entries of the array range check in use.
    STALL_ARC_FULL = 8
    #: A vector instruction waits for the vector unit.
    STALL_VECTOR = 9
    #: A load or store waits for the load-store unit.
    STALL_LOAD_STORE = 10
    #: ``v.drain`` waits.
    STALL_DRAIN = 11
    #: ``memfence`` waits, or ``halt`` or a fault waits for the units to finish.
    STALL_FENCE = 12
    #: Cycles in which the vector unit reads a beat.
    VECTOR_BUSY = 13
    #: Bytes requested from memory and bytes written to it.
    BYTES_LOADED = 14
    BYTES_STORED = 15


class HistoryCounter(IntEnum):
    """Index of each counter of an engine with a load history (``load_history`` of
    :class:`pe.config.PeConfig`), on the control port, after those of :class:`PeCounter`."""

    #: Column lookups; a lookup is repeated if its set changes meanwhile.
    HISTORY_PROBES = 16
    #: Columns copied within the scratchpad.
    HISTORY_HITS = 17
    #: Columns of the declared image requested from memory.
    WORKSPACE_COLUMNS = 18


def counters_of(config: PeConfig) -> tuple[IntEnum, ...]:
    """The counters of an engine."""
    if not config.counters:
        return ()
    return (*PeCounter, *HistoryCounter) if config.load_history else tuple(PeCounter)


def counter_index_bits(config: PeConfig) -> int:
    """Bits of a counter's index on the control port."""
    return max(HistoryCounter if config.load_history else PeCounter).bit_length()


class PeState(enum.Enum, shape=2):
    """State of a processing engine."""

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
    """One word for the instruction buffer.

    Members:
        address (pc_bits): number of the word in the program, from 0 on.
        word (32): the encoded instruction.
    """
    return data.StructLayout({"address": config.pc_bits, "word": 32})


def launch_command(config: PeConfig) -> data.StructLayout:
    """A launch.

    Members:
        words (pc_bits + 1): length of the program, at least 1.
        parameters (64): start value of register 5, by convention the memory's byte address of the
            program's parameters.
    """
    return data.StructLayout({"words": config.pc_bits + 1, "parameters": 64})


def status_layout() -> data.StructLayout:
    """Status of an engine.

    Members:
        state (:class:`PeState`): HALTED and FAULTED mean that all accesses are complete.
        cause (:class:`isa.faults.FaultCause`): why the engine faulted.
        pc (PC_BITS): after a fault, the number of the faulting word, wide enough for every place
            that a branch can reach, as it may leave the program on either side (engines with fewer
            than 1024 words report it modulo their words).
        memory_error (1): memory answered an access of this launch with an error, whatever the
            ``cause``; cleared by a launch.
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
    """The host's control of a processing engine, seen from the engine.

    To run a program: offer its words to ``load``, in any order, then offer one ``launch``, and wait
    until ``status.state``, RUNNING from the next cycle on, is HALTED or FAULTED. Both streams are
    taken only while the engine is not running. The instruction buffer keeps its words, so a program
    can be launched again.

    Members:
        load (in, stream of :func:`load_word`): words of the program.
        launch (in, stream of :func:`launch_command`): starts the program.
        stop (in, 1): while 1, a running engine stops issuing, completes its accesses and halts.
        status (out, :func:`status_layout`): state, and what went wrong.
        counter_index (in, :class:`PeCounter`): counter to read.
        counter_value (out, COUNTER_BITS): its value, one cycle after ``counter_index``.

    Attributes:
        note: for users of the port, what ``config`` changes; "" if nothing.
        counted: the counters that exist.
    """

    def __init__(self, config: PeConfig) -> None:
        self.note = "" if config.program is None else BUILT_IN_NOTE
        self.counted: tuple[IntEnum, ...] = counters_of(config)
        super().__init__(
            {
                "load": In(stream.Signature(load_word(config))),
                "launch": In(stream.Signature(launch_command(config))),
                "stop": In(1),
                "status": Out(status_layout()),
                "counter_index": In(counter_index_bits(config)),
                "counter_value": Out(COUNTER_BITS),
            }
        )


class IdentityPort(wiring.Signature):
    """Which processing engine this is, seen from the engine: inputs, so that all share one module.

    A launch copies them to registers 1 to 4, in this order.

    Members:
        pe_index (in, 16): number of this engine in the chip; 0 if it is alone.
        vault (in, 16): number of its vault in the chip; 0 if it is alone.
        slot (in, 16): number of this engine in its vault; 0 if it is alone.
        pe_count (in, 16): engines in the chip; 1 if it is alone.
    """

    def __init__(self) -> None:
        super().__init__({"pe_index": In(16), "vault": In(16), "slot": In(16), "pe_count": In(16)})
