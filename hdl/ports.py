"""The memory port: how a requester reaches memory, signature and layouts.

The port is made to suit a vault's crossbar, a packet of the network and an AXI master alike: a
request touches one 32-byte column, moves whole 64-bit words, and is named by a tag.
"""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

__all__ = [
    "COLUMN_BYTES",
    "COLUMN_WORDS",
    "WORD_BITS",
    "MemoryPort",
    "memory_request",
    "memory_response",
]

#: Bytes of a DRAM column, the unit of a request (thesis 5.2).
COLUMN_BYTES = 32
#: Width of the data path between processing engine and memory.
WORD_BITS = 64
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
