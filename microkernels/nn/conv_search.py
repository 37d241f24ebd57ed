"""Finds the fastest division of a convolution (:mod:`microkernels.nn.conv_plan`) and its slices."""

from dataclasses import replace
from functools import lru_cache, partial

from isa.limits import RANGE_BYTES
from isa.table import MAX_MR, MAX_VL
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import even_parts, round_up
from microkernels.common.fixed_point import ELEMENT_BYTES, NUMBERS
from support.errors import counted

from .conv_plan import SHARERS, SHORT_COST, ConvPlan, slots_apart
from .window_shape import ConvShape, check_shifts, outputs_per_element

#: Maximum loads in flight for the input; the array range check has 20 entries, some of which are
#: needed for weights, earlier sums and stores.
_MOST_LOADS = 12
#: Slots of a ring whose first ones are repeated: a larger ring repeats fewer columns.
_MOST_REPEATING = 14
#: Elements that the vector unit multiplies per cycle.
_LANES = 4


def _filter_counts(filters: int | None, out_depth: int, narrow: int | None) -> list[int]:
    """Candidate numbers of filters at once: as even parts of a slice of the output as their number
    allows; parameters as for :func:`plan_conv`.

    Raises:
        KernelError: ``filters`` does not fit the output.
    """
    most = min(MAX_MR, out_depth)
    step = outputs_per_element(narrow)
    if filters is None:
        return [step * count for count in even_parts(out_depth // step, most // step)]
    if filters % step:
        raise KernelError(f"filters at once must be even for outputs of bytes, not {filters}")
    if not 1 <= filters <= most:
        raise KernelError(f"filters at once must be from 1 to {most}, not {filters}")
    return [filters]


def _check_narrow(narrow: int | None, out_depth: int) -> None:
    if narrow is not None:
        check_shifts(0, narrow)
        if out_depth % outputs_per_element(narrow):
            raise KernelError(
                f"outputs of bytes need an even number of filters in a slice of the output, not "
                f"{out_depth}"
            )


def _with_slots(plan: ConvPlan, scratchpad_bytes: int) -> ConvPlan | None:
    """``plan`` with as many slots as its ring can use in the scratchpad; None: too few fit."""
    slots = (scratchpad_bytes - plan.places.ring) // plan.slot_bytes - plan.repeated
    most = _MOST_REPEATING if plan.repeated else _MOST_LOADS // plan.slot_loads
    slots = min(slots, max(plan.least_slots, most))
    return replace(plan, slots=slots) if slots >= plan.least_slots else None


def _fastest(
    plans: list[ConvPlan], sharers: int, images: int, scratchpad_bytes: int
) -> ConvPlan | None:
    """The fastest of these plans, with its ring; None: none fits the scratchpad."""
    fastest: tuple[float, int, int, ConvPlan] | None = None
    least = [plan.least_cycles(sharers, images) for plan in plans]
    for number in sorted(range(len(plans)), key=least.__getitem__):
        plan = plans[number]
        if fastest is not None and least[number] > fastest[0]:
            break
        if (ringed := _with_slots(plan, scratchpad_bytes)) is not None:
            cost = (ringed.cycles(sharers, images), -ringed.slots, ringed.filters, ringed)
            fastest = cost if fastest is None or cost[:3] < fastest[:3] else fastest
    return None if fastest is None else fastest[3]


# Layers of a network have few shapes, each tried with hundreds of slices.
@CHECK.arguments
@lru_cache(maxsize=1 << 15)
def plan_conv(
    shape: ConvShape,
    *,
    depth: int,
    out_depth: int,
    filters: int | None = None,
    strips: bool = False,
    reuse: bool = False,
    bits: int = 16,
    narrow: int | None = None,
    sharers: int = 1,
    images: int = 1,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> ConvPlan:
    """The fastest plan for an input map with slices of ``depth`` channels.

    Parameters:
        depth: at least 1.
        out_depth: filters whose outputs are in a slice of the output map.
        filters: at once, at most as many; None: choose automatically. They divide
            ``out_depth`` if the input has several slices or the shape several groups.
        strips: the input is in strips (:mod:`microkernels.common.feature_map`).
        reuse: one-part windows also share columns where they can: about half as many columns are
            read, in as many cycles.
        bits, narrow: as for :class:`ConvPlan`; ``narrow`` is 0..8.
        sharers: engines that share the layer, at least 1.
        images: that the layer computes, at least 1.
        scratchpad_bytes: size of the scratchpad.

    Raises:
        KernelError: no plan fits; the message names sizes that would fit.
    """
    CHECK.at_least("depth", depth, 1)
    CHECK.at_least("out_depth", out_depth, 1)
    CHECK.at_least("sharers", sharers, 1)
    CHECK.one_of("bits", bits, tuple(NUMBERS))
    rows, inner = shape.kernel_rows, shape.group_channels
    column = rows * depth
    if column > MAX_VL:
        raise KernelError(
            f"a column of {rows} pixels of {depth} channels has {column} elements, a "
            f"vector at most {MAX_VL}: give slices of at most {MAX_VL // rows} channels"
        )
    if shape.groups > 1 and min(depth, shape.channels) % inner and inner % depth:
        raise KernelError(
            f"slices of {depth} channels do not divide groups of {inner}, nor are they several"
        )
    if strips and max(shape.dilation, shape.gap_down) > 1:
        raise KernelError("a map in strips has no pixels between those of a window")
    joined = column * shape.kernel <= MAX_VL
    _check_narrow(narrow, out_depth)
    candidates = _filter_counts(filters, out_depth, narrow)
    slides = slots_apart(shape) < shape.kernel
    kinds = [(not joined and slides, 0)]
    filled = round_up(column * ELEMENT_BYTES, RANGE_BYTES) // ELEMENT_BYTES - column
    fits = (column + filled) * shape.kernel <= MAX_VL and shape.gap_down == 1
    if joined and slides and reuse and (not filled or fits):
        kinds.append((True, filled))
    # Only one slice has groups of unequal size.
    apart = shape.groups > 1 or shape.channels > depth
    candidates = [count for count in candidates if not (apart and out_depth % count)]
    if not candidates:
        raise KernelError(f"filters at once must divide {out_depth}, not {filters}")
    best = []
    for sliding, filled in kinds:
        ringless = partial(
            ConvPlan,
            shape=shape,
            depth=depth,
            out_depth=out_depth,
            joined=joined,
            sliding=sliding,
            strips=strips,
            slots=0,
            filled=filled,
            bits=bits,
            narrow=narrow,
        )
        # Those whose weights do not fit need no plan.
        one = ringless(filters=candidates[0])
        most = scratchpad_bytes // (one.parts * one.length * ELEMENT_BYTES)
        plans = [
            ringless(filters=count)
            for count in candidates
            if count <= most and (shape.groups == 1 or one.read_filters % count == 0)
        ]
        fastest = _fastest(plans, sharers, images, scratchpad_bytes)
        if fastest is not None:
            best.append(fastest)
    if not best:
        raise KernelError(
            f"{counted(candidates[0], 'filter')} of {shape.kernel} x {rows} pixels of "
            f"{depth} channels do not fit a scratchpad of {scratchpad_bytes} bytes with the "
            f"window before them: give slices of fewer channels"
        )
    if len(best) == 1:
        return best[0]
    return min(
        best, key=lambda plan: (plan.cycles(sharers, images), -plan.ahead, plan.bus_cycles(SHARERS))
    )


@CHECK.arguments
@lru_cache(maxsize=64)
def best_depth(
    shape: ConvShape,
    *,
    out_depth: int,
    bits: int = 16,
    narrow: int | None = None,
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD,
) -> int:
    """Channels per input slice for which the layer is fastest, by estimate.

    Parameters: as for :func:`plan_conv`.

    Raises:
        KernelError: no slice fits.
    """
    CHECK.at_least("out_depth", out_depth, 1)
    _check_narrow(narrow, out_depth)
    limit = min(MAX_VL // shape.kernel_rows, shape.channels)
    best: tuple[float, int] | None = None
    for least, depth in sorted(
        (least_cycles(shape, depth, out_depth, scratchpad_bytes), depth)
        for depth in range(1, limit + 1)
    ):
        if best is not None and least > best[0]:
            break
        try:
            plan = plan_conv(
                shape,
                depth=depth,
                out_depth=out_depth,
                bits=bits,
                narrow=narrow,
                scratchpad_bytes=scratchpad_bytes,
            )
        except KernelError:
            continue
        # Among the fastest, the thinnest slices.
        best = min(best or (plan.cycles(1), depth), (plan.cycles(1), depth))
    if best is None:
        raise filter_overflow(shape, scratchpad_bytes)
    return best[1]


def filter_overflow(shape: ConvShape, scratchpad_bytes: int) -> KernelError:
    """The error for a filter that fits no scratchpad of this size, with the largest that does."""
    limit = _largest_kernel(shape, scratchpad_bytes)
    return KernelError(
        f"a filter of {shape.kernel} x {shape.kernel_rows} pixels does not fit a scratchpad of "
        f"{scratchpad_bytes} bytes, even one channel at a time: "
        + (f"at most {limit} x {limit} pixels do" if limit else "none does")
    )


def least_cycles(
    shape: ConvShape, depth: int, out_depth: int, scratchpad_bytes: int = DEFAULT_SCRATCHPAD
) -> float:
    """A lower bound of :meth:`microkernels.nn.conv_plan.ConvPlan.cycles` with these slices: the
    beats of all products, and of an addition per part and one more for each group of filters."""
    column = shape.kernel_rows * depth
    joined = column * shape.kernel <= MAX_VL
    parts, length = (1, column * shape.kernel) if joined else (shape.kernel, column)
    fitting = max(1, scratchpad_bytes // (parts * length * ELEMENT_BYTES))
    groups = -(-shape.filters // min(MAX_MR, out_depth, fitting))
    short = shape.filters / _LANES + groups * SHORT_COST
    beats = parts * shape.filters * -(-length // _LANES) + (parts + 1) * short
    slices = -(-shape.group_channels // depth)
    # Estimates are rounded.
    return shape.out_width * shape.out_height * slices * beats * (1 - 1e-9)


def _largest_kernel(shape: ConvShape, scratchpad_bytes: int) -> int:
    """Side in pixels of the largest filter below the shape's that fits; 0: none does."""
    for kernel in range(
        min(max(shape.kernel, shape.kernel_rows) - 1, shape.width, shape.height, MAX_VL), 0, -1
    ):
        try:
            dense = replace(shape, dilation=1, dilation_down=None, inner=None)
            smaller = replace(dense, kernel=kernel, kernel_down=None, channels=1, padding=0)
            plan_conv(smaller, depth=1, out_depth=1, scratchpad_bytes=scratchpad_bytes)
        except KernelError:
            continue
        return kernel
    return 0
