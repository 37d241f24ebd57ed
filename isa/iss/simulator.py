"""The instruction set simulator: executes a program instruction by instruction, without timing.

It follows the instruction table and its own reading of the specification; the hardware is checked
against it. Each instruction reads all its operands before it writes. Hardware may leave other bytes
than this simulator in two cases: a result overlaps an operand of the same instruction at other
addresses than the operand's own, or a program breaks the timing rules of :mod:`isa.timing`.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import repeat

import numpy as np

from isa.faults import FaultCause
from isa.image import DramImage
from isa.launch import START_FX, START_MR, START_REGISTERS, START_VL
from isa.limits import ADDRESS_BITS, INSTRUCTION_WORDS, MIN_REGISTERS, SCRATCHPAD_BYTES
from isa.program import Program
from isa.run import EngineEnd
from isa.table import (
    BY_KEY,
    INSTRUCTIONS,
    MAX_MR,
    MAX_VL,
    MIN_REGISTER_WIDTH,
    REGISTER_WIDTH,
    REGISTERS,
    Instruction,
    find,
)
from support.checks import Checks
from support.errors import VipError

from .explain import fault_line
from .operations import bind
from .state import Halt, Operation, ProcessorFault, ProcessorState

#: Given the state of the engine, an instruction, its word and address, and the operation that
#: executes it: the operation to execute instead. It may look at the state before and after.
Observer = Callable[[ProcessorState, Instruction, int, int, Operation], Operation]


def every(*observers: Observer) -> Observer | None:
    """An observer that shows each instruction to all of ``observers``, the first one closest to the
    instruction; None if there are none."""
    if not observers:
        return None

    def observe(
        state: ProcessorState, row: Instruction, word: int, address: int, operation: Operation
    ) -> Operation:
        for observer in observers:
            operation = observer(state, row, word, address, operation)
        return operation

    return observe


def then(operation: Operation, note: Callable[[], None]) -> Operation:
    """``operation``, and if it does not fault, ``note`` after it."""

    def observed() -> int:
        following = operation()
        note()
        return following

    return observed


class SimulatorError(VipError):
    """A simulator that can't be set up; the message names the value and what is allowed."""


_CHECK = Checks(SimulatorError)


