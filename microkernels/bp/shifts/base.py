"""The common part of the kernels by shifts, and their cycles.

*Cycles per update in a kernel's loop*, computed from its program. The front end issues one
instruction per cycle and loses :data:`TAKEN` at a taken branch. It passes a vector instruction on
when the vector unit has begun the previous one; the unit works through them without a gap. A drain
ends when all results are complete. Operands are assumed to arrive in time, and lines to be long.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import mean
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from isa.instruction import Instruction, Opcode, Role, Unit
from isa.program import Program
from isa.table import decode
from isa.timing import VECTOR_LATENCY, beats
from microkernels.common.builder import (
    DEFAULT_SCRATCHPAD,
    INSTRUCTION_WORDS,
    KernelBuilder,
    ScratchpadPlan,
)
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES

from ..problem import USUAL, UpdateVariant, element_type
from ..record import BLOCK, LOADED_VECTORS, PLACE, vector_stride
from ..runs import PAIR
from ..tiles import TileGrid
from .transform import Transform

#: Maximum slots of the ring: registers hold their addresses.
MOST_SLOTS = 8
#: Bytes per cycle on a vault's bus.
BUS_BYTES = 8
#: Extra cycles of a taken branch (docs/architecture.md).
TAKEN = 3
#: Iterations of the loop before it reaches steady state, and iterations measured.
_BEFORE, _MEASURED = 2, 2
#: Part by which a vault's bus takes longer than its transfers.
_REFRESH = 1.04
#: Cycles by which a step of a ring's sweep is longer than its updates, with most kernels and with
#: those by shifts on blocks or with sums, and the part of it that another run takes; steps that
#: sums cost in one vault, where sweeps stop in the middle. All are measured on the timing model:
#: 7 designs, 4 to 32 labels, 10 sizes.
_STEP, LONG_STEP, _RUN, _MIDDLE = 550, 720, 0.4, 2.5


def image_cycles(
    grid: TileGrid,
    lanes: int,
    cycles: float,
    bus: float,
    *,
    in_blocks: bool = False,
    sums: bool = False,
    lone: float = 1,
    step: float = _STEP,
) -> float:
    """Approximate engine cycles per update of an image that engines share, including idle engines,
    lines that are processed several times and starts of steps.

    Parameters:
        grid: the image's tiles and the engines.
        lanes: lines of pixels interleaved. cycles: per update if every engine has as many lines.
        bus: cycles of a vault's bus per update.
        in_blocks: tiles are cut between blocks, and lone lines of blocks are pairs.
        sums: are made one axis ahead.
        lone: time of a lone line, as part of a pair's.
        step: cycles by which a step of a ring's sweep is longer than its updates.
    """
    pes, vaults, unit = grid.ring.pes, grid.ring.vaults, BLOCK if in_blocks else 1
    grid = replace(grid, block=unit)
    # Two sweeps at once, by half of the engines each (runs.py).
    team = pes // 2 if pes % 2 == 0 else pes
    pair = min(lanes // unit, PAIR)
    groups, slowest, loaded, steps = max(1, lanes // unit // PAIR), [], [], 0.0
    for size, parts in ((grid.height, grid.rows), (grid.width, grid.columns)):
        # A ring of vaults processes one part of a tile's lines at a time.
        lines = -(-size // (unit * parts))
        pairs, alone = divmod(lines, pair)
        turns = [(pairs + engine) // team + (alone and not engine) for engine in range(team)]
        worked: list[float] = [-(-turn // groups) for turn in turns]
        worked[0] -= alone * (1 - lone)
        share = pair * unit * groups * vaults / size
        loaded.append(sum(worked) * share)
        # Pairs are cut so that engines finish together (runs.py); lone lines that take as long are
        # not.
        balanced = vaults == 1 and (lone < 1 or not alone)
        slowest.append(loaded[-1] if balanced else max(worked) * share * team)
        # A lone line is a run of its own; with sums, so is a pair beside four lines.
        runs = (lines > PAIR * team and lines % PAIR > 0) + (
            sums and lines > 2 * PAIR * team and -(-lines // PAIR) % 2 > 0
        )
        steps += parts * (1 + _RUN * runs)
    if vaults == 1:
        steps = _MIDDLE * sums
    starts = step * steps / 2 * team * vaults / (grid.width * grid.height)
    return max(cycles * mean(slowest), _REFRESH * pes * bus * mean(loaded)) + starts


@dataclass(frozen=True, kw_only=True)
class Shifts(ABC):
    """A kernel by shifts.

    Attributes:
        transform: of the smoothness costs. Its shifts are built into the code; its costs are not.
        labels, bits: of the problem.
        slots: maximum updates loaded or in flight.
        scratchpad_bytes, instruction_words: per engine.
        variant: of the updates.
        lanes: lines interleaved.
        in_blocks: records are blocks of pixels (:mod:`microkernels.bp.record`).
    """

    transform: Transform
    labels: int
    bits: int
    slots: int = MOST_SLOTS
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD
    instruction_words: int = INSTRUCTION_WORDS
    variant: UpdateVariant = USUAL
    lanes: int = 1

    in_blocks: ClassVar[bool] = False

    @cached_property
    @abstractmethod
    def pad(self) -> ScratchpadPlan:
        """Places in the scratchpad. What engines load before the first run extends from address 0
        to the place ``constants_end``.

        Raises:
            KernelError: they don't fit.
        """

    @property
    @abstractmethod
    def constants(self) -> NDArray[np.signedinteger]:
        """Elements that engines load before the first run."""

    @abstractmethod
    def builder(self, vault_bits: int | None) -> KernelBuilder:
        """The program's text, of any length; otherwise like :meth:`program`."""

    @property
    @abstractmethod
    def cycles(self) -> float:
        """Approximate engine cycles per update if operands arrive in time.

        Raises:
            KernelError: the program does not fit an engine.
        """

    @property
    def size(self) -> int:
        """Bytes per element."""
        return element_type(self.bits).itemsize

    @property
    def constant_bytes(self) -> int:
        """Bytes of :attr:`constants`."""
        return self.pad["constants_end"]

    def program(self, vault_bits: int | None) -> Program:
        """The program; ``vault_bits`` as for :func:`microkernels.bp.kernel.bp_builder`.

        Raises:
            KernelError: it does not fit an engine.
        """
        return _program(self, vault_bits)

    @property
    def bus(self) -> float:
        """Cycles of a vault's bus per update without sums, averaged over the sweeps."""
        return bus_cycles(self.labels, self.bits, self.variant)

    def shared_cycles(self, grid: TileGrid) -> float:
        """Approximate engine cycles per update of an image if several engines share a vault;
        parameters as for :func:`image_cycles`.

        Raises:
            KernelError: the program does not fit an engine.
        """
        return image_cycles(grid, self.lanes, self.cycles, self.bus)

    def no_room(self, suffix: str) -> KernelError:
        """The error for vectors that don't fit the scratchpad; ``suffix`` ends its text."""
        return KernelError(
            f"{self.labels} labels of {self.bits} bits do not fit a scratchpad of "
            f"{self.scratchpad_bytes} bytes by shifts{suffix}"
        )


