"""A serial line of the operating system, or a pseudo-terminal, as a stream of bytes."""

import errno
import os
import select
import termios
import tty
from pathlib import Path
from typing import Self

from soc.host.transport import HostError

#: Rates of serial lines in bits per second, fastest first, that a clock may make.
RATES = (3_000_000, 2_000_000, 1_000_000, 500_000, 115_200)
#: Most deviation of a rate: half of a bit within ten, at both ends, less that of the other's clock.
_TOLERANCE = 0.015
_REMEDIES = {
    errno.ENOENT: "there is no such port; is the board plugged in?",
    errno.EACCES: "no permission; join its group (ls -l), often dialout, and log in again",
    errno.EBUSY: "another program has it open",
    errno.ENOTTY: "not a serial port",
}


def line_rate(mhz: float) -> tuple[int, int]:
    """The fastest rate of :data:`RATES` that a clock of ``mhz`` makes, and the cycles of a bit.

    Raises:
        HostError: it makes none.
    """
    for rate in RATES:
        divisor = round(mhz * 1e6 / rate)
        if divisor >= 8 and abs(mhz * 1e6 / divisor / rate - 1) <= _TOLERANCE:
            return rate, divisor
    raise HostError(f"a clock of {mhz:g} MHz makes none of the rates {', '.join(map(str, RATES))}")


class Terminal:
    """A :class:`soc.board.serial_transport.ByteStream` over the file of a terminal; a context
    manager.

    Parameters:
        path: of its file. rate: one of :data:`RATES`, in bits per second.

    Raises:
        HostError: it can't be opened; the message says what to do.
    """

    def __init__(self, path: Path | str, rate: int) -> None:
        self._path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
            tty.setraw(self._file)
            settings = termios.tcgetattr(self._file)
            settings[2] |= termios.CLOCAL | termios.CREAD
            settings[4] = settings[5] = getattr(termios, f"B{rate}")
            termios.tcsetattr(self._file, termios.TCSANOW, settings)
        except OSError as error:
            raise HostError(f"{path}: {_REMEDIES.get(error.errno or 0, error.strerror)}") from None
        except termios.error as error:
            raise HostError(f"{path}: {_REMEDIES.get(error.args[0], error.args[-1])}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def send(self, content: bytes) -> None:
        try:
            while content:
                select.select([], [self._file], [])
                content = content[os.write(self._file, content) :]
        except OSError as error:
            raise self._gone(str(error.strerror)) from None

    def receive(self, seconds: float) -> bytes:
        try:
            ready, _, _ = select.select([self._file], [], [], seconds)
            content = os.read(self._file, 1 << 12) if ready else b""
        except BlockingIOError:
            return b""
        except OSError as error:
            raise self._gone(str(error.strerror)) from None
        if ready and not content:
            raise self._gone("it has ended")
        return content

    def _gone(self, reason: str) -> HostError:
        return HostError(f"{self._path}: the line broke ({reason}); is it still plugged in?")
