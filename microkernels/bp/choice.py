"""Chooses among the belief propagation kernels: by a matrix or by several kinds of shifts, on
pixels or on blocks, with or without sums one axis ahead."""

from functools import lru_cache
from itertools import product
from typing import Literal

from isa.timing import VECTOR_LATENCY, WORD_BYTES
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES
from microkernels.runtime.ring import ONE_ENGINE, ChipEngines

from .block_frame import BLOCK_LANES
from .few import FewPlan
from .kernel import MatrixPlan
from .plain import VariantPlan
from .plan import MOST_SLOTS, Plan, Shifts
from .problem import BpProblem
from .record import BLOCK, block_fit, vector_stride
from .runs import PAIR
from .shifts.block_kernel import BlockShifts, BlockSumShifts
from .shifts.kernel import LANES, LaneShifts
from .shifts.sums import SLOTS, SumShifts
from .shifts.transform import Transform, transform_of
from .shifts.wide import WideShifts
from .sums import SumPlan
from .tiles import TileGrid

#: How new messages are computed. ``matrix``: from all pairs of labels. ``shifts``: by a distance
#: transform (:mod:`microkernels.bp.shifts.transform`). ``auto``: whichever takes fewer cycles.
Form = Literal["matrix", "shifts", "auto"]
#: Kernels to compare, by number of lanes; 0: the one for many labels.
KINDS = (*LANES, 0)
_BLOCKS = -1
#: Numbers of lanes with which shifts wait for each other, so that parallel ones are faster.
_WAITING = (1, 2)


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


def plan_of(
    problem: BpProblem,
    form: Form,
    engines: ChipEngines = ONE_ENGINE,
    *,
    blocks: bool = False,
    sums: bool | None = False,
    cut: tuple[int, int] | None = None,
    damping: int = 0,
) -> Plan:
    """The kernel for ``problem``: of those that fit an engine, the one with the fewest cycles.

    If none by a matrix fits, which the result's program reports, it may be that one.

    Parameters:
        form: of the job. engines: that share the image.
        blocks: records may be blocks (:mod:`microkernels.bp.record`) if the problem suits.
        sums: they have sums (:mod:`microkernels.bp.sums`); None: where this is faster and fits.
        cut: of the tiles (:class:`microkernels.bp.tiles.TileGrid`).
        damping: as for :func:`microkernels.bp.golden.iterate`.

    Raises:
        KernelError: shifts or sums can't be used; the message says why.
    """
    grid = TileGrid(width=problem.width, height=problem.height, ring=engines, cut=cut)
    shape = problem.labels, problem.bits
    matrix = MatrixPlan.of(problem, engines, damping)
    blocks &= matrix.variant.usual and block_fit(problem.width, problem.height, *shape)
    plan = _by_shifts(problem, form, matrix, grid, blocks=blocks)
    if plan is None or form == "auto":
        plans: list[Plan] = [matrix if matrix.variant.usual else VariantPlan.like(matrix)]
        if blocks:
            plans.append(FewPlan.like(matrix))
        fitting = [one for one in plans if one.fits(engines.vault_bits)]
        if plan is None or (
            fitting
            and _least(fitting, grid, sums=sums is not False)
            < _least([plan], grid, sums=sums is not False and engines.pes > 1)
        ):
            plan = _fastest(fitting or plans[:1], grid)
    ahead = None if sums is False else _ahead(plan, grid)
    if ahead is not None and (sums or _fastest([plan, ahead], grid) is ahead):
        return ahead
    if sums:
        raise KernelError(
            "sums one axis ahead need messages by the matrix or by shifts, "
            "without weights and damping, vectors of at least "
            f"{VECTOR_LATENCY // 3 * WORD_BYTES} bytes by the matrix, and an engine with room for "
            "them: not {} labels of {} bits with ".format(*shape)
            + f"{engines.scratchpad_bytes} bytes of scratchpad and {engines.instruction_words} "
            "words of instructions"
        )
    return plan


def _least(plans: list[Plan], grid: TileGrid, *, sums: bool) -> float:
    """Cycles per update of the fastest plan, or of the fastest with sums if they may be made."""
    ahead = [_ahead(plan, grid) for plan in plans] if sums else []
    return min(plan.shared_cycles(grid) for plan in (*plans, *ahead) if plan is not None)


def _fastest(plans: list[Plan], grid: TileGrid) -> Plan:
    """The plan with the fewest cycles; the first one among equals."""
    return min(plans, key=lambda plan: plan.shared_cycles(grid)) if len(plans) > 1 else plans[0]


def _ahead(plan: Plan, grid: TileGrid) -> Plan | None:
    """The kernel like ``plan`` with sums one axis ahead; None: there is none that fits."""
    result: Plan
    if isinstance(plan, Shifts):
        kind, lanes = (BlockSumShifts, BLOCK_LANES) if plan.in_blocks else (SumShifts, PAIR)
        result = kind.like(plan, transform=plan.transform.flat, slots=SLOTS, lanes=lanes)
    else:
        result = SumPlan.like(plan)
    return result if plan.variant.usual and result.fits(grid.ring.vault_bits) else None


def _by_shifts(
    problem: BpProblem, form: Form, matrix: MatrixPlan, grid: TileGrid, *, blocks: bool
) -> Plan | None:
    """The fastest kernel by shifts for the shape of ``matrix``; None: none may be or can be used.

    Raises:
        KernelError: ``shifts`` can't be used.
    """
    transform = transform_for(problem, form)
    if transform is None:
        return None
    filled = BLOCK * vector_stride(problem.labels, problem.bits) == COLUMN_BYTES
    try:
        return _best(transform, matrix, grid, blocks and filled)
    except KernelError:
        if form == "shifts":
            raise
        return None


@lru_cache(maxsize=64)
def _best(transform: Transform, matrix: MatrixPlan, grid: TileGrid, blocks: bool) -> Plan:
    """The fastest kernel that fits the engine of ``matrix``."""
    fitting: list[tuple[float, float, int, Plan]] = []
    reasons: list[KernelError] = []
    planned: dict[int, KernelError] = {}
    # Fewer slots make a shorter program. Among equals, the kernel on blocks comes first.
    kinds = product(KINDS, (MOST_SLOTS, MOST_SLOTS // 2, MOST_SLOTS // 4))
    for lanes, slots in [*([(_BLOCKS, MOST_SLOTS)] if blocks else []), *kinds]:
        if fitting and fitting[-1][2] == lanes:
            continue
        kind = {_BLOCKS: BlockShifts, 0: WideShifts}.get(lanes, LaneShifts)
        plan = kind.like(
            matrix,
            transform=transform.flat if kind is BlockShifts or lanes in _WAITING else transform,
            slots=slots,
            lanes={_BLOCKS: BLOCK_LANES, 0: 1}.get(lanes, lanes),
        )
        try:
            assert plan.pad
        except KernelError as error:
            reasons.append(error)
            continue
        try:
            plan.program(grid.ring.vault_bits)
        except KernelError as error:
            planned[lanes] = error
        else:
            fitting.append((plan.shared_cycles(grid), plan.cycles, lanes, plan))
    if fitting:
        return min(fitting, key=lambda kernel: kernel[:3])[3]
    # Why a program doesn't fit an engine says more than why vectors don't fit a plan; that of one
    # lane is usually the shortest.
    raise planned.get(1) or [*planned.values(), *reasons][0]
