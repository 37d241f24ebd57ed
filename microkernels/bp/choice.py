"""Chooses among the belief propagation kernels: by a matrix or by several kinds of shifts, on
pixels or on blocks, with or without sums one axis ahead."""

from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import Literal

from isa.timing import VECTOR_LATENCY, WORD_BYTES
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES
from microkernels.runtime.ring import ONE_ENGINE, ChipEngines

from .block_frame import BLOCK_LANES
from .few import few_bus_cycles, few_cycles, few_program
from .kernel import bp_program
from .layout import BpLayout
from .plain import plain_program
from .problem import USUAL, BpProblem, UpdateVariant
from .record import BLOCK, block_fit, vector_stride
from .runs import PAIR
from .shifts.base import (
    LONG_STEP,
    MOST_SLOTS,
    Shifts,
    bus_cycles,
    image_cycles,
    update_cycles,
)
from .shifts.block_kernel import BlockShifts, BlockSumShifts
from .shifts.kernel import LANES, LaneShifts
from .shifts.rhythm import beats_of
from .shifts.sums import BUS_SHARE, SLOTS, SumShifts
from .shifts.transform import Transform, transform_of
from .shifts.wide import WideShifts
from .sums import sums_fit
from .tiles import TileGrid

#: How new messages are computed. ``matrix``: from all pairs of labels. ``shifts``: by a distance
#: transform (:mod:`microkernels.bp.shifts.transform`). ``auto``: whichever takes fewer cycles.
Form = Literal["matrix", "shifts", "auto"]
#: Kernels to compare, by number of lanes; 0: the one for many labels.
KINDS = (*LANES, 0)
_BLOCKS = -1
#: Numbers of lanes with which shifts wait for each other, so that parallel ones are faster.
_WAITING = (1, 2)
#: Of the kernel by a matrix: time of a lone line, as part of a pair's; cycles per update due to
#: line ends with sums (measured).
_LONE, _SUM_ENDS = 0.7, 0.5


def few_fits(problem: BpProblem, variant: UpdateVariant, engines: ChipEngines = ONE_ENGINE) -> bool:
    """Whether the kernel for few labels can solve ``problem`` with updates of this kind on an
    engine."""
    shape = problem.labels, problem.bits
    if not variant.usual or not block_fit(problem.width, problem.height, *shape):
        return False
    try:
        program = few_program(*shape, engines.scratchpad_bytes, 0)
    except KernelError:
        return False
    return len(program.words) <= engines.instruction_words


def matrix_in_blocks(
    problem: BpProblem,
    variant: UpdateVariant,
    engines: ChipEngines = ONE_ENGINE,
    cut: tuple[int, int] | None = None,
) -> bool:
    """Whether an update of ``problem`` by a matrix is faster on blocks than on pixels; ``cut`` as
    for :func:`shifts_of`."""
    kernels = _by_matrix(problem, variant, _grid(problem, engines, cut), blocks=True)
    return len(kernels) > 0 and min(kernels)[1]


def _grid(problem: BpProblem, engines: ChipEngines, cut: tuple[int, int] | None) -> TileGrid:
    return TileGrid(width=problem.width, height=problem.height, ring=engines, cut=cut)


def _by_matrix(
    problem: BpProblem,
    variant: UpdateVariant,
    grid: TileGrid,
    *,
    blocks: bool,
    sums: bool = False,
) -> list[tuple[float, bool]]:
    """Of each kernel by a matrix that fits an engine: cycles per update, and whether it is on
    blocks."""
    shape, kernels = (problem.labels, problem.bits), []
    if blocks and few_fits(problem, variant, grid.ring):
        few, bus = few_cycles(*shape), few_bus_cycles(*shape)
        cycles = image_cycles(grid, BLOCK_LANES, few, bus, in_blocks=True)
        kernels.append((cycles, True))
    for ahead in (False, True)[: 1 + sums]:
        pixels = _on_pixels(shape, grid, variant, sums=ahead)
        if pixels is not None:
            kernels.append((pixels, False))
    return kernels


