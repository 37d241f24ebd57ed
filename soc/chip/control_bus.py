"""The control bus: the connection from the host's control port to the engines of all vaults.

It is a ring. The host's port (:class:`soc.host.control.HostControl`) sends each access as a message
through all tiles, from one to the next and back. Every tile (:class:`soc.tile.control.TileControl`)
decides whether a message addresses it, acts, adds its response and passes the message on. So there
is one kind of link, and no module to distribute or merge. The return of a broadcast is its
acknowledgement, and an access without an addressee also returns. Messages keep their order, and
several may be in flight.

In a chip, ``host.first`` goes to ``tiles[0].input``, each ``tiles[n].output`` to
``tiles[n + 1].input``, and the last tile's ``output`` to ``host.last``. Registers may be put into
any link, but the same number on message and summary.
"""

from amaranth.hdl import Value
from amaranth.lib import data, enum, stream, wiring
from amaranth.lib.wiring import Out

from hdl.axi import AxiResponse
from soc.host.register_map import BLOCKS
from soc.host.register_types import WORD_BYTES, Register

#: Bits of the number of a PE, a vault, a group of PEs or a word of a program.
INDEX_BITS = 16
#: Bits of the number of a register within the largest page of a tile.
_REGISTER_BITS = max(
    (block.page_bytes // WORD_BYTES - 1).bit_length() for block in BLOCKS if block.pages > 1
)
_DATA_BITS = WORD_BYTES * 8


class ControlSpace(enum.Enum, shape=3):
    """Addressees of a message, and the meaning of its ``index`` and ``register``."""

    #: None: the host's port has answered already.
    CHIP = 0
    #: The selected PEs; ``register`` is a :class:`ControlCommand`.
    COMMAND = 1
    #: The 32 PEs of bitmap register ``index``; ``register`` is a :class:`ControlBitmap`.
    GROUP = 2
    #: PE ``index``; ``register`` is the word offset in its page.
    PE = 3
    #: Vault ``index``; ``register`` is the word offset in its page.
    VAULT = 4


class ControlCommand(enum.Enum, shape=3):
    """A command to the selected PEs, with its ``data``."""

    #: Store it as word ``index`` of the program.
    LOAD = 0
    #: Store it as part of the address of the parameter block.
    PARAMETERS_LOW = 1
    PARAMETERS_HIGH = 2
    #: Launch a program of ``data`` words.
    START = 3
    STOP = 4
    #: Select all PEs if bit 0 is 1, none otherwise; goes to all PEs.
    SELECT_ALL = 5


class ControlBitmap(enum.Enum, shape=2):
    """Meaning of a PE's bit in a bitmap register."""

    SELECT = 0
    RUNNING = 1
    HALTED = 2
    FAULTED = 3


def control_message() -> data.StructLayout:
    """An access on the ring.

    Members:
        write (1): 1 for a write.
        space (:class:`ControlSpace`): addressees.
        index: see :class:`ControlSpace`.
        register: see :class:`ControlSpace`.
        data (32): word to write; on a read, the response of the tiles so far, else 0.
        addressed (1): some tile so far was addressed.
        response (:class:`hdl.axi.AxiResponse`): so far.
    """
    return data.StructLayout(
        {
            "write": 1,
            "space": ControlSpace,
            "index": INDEX_BITS,
            "register": _REGISTER_BITS,
            "data": _DATA_BITS,
            "addressed": 1,
            "response": AxiResponse,
        }
    )


def control_summary() -> data.StructLayout:
    """State of the PEs of the tiles so far.

    Members:
        running (1): a PE runs.
        faulted (1): a PE has stopped at a fault.
        fault (1): 1 for one cycle after a PE has faulted.
    """
    return data.StructLayout({"running": 1, "faulted": 1, "fault": 1})


class ControlLink(wiring.Signature):
    """Link of the ring, seen from its source.

    Members:
        message (out, stream of :func:`control_message`): accesses.
        summary (out, :func:`control_summary`): includes the effect of a message within two cycles
            after the message has moved.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "message": Out(stream.Signature(control_message())),
                "summary": Out(control_summary()),
            }
        )


def register_match(register: Register, word: Value) -> Value:
    """Whether ``word``, an offset in words in its page, is of ``register`` or its array."""
    mask = ((1 << len(word)) - 1) & ~(register.index_mask // WORD_BYTES)
    return (word & mask) == register.offset // WORD_BYTES


def register_index(register: Register, word: Value) -> Value:
    """Index of the word offset ``word`` in the array of ``register``."""
    low = register.index_low - (WORD_BYTES - 1).bit_length()
    return word[low : low + register.index_bits]
