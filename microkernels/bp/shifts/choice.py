"""Choice between the two kernels of belief propagation: by a matrix, or by shifts."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from statistics import mean
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from isa.program import Program
from microkernels.common.builder import DEFAULT_SCRATCHPAD, INSTRUCTION_WORDS, KernelBuilder
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES

from ..blocks import BLOCK, block_fit
from ..kernel import bp_program
from ..pace import update_cycles
from ..partition import PAIR
from ..problem import BpProblem, element_type
from ..record import LOADED_VECTORS, PLACE, vector_stride
from ..variants.plain import plain_program
from ..variants.variant import USUAL, Variant
from .block_kernel import BLOCK_LANES, block_builder, block_plan
from .kernel import LANES, constants, transform_builder
from .rhythm import MOST_SLOTS, Rhythm, TransformPlan, beats_of, rhythm, transform_plan
from .transform import Transform, transform_of
from .wide import wide_builder, wide_constants
from .wide_plan import WidePlan, wide_order, wide_plan

__all__ = ["Form", "Shifts", "bus_cycles", "matrix_cycles", "shifts_of"]

#: How new messages are computed. ``matrix``: from all pairs of labels. ``shifts``: by a distance
#: transform (:mod:`microkernels.bp.shifts.transform`). ``auto``: in the way of fewer cycles.
Form = Literal["matrix", "shifts", "auto"]
#: Bytes of a vault's bus in a cycle.
BUS_BYTES = 8
#: Kernels that are compared: their lanes; 0: the one for many labels.
KINDS = (*LANES, 0)
#: The kernel on blocks, which comes first among equals.
_BLOCKS = -1
#: Measured on the timing model, about: cycles from a load to its first data, of one engine and of a
#: ring of vaults; cycles of an update that the ends of lines take in kernels by shifts; factor of
#: kernels on four lines in a ring, whose steps have few lines.
_LATENCY, _RING_LATENCY = 52, 77
_ENDS, _STEPS = 1.5, 1.3


@dataclass(frozen=True)
class Place:
    """Where an image is solved.

    Attributes:
        height, width: of the image.
        pes: engines that share a vault. vaults: of the ring.
    """

    height: int
    width: int
    pes: int = 1
    vaults: int = 1

    def cycles(self, lanes: int, cycles: float, bus: float) -> float:
        """Cycles of an engine for an update, about, with idle engines and lines that are worked on
        several times.

        Parameters:
            lanes: lines that are worked on at a time. cycles: with as many lines for each engine.
            bus: cycles of a vault's bus for an update.
        """
        # Two sweeps at once, of half of the engines each (steps.py).
        team = self.pes // 2 if self.pes % 2 == 0 else self.pes
        groups, slowest, loaded = max(1, lanes // PAIR), [], []
        for size in (self.height, self.width):
            # A ring of vaults works on a part of a tile's lines at a time.
            lines = -(-size // self.vaults)
            pairs = -(-lines // PAIR)
            worked = [-(-((pairs + engine) // team) // groups) for engine in range(team)]
            share = min(lanes, PAIR) * groups / lines
            loaded.append(sum(worked) * share)
            # Pairs are cut for engines to end together (partition.py), lone lines are not.
            balanced = self.vaults == 1 and lines % PAIR == 0
            slowest.append(loaded[-1] if balanced else max(worked) * share * team)
        if lanes == 1:
            return max(cycles, self.pes * bus)
        return max(cycles * mean(slowest), self.pes * bus * mean(loaded))


@dataclass(frozen=True, kw_only=True)
class Shifts:
    """A kernel by shifts.

    Attributes:
        transform: of the smoothness costs. labels, bits: of the problem.
        lanes: lines worked on at a time.
        wide: the kernel for many labels (:mod:`microkernels.bp.shifts.wide`), with one lane.
        in_blocks: the kernel on blocks of pixels (:mod:`microkernels.bp.shifts.block_kernel`).
        slots: updates held or in flight, at most.
        scratchpad_bytes, instruction_words: of an engine.
        variant: of the updates.
    """

    transform: Transform
    labels: int
    bits: int
    lanes: int
    wide: bool = False
    in_blocks: bool = False
    slots: int = MOST_SLOTS
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD
    instruction_words: int = INSTRUCTION_WORDS
    variant: Variant = USUAL

    @cached_property
    def plan(self) -> TransformPlan | WidePlan:
        """Places in the scratchpad."""
        shape = (self.transform, self.labels, self.bits)
        if self.wide:
            return wide_plan(*shape, self.scratchpad_bytes, self.slots, self.variant)
        if self.in_blocks:
            return block_plan(*shape, self.scratchpad_bytes)
        return transform_plan(*shape, self._rhythm, self.scratchpad_bytes, self.slots, self.variant)

    @property
    def constants(self) -> NDArray[np.signedinteger]:
        """Elements that engines load before the first run."""
        if isinstance(self.plan, WidePlan):
            return wide_constants(self.transform, self.bits, self.plan, self.variant.damping)
        return constants(self.transform, self.labels, self.bits, self.plan, self.variant.damping)

    @cached_property
    def _rhythm(self) -> Rhythm:
        return rhythm(self.transform, self.labels, self.bits, self.lanes, self.variant)

    @cached_property
    def cycles(self) -> float:
        """Cycles of an engine for an update, about, with operands that are there in time.

        Raises:
            KernelError: the program does not fit an engine.
        """
        plan = self.plan
        if isinstance(plan, WidePlan):
            shape = self.transform, self.labels, plan.slots, self.variant
            return sum(one.beats(self.bits) for one in wide_order(*shape, joined=plan.joined))
        words = tuple(self.program(vault_bits=None).words)
        # Messages of blocks are stored two at a time.
        return update_cycles(words, self.labels, 1) / (BLOCK if self.in_blocks else 1) + _ENDS

    def shared_cycles(self, place: "Place") -> float:
        """Cycles of an engine for an update, about, where several share a vault.

        Raises:
            KernelError: the program does not fit an engine.
        """
        if self.in_blocks:
            # Columns are full.
            bus = (LOADED_VECTORS + 1) * vector_stride(self.labels, self.bits) / BUS_BYTES
            return max(self.cycles, place.pes * bus)
        bus = bus_cycles(self.labels, self.bits, self.variant)
        cycles = self.cycles
        if not isinstance(self.plan, WidePlan):
            cycles = max(cycles, self._loads(place, bus))
        if place.vaults > 1 and self.lanes > PAIR:
            cycles *= _STEPS
        return place.cycles(self.lanes, cycles, bus)

    def _loads(self, place: "Place", bus: float) -> float:
        """Cycles of an update by which the loads of slots keep up: a slot is loaded when its last
        update is over, and must be there for q of the next one."""
        beat = self._rhythm
        assert not isinstance(self.plan, WidePlan)
        ahead = self.plan.slots - (beat.freed - beat.places["q"]) / beat.period
        if place.pes > 1 and self.lanes > PAIR:
            # Loads of four lines, of several engines, wait longer for banks.
            ahead /= 2
        inputs = (LOADED_VECTORS - 1) * self.plan.vector
        inputs += self.labels * element_type(self.bits).itemsize
        latency = _LATENCY if place.vaults == 1 else _RING_LATENCY
        return (latency + inputs / BUS_BYTES + (place.pes - 1) * bus) / ahead

    def program(self, vault_bits: int | None) -> Program:
        """The program; ``vault_bits`` as of :func:`microkernels.bp.kernel.bp_builder`.

        Raises:
            KernelError: it does not fit an engine.
        """
        return _program(self, vault_bits)

    def builder(self, vault_bits: int | None) -> KernelBuilder:
        """The program's text, of any length; errors as of :meth:`program`."""
        if self.wide:
            return wide_builder(
                self.transform,
                self.labels,
                self.bits,
                slots=self.slots,
                scratchpad_bytes=self.scratchpad_bytes,
                vault_bits=vault_bits,
                variant=self.variant,
            )
        if self.in_blocks:
            return block_builder(
                self.transform, self.labels, self.bits, self.scratchpad_bytes, vault_bits
            )
        return transform_builder(
            self.transform,
            self.labels,
            self.bits,
            lanes=self.lanes,
            slots=self.slots,
            scratchpad_bytes=self.scratchpad_bytes,
            vault_bits=vault_bits,
            variant=self.variant,
        )