@lru_cache(maxsize=32)
def _program(shifts: Shifts, vault_bits: int | None) -> Program:
    shape = f"{shifts.labels}x{shifts.bits}"
    program = shifts.builder(vault_bits).program(f"bp_m_shifts_{shape}.s")
    # With vaults the program has one more word.
    words = len(program.words) + (vault_bits is None)
    if words > shifts.instruction_words:
        raise KernelError(
            f"the program of {len(shifts.transform.shifts)} shifts for {shifts.labels} labels of "
            f"{shifts.bits} bits has {words} words; an engine has room for "
            f"{shifts.instruction_words}"
        )
    return program


def bus_cycles(labels: int, bits: int, variant: UpdateVariant = USUAL) -> float:
    """Cycles of a vault's bus per update, averaged over the sweeps: three vectors are read and one
    is written; with damping four are read."""
    size = element_type(bits).itemsize
    vector = vector_stride(labels + variant.tail, bits)

    def columns(first: int, used: int) -> int:
        return (first + used - 1) // COLUMN_BYTES - first // COLUMN_BYTES + 1

    inputs = (LOADED_VECTORS - 1) * vector + (labels + variant.tail) * size
    # Sweeps along rows read the first vectors of a record, sweeps along columns the last.
    loaded = mean(columns(first, inputs) for first in (0, (LOADED_VECTORS - 1) * vector))
    message = mean(columns(place * vector, labels * size) for place in PLACE.values())
    return (loaded + (1 + variant.damped) * message) * COLUMN_BYTES / BUS_BYTES


@lru_cache(maxsize=64)
def update_cycles(words: tuple[int, ...], vl: int, mr: int, number: int = 0) -> float:
    """Engine cycles per message stored by the program's main loop.

    Parameters:
        words: of a BP-M program, whose main loop is the innermost loop with the most stores.
        vl, mr: elements per vector, and rows per matrix.
        number: of the main loop, if several have as many stores.
    """
    code = [row for row in map(decode, words) if row is not None]
    first, last = _main_loops(code)[number]
    # Registers that change the vector length in the loop contain constants.
    numbers = {values[0]: values[1] for row, values in code[:first] if row.key == "mov.imm"}
    front = begun = free = 0
    marks = []
    for _ in range(_BEFORE + _MEASURED + 1):
        marks.append(front)
        place = first
        while place <= last:
            row, values = code[place]
            step = 1
            if row.opcode == Opcode.DRAIN:
                front = max(front, free + VECTOR_LATENCY + 1)
            elif row.unit is Unit.VECTOR:
                front = max(front, begun + 1)
                begun = max(front + 1, free)
                free = begun + beats(row, vl, mr)
            elif row.opcode == Opcode.SET_VL:
                vl = numbers[values[0]]
            elif place == last:
                front += TAKEN
            elif _wraps(row, values):
                front += TAKEN
                step = _distance(row, values)
            front += 1
            place += step
    stores = sum(row.opcode == Opcode.ST_SRAM for row, _ in code[first : last + 1])
    return (marks[-1] - marks[_BEFORE]) / _MEASURED / stores


def _distance(row: Instruction, values: tuple[int, ...]) -> int:
    """Words from a branch to its target; 0: not a branch."""
    return values[-1] if row.operands and row.operands[-1].role is Role.TARGET else 0


def _wraps(row: Instruction, values: tuple[int, ...]) -> bool:
    """Whether a branch skips the single instruction that moves an address back to the first
    slot."""
    return row.mnemonic == "blt" and _distance(row, values) == 2


def _main_loops(code: list[tuple[Instruction, tuple[int, ...]]]) -> list[tuple[int, int]]:
    """First and last word of each of the innermost loops with the most stores."""
    loops = [
        (place + distance, place)
        for place, (row, values) in enumerate(code)
        if (distance := _distance(row, values)) < 0
    ]
    inner = [one for one in loops if not any(one[0] <= other[1] < one[1] for other in loops)]

    def stores(loop: tuple[int, int]) -> int:
        return sum(row.opcode == Opcode.ST_SRAM for row, _ in code[loop[0] : loop[1]])

    maximum = max(map(stores, inner))
    return [loop for loop in inner if stores(loop) == maximum]
