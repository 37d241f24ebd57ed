"""The host driver's transport over a stream of bytes, such as a serial line."""

import time
from collections.abc import Sequence
from typing import Protocol

from hdl.axi import AxiResponse
from soc.host.transport import BusError, HostError

from .frame import (
    LINK_IDENTITY,
    MAX_WORDS,
    WORD_BYTES,
    LinkRegister,
    Request,
    Response,
    Space,
    decode_response,
)

#: Requests sent before a chip is given up.
_TRIES = 40
#: Most of the patience's multiples that it waits after a request; the port drops what it takes for
#: the beginning of a frame only after a pause of its ``gap``.
_LONGEST = 8
#: Fewest words of a frame, which has half as many after a loss and twice as many after a success.
_FEWEST_WORDS = 8


class ByteStream(Protocol):
    """Both directions of a line. Errors of the line itself are :class:`HostError`."""

    def send(self, content: bytes) -> None:
        """Send ``content``."""

    def receive(self, seconds: float) -> bytes:
        """The bytes that have arrived: at least one, or none within about ``seconds``."""


class SerialTransport:
    """A :class:`soc.host.transport.BlockingTransport` to a
    :class:`soc.board.serial_host.SerialHost`.

    A request without response is sent again, and is performed only once. Frames become shorter
    where many are lost.

    Parameters:
        line: to the chip.
        patience: seconds without a byte after which a request is sent again; with each repetition
            more, up to 8 times as many, which is longer than the port's ``gap``.

    Attributes:
        resent: requests that were sent again.

    Raises (every method):
        HostError: there is no response to many requests, or the line fails.
        BusError: the chip refused an access.
    """

    def __init__(self, line: ByteStream, *, patience: float = 0.05) -> None:
        self._line = line
        self._patience = patience
        self._sequence: int | None = None
        self._words = MAX_WORDS
        self.resent = 0

    def check(self, digest: int, what: str) -> None:
        """Check that the chip is of the configuration with ``digest``.

        Parameters:
            what: names it in the message.

        Raises:
            HostError: it is of another, or another kind of device.
        """
        identity, low, high = self._read(Space.LINK, LinkRegister.IDENTITY * WORD_BYTES, 3, "port")
        if identity != LINK_IDENTITY:
            raise HostError(
                f"not a serial port of VIP: it is {identity:#x}, not {LINK_IDENTITY:#x}"
            )
        present = high << 8 * WORD_BYTES | low
        if present != digest:
            raise HostError(
                f"the board has another bit file: configuration {present:016x}, not {digest:016x} "
                f"of {what}; load that one"
            )

    def dropped(self) -> int:
        """Damaged requests that the chip has dropped, modulo 2**16."""
        return self._read(Space.LINK, LinkRegister.DROPPED * WORD_BYTES, 1, "port")[0]

    def read32(self, address: int) -> int:
        """See :class:`soc.host.transport.Transport`, as for the other methods."""
        return self._read(Space.REGISTER, address, 1, "register")[0]

    def write32(self, address: int, value: int) -> None:
        self.write_block(address, [value])

    def write_block(self, address: int, words: Sequence[int]) -> None:
        self._write(Space.REGISTER, address, words, "register")

    def read_memory(self, address: int, length: int) -> bytes:
        first = address // WORD_BYTES * WORD_BYTES
        count = -(-(address + length - first) // WORD_BYTES)
        words = self._read(Space.MEMORY, first, count, "memory")
        content = b"".join(word.to_bytes(WORD_BYTES, "little") for word in words)
        return content[address - first : address - first + length]

    def write_memory(self, address: int, content: bytes) -> None:
        # The words at both ends may be written in part.
        head = min(-address % WORD_BYTES, len(content))
        tail = (len(content) - head) % WORD_BYTES
        middle = len(content) - head - tail
        for start, size in ((0, head), (head, middle), (head + middle, tail)):
            if not size:
                continue
            place = (address + start) % WORD_BYTES
            padded = bytes(place) + content[start : start + size]
            padded += bytes(-len(padded) % WORD_BYTES)
            words = [
                int.from_bytes(padded[n : n + WORD_BYTES], "little")
                for n in range(0, len(padded), WORD_BYTES)
            ]
            full = (1 << WORD_BYTES) - 1
            strobe = full if size == middle else (1 << size) - 1 << place
            self._write(Space.MEMORY, address + start - place, words, "memory", strobe)

    def wait_interrupt(self, seconds: float) -> None:
        if not self._read(Space.LINK, LinkRegister.INTERRUPT * WORD_BYTES, 1, "port")[0]:
            time.sleep(seconds)

    def _read(self, space: Space, address: int, count: int, what: str) -> list[int]:
        words: list[int] = []
        while len(words) < count:
            number = min(self._words, count - len(words))
            place = address + len(words) * WORD_BYTES
            words += self._perform(Request(space, place, number), f"read of {what}")
        return words

    def _write(
        self, space: Space, address: int, words: Sequence[int], what: str, strobe: int = 0xF
    ) -> None:
        done = 0
        while done < len(words):
            part = tuple(words[done : done + self._words])
            place = address + done * WORD_BYTES
            self._perform(Request(space, place, words=part, strobe=strobe), f"write to {what}")
            done += len(part)

    def _perform(self, request: Request, access: str) -> tuple[int, ...]:
        """The words of the response to ``request``."""
        if self._sequence is None:
            # A write with the number of the last frame of an earlier host would not be performed;
            # a read is always, and its number is then the last.
            self._sequence = 0
            self._perform(Request(Space.LINK, 0, 1), "read of port")
        self._sequence = (self._sequence + 1) % 256
        response = self._exchange(request.encode(self._sequence), request.operation & 0xF)
        if response.answer:
            address = request.address + response.last * WORD_BYTES
            raise BusError(access, address, AxiResponse(response.answer).name)
        return response.words

    def _exchange(self, frame: bytes, operation: int) -> Response:
        for number in range(1, _TRIES + 1):
            self._line.send(frame)
            content = b""
            pause = self._patience * min(number, _LONGEST)
            while arrived := self._line.receive(pause):
                content += arrived
                response, used = decode_response(content)
                while response is not None:
                    if (response.operation, response.sequence) == (operation, self._sequence):
                        self._words = min(2 * self._words, MAX_WORDS)
                        return response
                    # It answers an earlier request, which was sent twice.
                    content = content[used:]
                    response, used = decode_response(content)
            self.resent += 1
            self._words = max(self._words // 2, _FEWEST_WORDS)
        raise HostError(
            f"no answer to {_TRIES} requests: is the board on, loaded, and this its serial line?"
        )
