"""Programs to trim to, and what all their launches have in common: declared constants and bounded
numbers in memory, and ranges of start registers."""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from isa.program import NOTHING_DECLARED, Declared, Numbers, Program, Span
from pe.config import PeConfig
from support.checks import Checks
from synth.errors import DeclarationError

from .interval import Interval, Value, bounds, join, step_of

#: Lowest and highest value of start registers (:data:`isa.launch.START_REGISTERS`), by name.
StartRanges = Mapping[str, tuple[int, int]]
#: Size in bytes of a bounded number that the program itself may store.
SELF_WRITTEN_BYTES = 8
#: Maximum numbers of a table among which one load may choose.
_MOST_CHOICES = 4096

_CHECK = Checks(DeclarationError)


class Contents:
    """Known memory.

    Parameters:
        constants: bytes by first address; spans neither overlap nor touch.
        numbers: bounded numbers, which don't overlap anything.
    """

    def __init__(self, constants: Mapping[int, bytes], numbers: tuple[Numbers, ...]) -> None:
        self.constants = constants
        self.numbers = numbers
        self._spans = [Span(start, len(one)) for start, one in sorted(constants.items())]
        self._starts = [span.start for span in self._spans]
        self._numbered = [bounded.span for bounded in numbers]

    def load(self, place: Value, width: int) -> Value | None:
        """The signed number of ``width`` bytes at ``place``, a multiple of ``width``; None if
        unknown."""
        if isinstance(place, int):
            return self._load(place, width)
        low, high = bounds(place)
        step = max(step_of(place), width)
        low, high = -(-low // step) * step, high // step * step
        if high < low or (high - low) // step >= _MOST_CHOICES:
            return None
        loaded: Value | None = None
        for address in range(low, high + 1, step):
            value = self._load(address, width)
            if value is None:
                return None
            loaded = value if loaded is None else join(loaded, value)
        return loaded

    def _load(self, address: int, width: int) -> Value | None:
        index = bisect_right(self._starts, address) - 1
        if index >= 0:
            start = self._starts[index]
            constant = self.constants[start]
            if address + width <= start + len(constant):
                offset = address - start
                return int.from_bytes(constant[offset : offset + width], "little", signed=True)
        numbers = self.numbers_at(address, width)
        if numbers is None:
            return None
        low, high = numbers.low, numbers.high
        return low if low == high else Interval(low, high)

    def check_same(self, other: "Contents") -> None:
        """Check that ``other``, with the same declarations, has the same constants.

        Raises:
            DeclarationError: a byte differs; the message names its address.
        """
        for start, constant in self.constants.items():
            for offset, (one, two) in enumerate(zip(constant, other.constants[start], strict=True)):
                if one != two:
                    raise DeclarationError(
                        f"{Span(start, len(constant))} is declared as constant, but its memories "
                        f"hold {one} and {two} at {start + offset:#x}"
                    )

    def numbers_at(self, address: int, width: int) -> Numbers | None:
        """The bounded numbers that include the ``width`` bytes at ``address``."""
        for numbers in self.numbers:
            span = numbers.span
            if numbers.width == 8 * width and span.start <= address < span.end:
                return numbers
        return None

    def held_in(self, first: int, end: int) -> Span | None:
        """Declared bytes that overlap ``first``..``end`` - 1, or None."""
        accessed = Span(first, end - first)
        for span in (*self._spans, *self._numbered):
            if end > first and span.overlaps(accessed):
                return span
        return None


#: Contents of a memory about which nothing is known.
NOTHING_KNOWN = Contents({}, ())


def contents_of(declared: Declared, memory: bytes, size: int) -> Contents:
    """What ``declared`` says about a memory.

    Parameters:
        memory: contents from address 0 on, followed by zeros. size: of the memory in bytes.

    Raises:
        DeclarationError: a declaration lies outside the memory, overlaps another, or contradicts
            the memory.
    """
    spans = [*declared.constants, *(bounded.span for bounded in declared.numbers)]
    for span in spans:
        if span.size < 1:
            raise DeclarationError(f"{span}: declare at least 1 byte")
        if span.start < 0 or span.end > size:
            raise DeclarationError(f"{span}: the memory has {size:#x} bytes")
    for numbers in declared.numbers:
        _check_numbers(numbers, memory)
    merged: list[Span] = []
    for span in sorted(declared.constants):
        if merged and span.start <= merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(span.end, merged[-1].end) - merged[-1].start)
        else:
            merged.append(span)
    spans_apart = [*merged, *(bounded.span for bounded in declared.numbers)]
    for before, after in zip(sorted(spans_apart), sorted(spans_apart)[1:], strict=False):
        if before.overlaps(after):
            raise DeclarationError(f"{after} is declared twice: it overlaps {before}")
    return Contents(
        constants={
            span.start: memory[span.start : span.end].ljust(span.size, b"\0") for span in merged
        },
        numbers=tuple(sorted(declared.numbers)),
    )


