"""Profiles: what a program did in runs on the instruction set simulator.

A profile file is JSON. It names the program by a digest of its words and the version of the
instruction set, so that it can't be taken for another program's.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hdl.config import PeConfig
from isa.files import write_atomically
from isa.image import DramImage
from isa.operations import Operation, ProcessorState
from isa.program import Program
from isa.simulator import Simulator
from isa.table import (
    FIELD_A,
    FIELD_B,
    FIELD_C,
    IMM14,
    ISA_VERSION,
    Instruction,
    Opcode,
    Unit,
    VerticalOp,
)

from .effects import held_range
from .errors import TrimError
from .facts import Facts
from .interval import signed

__all__ = ["InFlight", "Profile", "profile_run", "program_digest"]

_FORMAT = "vip-profile"
_STEP = 200_000


@dataclass(frozen=True, kw_only=True)
class InFlight:
    """Most that an engine's hardware had in use at once, on runs that never waited for it.

    Attributes:
        arc_entries: entries of the array range check. requests: memory requests in flight.
    """

    arc_entries: int
    requests: int

    def __or__(self, other: "InFlight") -> "InFlight":
        return InFlight(
            arc_entries=max(self.arc_entries, other.arc_entries),
            requests=max(self.requests, other.requests),
        )


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What one program did in some runs.

    Attributes:
        digest: of the program (:func:`program_digest`).
        facts: what its words did. runs: in how many runs.
        parameters: highest address of a parameter block that a launch named.
        in_flight: of runs on the hardware; None: there were none.
    """

    digest: str
    facts: Facts
    runs: int = 1
    parameters: int = 0
    in_flight: InFlight | None = None

    def __or__(self, other: "Profile") -> "Profile":
        """The profile of the runs of both.

        Raises:
            TrimError: they are of different programs.
        """
        if self.digest != other.digest:
            raise TrimError("profiles of different programs can't be joined")
        facts = Facts()
        facts.include(self.facts)
        facts.include(other.facts)
        measured = [half for half in (self.in_flight, other.in_flight) if half is not None]
        return Profile(
            digest=self.digest,
            facts=facts,
            runs=self.runs + other.runs,
            parameters=max(self.parameters, other.parameters),
            in_flight=measured[0] | measured[-1] if measured else None,
        )

    def save(self, path: Path) -> None:
        """Write the profile to a file, at once or not at all.

        Raises:
            OSError: it can't be written.
        """
        measured = self.in_flight
        content = {
            "format": _FORMAT,
            "isa": ISA_VERSION,
            "program": self.digest,
            "runs": self.runs,
            "parameters": self.parameters,
            "in_flight": None if measured is None else [measured.arc_entries, measured.requests],
            "facts": self.facts.to_json(),
        }
        write_atomically(path, json.dumps(content).encode() + b"\n")

    @classmethod
    def load(cls, path: Path) -> "Profile":
        """Read a profile from a file that :meth:`save` wrote.

        Raises:
            TrimError: the file can't be read, is no profile, or belongs to another version of the
                instruction set.
        """
        try:
            content = json.loads(path.read_bytes())
        except OSError as error:
            raise TrimError(f"{path}: can't be read: {error.strerror}") from error
        except ValueError as error:
            raise TrimError(f"{path}: not a profile: {error}") from error
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise TrimError(f"{path}: not a profile: no {_FORMAT!r} in it")
        if content.get("isa") != ISA_VERSION:
            raise TrimError(
                f"{path}: made for version {content.get('isa')} of the instruction set, this is "
                f"{ISA_VERSION}"
            )
        try:
            return cls._build(content)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise TrimError(f"{path}: damaged profile: {error!r}") from error

    @classmethod
    def _build(cls, content: dict[str, Any]) -> "Profile":
        measured = content["in_flight"]
        return cls(
            digest=str(content["program"]),
            facts=Facts.from_json(content["facts"]),
            runs=int(content["runs"]),
            parameters=int(content["parameters"]),
            in_flight=None
            if measured is None
            else InFlight(arc_entries=int(measured[0]), requests=int(measured[1])),
        )


def program_digest(program: Program) -> str:
    """Names a program by its words."""
    words = b"".join(word.to_bytes(4, "little") for word in program.words)
    return hashlib.sha256(words).hexdigest()