@lru_cache(maxsize=32)
def _program(shifts: Shifts, vault_bits: int | None) -> Program:
    shape = f"{shifts.labels}x{shifts.bits}"
    program = shifts.builder(vault_bits).program(f"bp_m_shifts_{shape}.s")
    # With vaults the program has one word more.
    words = len(program.words) + (vault_bits is None)
    if words > shifts.instruction_words:
        raise KernelError(
            f"the program of {len(shifts.transform.shifts)} shifts for {shifts.labels} labels of "
            f"{shifts.bits} bits has {words} words; an engine holds {shifts.instruction_words}"
        )
    return program


@lru_cache(maxsize=64)
def matrix_cycles(
    labels: int,
    bits: int,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
    instruction_words: int = INSTRUCTION_WORDS,
    variant: Variant = USUAL,
) -> float | None:
    """Cycles of an engine for an update by a matrix, about, with operands that are there in time;
    None: it does not fit an engine."""
    try:
        if variant.usual:
            program = bp_program(labels, bits, scratchpad_bytes=scratchpad_bytes)
        else:
            program = plain_program(labels, bits, variant, scratchpad_bytes)
    except KernelError:
        return None
    if len(program.words) >= instruction_words:
        return None
    cycles = update_cycles(tuple(program.words), labels, labels)
    if variant.weighted:
        # The matrix times a weight is one long vector.
        cycles += beats_of(labels * labels, bits) - beats_of(labels, bits)
    return cycles