def _check_numbers(numbers: Numbers, memory: bytes) -> None:
    """Refuse bounds that are invalid or that the memory contradicts."""
    width = numbers.width // 8
    span = numbers.span
    if numbers.width not in (8, 16, 32, 64):
        raise DeclarationError(f"{numbers}: numbers have 8, 16, 32 or 64 bits, not {numbers.width}")
    if span.start % width or span.size % width:
        raise DeclarationError(f"{numbers}: address and bytes must be multiples of {width}")
    lowest, highest = -(1 << (numbers.width - 1)), (1 << (numbers.width - 1)) - 1
    if not lowest <= numbers.low <= numbers.high <= highest:
        raise DeclarationError(f"{numbers}: bounds must ascend and fit {numbers.width} signed bits")
    content = memory[span.start : span.end].ljust(span.size, b"\0")
    for offset in range(0, span.size, width):
        value = int.from_bytes(content[offset : offset + width], "little", signed=True)
        if not numbers.low <= value <= numbers.high:
            raise DeclarationError(
                f"{numbers}: the memory has {value} at {span.start + offset:#x}, outside the range"
            )


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A program that the engine must run.

    Attributes:
        name: for messages; "" if there is only one.
        memories: contents of the memory from address 0 on, one per run. Without any the program
            runs on zeros, and this run is not used as a profile.
        declared: what is fixed in memory, and the slots; everything else is data, and may be
            anything.
        parameters: DRAM address of the parameter block (r5), fixed with the program; None: any.
        one_vault: the machine is one vault with as many engines as there are slots.
    """

    program: Program
    name: str = ""
    memories: tuple[bytes, ...] = ()
    declared: Declared = NOTHING_DECLARED
    parameters: int | None = None
    one_vault: bool = False

    def contents(self, config: PeConfig) -> Contents:
        """What is known of the memory of an engine of ``config``.

        Raises:
            DeclarationError: a memory contradicts the declarations, or another memory.
        """
        size = 1 << config.address_bits
        first, *others = (
            contents_of(self.declared, memory, size) for memory in self.memories or (b"",)
        )
        for other in others:
            first.check_same(other)
        return first

    def launch(self, config: PeConfig) -> StartRanges:
        """Ranges of the start registers on engines of ``config``.

        Raises:
            DeclarationError: there is no slot, or the parameter block is outside the memory.
        """
        last_address = (1 << config.address_bits) - 1
        start, count = self.parameters, self.declared.slots
        _CHECK.within("slots", count, 1, 1 << 16)
        if start is not None:
            _CHECK.within("parameters", start, 0, last_address)
        slots = (0, count - 1)
        parameters = (0, last_address) if start is None else (start, start)
        ranges = {"parameters": parameters, "slot": slots}
        if not self.one_vault:
            return ranges
        return {**ranges, "pe_index": slots, "vault": (0, 0), "pe_count": (count, count)}
