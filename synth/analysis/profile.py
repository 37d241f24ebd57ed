"""Profiles: facts about a program from runs on the instruction set simulator.

A profile is a JSON file. It identifies the program by a digest of its words and the version of the
instruction set, so that it can't be used for another program.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isa.accesses import accesses
from isa.image import DramImage
from isa.iss.simulator import Observer, Simulator, then
from isa.iss.state import Operation, ProcessorState
from isa.program import Program
from isa.table import (
    FIELD_A,
    FIELD_B,
    FIELD_C,
    IMM14,
    ISA_VERSION,
    Extent,
    Instruction,
    Opcode,
    Unit,
)
from isa.workspace import DESCRIPTOR_BYTES
from pe.config import PeConfig
from support.files import read_bytes, write_atomically
from synth.errors import TrimError

from .effects import held_range
from .facts import Facts, whole
from .interval import signed, step_of


def recorder(facts: Facts) -> Observer:
    """An observer that records in ``facts`` what the program does, except which words it executes
    (see :attr:`isa.iss.simulator.Simulator.visits`)."""

    def observe(
        state: ProcessorState, row: Instruction, word: int, address: int, operation: Operation
    ) -> Operation:
        if row.branch is not None:
            return _branch(facts, row, word, address, operation)
        if row.scalar is not None:
            return _scalar(facts, state, row, word, address, operation)
        if row.memory is not None:
            return _transfer(facts, state, row, word, address, operation)
        note: Callable[[], None]
        if row.unit is Unit.VECTOR:
            note = _vector(facts, state, row, word, address)
        elif row.opcode == Opcode.SET_WS:
            note = _declare(facts, state, word, address)
        elif row.opcode in (Opcode.MOV, Opcode.MOV_IMM):
            note = _number(facts.writes, state, word, address)
        elif row.opcode in (Opcode.SET_VL, Opcode.SET_MR, Opcode.SET_FX):
            note = _number(facts.sets, state, word, address)
        else:
            return operation
        return then(operation, note)

    return observe


def _branch(
    facts: Facts, row: Instruction, word: int, address: int, operation: Operation
) -> Operation:
    next_word = address + 1
    # A branch to the next word goes to the same place either way.
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
    facts: Facts,
    state: ProcessorState,
    row: Instruction,
    word: int,
    address: int,
    operation: Operation,
) -> Operation:
    assert row.scalar is not None
    registers, which = state.registers, row.scalar
    a, b, c = FIELD_A.extract(word), FIELD_B.extract(word), FIELD_C.extract(word)
    constant = IMM14.extract(word) if row.operands[2].field is IMM14 else None

    def observed() -> int:
        first = signed(registers[b])
        second = signed(registers[c]) if constant is None else constant
        following = operation()
        facts.writes(address, *held_range(which, first, second, signed(registers[a])))
        return following

    return observed


def _number(
    add: Callable[[int, int, int], None], state: ProcessorState, word: int, address: int
) -> Callable[[], None]:
    """Notes the number in the first register."""
    registers, a = state.registers, FIELD_A.extract(word)

    def note() -> None:
        value = signed(registers[a])
        add(address, value, value)

    return note


def _vector(
    facts: Facts, state: ProcessorState, row: Instruction, word: int, address: int
) -> Callable[[], None]:
    assert row.width is not None
    registers, width = state.registers, row.width.bytes
    # Register with the address, and which of the numbers of bytes lies there.
    places = [
        (operand.field.extract(word), operand.extent.by_vl + 2 * operand.extent.by_mr)
        for operand in row.scratchpad
    ]
    has_rows = any(operand.extent is Extent.MATRIX for operand in row.scratchpad)

    def note() -> None:
        vl, mr = state.vl, state.mr
        sizes = (width, width * vl, width * mr, width * vl * mr)
        facts.touches(address, max([registers[a] + sizes[which] for a, which in places]))
        steps = [step_of(registers[a]) for a, _ in places]
        facts.lies(address, min(*steps, width * step_of(vl)) if has_rows else min(steps))

    return note


def _transfer(
    facts: Facts,
    state: ProcessorState,
    row: Instruction,
    word: int,
    address: int,
    operation: Operation,
) -> Operation:
    registers, aligned = state.registers, bool(row.scratchpad)
    find = accesses(state, row, word)
    assert find is not None

    def observed() -> int:
        # A load may overwrite the register that has its address.
        accessed = find()
        following = operation()
        for space, start, size, _ in accessed:
            if space == "register":
                value = signed(registers[start])
                facts.writes(address, value, value)
                continue
            note = facts.touches if space == "scratchpad" else facts.reaches
            note(address, start + size)
            if aligned:
                facts.lies(address, step_of(start))
        return following

    return observed


def _declare(facts: Facts, state: ProcessorState, word: int, address: int) -> Callable[[], None]:
    registers, a = state.registers, FIELD_A.extract(word)

    def note() -> None:
        workspace = state.workspace
        assert workspace is not None
        ends = (workspace.image + workspace.image_bytes, workspace.window + workspace.window_bytes)
        facts.reaches(address, max(registers[a] + DESCRIPTOR_BYTES, *ends))
        facts.lies(
            address, min(map(step_of, (workspace.image, workspace.window, workspace.pixel_bytes)))
        )

    return note


_FORMAT = "vip-profile"
#: Maximum size of a profile in bytes.
PROFILE_BYTES = 1 << 26
_STEP = 200_000


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Facts about one program from some runs.

    Attributes:
        digest: of the program (:func:`program_digest`).
        facts: about its words. runs: number of runs.
        parameters: highest parameter block address of the launches.
        in_flight: entries of the array range check, and memory requests in flight, with which runs
            on the hardware take no more cycles than allowed; None if there were none.
        slower: cycles allowed in addition to those of the full engine, as a fraction of them.
    """

    digest: str
    facts: Facts
    runs: int = 1
    parameters: int = 0
    in_flight: tuple[int, int] | None = None
    slower: float = 0.0

    def __or__(self, other: "Profile") -> "Profile":
        """The profile of the runs of both.

        Raises:
            TrimError: they belong to different programs.
        """
        if self.digest != other.digest:
            raise TrimError("can't join profiles of different programs")
        facts = Facts()
        facts.include(self.facts)
        facts.include(other.facts)
        measured = [half for half in (self.in_flight, other.in_flight) if half is not None]
        entries, requests = zip(*measured, strict=True) if measured else ((), ())
        return Profile(
            digest=self.digest,
            facts=facts,
            runs=self.runs + other.runs,
            parameters=max(self.parameters, other.parameters),
            in_flight=(max(entries), max(requests)) if measured else None,
            slower=max(self.slower, other.slower),
        )

    def save(self, path: Path) -> None:
        """Write the profile to a file, completely or not at all.

        Raises:
            OSError: it can't be written.
        """
        content = {
            "format": _FORMAT,
            "isa": ISA_VERSION,
            "program": self.digest,
            "runs": self.runs,
            "parameters": self.parameters,
            "in_flight": None if self.in_flight is None else [*self.in_flight, self.slower],
            "facts": self.facts.to_json(),
        }
        write_atomically(path, json.dumps(content).encode() + b"\n")

    @classmethod
    def load(cls, path: Path) -> "Profile":
        """Read a profile written by :meth:`save`.

        Raises:
            TrimError: the file can't be read, is not a profile, or belongs to another version of
                the instruction set.
        """
        try:
            content = json.loads(read_bytes(path, PROFILE_BYTES))
        except OSError as error:
            raise TrimError(f"{path}: can't be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
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
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise TrimError(f"{path}: damaged profile: {error!r}") from error

    @classmethod
    def _build(cls, content: dict[str, Any]) -> "Profile":
        measured = content["in_flight"]
        # Older files have no third number.
        slower = float(measured[2]) if measured is not None and len(measured) > 2 else 0.0
        if not 0 <= slower < 1:
            raise ValueError(f"{slower} is not a fraction")
        return cls(
            digest=str(content["program"]),
            facts=Facts.from_json(content["facts"]),
            runs=whole(content["runs"]),
            parameters=whole(content["parameters"]),
            in_flight=None if measured is None else (whole(measured[0]), whole(measured[1])),
            slower=slower,
        )


def program_digest(program: Program) -> str:
    """A digest of the words of a program."""
    words = b"".join(word.to_bytes(4, "little") for word in program.words)
    return hashlib.sha256(words).hexdigest()


def profile_run(
    program: Program,
    image: DramImage,
    config: PeConfig,
    *,
    parameters: int = 0,
    limit: int = 100_000_000,
    progress: Callable[[int], None] | None = None,
) -> Profile:
    """Run ``program`` on the simulator and record its facts.

    Parameters:
        image: the memory; the program modifies it. config: of the engine.
        parameters: of the launch.
        limit: maximum instructions.
        progress: called from time to time with the number of instructions so far.

    Raises:
        TrimError: the program faults or does not end within ``limit``.
        isa.iss.simulator.SimulatorError: it does not fit the engine.
    """
    facts = Facts()
    simulator = Simulator(
        program,
        image,
        parameters=parameters,
        **config.limits,
        observer=recorder(facts),
    )
    outcome = simulator.run(min(_STEP, limit))
    while outcome.state == "running" and outcome.executed < limit:
        if progress is not None:
            progress(outcome.executed)
        outcome = simulator.run(min(_STEP, limit - outcome.executed))
    if outcome.state == "running":
        raise TrimError(f"the profiled run did not end within {limit} instructions")
    if outcome.state == "faulted":
        raise TrimError(f"the run faults: {outcome.fault}")
    return profile_of(program, simulator, facts, parameters)


def profile_of(program: Program, simulator: Simulator, facts: Facts, parameters: int) -> Profile:
    """The profile of a run of ``simulator`` that was launched with ``parameters`` and observed by
    the :func:`recorder` of ``facts``."""
    facts.executed |= {address for address, count in enumerate(simulator.visits) if count}
    return Profile(digest=program_digest(program), facts=facts, parameters=parameters)
