"""Plans of the belief propagation kernels: what layouts, jobs and the choice among kernels ask.

A plan has the shape of the problem and the sizes of an engine; it knows the kernel's places in the
scratchpad, its program, what engines load before a run, and the cycles of an update.

*Cycles per update in a kernel's loop*, computed from its program. The front end issues one
instruction per cycle and loses :data:`TAKEN` at a taken branch. It passes a vector instruction on
when the vector unit has begun the previous one; the unit works through them without a gap. A drain
ends when all results are complete. Operands are assumed to arrive in time, and lines to be long.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import mean
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isa.instruction import Instruction, Opcode, Role, Unit
from isa.program import Program
from isa.table import decode
from isa.timing import VECTOR_LATENCY, beats
from microkernels.common.builder import DEFAULT_SCRATCHPAD, INSTRUCTION_WORDS, KernelBuilder
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import COLUMN_BYTES
from microkernels.common.scratchpad_plan import ScratchpadPlan
from microkernels.runtime.ring import ONE_ENGINE, ChipEngines

from .problem import USUAL, BpProblem, UpdateVariant, element_type
from .record import BLOCK, LOADED_VECTORS, PLACE, vector_stride
from .runs import PAIR
from .shifts.transform import Transform, transform_of
from .tiles import TileGrid

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
#: Cycles per update due to line ends, with most kernels; measured on the timing model.
LINE_ENDS = 1.5
#: Use of the bus by sums, as part of that without them: two vectors and four, instead of four.
BUS_SHARE = 0.75


@dataclass(frozen=True, kw_only=True)
class Plan(ABC):
    """A kernel for a shape of problem and an engine.

    Attributes:
        labels, bits: of the problem.
        slots: maximum updates loaded or in flight.
        scratchpad_bytes, instruction_words: per engine.
        variant: of the updates.
        in_blocks: records are blocks of pixels (:mod:`microkernels.bp.record`).
        sums: records have a sum, which the kernel makes one axis ahead
            (:mod:`microkernels.bp.sums`).
        stem: of the program's name, after that of all kernels.
        lone: time of a lone line, as part of a pair's.
        step: cycles by which a step of a ring's sweep is longer than its updates.

    Raises:
        KernelError: an invalid element width, or no label.
    """

    labels: int
    bits: int = 16
    slots: int = MOST_SLOTS
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD
    instruction_words: int = INSTRUCTION_WORDS
    variant: UpdateVariant = USUAL

    in_blocks: ClassVar[bool] = False
    sums: ClassVar[bool] = False
    stem: ClassVar[str] = ""
    lone: ClassVar[float] = 1
    step: ClassVar[float] = _STEP

    def __post_init__(self) -> None:
        CHECK.fields(self)
        element_type(self.bits)
        CHECK.at_least("labels", self.labels, 1)

    @property
    @abstractmethod
    def means(self) -> str:
        """What messages are computed by, for texts of errors."""

    @property
    @abstractmethod
    def lines(self) -> int:
        """Maximum number of lines of pixels that the program interleaves."""

    @cached_property
    @abstractmethod
    def pad(self) -> ScratchpadPlan:
        """Places in the scratchpad.

        Raises:
            KernelError: they don't fit.
        """

    @abstractmethod
    def costs(self, smoothness: NDArray[np.signedinteger]) -> tuple[bytes, ...]:
        """What engines load before a run, for the sweeps right and down and, if that differs, for
        the sweeps left and up."""

    @property
    @abstractmethod
    def cost_bytes(self) -> int:
        """Bytes of each of :meth:`costs`."""

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

    def suits(self, smoothness: NDArray[np.integer]) -> bool:
        """Whether the kernel computes messages for these smoothness costs."""
        return True

    @classmethod
    def of(cls, problem: BpProblem, engines: ChipEngines = ONE_ENGINE, damping: int = 0) -> Self:
        """This kernel for a problem and an engine; ``damping`` as for
        :func:`microkernels.bp.golden.iterate`."""
        return cls(
            labels=problem.labels,
            bits=problem.bits,
            scratchpad_bytes=engines.scratchpad_bytes,
            instruction_words=engines.instruction_words,
            variant=UpdateVariant(problem.weights is not None, damping),
        )

    @classmethod
    def like(cls, plan: "Plan", **options: Any) -> Self:
        """This kernel for the shape and the engine of ``plan``; ``options``: its other fields."""
        names = ("labels", "bits", "scratchpad_bytes", "instruction_words", "variant")
        return cls(**{name: getattr(plan, name) for name in names}, **options)

    @property
    def size(self) -> int:
        """Bytes per element."""
        return element_type(self.bits).itemsize

    def fits(self, vault_bits: int | None) -> bool:
        """Whether the vectors and the program (:meth:`program`) fit an engine."""
        try:
            self.program(vault_bits)
        except KernelError:
            return False
        return True

    def program(self, vault_bits: int | None) -> Program:
        """The program.

        Parameters:
            vault_bits: bits of an address within a vault, if each vault has its own parameter
                block; the start register ``parameters`` is then the block's address within the
                vault, the same for all engines of the chip. None: it is the only block's address.

        Raises:
            KernelError: it does not fit an engine.
        """
        return _program(self, vault_bits)

    @property
    def bus(self) -> float:
        """Cycles of a vault's bus per update without sums, averaged over the sweeps: three vectors
        are read and one is written; with damping four are read."""
        used = self.labels + self.variant.tail
        vector = vector_stride(used, self.bits)

        def columns(first: int, used: int) -> int:
            return (first + used - 1) // COLUMN_BYTES - first // COLUMN_BYTES + 1

        inputs = (LOADED_VECTORS - 1) * vector + used * self.size
        # Sweeps along rows read the first vectors of a record, sweeps along columns the last.
        loaded = mean(columns(first, inputs) for first in (0, (LOADED_VECTORS - 1) * vector))
        message = mean(columns(place * vector, self.labels * self.size) for place in PLACE.values())
        return (loaded + (1 + self.variant.damped) * message) * COLUMN_BYTES / BUS_BYTES

    def shared_cycles(self, grid: TileGrid) -> float:
        """Approximate engine cycles per update of an image whose tiles are those of ``grid``.

        Raises:
            KernelError: the program does not fit an engine.
        """
        return self.image_cycles(grid, self.cycles, self.bus)

    def image_cycles(
        self, grid: TileGrid, cycles: float, bus: float, lines: int | None = None
    ) -> float:
        """Approximate engine cycles per update of an image that engines share, including idle
        engines, lines that are processed several times and starts of steps.

        Parameters:
            grid: the image's tiles and the engines.
            cycles: per update if every engine has as many lines.
            bus: cycles of a vault's bus per update.
            lines: of pixels interleaved; None: :attr:`lines`.
        """
        lines = lines or self.lines
        pes, vaults, unit = grid.ring.pes, grid.ring.vaults, BLOCK if self.in_blocks else 1
        grid = replace(grid, block=unit)
        # Two sweeps at once, by half of the engines each (runs.py).
        team = pes // 2 if pes % 2 == 0 else pes
        pair = min(lines // unit, PAIR)
        groups, slowest, loaded, steps = max(1, lines // unit // PAIR), [], [], 0.0
        for size, parts in ((grid.height, grid.rows), (grid.width, grid.columns)):
            # A ring of vaults processes one part of a tile's lines at a time.
            length = -(-size // (unit * parts))
            pairs, alone = divmod(length, pair)
            turns = [(pairs + engine) // team + (alone and not engine) for engine in range(team)]
            worked: list[float] = [-(-turn // groups) for turn in turns]
            worked[0] -= alone * (1 - self.lone)
            share = pair * unit * groups * vaults / size
            loaded.append(sum(worked) * share)
            # Pairs are cut so that engines finish together (runs.py); lone lines that take as long
            # are not.
            balanced = vaults == 1 and (self.lone < 1 or not alone)
            slowest.append(loaded[-1] if balanced else max(worked) * share * team)
            # A lone line is a run of its own; with sums, so is a pair beside four lines.
            runs = (length > PAIR * team and length % PAIR > 0) + (
                self.sums and length > 2 * PAIR * team and -(-length // PAIR) % 2 > 0
            )
            steps += parts * (1 + _RUN * runs)
        if vaults == 1:
            steps = _MIDDLE * self.sums
        starts = self.step * steps / 2 * team * vaults / (grid.width * grid.height)
        return max(cycles * mean(slowest), _REFRESH * pes * bus * mean(loaded)) + starts

    def loop_cycles(self, rows: int, number: int = 0) -> float:
        """Cycles per message stored in the loop; parameters as for :func:`update_cycles`."""
        words = tuple(self.program(vault_bits=None).words)
        return update_cycles(words, self.labels, rows, number)

    def no_room(self, suffix: str = "", kind: str = "") -> KernelError:
        """The error for vectors that don't fit the scratchpad; ``suffix`` ends its text, ``kind``
        follows the shape."""
        blocks = "blocks of " * self.in_blocks
        return KernelError(
            f"{blocks}{self.labels} labels of {self.bits} bits{kind} do not fit a scratchpad of "
            f"{self.scratchpad_bytes} bytes{suffix}"
        )


@dataclass(frozen=True, kw_only=True)
class Shifts(Plan):
    """A kernel by shifts.

    Attributes:
        transform: of the smoothness costs. Its shifts are built into the code; its costs are not.
        lanes: lines interleaved.
    """

    transform: Transform
    lanes: int = 1

    stem: ClassVar[str] = "shifts_"

    @property
    def means(self) -> str:
        return f"{len(self.transform.shifts)} shifts"

    @property
    def lines(self) -> int:
        return self.lanes

    @property
    @abstractmethod
    def constants(self) -> NDArray[np.signedinteger]:
        """Elements that engines load before the first run, from address 0 to the place
        ``constants_end``."""

    def costs(self, smoothness: NDArray[np.signedinteger]) -> tuple[bytes, ...]:
        """As for :class:`Plan`: the :attr:`constants`."""
        return (self.constants.tobytes(),)

    @property
    def cost_bytes(self) -> int:
        return self.pad["constants_end"]

    def suits(self, smoothness: NDArray[np.integer]) -> bool:
        """As for :class:`Plan`."""
        transform = transform_of(smoothness)
        return transform is not None and self.transform in (transform, transform.flat)


@lru_cache(maxsize=64)
def _program(plan: Plan, vault_bits: int | None) -> Program:
    shape = f"{plan.labels}x{plan.bits}"
    program = plan.builder(vault_bits).program(f"bp_m_{plan.stem}{shape}.s")
    if len(program.words) > plan.instruction_words:
        raise KernelError(
            f"the program of {plan.means} for {plan.labels} labels of {plan.bits} bits has "
            f"{len(program.words)} words; an engine has room for {plan.instruction_words}"
        )
    return program


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
