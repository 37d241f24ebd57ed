"""The control bus: how the host's control port reaches the processing engines of all vaults.

It is a ring. The host's port (:class:`soc.host.control.HostControl`) sends each access as a message
through all tiles, from one to the next and back; what an access concerns, every tile
(:class:`soc.tile.control.TileControl`) finds out by itself, acts, adds its answer and passes the
message on. So there is one kind of link and nothing to distribute or to merge; a broadcast is
acknowledged by coming back, and an access that concerns nobody comes back too. Messages keep their
order and several may be on the way.

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

__all__ = [
    "INDEX_BITS",
    "ControlBitmap",
    "ControlCommand",
    "ControlLink",
    "ControlSpace",
    "control_message",
    "control_summary",
    "register_index",
    "register_match",
]

#: Bits of the number of a PE, a vault, a group of PEs or a word of a program.
INDEX_BITS = 16
#: Bits of the number of a register within the largest page that a tile answers for.
_REGISTER_BITS = max(
    (block.page_bytes // WORD_BYTES - 1).bit_length() for block in BLOCKS if block.pages > 1
)
_DATA_BITS = WORD_BYTES * 8


class ControlSpace(enum.Enum, shape=3):
    """Whom a message concerns, and what ``index`` and ``register`` mean."""

    #: Nobody: the host's port has answered already.
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
    """What the selected PEs shall do with ``data``."""

    #: Keep it as word ``index`` of the program.
    LOAD = 0
    #: Keep it as part of the address of the parameter block.
    PARAMETERS_LOW = 1
    PARAMETERS_HIGH = 2
    #: Launch a program of so many words.
    START = 3
    STOP = 4
    #: All PEs, selected or not: be selected if bit 0 is 1, else be not.
    SELECT_ALL = 5


class ControlBitmap(enum.Enum, shape=2):
    """What a bit of a bitmap register tells of its PE."""

    SELECT = 0
    RUNNING = 1
    HALTED = 2
    FAULTED = 3


def control_message() -> data.StructLayout:
    """An access on its way round.

    Members:
        write: 1 for a write.
        space: :class:`ControlSpace`.
        index, register: see there.
        data: word to write; on a read, what the tiles so far have answered, else 0.
        taken: a tile was concerned.
        response: :class:`hdl.axi.AxiResponse` so far.
    """
    return data.StructLayout(
        {
            "write": 1,
            "space": ControlSpace,
            "index": INDEX_BITS,
            "register": _REGISTER_BITS,
            "data": _DATA_BITS,
            "taken": 1,
            "response": AxiResponse,
        }
    )


def control_summary() -> data.StructLayout:
    """What the PEs of the tiles so far do: ``running`` and ``faulted`` (a PE is), and ``fault``, 1
    for one cycle after a PE has faulted."""
    return data.StructLayout({"running": 1, "faulted": 1, "fault": 1})


class ControlLink(wiring.Signature):
    """Link of the ring, seen from where it begins.

    Members (out):
        message: stream of :func:`control_message`.
        summary: :func:`control_summary`. What a message has done is on the summary within two
            cycles after the message has moved.
    """

    def __init__(self) -> None:
        super().__init__(
            {
                "message": Out(stream.Signature(control_message())),
                "summary": Out(control_summary()),
            }
        )


def register_match(register: Register, word: Value) -> Value:
    """Whether ``word``, a word offset in the page of ``register``, is that of ``register`` or of
    one of its array."""
    mask = ((1 << len(word)) - 1) & ~(register.index_mask // WORD_BYTES)
    return (word & mask) == register.offset // WORD_BYTES


def register_index(register: Register, word: Value) -> Value:
    """Which of the array of ``register`` the word offset ``word`` in its page is of."""
    low = register.index_low - (WORD_BYTES - 1).bit_length()
    return word[low : low + register.index_bits]