def _on_pixels(
    shape: tuple[int, int],
    grid: TileGrid,
    variant: UpdateVariant,
    *,
    sums: bool,
) -> float | None:
    """Cycles per update of the kernel by a matrix on pixels; None: it does not fit an engine."""
    engines = grid.ring
    cycles, bus = matrix_cycles(*shape, engines, variant), bus_cycles(*shape, variant)
    if cycles is None or (sums and not (variant.usual and sums_fit(*shape, engines))):
        return None
    if not sums:
        lanes = PAIR if variant.usual else 1
        return image_cycles(grid, lanes, cycles, bus, lone=_LONE)
    # First visits, which are half of all, add two vectors less.
    cycles += _SUM_ENDS - beats_of(*shape)
    bus *= BUS_SHARE
    return image_cycles(grid, PAIR, cycles, bus, sums=True, step=LONG_STEP)


def with_sums(layout: BpLayout, sums: bool | None) -> BpLayout:
    """``layout`` with sums if they are ``wanted``, or, if that is None, where they are faster.

    Raises:
        KernelError: they are wanted, but the program or its vectors don't suit.
    """
    if sums is False:
        return layout
    engines, grid, shifts = layout.ring, layout.grid, None
    if layout.shifts is None:
        shape = layout.labels, layout.bits
        plain, ahead = (_on_pixels(shape, grid, layout.variant, sums=one) for one in (False, True))
        fits, faster = ahead is not None, plain is None or (ahead is not None and ahead < plain)
    else:
        shifts, cycles = _shifts_with_sums(layout.shifts), layout.shifts.shared_cycles(grid)
        fits = shifts is not None
        faster = shifts is not None and shifts.shared_cycles(grid) < cycles
    if fits and (sums or faster):
        return replace(layout, shifts=shifts, sums=True)
    if sums:
        raise KernelError(
            "sums one axis ahead need messages by the matrix or by shifts, "
            "without weights and damping, vectors of at least "
            f"{VECTOR_LATENCY // 3 * WORD_BYTES} bytes by the matrix, and an engine with room for "
            f"them: not {layout.labels} labels of {layout.bits} bits with "
            f"{engines.scratchpad_bytes} bytes of scratchpad and {engines.instruction_words} words "
            "of instructions"
        )
    return layout


def _shifts_with_sums(shifts: Shifts) -> SumShifts | None:
    """The kernel with sums and the transform of ``shifts``; None: it does not fit the engine."""
    if not shifts.variant.usual:
        return None
    kind, lanes = (BlockSumShifts, BLOCK_LANES) if shifts.in_blocks else (SumShifts, PAIR)
    result = kind(
        transform=shifts.transform.flat,
        labels=shifts.labels,
        bits=shifts.bits,
        slots=SLOTS,
        scratchpad_bytes=shifts.scratchpad_bytes,
        instruction_words=shifts.instruction_words,
        lanes=lanes,
    )
    try:
        result.program(vault_bits=None)
    except KernelError:
        return None
    return result


@lru_cache(maxsize=64)
def matrix_cycles(
    labels: int,
    bits: int,
    engines: ChipEngines = ONE_ENGINE,
    variant: UpdateVariant = USUAL,
) -> float | None:
    """Approximate engine cycles per update by a matrix if operands arrive in time; None: it does
    not fit an engine."""
    try:
        if variant.usual:
            program = bp_program(labels, bits, scratchpad_bytes=engines.scratchpad_bytes)
        else:
            program = plain_program(labels, bits, variant, engines.scratchpad_bytes)
    except KernelError:
        return None
    if len(program.words) >= engines.instruction_words:
        return None
    cycles = update_cycles(tuple(program.words), labels, labels)
    if variant.weighted:
        # The matrix times a weight is one long vector.
        cycles += beats_of(labels * labels, bits) - beats_of(labels, bits)
    return cycles