class Simulator:
    """One processing engine (PE), launched with a program.

    Parameters:
        program: a program, or its words (0..2**32 - 1).
        memory: the DRAM; the program changes it.
        pe_index, vault, slot, pe_count, parameters: values of the start registers
            (:data:`isa.launch.START_REGISTERS`), 0..2**64 - 1. With ``register_width`` below 64,
            the first four are below 2**16, and ``parameters`` that is no DRAM address faults.
        scratchpad_bytes: 64..65536.
        scratchpad_alignment: 1, 2, 4 or 8; scratchpad operands and transfers elsewhere fault.
        registers: 8..64; an instruction that names a higher one is illegal.
        address_bits: 12..40; a DRAM byte beyond them, or beyond ``memory``, faults.
        instructions: keys of the instructions that the PE has; None: all that are built.
        instruction_words: 16..8192; the program must fit.
        register_width: 20..64, above ``address_bits``; a value that does not fit faults.
        max_vl, max_mr: 1..256; ``set.vl`` and ``set.mr`` beyond them fault.
        scratchpad: contents at the start, ``scratchpad_bytes`` bytes; None: zeros.
        observer: asked once for each word that is an instruction of the PE.
        count_saturation: whether to count values that saturate (:attr:`saturated`); takes time.

    Attributes:
        registers: 64-bit patterns, 0..2**64 - 1; change items in place.
        scratchpad: array of bytes; change items in place.
        pc: word address of the next instruction, or of the one that ended the program.
        visits: how often each word was executed since the launch.

    Raises:
        SimulatorError: a value outside its range, an unknown instruction key, a program or
            scratchpad contents that do not fit.
    """

    def __init__(
        self,
        program: Program | Sequence[int],
        memory: DramImage,
        *,
        pe_index: int = 0,
        vault: int = 0,
        slot: int = 0,
        pe_count: int = 1,
        parameters: int = 0,
        scratchpad_bytes: int = 4096,
        scratchpad_alignment: int = 1,
        registers: int = REGISTERS,
        address_bits: int = 33,
        instructions: frozenset[str] | None = None,
        instruction_words: int = 1024,
        register_width: int = REGISTER_WIDTH,
        max_vl: int = MAX_VL,
        max_mr: int = MAX_MR,
        scratchpad: bytes | None = None,
        observer: Observer | None = None,
        count_saturation: bool = False,
    ) -> None:
        _CHECK.within("scratchpad_bytes", scratchpad_bytes, *SCRATCHPAD_BYTES)
        _CHECK.one_of("scratchpad_alignment", scratchpad_alignment, (1, 2, 4, 8))
        _CHECK.within("registers", registers, MIN_REGISTERS, REGISTERS)
        _CHECK.within("address_bits", address_bits, *ADDRESS_BITS)
        _CHECK.within("instruction_words", instruction_words, *INSTRUCTION_WORDS)
        least = max(MIN_REGISTER_WIDTH, address_bits + 1)
        _CHECK.within("register_width", register_width, least, REGISTER_WIDTH)
        _CHECK.within("max_vl", max_vl, 1, MAX_VL)
        _CHECK.within("max_mr", max_mr, 1, MAX_MR)
        start = {
            "pe_index": pe_index,
            "vault": vault,
            "slot": slot,
            "pe_count": pe_count,
            "parameters": parameters,
        }
        for name, value in start.items():
            wide = name == "parameters" or register_width == REGISTER_WIDTH
            _CHECK.within(name, value, 0, (1 << (64 if wide else 16)) - 1)
        words = tuple(program.words if isinstance(program, Program) else program)
        self._source = program
        if len(words) > instruction_words:
            raise SimulatorError(
                f"a program of {len(words)} words does not fit the instruction buffer of "
                f"{instruction_words}"
            )
        for address, word in enumerate(words):
            _CHECK.within(f"word {address} of the program", word, 0, (1 << 32) - 1)
        if instructions is None:
            instructions = frozenset(row.key for row in INSTRUCTIONS)
        if unknown := sorted(instructions - BY_KEY.keys()):
            raise SimulatorError(f"instructions: {unknown[0]!r} is not in the instruction table")
        if scratchpad is None:
            scratchpad = bytes(scratchpad_bytes)
        if len(scratchpad) != scratchpad_bytes:
            raise SimulatorError(
                f"scratchpad contents of {len(scratchpad)} bytes given for one of "
                f"{scratchpad_bytes}"
            )

        self._state = state = ProcessorState(
            registers=[0] * registers,
            scratchpad=memoryview(bytearray(scratchpad)),
            memory=memory,
            memory_bytes=min(1 << address_bits, memory.size),
            address_space=1 << address_bits,
            vl=START_VL,
            mr=START_MR,
            fx=START_FX,
            max_vl=max_vl,
            max_mr=max_mr,
            unaligned=scratchpad_alignment - 1,
            register_width=register_width,
            saturated=[0] * len(words) if count_saturation else None,
        )
        self.registers = state.registers
        self.scratchpad = np.frombuffer(state.scratchpad, np.uint8)
        if register_width < REGISTER_WIDTH:
            # A narrow engine keeps the bits of an address.
            start["parameters"] %= 1 << address_bits
        for register, name in START_REGISTERS.items():
            self.registers[register] = start[name]
        self.pc = 0
        self.visits = [0] * len(words)
        self._keys: list[str | None] = []
        rows = []
        for word in words:
            row = find(word)
            if row is not None and row.key not in instructions:
                row = None
            self._keys.append(None if row is None else row.key)
            rows.append(row)
        self._load(words, rows, observer)
        self._end: EngineEnd | None = None
        if register_width < REGISTER_WIDTH and parameters >> address_bits:
            self._end = _no_address(parameters, address_bits)

    def _load(
        self, words: Sequence[int], rows: Sequence[Instruction | None], observer: Observer | None
    ) -> None:
        """Prepare the program: its words, and the instructions that they are."""
        state = self._state
        self._operations: list[Operation] = []
        for address, (word, row) in enumerate(zip(words, rows, strict=True)):
            operation = bind(state, row, word, address)
            if observer is not None and row is not None:
                operation = observer(state, row, word, address, operation)
            self._operations.append(operation)

    @property
    def vl(self) -> int:
        """Vector length in elements."""
        return self._state.vl

    @property
    def mr(self) -> int:
        """Matrix rows."""
        return self._state.mr

    @property
    def fx(self) -> int:
        """Fraction bits."""
        return self._state.fx

    @property
    def saturated(self) -> tuple[int, ...]:
        """For each word, how many values its executions have limited to the width of their element
        since the launch: sums, differences and scaled products that are written, and of a matrix
        also the sums and differences that are reduced. All 0 without ``count_saturation``."""
        return tuple(self._state.saturated or [0] * len(self.visits))

    @property
    def executed(self) -> Counter[str]:
        """How often each instruction was executed since the launch, by its key."""
        total: Counter[str] = Counter()
        for key, count in zip(self._keys, self.visits, strict=True):
            if key is not None and count:
                total[key] += count
        return total

    def step(self) -> EngineEnd:
        """Execute one instruction; as ``run(1)``."""
        return self.run(1)

    def run(self, limit: int | None = None) -> EngineEnd:
        """Execute until the program ends, or until ``limit`` (0 or more) instructions are done.

        Returns the end without contents, which :attr:`registers` and :attr:`scratchpad` have, and
        without cycles. Its ``pc`` is the word address of the ``halt``, of the faulting instruction
        or of the next one; with ``PC_OUT_OF_PROGRAM`` the address outside, which may be negative.
        A program that has ended stays so: the same end again. The effects of an instruction
        that faults are none; several causes at once report the lowest.

        Raises:
            SimulatorError: a negative limit.
        """
        if limit is not None and limit < 0:
            raise SimulatorError(f"limit must be 0 or more, not {limit}")
        if self._end is None:
            self._end = self._execute(limit)
            if self._end is not None and self._end.state == "faulted":
                end = self._end
                fault = fault_line(self._source, end.cause, end.pc, self._state)
                self._end = replace(end, fault=fault)
        return self._end or EngineEnd(state="running", pc=self.pc, executed=sum(self.visits))

    def _execute(self, limit: int | None) -> EngineEnd | None:
        """Execute until the program ends; None: it goes on after ``limit`` instructions."""
        operations, counts, pc, size = self._operations, self.visits, self.pc, len(self.visits)
        try:
            for _ in repeat(None) if limit is None else repeat(None, limit):
                if not 0 <= pc < size:
                    raise ProcessorFault(FaultCause.PC_OUT_OF_PROGRAM)
                following = operations[pc]()
                counts[pc] += 1
                pc = following
        except Halt:
            counts[pc] += 1
            return EngineEnd(state="halted", pc=pc, executed=sum(counts))
        except ProcessorFault as fault:
            return EngineEnd(state="faulted", cause=fault.cause, pc=pc, executed=sum(counts))
        finally:
            self.pc = pc
        return None


def _no_address(parameters: int, address_bits: int) -> EngineEnd:
    """The end of a launch with parameters that a narrow engine can't hold."""
    last = (1 << address_bits) - 1
    fault = f"launch: the parameter (r5) {parameters:#x} is not an address from 0x0 to {last:#x}"
    return EngineEnd(state="faulted", cause=FaultCause.REGISTER_RANGE, fault=fault)
