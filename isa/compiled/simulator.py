"""The instruction set simulator with its main loop in C++, without and with a hazard check."""

import ctypes
import os
import weakref
from collections.abc import Callable, Sequence
from ctypes import POINTER, c_int16, c_uint8, c_uint64
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isa.faults import FaultCause
from isa.image import ImageError
from isa.iss.simulator import Observer, Simulator, SimulatorError
from isa.run import EngineEnd
from isa.table import BY_KEY, IMM14, IMM20, INSTRUCTIONS, Instruction, Role
from isa.timing import Hazard, HazardKind
from isa.units import SPECIAL_UNITS

from .library import Engine, Evaluate, FoundHazard, Operation, library
from .rows import (
    CONCERNED,
    ELEMENTS,
    FAILED,
    FRACTIONS,
    HALTED,
    HAZARD_KINDS,
    ILLEGAL,
    LIMIT,
    NUMBERS,
    SEEN,
    SPECIAL_ROWS,
)

#: Instructions between two checks for signals.
_AT_ONCE = 1 << 24


#: Role of an operand -> its place in :class:`Operation`, for rows whose roles decide it; all others
#: use the table's order.
_PLACES = {
    Role.DESTINATION: "a",
    Role.SOURCE: "a",
    Role.SCRATCHPAD_ADDRESS: "a",
    Role.DRAM_ADDRESS: "b",
    Role.LENGTH: "c",
}


@cache
def _places(key: str) -> tuple[str, ...]:
    """The place in :class:`Operation` of each operand of the row ``key``."""
    row, places = BY_KEY[key], []
    # The written operand comes first; a branch and a setting write no register.
    names = iter("bc" if row.writes is None and not row.scratchpad else "abc")
    for operand in row.operands:
        if operand.field in (IMM14, IMM20):
            places.append("constant")
        elif row.memory is not None:
            places.append(_PLACES[operand.role])
        else:
            places.append(next(names))
    return tuple(places)


def decode(
    words: Sequence[int], rows: Sequence[Instruction | None], registers: int
) -> "ctypes.Array[Operation]":
    """The words of a program for an engine.

    Parameters:
        rows: the instruction that each word encodes; None: not one of the engine's.
        registers: how many the engine has; a word that names another is illegal.
    """
    decoded = (Operation * len(words))()
    for address, (word, row) in enumerate(zip(words, rows, strict=True)):
        operation = decoded[address]
        operation.row = ILLEGAL
        if row is None:
            continue
        values = {
            place: operand.field.extract(word)
            for place, operand in zip(_places(row.key), row.operands, strict=True)
        }
        if any(value >= registers for place, value in values.items() if place != "constant"):
            continue
        if row.branch is not None:
            values["constant"] += address
        decoded[address] = Operation(row=NUMBERS[row.key], **values)
    return decoded


@cache
def _results(number: int, fx: int) -> NDArray[np.int16]:
    """Results of the special row ``number`` for all elements; simulators share them."""
    row = INSTRUCTIONS[number]
    unit = SPECIAL_UNITS[row.special]
    elements = np.arange(ELEMENTS, dtype=np.uint16).view(np.int16)
    results: NDArray[np.int16] = unit.evaluate(unit.function_of(row), elements, fx)
    return results


def _evaluation(simulator: "weakref.ref[CompiledSimulator]") -> Callable[[int, int], int]:
    """The function that C++ calls for the results of a special row. ctypes keeps it forever, so it
    must not hold the simulator."""

    def evaluate(number: int, fx: int) -> int:
        alive = simulator()
        return 1 if alive is None else alive._evaluate(number, fx)

    return evaluate


def _numbers(array: NDArray[np.uint64]) -> Any:
    return array.ctypes.data_as(POINTER(c_uint64))