@dataclass
class _Recorder:
    """Watches a simulator and notes what its program does."""

    facts: Facts = field(default_factory=Facts)

    def observe(
        self,
        state: ProcessorState,
        row: Instruction,
        word: int,
        address: int,
        operation: Operation,
    ) -> Operation:
        """See :data:`isa.simulator.Observer`."""
        opcode = Opcode.ALU_REG if row.scalar is not None else row.opcode
        if row.branch is not None:
            return self._branch(row, word, address, operation)
        if row.scalar is not None:
            return self._scalar(state, row, word, address, operation)
        if opcode in (Opcode.MOV, Opcode.MOV_IMM):
            return self._written(state, word, address, operation)
        if opcode in (Opcode.SET_VL, Opcode.SET_MR, Opcode.SET_FX):
            return self._setting(state, word, address, operation)
        if row.unit is Unit.VECTOR:
            return self._vector(state, row, word, address, operation)
        if opcode in (Opcode.LD_SRAM, Opcode.ST_SRAM):
            return self._transfer(state, row, word, address, operation)
        if opcode in (Opcode.LD_REG, Opcode.ST_REG):
            return self._register(state, row, word, address, operation)
        return operation

    def _branch(self, row: Instruction, word: int, address: int, operation: Operation) -> Operation:
        next_word, facts = address + 1, self.facts
        # Both sides of a branch to the next word are the same.
        to_next = row.operands[-1].field.extract(word) == 1

        def observed() -> int:
            following = operation()
            if following != next_word or to_next:
                facts.taken.add(address)
            if following == next_word:
                facts.passed.add(address)
            return following

        return observed

    def _scalar(
        self,
        state: ProcessorState,
        row: Instruction,
        word: int,
        address: int,
        operation: Operation,
    ) -> Operation:
        assert row.scalar is not None
        registers, facts, which = state.registers, self.facts, row.scalar
        a, b, c = FIELD_A.extract(word), FIELD_B.extract(word), FIELD_C.extract(word)
        constant = IMM14.extract(word) if row.operands[2].field is IMM14 else None

        def observed() -> int:
            first = signed(registers[b])
            second = signed(registers[c]) if constant is None else constant
            following = operation()
            facts.writes(address, *held_range(which, first, second, signed(registers[a])))
            return following

        return observed

    def _written(
        self, state: ProcessorState, word: int, address: int, operation: Operation
    ) -> Operation:
        registers, facts, a = state.registers, self.facts, FIELD_A.extract(word)

        def observed() -> int:
            following = operation()
            value = signed(registers[a])
            facts.writes(address, value, value)
            return following

        return observed

    def _setting(
        self, state: ProcessorState, word: int, address: int, operation: Operation
    ) -> Operation:
        registers, facts, a = state.registers, self.facts, FIELD_A.extract(word)

        def observed() -> int:
            following = operation()
            facts.sets(address, registers[a], registers[a])
            return following

        return observed

    def _vector(
        self,
        state: ProcessorState,
        row: Instruction,
        word: int,
        address: int,
        operation: Operation,
    ) -> Operation:
        assert row.width is not None
        registers, facts, width = state.registers, self.facts, row.width.bytes
        a, b, c = FIELD_A.extract(word), FIELD_B.extract(word), FIELD_C.extract(word)
        matrix, element = row.reduction is not None, row.opcode == Opcode.VECTOR_SCALAR
        third = row.logistic is None and not (matrix and row.vertical is VerticalOp.NOP)

        def observed() -> int:
            following = operation()
            length = state.vl * width
            rows = state.mr if matrix else 1
            end = max(
                registers[a] + (rows * width if matrix else length), registers[b] + rows * length
            )
            if third:
                end = max(end, registers[c] + (width if element else length))
            facts.touches(address, end)
            return following

        return observed

    def _transfer(
        self,
        state: ProcessorState,
        row: Instruction,
        word: int,
        address: int,
        operation: Operation,
    ) -> Operation:
        assert row.width is not None
        registers, facts, width = state.registers, self.facts, row.width.bytes
        a, b, c = FIELD_A.extract(word), FIELD_B.extract(word), FIELD_C.extract(word)
        near, far = (a, b) if row.opcode == Opcode.LD_SRAM else (b, a)

        def observed() -> int:
            following = operation()
            length = registers[c] * width
            facts.touches(address, registers[near] + length)
            facts.reaches(address, registers[far] + length)
            return following

        return observed

    def _register(
        self,
        state: ProcessorState,
        row: Instruction,
        word: int,
        address: int,
        operation: Operation,
    ) -> Operation:
        assert row.width is not None
        registers, facts, width = state.registers, self.facts, row.width.bytes
        a, b = FIELD_A.extract(word), FIELD_B.extract(word)
        load = row.opcode == Opcode.LD_REG

        def observed() -> int:
            end = registers[b if load else a] + width
            following = operation()
            facts.reaches(address, end)
            if load:
                value = signed(registers[a])
                facts.writes(address, value, value)
            return following

        return observed


def profile_run(
    program: Program,
    image: DramImage,
    config: PeConfig,
    *,
    parameters: int = 0,
    pe_index: int = 0,
    vault: int = 0,
    slot: int = 0,
    pe_count: int = 1,
    limit: int = 100_000_000,
    may_fault: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Profile:
    """Run ``program`` on the simulator and note what it does.

    Parameters:
        image: the memory; the program changes it. config: of the engine.
        parameters, pe_index, vault, slot, pe_count: of the launch.
        limit: instructions after which it is given up.
        may_fault: whether a run that faults is taken, up to its fault.
        progress: called now and then with the number of instructions so far.

    Raises:
        TrimError: the program faults and may not, or does not end within ``limit``.
        isa.simulator.SimulatorError: it does not fit the engine.
    """
    recorder = _Recorder()
    simulator = Simulator(
        program,
        image,
        pe_index=pe_index,
        vault=vault,
        slot=slot,
        pe_count=pe_count,
        parameters=parameters,
        scratchpad_bytes=config.scratchpad_bytes,
        registers=config.registers,
        address_bits=config.address_bits,
        instructions=config.instructions,
        instruction_words=config.instruction_words,
        register_width=config.register_width,
        max_vl=config.max_vl,
        max_mr=config.max_mr,
        observer=recorder.observe,
    )
    outcome = simulator.run(min(_STEP, limit))
    while outcome.state == "limit" and outcome.instructions < limit:
        if progress is not None:
            progress(outcome.instructions)
        outcome = simulator.run(min(_STEP, limit - outcome.instructions))
    if outcome.state == "limit":
        raise TrimError(f"the profiled run did not end within {limit} instructions")
    if outcome.state == "faulted" and not may_fault:
        raise TrimError(f"the profiled run faults: {outcome.cause.name} at word {outcome.pc}")
    facts = recorder.facts
    facts.executed |= {address for address, count in enumerate(simulator.visits) if count}
    return Profile(digest=program_digest(program), facts=facts, parameters=parameters)
