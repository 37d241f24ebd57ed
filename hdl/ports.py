"""The memory port between requesters and memory: signature and layouts.

The port suits a vault's crossbar, a packet of the network and an AXI master alike: a request
accesses one 32-byte column, moves whole 64-bit words, and has a tag.
"""

from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

#: Bytes of a DRAM column, the unit of a request (thesis 5.2).
COLUMN_BYTES = 32
#: Width of the data path between processing engine and memory.
WORD_BITS = 64
#: Words in a column.
COLUMN_WORDS = COLUMN_BYTES * 8 // WORD_BITS
#: Bits of a byte's place in a word, and in a column.
BYTE_BITS = (WORD_BITS // 8 - 1).bit_length()
COLUMN_BITS = (COLUMN_BYTES - 1).bit_length()


def memory_request(address_bits: int, tag_bits: int) -> data.StructLayout:
    """One beat of a request.

    Members:
        address (address_bits): byte address of the 64-bit word of this beat; bits 2:0 are 0.
        tag (tag_bits): names the request; not reused before its response is complete.
        write (1): 1 for a write.
        words (2): on a read, requested words less one; they start at ``address`` and stay within
            its column. On a write, words of this beat and those after it, less one.
        data (64): word to write. Byte 0 of memory order is in bits 7:0.
        strobe (8): bytes of the word to write (any pattern, also none); all ones on a read.
        last (1): last beat. A read is one beat; a write is one beat per word, at consecutive
            addresses within one column.
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
        tag (tag_bits): of the request answered.
        data (64): on a read, the words in the order of their addresses, one per beat.
        last (1): last beat; a write is acknowledged by one beat with ``last`` set.
        error (1): the access failed (valid on the last beat); the data are then undefined, and a
            read may have ended after fewer words than were asked for.
    """
    return data.StructLayout({"tag": tag_bits, "data": WORD_BITS, "last": 1, "error": 1})


class MemoryPort(wiring.Signature):
    """Port of one requester to memory, seen from the requester.

    The beats of one request are not interleaved with those of another, nor are those of responses;
    there may be idle cycles between them. Responses to different tags may come in any order, from
    the cycle after the last beat of their request on. The memory performs the accesses of one port
    to the same 32-byte column in the order of the requests; accesses to different columns in any
    order. A write's response means that it has been performed.

    A requester takes its responses whether its own requests are taken or not, and offers the beats
    of a write without waiting for anything but ``ready``. One that does not may stop all others at
    the same memory.

    The response to a read has as many beats as words were asked for. With an error it has any
    number from one to that: only ``last`` tells where it ends, so beat counters must stop there.
    The data of a failed read are undefined.

    Parameters:
        address_bits: byte address width.
        tag_bits: tag width, so that ``2 ** tag_bits`` requests may be in flight.

    Members:
        request (out, stream of :func:`memory_request`): beats of requests.
        response (in, stream of :func:`memory_response`): beats of responses.
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
