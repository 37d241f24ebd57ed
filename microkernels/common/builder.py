"""The builder for all kernels' programs."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from isa.assembly.assembler import assemble
from isa.launch import START_REGISTERS
from isa.limits import RANGE_BYTES
from isa.program import Program, SourceLine
from isa.table import (
    IMM14,
    REGISTERS,
    EncodingError,
    Instruction,
    Unit,
    Width,
    encode,
    operand_range,
)

from .errors import CHECK, KernelError
from .hazard_check import HazardCheck, WrittenLine

#: Bytes in the scratchpad, and words in the instruction buffer (thesis 5.1).
DEFAULT_SCRATCHPAD = 4096
INSTRUCTION_WORDS = 1024
#: Bytes per word of a parameter block, their logarithm, and the suffix of its instructions.
WORD_BYTES = 8
LOG_WORD = 3
WIDE = "[64-bit]"
_REGISTER_COLUMN = 28
#: Scalar instructions that :meth:`KernelBuilder.spread` moves.
_MOVABLE = ("add", "sub", "mov", "xor")


def _is_vector(line: WrittenLine | None) -> bool:
    row = None if line is None else line.row
    return row is not None and row.unit is Unit.VECTOR


def _independent(line: WrittenLine, other: WrittenLine) -> bool:
    """Whether a scalar instruction may change places with another instruction or a note."""
    if not other.mnemonic:
        return True
    result, *operands = line.operands
    reads = other.row is not None and other.row.key != "ld.reg[64]"
    written = [] if reads else other.operands[:1]
    return result not in other.operands and not set(written) & set(operands)


def launch_registers(vault_bits: int | None) -> tuple[str, ...]:
    """Start registers for a program whose engines find their own parts of the parameter block
    (:meth:`KernelBuilder.start`)."""
    return ("slot", "parameters") if vault_bits is None else ("vault", "slot", "parameters")


class KernelBuilder:
    """Writes a kernel's program: assembly with named registers and scratchpad places.

    :meth:`register`, :meth:`constant` and :meth:`variable` allocate registers; :meth:`place`
    allocates places in the scratchpad. All return an operand for instructions: the name of a
    register, which :meth:`program` shows in the text, or an address. :meth:`release` frees them,
    :meth:`temporary` allocates a register for a ``with`` statement. When none is left, the error
    lists the names in use.

    Every instruction is checked as it is written (:mod:`microkernels.common.hazard_check`). An
    instruction that comes too early for the vector unit is an error; the message names the calls
    that wrote it and the earlier instruction. ``place_drains`` inserts a ``v.drain`` before it
    instead. Leave it off for a kernel scheduled so that it needs no drains.

    This example adds two vectors of 64 elements, stored back to back from the parameter block's
    address on; the result follows them::

        k = KernelBuilder("Sum of two vectors.", launch=("parameters",), place_drains=True)
        count = k.constant("count", 64, "elements")
        first = k.variable("first", k.place("first vector", 128), "first vector; the sum")
        second = k.variable("second", k.place("second vector", 128), "second vector")
        k.set_constants()
        k.op("set.vl", count)
        for vector in (first, second):
            k.load(vector, "parameters", count)
            k.op("add", "parameters", "parameters", 128)
        k.vector("v.v.add", first, first, second)
        k.store("parameters", first, count)
        k.op("halt")
        program = k.program("sum.s")

    ``docs/writing_kernels.md`` is the guide.

    Parameters:
        title: lines of text at the top of the program.
        width: element width.
        launch: start registers that the program reads (:data:`isa.launch.START_REGISTERS`); their
            names are operands. If empty, the program may use all start registers.
        scratchpad_bytes: size of the scratchpad.
        place_drains: insert ``v.drain`` where an instruction comes too early.

    Attributes:
        zero: name of the register that contains 0.
        far: that :meth:`offset` uses for large distances; "" until it allocates one.
    """

    def __init__(
        self,
        *title: str,
        width: Width = Width.W16,
        launch: Sequence[str] = (),
        scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
        place_drains: bool = False,
    ) -> None:
        self._head = [f"; {line}".rstrip() for line in title]
        self._width = width
        self._place_drains = place_drains
        self._check = HazardCheck()
        self._body: list[WrittenLine] = []
        self._labels = 0
        self._detours: list[tuple[str, str, Callable[[], None]]] = []
        self._names: dict[str, tuple[int, str]] = {}
        self._free = list(range(max(START_REGISTERS) + 1 if launch else 1, REGISTERS))
        self._released: set[str] = set()
        self._constants: list[tuple[str, int]] = []
        self._constants_set = 0
        self._places: dict[str, tuple[int, int]] = {}
        self._listed: list[str] = []
        self._scratchpad_bytes = scratchpad_bytes
        self.far = ""
        numbers = {name: number for number, name in START_REGISTERS.items()}
        self.zero = "zero"
        self._names[self.zero] = (0, "0, as the launch leaves it")
        self._check.constant(self.zero, 0)
        for name in launch:
            self._names[name] = (numbers[name], "start register")

    # Registers.

    def register(self, name: str, purpose: str) -> str:
        """Allocate a register for ``purpose``, which is listed at the top of the text.

        Returns ``name``, the operand for instructions.

        Raises:
            KernelError: the name is taken, or no register is free; the message lists the names in
                use.
        """
        if name in self._names and name not in self._released:
            raise KernelError(f"the name {name!r} is taken: {self._names[name][1]}")
        if not self._free:
            holders = (holder for holder in self._names.items() if holder[0] not in self._released)
            raise KernelError(
                f"no scalar register is left for {name} ({purpose}); in use: "
                + "; ".join(f"{holder} ({use})" for holder, (_, use) in holders)
            )
        number = self._free[0]
        if name in self._released:
            number = self._names[name][0]
            if number not in self._free:
                raise KernelError(f"the name {name!r} was released and its register is in use")
            self._released.remove(name)
        self._free.remove(number)
        self._names[name] = (number, purpose)
        return name

    def constant(self, name: str, value: int, purpose: str) -> str:
        """Allocate a register that :meth:`set_constants` sets to ``value`` and that never changes;
        otherwise like :meth:`register`."""
        self._check.constant(name, value)
        return self.variable(name, value, f"constant {value}: {purpose}")

    @property
    def registers_left(self) -> int:
        """Number of registers that are free."""
        return len(self._free)

    def variable(self, name: str, value: int, purpose: str) -> str:
        """Allocate a register with the initial ``value``, set by :meth:`set_constants`; otherwise
        like :meth:`register`."""
        self._constants.append((self.register(name, purpose), value))
        return name

    def set_constants(self) -> None:
        """Set all constants and variables allocated so far to their values."""
        self.note("Constants.")
        for name, value in self._constants:
            self.op("li", name, value)
        self._constants_set = len(self._constants)

    # Scratchpad.

    def place(self, name: str, size: int, align: int = RANGE_BYTES) -> int:
        """Allocate ``size`` bytes (at least 1) of the scratchpad at the lowest free address.

        Returns the address.

        Parameters:
            name: for messages and the top of the text.
            align: the address is a multiple of this. An access to the same
                :data:`isa.limits.RANGE_BYTES` unit as a load in flight would wait for the load.

        Raises:
            KernelError: the name is taken, or there isn't enough room; the message lists the places
                in use.
        """
        CHECK.at_least(f"bytes for {name}", size, 1)
        if name in self._places:
            raise KernelError(f"the name {name!r} is taken by a place in the scratchpad")
        at = 0
        for start, end in sorted(self._places.values()):
            if at + size <= start:
                break
            at = max(at, -(-end // align) * align)
        if at + size > self._scratchpad_bytes:
            uses = "; ".join(
                f"{name} ({end - start} from {start})"
                for name, (start, end) in self._places.items()
            )
            raise KernelError(
                f"there is no room for {name} ({size} bytes) in a scratchpad of "
                f"{self._scratchpad_bytes}; in use: {uses or 'nothing'}"
            )
        self._places[name] = (at, at + size)
        self._listed.append(f";   {at:>4} {name}, {size} bytes")
        return at

    def release(self, *names: str) -> None:
        """Free registers or scratchpad places, by name.

        Raises:
            KernelError: one of the names is not allocated.
        """
        for name in names:
            if name in self._places:
                del self._places[name]
            elif name in self._names and name not in self._released:
                self._free = sorted([*self._free, self._names[name][0]])
                self._released.add(name)
            else:
                raise KernelError(f"there is no register or place called {name!r} to release")

    @contextlib.contextmanager
    def temporary(self, name: str, purpose: str) -> Iterator[str]:
        """A register for a ``with`` statement; otherwise like :meth:`register`."""
        yield self.register(name, purpose)
        self.release(name)

    # Text.

    def note(self, *lines: str) -> None:
        """Write a separate comment after an empty line."""
        self._body += [WrittenLine(), *(WrittenLine(note=line) for line in lines)]

    def new_label(self, stem: str) -> str:
        """A unique name for a label."""
        self._labels += 1
        return f"{stem}_{self._labels}"

    def label(self, name: str) -> None:
        """Place a label here."""
        self._write(WrittenLine(label=name))

    @contextlib.contextmanager
    def loop(self, label: str, counter: str | None = None) -> Iterator[str]:
        """Write a loop around the code in a ``with`` statement, and check two iterations for
        hazards.

        Parameters:
            label: at the start of the loop.
            counter: register with the remaining iterations, at least 1; each iteration subtracts 1,
                and the last one leaves 0. None: the body itself ends with a branch to ``label``.

        Raises:
            KernelError: a hazard between the end of an iteration and the next one.
        """
        self._body.append(WrittenLine(label=label, loop=True))
        start = len(self._body)
        yield label
        if counter is not None:
            self.op("sub", counter, counter, 1)
            self.op("bne", counter, self.zero, label)
        for line in self._body[start:]:
            if self._needs_drain(line):
                at = next(n for n, other in enumerate(self._body) if other is line)
                self._body.insert(at, WrittenLine("v.drain", site=line.site))
            self._check.done(line)

    @contextlib.contextmanager
    def times(self, label: str, counter: str, count: int) -> Iterator[None]:
        """Repeat the code of a ``with`` statement ``count`` times: once without a loop."""
        if count == 1:
            yield
            return
        self.op("li", counter, count)
        with self.loop(label, counter):
            yield

    @contextlib.contextmanager
    def unless(self, branch: str, first: str, second: str) -> Iterator[None]:
        """Skip the code written in a ``with`` statement if the condition holds.

        Parameters:
            branch: ``beq``, ``bne``, ``blt`` or ``bge``: how ``first`` and ``second`` compare.
        """
        label = self.new_label("skip")
        self.op(branch, first, second, label)
        yield
        self.label(label)

    @contextlib.contextmanager
    def spread(self) -> Iterator[None]:
        """Move scalar instructions, of those written in a ``with`` statement, up between two vector
        instructions: the front end issues one while the vector unit works. None moves over a label,
        a branch, or an instruction that reads or writes its registers."""
        start = len(self._body)
        yield
        written, self._body = self._body[start:], self._body[:start]
        end = start
        for line, following in zip(written, [*written[1:], None], strict=True):
            if line.mnemonic not in _MOVABLE:
                self._body.append(line)
                if line.label or (line.mnemonic and line.row is None):
                    end = len(self._body)
                continue
            place = len(self._body)
            alone = _is_vector(self._body[-1]) and _is_vector(following)
            while not alone and place > end and _independent(line, self._body[place - 1]):
                place -= 1
                if place > end and all(map(_is_vector, self._body[place - 1 : place + 1])):
                    break
            else:
                place = len(self._body)
            self._body.insert(place, line)

    def seldom(self, branch: str, first: str, second: str, write: Callable[[], None]) -> None:
        """Move code for a rare case out of line: a taken branch costs three cycles.

        Parameters:
            branch: jumps to the code; how ``first`` and ``second`` compare.
            write: writes the code when :meth:`emit_detours` is called.
        """
        start, back = self.new_label("seldom"), self.new_label("on")
        self.op(branch, first, second, start)
        self.label(back)
        self.detour(start, back, write)

    def detour(self, start: str, back: str, write: Callable[[], None]) -> None:
        """Write code out of line from label ``start``; it continues at ``back``."""
        self._detours.append((start, back, write))

    def emit_detours(self) -> None:
        """Write the out-of-line code at a point that no preceding instruction falls through to."""
        detours, self._detours = self._detours, []
        for start, back, write in detours:
            self.label(start)
            write()
            self.op("jmp", back)

    def op(self, mnemonic: str, *operands: str | int, note: str = "") -> None:
        """Write one instruction. Numbers become ``#`` immediates.

        Raises:
            KernelError: the instruction comes too early for the vector unit.
        """
        line = WrittenLine(mnemonic, operands, _site(), note)
        if self._needs_drain(line):
            self._body.append(WrittenLine("v.drain", site=line.site))
        self._write(line)

    def _write(self, line: WrittenLine) -> None:
        self._check.done(line)
        self._body.append(line)

    def _needs_drain(self, line: WrittenLine) -> bool:
        """Whether a ``v.drain`` must be placed before ``line``; if so, the check includes it."""
        hazards = self._check.before(line)
        if not hazards:
            return False
        if self._place_drains:
            self._check.done(WrittenLine("v.drain"))
            hazards = self._check.before(line)
        if hazards:
            raise KernelError(hazards[0])
        return True

    def assume(self, name: str, base: str, offset: int = 0) -> None:
        """Tell the hazard check to assume that register ``name`` contains ``base + offset``. If the
        value depends on the run, give the worst case."""
        self._write(WrittenLine(assumed=(name, base, offset)))

    # Instructions on elements and memory.

    def vector(self, mnemonic: str, *operands: str, note: str = "") -> None:
        """A vector instruction, load or store of elements; otherwise like :meth:`op`."""
        self.op(f"{mnemonic} [{self._width.bits}-bit]", *operands, note=note)

    def load(self, scratchpad: str, memory: str, elements: str, note: str = "") -> None:
        """Load elements from memory into the scratchpad."""
        self.vector("ld.sram", scratchpad, memory, elements, note=note)

    def store(self, memory: str, scratchpad: str, elements: str, note: str = "") -> None:
        """Store elements from the scratchpad into memory."""
        self.vector("st.sram", memory, scratchpad, elements, note=note)

    def offset(self, result: str, base: str, distance: int, note: str = "") -> None:
        """Compute ``result = base + distance`` for any distance."""
        if distance in IMM14.range:
            self.op("add", result, base, distance, note=note)
        else:
            self.far = self.far or self.register("far", "distance too large for an immediate")
            self.op("li", self.far, distance)
            self.op("add", result, base, self.far, note=note)

    def swap(self, first: str, second: str, between: str) -> None:
        """Exchange two registers through a third."""
        self.op("mov", between, first)
        self.op("mov", first, second)
        self.op("mov", second, between)

    def advance_ring(self, pointer: str, step: int, start: str, end: str) -> None:
        """Advance ``pointer`` by ``step`` bytes; at ``end`` it wraps to ``start``."""
        self.offset(pointer, pointer, step)
        with self.unless("bne", pointer, end):
            self.op("mov", pointer, start)

    def read(self, word: str, pointer: str) -> None:
        """Read a 64-bit word of a parameter block and advance the pointer to the next."""
        self.op(f"ld.reg {WIDE}", word, pointer)
        self.op("add", pointer, pointer, WORD_BYTES)

    def start(self, words: Sequence[str], pointer: str, *, vault_bits: int | None = None) -> None:
        """Set all constants, find this engine's part of the parameter block
        (:func:`microkernels.common.parameter_block.block_bytes`), and read its first words.

        Parameters:
            words: registers to read, in the part's order.
            pointer: register that afterwards contains the address of the next word.
            vault_bits: address bits of a vault, if ``parameters`` is an address within the engine's
                own vault; the start registers must then include ``vault``. None: ``parameters`` is
                the complete address.
        """
        self.set_constants()
        self.note("This PE's part of the parameter block.")
        if vault_bits is not None:
            self.op("sll", pointer, "vault", vault_bits)
            self.op("add", "parameters", "parameters", pointer)
        self.op("sll", pointer, "slot", LOG_WORD)
        self.op("add", pointer, "parameters", pointer)
        self.op(f"ld.reg {WIDE}", pointer, pointer)
        for word in words:
            self.read(word, pointer)

    def text(self) -> str:
        """The program's text."""
        places = ["; Scratchpad", *self._listed, ""] if self._listed else []
        registers = [
            f"{f'.reg {name}, r{number}':<{_REGISTER_COLUMN}}; {purpose}"
            for name, (number, purpose) in self._names.items()
        ]
        body = [line.text for line in self._body if line.assumed is None]
        return "\n".join([*self._head, "", *places, *registers, *body, ""])

    def program(self, name: str) -> Program:
        """The assembled program.

        Parameters:
            name: of the text, for messages.

        Raises:
            isa.assembly.assembler.AssemblyError: an instruction that does not exist.
            KernelError: a constant or variable that :meth:`set_constants` does not set.
        """
        if missing := [constant for constant, _ in self._constants[self._constants_set :]]:
            raise KernelError(
                f"{', '.join(missing)}: allocated after set_constants(), which sets those before it"
                if self._constants_set
                else f"{', '.join(missing)}: set_constants() is never called"
            )
        text = self.text()
        try:
            return self._encoded(name, text.split("\n"))
        except (KeyError, ValueError, EncodingError):
            # The assembler names the mistake.
            return assemble(text, name=name)

    def _encoded(self, name: str, text: Sequence[str]) -> Program:
        """The program without reading its text, which ends with a line for each written one.

        Raises:
            KeyError, ValueError, EncodingError: there is a mistake.
        """
        written = [line for line in self._body if line.assumed is None]
        symbols: dict[str, int] = {}
        words: list[tuple[Instruction, Sequence[str | int]]] = []
        source: dict[int, SourceLine] = {}
        for number, line in enumerate(written, len(text) - len(written)):
            if line.label in symbols or line.label in self._names:
                raise ValueError(f"{line.label} is defined twice")
            if line.label:
                symbols[line.label] = len(words)
            start = len(words)
            words += line.words
            place = SourceLine(name, number, text[number - 1])
            source.update(dict.fromkeys(range(start, len(words)), place))
        codes = (
            encode(row, self._values(row, operands, address, symbols))
            for address, (row, operands) in enumerate(words)
        )
        return Program(tuple(codes), symbols, source=source)

    def _values(
        self, row: Instruction, operands: Sequence[str | int], address: int, labels: dict[str, int]
    ) -> list[int]:
        """Operands as numbers of registers, constants and distances; errors as for
        :meth:`_encoded`."""
        values = []
        for operand, written in zip(row.operands, operands, strict=True):
            if isinstance(written, int):
                if operand.is_register or written not in operand_range(operand):
                    raise ValueError(f"an operand can't be {written}")
                values.append(written)
            elif operand.is_register:
                values.append(self._names[written][0])
            else:
                values.append(labels[written] - address)
        return values


def _site() -> str:
    """File and line that called the builder."""
    frame = sys._getframe(1)
    inside = (__file__, contextlib.__file__)
    while frame.f_code.co_filename in inside and frame.f_back is not None:
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