def transform_for(problem: BpProblem, form: Form) -> Transform | None:
    """The transform that ``form`` may use for ``problem``; None: messages are by a matrix.

    Raises:
        KernelError: ``shifts`` can't be used.
    """
    transform = None if form == "matrix" else transform_of(problem.smoothness)
    if transform is None and form == "shifts":
        raise KernelError(
            "messages by shifts need smoothness costs that depend on the labels' difference, "
            "start at 0 and are convex up to an optional plateau"
        )
    return transform


def shifts_of(
    problem: BpProblem,
    form: Form,
    engines: ChipEngines = ONE_ENGINE,
    *,
    blocks: bool = False,
    sums: bool = False,
    cut: tuple[int, int] | None = None,
    damping: int = 0,
) -> Shifts | None:
    """The kernel by shifts for ``problem``; None if the one by a matrix is chosen.

    Parameters:
        form: of the job. engines: that share the image.
        blocks: records may be blocks (:mod:`microkernels.bp.record`) if the problem suits.
        sums: they may have sums (:mod:`microkernels.bp.sums`).
        cut: of the tiles (:class:`microkernels.bp.tiles.TileGrid`).
        damping: as for :func:`microkernels.bp.golden.iterate`.

    Raises:
        KernelError: ``shifts`` can't be used; the message says why.
    """
    transform = transform_for(problem, form)
    if transform is None:
        return None
    variant = UpdateVariant(problem.weights is not None, damping)
    grid = _grid(problem, engines, cut)
    in_blocks = blocks and variant.usual
    try:
        fastest = _best(
            transform,
            problem.labels,
            problem.bits,
            grid,
            in_blocks
            and block_fit(problem.width, problem.height, problem.labels, problem.bits)
            and BLOCK * vector_stride(problem.labels, problem.bits) == COLUMN_BYTES,
            variant,
        )
    except KernelError:
        if form == "shifts":
            raise
        return None
    if form == "shifts":
        return fastest
    by_shifts = fastest.shared_cycles(grid)
    sum_shifts = _shifts_with_sums(fastest) if sums and engines.pes > 1 else None
    if sum_shifts is not None:
        by_shifts = min(by_shifts, sum_shifts.shared_cycles(grid))
    by_matrix = _by_matrix(problem, variant, grid, blocks=blocks, sums=sums)
    return None if by_matrix and min(by_matrix)[0] < by_shifts else fastest


@lru_cache(maxsize=64)
def _best(
    transform: Transform,
    labels: int,
    bits: int,
    grid: TileGrid,
    blocks: bool,
    variant: UpdateVariant,
) -> Shifts:
    """The fastest kernel that fits an engine."""
    fitting: list[tuple[float, float, int, Shifts]] = []
    reasons: list[KernelError] = []
    planned: list[KernelError] = []
    # Fewer slots make a shorter program. Among equals, the kernel on blocks comes first.
    kinds = product(KINDS, (MOST_SLOTS, MOST_SLOTS // 2, MOST_SLOTS // 4))
    for lanes, slots in [*([(_BLOCKS, MOST_SLOTS)] if blocks else []), *kinds]:
        if fitting and fitting[-1][2] == lanes:
            continue
        kind = {_BLOCKS: BlockShifts, 0: WideShifts}.get(lanes, LaneShifts)
        shifts = kind(
            transform=transform.flat if kind is BlockShifts or lanes in _WAITING else transform,
            labels=labels,
            bits=bits,
            slots=slots,
            scratchpad_bytes=grid.ring.scratchpad_bytes,
            instruction_words=grid.ring.instruction_words,
            variant=variant,
            lanes={_BLOCKS: BLOCK_LANES, 0: 1}.get(lanes, lanes),
        )
        try:
            assert shifts.pad
        except KernelError as error:
            reasons.append(error)
            continue
        try:
            shifts.program(vault_bits=None)
        except KernelError as error:
            planned.append(error)
        else:
            fitting.append((shifts.shared_cycles(grid), shifts.cycles, lanes, shifts))
    if fitting:
        return min(fitting, key=lambda kernel: kernel[:3])[3]
    # Why a program doesn't fit an engine says more than why vectors don't fit a plan.
    raise planned[-1] if planned else reasons[0]