class CompiledSimulator(Simulator):
    """:class:`isa.iss.simulator.Simulator` without an observer, with the same results. For hazards,
    see :class:`CheckingSimulator`.

    The first one of an installation compiles the library, which takes under half a minute.
    Parameters and attributes: as there.

    Raises:
        SimulatorError: as there, or an observer is given.
        support.native.CompilerError: there is no C++ compiler, or it fails.
        isa.image.ImageError: at a run, as of :class:`isa.image.DramImage`.
    """

    def _load(
        self, words: Sequence[int], rows: Sequence[Instruction | None], observer: Observer | None
    ) -> None:
        if observer is not None:
            raise SimulatorError("a compiled simulator has no observer")
        self._library = library()
        state, count = self._state, len(words)
        self._visits = np.zeros(count, np.uint64)
        self._saturated = None if state.saturated is None else np.zeros(count, np.uint64)
        # For each special row and FX the results of all elements, made when they are needed.
        self._results = (POINTER(c_int16) * (FRACTIONS * len(SPECIAL_ROWS)))()
        self._failure: BaseException | None = None
        mapping = state.memory.mapping()
        self._program = decode(words, rows, len(state.registers))
        self._engine = Engine(
            register_width=state.register_width,
            max_vl=state.max_vl,
            max_mr=state.max_mr,
            unaligned=state.unaligned,
            scratchpad=self.scratchpad.ctypes.data_as(POINTER(c_uint8)),
            scratchpad_bytes=self.scratchpad.size,
            memory=mapping.memory.ctypes.data_as(POINTER(c_uint8)),
            held=mapping.held.ctypes.data_as(POINTER(c_uint8)),
            memory_bytes=state.memory_bytes,
            address_space=state.address_space,
            file=mapping.file,
            program=self._program,
            words=count,
            visits=_numbers(self._visits),
            saturated=None if self._saturated is None else _numbers(self._saturated),
            results=self._results,
            evaluate=Evaluate(_evaluation(weakref.ref(self))),
        )
        # A view: NumPy copies faster than ctypes.
        self._registers = np.frombuffer(self._engine.registers, np.uint64)[: len(self.registers)]

    def _evaluate(self, number: int, fx: int) -> int:
        place = SPECIAL_ROWS.index(INSTRUCTIONS[number]) * FRACTIONS + fx
        try:
            self._results[place] = _results(number, fx).ctypes.data_as(POINTER(c_int16))
        except BaseException as error:
            # It can't pass through C++, and an interrupt must not get lost there.
            self._failure = error
            return 1
        return 0

    def _execute(self, limit: int | None) -> EngineEnd | None:
        state, engine = self._state, self._engine
        # Raises if the image has been closed: its descriptor may refer to another file by now.
        state.memory.mapping()
        self._registers[:] = self.registers
        engine.vl, engine.mr, engine.fx, engine.pc = state.vl, state.mr, state.fx, self.pc
        left, code = limit, LIMIT
        try:
            while code == LIMIT and left != 0:
                some = _AT_ONCE if left is None else min(left, _AT_ONCE)
                code = self._library.vip_engine_run(engine, some)
                left = None if left is None else left - some
        finally:
            self.registers[:] = self._registers.tolist()
            state.vl, state.mr, state.fx, self.pc = engine.vl, engine.mr, engine.fx, engine.pc
            self.visits[:] = self._visits.tolist()
            if self._saturated is not None:
                state.saturated = self._saturated.tolist()
        if code == FAILED:
            if self._failure is not None:
                raise self._failure
            problem = os.strerror(ctypes.get_errno())
            raise ImageError(f"{state.memory.path} can't be accessed: {problem}")
        if code == LIMIT:
            return None
        ended = sum(self.visits)
        if code == HALTED:
            return EngineEnd(state="halted", pc=self.pc, executed=ended)
        return EngineEnd(state="faulted", cause=FaultCause(code), pc=self.pc, executed=ended)


class CheckingSimulator(CompiledSimulator):
    """:class:`CompiledSimulator` that also reports the hazards that an observer of
    :class:`isa.hazards.HazardLog` would, at lower speed.

    Parameters, attributes and exceptions: as there.
    """

    def _load(
        self, words: Sequence[int], rows: Sequence[Instruction | None], observer: Observer | None
    ) -> None:
        super()._load(words, rows, observer)
        self._log = self._library.vip_hazards_open()
        weakref.finalize(self, self._library.vip_hazards_close, self._log)
        engine = self._engine
        engine.log, engine.followed = self._log, self._program
        engine.program = marked = type(self._program).from_buffer_copy(self._program)
        for operation in marked:
            if operation.row in CONCERNED:
                operation.row = SEEN

    @property
    def hazards(self) -> list[Hazard]:
        """Those met since the launch, as :attr:`isa.hazards.HazardLog.hazards`."""
        hazards = (FoundHazard * self._library.vip_hazards_count(self._log))()
        self._library.vip_hazards_copy(self._log, hazards)
        return [self._hazard(hazard) for hazard in hazards]

    def _hazard(self, hazard: FoundHazard) -> Hazard:
        key, other_key = self._keys[hazard.pc], self._keys[hazard.other]
        assert key is not None
        assert other_key is not None
        kind = HAZARD_KINDS[hazard.what]
        timeless = kind is HazardKind.OWN_OPERAND
        return Hazard(
            pc=hazard.pc,
            key=key,
            what=kind,
            address=hazard.address,
            other=hazard.other,
            other_key=other_key,
            distance=None if timeless else hazard.distance,
            needed=None if timeless else hazard.needed,
            times=hazard.times,
        )
