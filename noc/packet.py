"""Packets: a header flit and the flits after it.

| packet | flits |
|---|---|
| request, read | header |
| request, write | header; if ``masked``, a mask; one flit per word |
| response to a read | header; one flit per word |
| response to a write | header |

A mask has the strobes of the words in their order, eight bits per word, those of the first in bits
7:0; it is sent only when some byte of some word is not written. The last flit is marked on the link
(:func:`noc.ports.flit`).
"""

from amaranth.lib import data

from hdl.ports import COLUMN_WORDS, WORD_BITS

from .config import NetworkConfig

#: Lowest bit of a byte address that distinguishes words.
WORD_ADDRESS = (WORD_BITS // 8 - 1).bit_length()


def destination(config: NetworkConfig) -> data.StructLayout:
    """The first fields of every header, and all that routers read: ``to_x`` and ``to_y``."""
    return data.StructLayout(_places(config, "to"))


def request_header(config: NetworkConfig, tag_bits: int) -> data.StructLayout:
    """Header of a request; at most 62 bits.

    Members:
        to_x (x_bits): column of the destination.
        to_y (y_bits): row of the destination.
        from_x (x_bits): column of the source.
        from_y (y_bits): row of the source.
        tag (tag_bits): name of the request at its source.
        write (1): 1 for a write.
        masked (1): a mask follows.
        words: words less one.
        word: number of the first word in the vault.
    """
    return data.StructLayout(
        {
            **_places(config, "to"),
            **_places(config, "from"),
            "tag": tag_bits,
            "write": 1,
            "masked": 1,
            "words": (COLUMN_WORDS - 1).bit_length(),
            "word": config.address_bits - WORD_ADDRESS,
        }
    )


def response_header(config: NetworkConfig, tag_bits: int) -> data.StructLayout:
    """Header of a response: ``to_x``, ``to_y``, and the ``tag`` of the request."""
    return data.StructLayout({**_places(config, "to"), "tag": tag_bits})


def _places(config: NetworkConfig, name: str) -> dict[str, int]:
    return {f"{name}_x": config.x_bits, f"{name}_y": config.y_bits}