def shifts_of(
    problem: BpProblem,
    form: Form,
    scratchpad_bytes: int,
    instruction_words: int = INSTRUCTION_WORDS,
    *,
    blocks: bool = False,
    pes: int = 1,
    vaults: int = 1,
    damping: int = 0,
) -> Shifts | None:
    """The kernel by shifts for ``problem``; None: the one by a matrix is chosen.

    Parameters:
        form: as given for the job. scratchpad_bytes, instruction_words: of an engine.
        blocks: records may hold blocks (:mod:`microkernels.bp.blocks`), where the problem suits.
        pes: engines that share a vault's bus. vaults: of a ring, that share the image.
        damping: as of :func:`microkernels.bp.golden.iterate`.

    Raises:
        KernelError: ``shifts`` can't be used; the message says why.
    """
    if form == "matrix":
        return None
    transform = transform_of(problem.smoothness)
    if transform is None:
        if form == "auto":
            return None
        raise KernelError(
            "messages by shifts need smoothness costs of the difference of labels that begin at 0, "
            "are convex and may end in one value"
        )
    variant = Variant(problem.weights is not None, damping)
    place = Place(problem.height, problem.width, pes, vaults)
    in_blocks = blocks and variant.usual
    try:
        fastest = _best(
            transform,
            problem.labels,
            problem.bits,
            scratchpad_bytes,
            instruction_words,
            in_blocks and block_fit(problem.width, problem.height, problem.labels, problem.bits),
            place,
            variant,
        )
    except KernelError:
        if form == "shifts":
            raise
        return None
    if form == "shifts":
        return fastest
    shape = problem.labels, problem.bits
    by_matrix = matrix_cycles(*shape, scratchpad_bytes, instruction_words, variant)
    if by_matrix is None:
        return fastest
    shared = place.cycles(PAIR if variant.usual else 1, by_matrix, bus_cycles(*shape, variant))
    by_shifts = fastest.shared_cycles(place), fastest.cycles
    return None if (shared, by_matrix) <= by_shifts else fastest


def bus_cycles(labels: int, bits: int, variant: Variant = USUAL) -> float:
    """Cycles of a vault's bus for an update, in the mean of the sweeps: three vectors are read, one
    is written; with damping four are read."""
    size = element_type(bits).itemsize
    vector = vector_stride(labels + variant.tail, bits)

    def columns(first: int, used: int) -> int:
        return (first + used - 1) // COLUMN_BYTES - first // COLUMN_BYTES + 1

    inputs = (LOADED_VECTORS - 1) * vector + (labels + variant.tail) * size
    # Sweeps along rows read the first vectors of a record, sweeps along columns the last ones.
    loaded = mean(columns(first, inputs) for first in (0, (LOADED_VECTORS - 1) * vector))
    message = mean(columns(place * vector, labels * size) for place in PLACE.values())
    return (loaded + (1 + variant.damped) * message) * COLUMN_BYTES / BUS_BYTES


@lru_cache(maxsize=64)
def _best(
    transform: Transform,
    labels: int,
    bits: int,
    scratchpad_bytes: int,
    instruction_words: int,
    blocks: bool,
    place: Place,
    variant: Variant,
) -> Shifts:
    """The fastest kernel that fits an engine."""
    fitting: list[tuple[float, float, int, Shifts]] = []
    reasons: list[KernelError] = []
    planned: list[KernelError] = []
    # Fewer slots make a shorter program.
    kinds = product(KINDS, (MOST_SLOTS, MOST_SLOTS // 2, MOST_SLOTS // 4))
    for lanes, slots in [*([(_BLOCKS, MOST_SLOTS)] if blocks else []), *kinds]:
        if fitting and fitting[-1][2] == lanes:
            continue
        one = Shifts(
            transform=transform,
            labels=labels,
            bits=bits,
            lanes=BLOCK_LANES if lanes == _BLOCKS else lanes or 1,
            wide=lanes == 0,
            in_blocks=lanes == _BLOCKS,
            slots=slots,
            scratchpad_bytes=scratchpad_bytes,
            instruction_words=instruction_words,
            variant=variant,
        )
        try:
            assert one.plan
        except KernelError as error:
            reasons.append(error)
            continue
        try:
            one.program(vault_bits=None)
        except KernelError as error:
            planned.append(error)
        else:
            fitting.append((one.shared_cycles(place), one.cycles, lanes, one))
    if fitting:
        return min(fitting, key=lambda one: one[:3])[3]
    # What keeps a program from an engine says more than what keeps vectors from a plan.
    raise planned[-1] if planned else reasons[0]
