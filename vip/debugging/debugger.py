"""A debugger of one engine on the instruction set simulator."""

import re
from bisect import bisect_right
from pathlib import Path
from typing import Any, Literal

from numpy.typing import NDArray

from isa.accesses import Space
from isa.image import DramImage
from isa.program import Program
from isa.run import EngineEnd
from soc.generate.presets import Design, advised, engine
from support.checks import Checks
from support.errors import suggestion
from vip.programs import LIMIT, fill, load_program, memory_contents
from vip.progress import Progress, silent

from .timeline import Timeline
from .views import DebugError, ElementType, Kind, ListedWord, Matrix, Point, Stop

_CHECK = Checks(DebugError)
_NUMBER = re.compile(r"0x[0-9a-fA-F]{1,16}|[0-9]{1,20}")
_REGISTER = re.compile(r"r([0-9]{1,2})")
#: Words of a listing before the next instruction.
_BEFORE = 3
#: Most elements of a matrix.
_MOST_ELEMENTS = 65536


class Debugger:
    """One engine (PE) that is stopped between two instructions; :func:`debug` makes it.

    Time is the number of executed instructions. Use it in a ``with`` statement, or call
    :meth:`close`. :class:`vip.debugging.commands.DebugSession` executes the same commands as text.

    Attributes:
        program: the program.
        limit: most instructions per :meth:`resume`.
        points: breakpoints and watchpoints by number.
    """

    def __init__(
        self,
        program: Program,
        config: Design,
        *,
        memory: bytes | Path | None,
        parameters: int,
        limit: int,
        progress: Progress,
    ) -> None:
        chosen = engine(config)
        _CHECK.at_least("limit", limit, 1)
        self.program, self.limit, self._config = program, limit, chosen
        self.points: dict[int, Point] = {}
        self._numbers = 0
        self._image = DramImage(1 << chosen.address_bits)
        try:
            fill(self._image, memory)
            self._run = Timeline(program, self._image, chosen.limits, parameters, progress)
        except BaseException:
            self._image.close()
            raise

    def __enter__(self) -> "Debugger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the memory; idempotent."""
        self._image.close()

    # Places.

    def number(self, text: str) -> int:
        """The value of ``text``: a sum of numbers, registers and the program's constants.

        Raises:
            DebugError: it is none of these.
        """
        total = 0
        for term in text.split("+"):
            register = _REGISTER.fullmatch(term)
            if register and int(register[1]) < len(self._run.simulator.registers):
                total += self._run.simulator.registers[int(register[1])]
            elif term in self.program.constants:
                total += self.program.constants[term]
            elif _NUMBER.fullmatch(term):
                total += int(term, 16 if term.startswith("0x") else 10)
            else:
                raise DebugError(
                    f"{term!r} is not a number: give one, a register, a constant, or a "
                    "sum of them, such as r9+0x20"
                )
        return total

    def place(self, text: str) -> int:
        """The word address that ``text`` names: a label, ``LABEL+N``, a word address, or ``:LINE``
        of the source.

        Raises:
            DebugError: the program has no such label, word or line.
        """
        words = len(self.program.words)
        if text.startswith(":"):
            lines: dict[int, int] = {}
            for at, source in sorted(self.program.source.items()):
                lines.setdefault(source.line, at)
            if not _NUMBER.fullmatch(text[1:]) or self.number(text[1:]) not in lines:
                raise DebugError(f"no instruction comes from line {text[1:]!r} of the source")
            return lines[self.number(text[1:])]
        name, _, distance = text.partition("+")
        if name in self.program.symbols:
            address = self.program.symbols[name] + (self.number(distance) if distance else 0)
        elif _NUMBER.fullmatch(name) and not distance:
            address = self.number(name)
        else:
            near = suggestion(name, self.program.symbols)
            raise DebugError(f"no label {name!r} in the program{near}")
        if address >= words:
            raise DebugError(f"{text}: word {address} is outside the program, 0 to {words - 1}")
        return address

    def _extent(self, space: Space, start: int, size: int) -> None:
        """Refuse bytes outside ``space``."""
        limit = self._run.size(space)
        if size < 1:
            raise DebugError(f"{size} bytes of the {space}: at least 1 is needed")
        if start < 0 or start + size > limit:
            extent = f"register r{start}" if space == "register" else f"{size} bytes at {start:#x}"
            last = f"r{limit - 1}" if space == "register" else f"{limit - 1:#x}"
            raise DebugError(f"{extent}: outside the {space}, whose last one is {last}")

    # Points.

    def break_at(self, place: str | int) -> Point:
        """Stop before the word at ``place``, as for :meth:`place`; return the breakpoint, new or
        not.

        Raises:
            DebugError: as for :meth:`place`.
        """
        address = self.place(str(place))
        if (number := self._run.breakpoints.get(address)) is not None:
            return self.points[number]
        self._numbers += 1
        point = self.points[self._numbers] = Point(self._numbers, "break", address)
        self._run.breakpoints[address] = point.number
        return point

    def watch(self, space: Space, start: int, size: int = 1, kind: Kind = "write") -> Point:
        """Stop after each instruction that touches a byte.

        Parameters:
            space: where the bytes are; for a register ``start`` is its number.
            start, size: the bytes. kind: the accesses that stop it, not ``break``.

        Raises:
            DebugError: bytes outside, or a register with an access other than writing.
        """
        self._extent(space, start, size)
        if space == "register" and kind != "write":
            raise DebugError(f"watch r{start}: registers can be watched only for write")
        self._numbers += 1
        point = Point(self._numbers, kind, start, size, space)
        self.points[point.number] = self._run.watchpoints[point.number] = point
        return point

    def delete(self, number: int) -> Point:
        """Remove the point ``number``.

        Raises:
            DebugError: there is no such point.
        """
        if number not in self.points:
            have = ", ".join(map(str, self.points)) or "there is none"
            raise DebugError(f"no point {number}: {have}")
        point = self.points.pop(number)
        if point.space is None:
            del self._run.breakpoints[point.start]
        else:
            del self._run.watchpoints[number]
        return point

    # Movement.

    def step(self, count: int = 1) -> Stop:
        """Execute ``count`` instructions, at least 1, or until a point is met."""
        _CHECK.within("steps", count, 1, self.limit)
        met = self._run.forward(self._run.now + count)
        return self._stop("point" if met else "steps")

    def back(self, count: int = 1) -> Stop:
        """Go back ``count`` instructions, at least 1, or to the launch."""
        _CHECK.at_least("steps", count, 1)
        return self.go(max(0, self._run.now - count))

    def go(self, time: int) -> Stop:
        """Go to ``time``, or to the program's end if that comes first.

        Raises:
            DebugError: it is negative, or more than ``limit`` instructions ahead.
        """
        current = self._run.now
        _CHECK.within("time", time, 0, current + self.limit)
        self._run.go(time)
        return self._stop("steps")

    def resume(self) -> Stop:
        """Execute until a point is met, the program ends, or ``limit`` instructions are done."""
        met = self._run.forward(self._run.now + self.limit)
        return self._stop("point" if met else "limit")

    def reverse(self) -> Stop:
        """Go back to the last time at which a point was met, or to the launch."""
        return self._stop("point" if self._run.reverse() else "launch")

    @property
    def executed(self) -> set[str]:
        """Keys of the instructions executed until the latest time that was reached."""
        return self._run.executed

    def where(self) -> Stop:
        """Where the program is."""
        return self._stop("point" if self._run.hits else "steps")

    def _stop(self, reason: Literal["launch", "steps", "point", "limit"]) -> Stop:
        run, end = self._run, self._run.end
        simulator, pc = run.simulator, run.simulator.pc
        return Stop(
            state="stopped" if end is None else end.state,
            cause="NONE" if end is None else end.cause.name,
            fault="" if end is None else self._fault(end),
            reason="end" if end is not None else "launch" if run.now == 0 else reason,
            time=run.now,
            pc=pc,
            place=self._named(pc),
            hits=tuple(run.hits),
            next=self._word(pc),
            vl=simulator.vl,
            mr=simulator.mr,
            fx=simulator.fx,
        )

    def _fault(self, end: EngineEnd) -> str:
        return advised(end.fault, self.program, end.cause, end.pc, self._config)

    def _named(self, pc: int) -> str:
        labels = sorted((address, name) for name, address in self.program.symbols.items())
        at = bisect_right(labels, pc, key=lambda label: label[0]) - 1
        if at < 0:
            return str(pc)
        address, name = labels[at]
        return name if address == pc else f"{name}+{pc - address}"

    def _word(self, pc: int) -> ListedWord | None:
        if not 0 <= pc < len(self.program.words):
            return None
        return self._run.listing([pc])[0]

    # Views.

    def registers(self, *numbers: int) -> dict[int, int]:
        """The 64-bit patterns of the registers ``numbers``; None: of all that are not 0.

        Raises:
            DebugError: a register that the engine lacks.
        """
        values = self._run.simulator.registers
        for number in numbers:
            self._extent("register", number, 1)
        chosen = numbers or tuple(at for at, value in enumerate(values) if value)
        return {number: values[number] for number in chosen}

    def matrix(
        self, space: Space, start: int, rows: int, columns: int, kind: ElementType
    ) -> Matrix:
        """Bytes of the scratchpad or the memory from ``start`` on, as a matrix.

        Parameters:
            rows, columns: 1..65536 elements together. kind: their type.

        Raises:
            DebugError: an invalid size, or bytes outside.
        """
        if rows < 1 or columns < 1 or rows * columns > _MOST_ELEMENTS:
            raise DebugError(f"{rows}x{columns}: a matrix has 1 to {_MOST_ELEMENTS} elements")
        size = rows * columns * kind.size
        self._extent(space, start, size)
        data = self._run.content(space, start, size)
        return Matrix(space, start, kind, kind.numbers(data).reshape(rows, columns))

    def listing(self, place: str | None = None, count: int = 8) -> tuple[ListedWord, ...]:
        """Words of the program with their source.

        Parameters:
            place: the first one; None: a few before the next instruction. count: at least 1.

        Raises:
            DebugError: as for :meth:`place`.
        """
        _CHECK.at_least("words", count, 1)
        pc, words = self._run.simulator.pc, len(self.program.words)
        first = min(max(0, pc - _BEFORE), words - 1) if place is None else self.place(place)
        return self._run.listing(range(first, min(first + count, words)))


def debug(
    program: Program | Path | str,
    config: Design = "pe",
    *,
    memory: bytes | NDArray[Any] | Path | str | None = None,
    parameters: int = 0,
    limit: int = LIMIT,
    progress: Progress = silent,
) -> Debugger:
    """A debugger of a program on the instruction set simulator, at its launch.

    Parameters:
        program: a program, or the name or path of a program file or of assembly.
        config: of the engine.
        memory: contents from address 0 on: bytes, an array as it lies in memory, or the name or
            path of a file; None: zeros.
        parameters: DRAM address of the parameter block (r5).
        limit: most instructions per :meth:`Debugger.resume`, at least 1.
        progress: called with the instructions so far.

    Raises:
        VipError: a program, configuration or memory that can't be used.
        OSError: a file that can't be read.
    """
    return Debugger(
        load_program(program),
        config,
        memory=memory_contents(memory),
        parameters=parameters,
        limit=limit,
        progress=progress,
    )
