"""A program on one engine as the page shows it: assembly, listing, run, registers, memories."""

from typing import Any, cast

from isa.accesses import Space
from isa.assembly.assembler import assemble
from isa.hazards import HazardLog
from isa.image import DramImage, ImageError
from isa.iss.simulator import Simulator
from pe.config import PeConfig
from support.errors import VipError, clipped
from vip.debugging.timeline import Timeline
from vip.debugging.views import element_type
from vip.progress import silent

_PAGE = 1 << 16


class PlainMemory(DramImage):
    """Bytes of the DRAM, zero until written; only written pages take space.

    Of the base class, only :meth:`read`, :meth:`write` and :meth:`close` work; there is no file.

    Parameters:
        size_bytes: at least 1.
    """

    def __init__(self, size_bytes: int) -> None:
        self.size = size_bytes
        self._pages: dict[int, bytearray] = {}

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _check_range(self, address: int, length: int) -> None:
        if address < 0 or length < 0 or address + length > self.size:
            raise ImageError(
                f"{length} bytes at address {address:#x} are outside the memory of {self.size} "
                "bytes"
            )

    def read(self, address: int, n: int) -> bytes:
        """A copy of the ``n`` (0 or more) bytes from byte ``address`` on.

        Raises:
            ImageError: a byte outside the memory.
        """
        self._check_range(address, n)
        result = bytearray(n)
        for page, start, end in _parts(address, n):
            if (content := self._pages.get(page)) is not None:
                at = page * _PAGE + start - address
                result[at : at + end - start] = content[start:end]
        return bytes(result)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Put ``data`` (bytes) at byte ``address``.

        Raises:
            ImageError: a byte outside the memory.
        """
        view = memoryview(data).cast("B")
        self._check_range(address, len(view))
        for page, start, end in _parts(address, len(view)):
            content = self._pages.setdefault(page, bytearray(_PAGE))
            at = page * _PAGE + start - address
            content[start:end] = view[at : at + end - start]


def _parts(address: int, length: int) -> list[tuple[int, int, int]]:
    """The bytes by page: the page's number, and the first byte and the end within it."""
    first, last = address // _PAGE, (address + length - 1) // _PAGE
    return [
        (
            page,
            max(0, address - page * _PAGE),
            min(_PAGE, address + length - page * _PAGE),
        )
        for page in range(first, last + 1)
        if length
    ]


#: Name of the source in messages.
_SOURCE = "program"
#: Most bytes of a matrix shown.
_SHOWN = 256
_COLUMN_BYTES = 32
#: Most instructions of a run that is checked for hazards.
_CHECKED = 200_000
_ADDRESS_BITS = PeConfig().address_bits


class PageError(VipError):
    """Invalid input on the page; one line says where, and what is allowed."""


def memory_of(data: str) -> PlainMemory:
    """The memory that a text describes.

    Parameters:
        data: a line ``ADDRESS TYPE NUMBER...`` for each place, such as ``0x100 i16 1 2 3``; types
            are those of :func:`vip.debugging.views.element_type`. ``;`` begins a comment.

    Raises:
        PageError: a malformed line, a number that its type can't hold, or an address outside the
            memory; the message names the line.
    """
    memory = PlainMemory(1 << _ADDRESS_BITS)
    for number, line in enumerate(data.splitlines(), 1):
        words = line.partition(";")[0].split()
        if not words:
            continue
        try:
            if len(words) < 3:
                raise PageError(
                    "an address, a type and numbers are needed, such as 0x100 i16 1 2 3"
                )
            address, kind = _number(words[0]), element_type(words[1])
            least, largest = (0, (1 << kind.bits) - 1)
            if kind.base == "i":
                least, largest = -(1 << kind.bits - 1), (1 << kind.bits - 1) - 1
            values = [_number(word) for word in words[2:]]
            if bad := [value for value in values if not least <= value <= largest]:
                raise PageError(f"{bad[0]} does not fit {kind.name}: {least} to {largest}")
            mask = (1 << kind.bits) - 1
            content = b"".join((value & mask).to_bytes(kind.size, "little") for value in values)
            memory.write(address, content)
        except VipError as error:
            raise PageError(f"data, line {number}: {error}") from error
    return memory


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise PageError(f"{clipped(text, 20)!r} is not a whole number") from None


class Workbench:
    """One program, stopped between two instructions.

    Parameters:
        source: assembly. data: the memory at the launch, as for :func:`memory_of`.

    Raises:
        VipError: a mistake in one of them; the message names the line.
    """

    def __init__(self, source: str, data: str) -> None:
        config = PeConfig()
        self.program = assemble(source, name=_SOURCE, max_words=config.instruction_words)
        if not self.program.words:
            raise PageError("there is no instruction in the program")
        self._data = data
        self._run = Timeline(self.program, memory_of(data), config.limits, 0, silent)
        self._shown = tuple(self._run.simulator.registers)

    def listing(self) -> list[dict[str, object]]:
        """The words with their source."""
        words = self._run.listing(range(len(self.program.words)))
        return [word.to_json() for word in words]

    def toggle(self, address: int) -> None:
        """Set the breakpoint at word ``address``, or remove it."""
        if self._run.breakpoints.pop(address, None) is None:
            self._run.breakpoints[address] = address

    def forward(self, count: int) -> None:
        """Execute at most ``count`` instructions, up to a breakpoint or the end."""
        self._run.forward(self._run.now + count)

    def back(self) -> None:
        """Undo the last instruction, if there is one."""
        self._run.go(max(0, self._run.now - 1))

    def hazards(self) -> list[str]:
        """The violations of timing rules in a run from the launch, one line each."""
        log = HazardLog()
        simulator = Simulator(
            self.program,
            memory_of(self._data),
            **PeConfig().limits,
            observer=log.observer(),
        )
        simulator.run(_CHECKED)
        return [hazard.describe(self.program.source) for hazard in log.hazards]

    def state(self, space: str, start: str, kind: str) -> dict[str, object]:
        """The engine's state as the page shows it.

        Parameters:
            space: the one shown, ``scratchpad`` or ``memory``. start: the first one.
            kind: their type.

        Raises:
            VipError: an unknown space or type.
        """
        engine, end = self._run.simulator, self._run.end
        before, self._shown = self._shown, tuple(engine.registers)
        return {
            "state": "stopped" if end is None else end.state,
            "fault": "" if end is None else end.fault,
            "hit": bool(self._run.hits),
            "time": self._run.now,
            "pc": engine.pc,
            "settings": {"vl": engine.vl, "mr": engine.mr, "fx": engine.fx},
            "registers": [
                {"number": number, "hex": f"{value:#x}", "signed": str(_signed(value)),
                 "changed": value != before[number]}
                for number, value in enumerate(engine.registers)
                if value or before[number]
            ],
            "matrix": self._matrix(cast(Space, space), _number(start), kind),
        }  # fmt: skip

    def _matrix(self, space: Space, start: int, kind: str) -> list[dict[str, Any]]:
        chosen = element_type(kind)
        size = self._run.size(space)
        if not 0 <= start < size:
            raise PageError(f"{start:#x} is outside the {space}, which ends at {size - 1:#x}")
        length = min(_SHOWN, size - start) // chosen.size * chosen.size
        data = self._run.content(space, start, length)
        rows = []
        for offset in range(0, length, _COLUMN_BYTES):
            part = chosen.numbers(data[offset : offset + _COLUMN_BYTES])
            rows.append(
                {"address": f"{start + offset:#x}", "values": [chosen.text(int(n)) for n in part]}
            )
        return rows


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
