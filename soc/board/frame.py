"""Frames of the serial host port, as the hardware and the host's program see them.

A request is :data:`REQUEST`, an operation, a sequence number, the number of words less one, a byte
address (32 bits), the words of a write (32 bits each), and the CRC-32 of all bytes after the first
one; numbers are little-endian. The operation has 1 in bit 0 for a write, the :class:`Space` in bits
2:1, and for a write to memory, in bits 7:4, which bytes of each word are written.

A response is :data:`RESPONSE`, a byte with bits 3:0 of the operation and in bits 7:4 an
:class:`hdl.axi.AxiResponse`, the sequence number, the number of the last word that was performed,
the words of a read that did not fail, and the CRC-32.

A frame with a wrong CRC is dropped, without response, and so is one with a pause of the port's
``gap``. A write with the sequence number of the frame before is answered as that one, but not
performed again.
"""

import enum
import struct
import zlib
from dataclasses import dataclass

#: First byte of a request, and of a response.
REQUEST = 0xA5
RESPONSE = 0x5A
#: Most words of a frame.
MAX_WORDS = 256
WORD_BYTES = 4
#: Bytes of a frame after the first one and before its words; of its CRC.
REQUEST_HEADER_BYTES = 7
RESPONSE_HEADER_BYTES = 3
CRC_BYTES = 4
#: Bits of the operation that a response repeats.
OPERATION_BITS = 4

_REQUEST = struct.Struct("<BBBI")


class Space(enum.IntEnum):
    """What an address is of."""

    #: The register map of the chip.
    REGISTER = 0
    #: Its memory.
    MEMORY = 1
    #: :class:`LinkRegister`.
    LINK = 2


class LinkRegister(enum.IntEnum):
    """Registers of the serial port itself, which are read; number of the word."""

    #: :data:`LINK_IDENTITY`, and in bits 7:0 the version of the frames.
    IDENTITY = 0
    #: Digest of the chip's configuration.
    DIGEST_LOW = 1
    DIGEST_HIGH = 2
    #: 1 while the interrupt line is.
    INTERRUPT = 3
    #: Frames that were dropped, modulo 2**16.
    DROPPED = 4


#: "VL", and the version of the frames.
LINK_IDENTITY = int.from_bytes(b"VL", "big") << 16 | 1


@dataclass(frozen=True)
class Request:
    """A request.

    Attributes:
        space: of the address. address: of the first word, in bytes.
        count: words to read; 0: it is a write.
        words: to write.
        strobe: bytes of each word to write, a bit for each.
    """

    space: Space
    address: int
    count: int = 0
    words: tuple[int, ...] = ()
    strobe: int = 0xF

    @property
    def operation(self) -> int:
        """The byte of the operation."""
        return (
            (self.strobe << OPERATION_BITS if self.words else 0)
            | self.space << 1
            | (1 if self.words else 0)
        )

    def encode(self, sequence: int) -> bytes:
        """The bytes of the frame."""
        count = len(self.words) or self.count
        body = _REQUEST.pack(self.operation, sequence, count - 1, self.address)
        body += b"".join(word.to_bytes(WORD_BYTES, "little") for word in self.words)
        return bytes([REQUEST]) + body + _crc(body)


@dataclass(frozen=True)
class Response:
    """A response: its operation and sequence number, the number of the last word performed, the
    bus's answer, and the words that were read."""

    operation: int
    sequence: int
    last: int
    answer: int
    words: tuple[int, ...] = ()


def decode_response(content: bytes) -> tuple[Response | None, int]:
    """The first response in ``content``, and the bytes to drop: those before it and its own. None:
    there is no whole response; then the bytes before what may become one.

    What has a wrong CRC is not a response, wherever it begins.
    """
    start = content.find(RESPONSE)
    while start >= 0:
        header = content[start + 1 : start + 1 + RESPONSE_HEADER_BYTES]
        if len(header) < RESPONSE_HEADER_BYTES:
            return None, start
        first, sequence, last = header
        answer, operation = first >> OPERATION_BITS, first & ((1 << OPERATION_BITS) - 1)
        reads = not operation & 1 and not answer
        size = RESPONSE_HEADER_BYTES + (WORD_BYTES * (last + 1) if reads else 0)
        end = start + 1 + size + CRC_BYTES
        if len(content) < end:
            return None, start
        body = content[start + 1 : end - CRC_BYTES]
        if _crc(body) == content[end - CRC_BYTES : end]:
            words = struct.unpack(f"<{(size - RESPONSE_HEADER_BYTES) // WORD_BYTES}I", body[3:])
            return Response(operation, sequence, last, answer, words), end
        start = content.find(RESPONSE, start + 1)
    return None, len(content)


def _crc(body: bytes) -> bytes:
    return zlib.crc32(body).to_bytes(CRC_BYTES, "little")
