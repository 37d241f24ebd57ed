"""Choice between the two kernels of belief propagation: by a matrix, or by shifts."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from isa.program import Program
from microkernels.common.builder import DEFAULT_SCRATCHPAD, INSTRUCTION_WORDS, KernelBuilder
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES

from ..blocks import block_fit
from ..partition import PAIR
from ..problem import BpProblem
from ..record import LOADED_VECTORS, vector_stride
from ..schedule import Spacing, most_labels
from ..variants.plain import plain_cycles, plain_plan
from ..variants.variant import USUAL, Variant
from .block_kernel import BLOCK_LANES, block_builder, block_plan
from .kernel import LANES, constants, transform_builder
from .rhythm import MOST_SLOTS, TransformPlan, beats_of, rhythm, transform_plan
from .transform import Transform, transform_of
from .wide import wide_builder, wide_constants
from .wide_plan import WidePlan, wide_order, wide_plan

__all__ = ["Form", "Shifts", "bus_cycles", "matrix_cycles", "shifts_of"]

#: How new messages are computed. ``matrix``: from all pairs of labels. ``shifts``: by a distance
#: transform (:mod:`microkernels.bp.shifts.transform`). ``auto``: in the way of fewer cycles.
Form = Literal["matrix", "shifts", "auto"]
#: Instructions of an update that every program by shifts has beside those of the vector unit.
_SCALAR_INSTRUCTIONS = 13
#: The same on blocks.
_BLOCK_INSTRUCTIONS = 11
#: Those that weights and damping add.
_WEIGHT_INSTRUCTIONS, _DAMPING_INSTRUCTIONS = 5, 9
#: Bytes of a vault's bus in a cycle.
BUS_BYTES = 8
#: Kernels that are compared: their lanes; 0: the one for many labels.
KINDS = (*LANES, 0)
#: The kernel on blocks, which comes first among equals.
_BLOCKS = -1


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
        beat = rhythm(*shape, self.lanes, self.variant)
        return transform_plan(*shape, beat, self.scratchpad_bytes, self.slots, self.variant)

    @property
    def constants(self) -> NDArray[np.signedinteger]:
        """Elements that engines load before the first run."""
        if isinstance(self.plan, WidePlan):
            return wide_constants(self.transform, self.bits, self.plan, self.variant.damping)
        return constants(self.transform, self.labels, self.bits, self.plan, self.variant.damping)

    @property
    def cycles(self) -> int:
        """Cycles of an engine for an update with ideal memory, about."""
        plan = self.plan
        if isinstance(plan, WidePlan):
            shape = self.transform, self.labels, plan.slots, self.variant
            return sum(one.beats(self.bits) for one in wide_order(*shape, joined=plan.joined))
        period = rhythm(self.transform, self.labels, self.bits, self.lanes, self.variant).period
        others = _BLOCK_INSTRUCTIONS if self.in_blocks else _SCALAR_INSTRUCTIONS
        others += _WEIGHT_INSTRUCTIONS * self.variant.weighted
        others += _DAMPING_INSTRUCTIONS * self.variant.damped
        return max(period * beats_of(self.labels, self.bits), period + others)

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


@lru_cache(maxsize=8)
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


def matrix_cycles(labels: int, bits: int) -> int:
    """Cycles of an engine for an update by a matrix with ideal memory, about."""
    spacing = Spacing.of(labels, bits)
    # q, p, t, the difference, and a row for each label.
    rows = labels + 4 + spacing.before_total + spacing.after_total
    return rows * beats_of(labels, bits)


def shifts_of(
    problem: BpProblem,
    form: Form,
    scratchpad_bytes: int,
    instruction_words: int = INSTRUCTION_WORDS,
    *,
    blocks: bool = False,
    pes: int = 1,
    damping: int = 0,
) -> Shifts | None:
    """The kernel by shifts for ``problem``; None: the one by a matrix is chosen.

    Parameters:
        form: as given for the job. scratchpad_bytes, instruction_words: of an engine.
        blocks: records may hold blocks (:mod:`microkernels.bp.blocks`), where the problem suits.
        pes: engines that share a vault's bus.
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
    in_blocks = blocks and variant.usual
    try:
        found = _best(
            transform,
            problem.labels,
            problem.bits,
            scratchpad_bytes,
            instruction_words,
            in_blocks and block_fit(problem.width, problem.height, problem.labels, problem.bits),
            pes * bus_cycles(problem.labels, problem.bits, variant),
            variant,
        )
    except KernelError:
        if form == "shifts":
            raise
        return None
    by_matrix = _matrix_cycles(problem.labels, problem.bits, scratchpad_bytes, variant)
    if form == "auto" and by_matrix is not None and by_matrix <= found.cycles:
        return None
    return found


def _matrix_cycles(labels: int, bits: int, scratchpad_bytes: int, variant: Variant) -> int | None:
    """As :func:`matrix_cycles`; None: labels that don't fit an engine."""
    if variant.usual:
        fits = labels <= most_labels(bits, scratchpad_bytes)
        return matrix_cycles(labels, bits) if fits else None
    try:
        plain_plan(labels, bits, scratchpad_bytes, variant)
    except KernelError:
        return None
    return plain_cycles(labels, bits, variant)


def bus_cycles(labels: int, bits: int, variant: Variant = USUAL) -> int:
    """Cycles of a vault's bus for an update: three vectors are read, one is written; with damping
    four are read."""
    vector = vector_stride(labels + variant.tail, bits)
    columns = -(-LOADED_VECTORS * vector // COLUMN_BYTES)
    columns += (1 + variant.damped) * -(-vector // COLUMN_BYTES)
    return columns * COLUMN_BYTES // BUS_BYTES


def _works_twice(one: Shifts) -> bool:
    """Whether the kernel works twice on a pair of lines without another."""
    return one.lanes > PAIR and not one.in_blocks


@lru_cache(maxsize=64)
def _best(
    transform: Transform,
    labels: int,
    bits: int,
    scratchpad_bytes: int,
    instruction_words: int,
    blocks: bool,
    bus: int,
    variant: Variant,
) -> Shifts:
    """The fastest kernel that fits an engine, on a vault whose bus takes ``bus`` cycles for an
    update of each engine."""
    found: list[tuple[int, int, int, Shifts]] = []
    reasons: list[KernelError] = []
    # Fewer slots make a shorter program.
    kinds = product(KINDS, (MOST_SLOTS, MOST_SLOTS // 2, MOST_SLOTS // 4))
    for lanes, slots in [*([(_BLOCKS, MOST_SLOTS)] if blocks else []), *kinds]:
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
            found.append((one.cycles, -one.plan.slots, lanes, one))
        except KernelError as error:
            reasons.append(error)
    ranked = [one for *_, one in sorted(found, key=lambda each: each[:3])]
    if ranked and _works_twice(ranked[0]):
        # Lines worked on twice are loaded twice: where the bus binds, two lanes are faster.
        ranked.sort(key=lambda one: one.cycles > bus or one.lanes != PAIR)
    for one in ranked:
        try:
            one.program(vault_bits=None)
        except KernelError as error:
            reasons.append(error)
        else:
            return one
    # What keeps a program from an engine says more than what keeps vectors from a plan.
    raise reasons[-1] if found else reasons[0]
