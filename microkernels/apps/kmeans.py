"""Assignment of points to the nearest of some centres (k-means), on one processing engine.

The host moves the centres between launches (:func:`moved_centres`). Half the square of a point's
distance from centre k is ``|centre[k]|**2 / 2 - point . centre[k]`` plus a term that is the same
for all centres. With an additional coordinate, one ``m.v.mul.add`` computes all costs of a point,
as 16-bit elements: the matrix has a row ``(-centre, |centre|**2 / 2)`` per centre, and the vector
is ``(point, 1)``.

For all points of a group at once, ``m.v.nop.min`` finds the lowest cost, which is subtracted from
the costs; the differences are multiplied by the number of centres. The result is 0 for a nearest
centre and at least the number of centres for all others, so the lowest sum with (0, 1, 2, ...) is
the number of the first nearest centre.

A group of points is loaded while another one is assigned. The last group ends with the last point;
if groups don't divide the points evenly, it repeats points of the previous group.
"""

from functools import lru_cache

import numpy as np

from isa.limits import RANGE_BYTES
from isa.program import Program
from isa.table import MAX_VL
from microkernels.common.builder import DEFAULT_SCRATCHPAD, KernelBuilder
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import ELEMENT, ELEMENT_BYTES, Elements, check_elements, dot
from microkernels.runtime.job import KernelJob

from .array_job import addresses, array_job

#: Fraction bits of the centres, and of the last coordinate of a point.
FRACTION = 4
_MOST_POINTS = 1 << 16
_MOST_CENTRES = 32
_MOST_GROUP = 16


def _places(points: int, coordinates: int, centres: int) -> tuple[int, ...]:
    """Addresses of the centres' matrix, of the numbers 0, 1 ... followed by the number of centres,
    of the points with their additional coordinate, of the assignment, and of the end."""
    length = coordinates + 1
    elements = (centres * length, centres + 1, points * length, points)
    return addresses(*(count * ELEMENT_BYTES for count in elements))


def _held(row_bytes: int, centres: int, group: int) -> tuple[int, ...]:
    """Scratchpad addresses: the matrix, the numbers followed by their count, two groups of points,
    the costs followed by the lowest cost of each point, the results of two groups, and the end."""
    points, results = group * row_bytes, group * ELEMENT_BYTES
    numbers, costs = (centres + 1) * ELEMENT_BYTES, (centres + 1) * results
    sizes = (centres * row_bytes, numbers, points, points, costs, results, results)
    return addresses(*sizes, align=RANGE_BYTES)


def _group(points: int, coordinates: int, centres: int) -> int:
    """Points per group.

    Raises:
        KernelError: a number out of range, or centres that don't fit the scratchpad.
    """
    CHECK.within("points", points, 1, _MOST_POINTS)
    CHECK.within("coordinates", coordinates, 1, MAX_VL - 1)
    CHECK.within("centres", centres, 1, _MOST_CENTRES)
    limit = min(points, _MOST_GROUP, MAX_VL // centres)
    row_bytes = (coordinates + 1) * ELEMENT_BYTES
    for group in range(limit, 0, -1):
        if _held(row_bytes, centres, group)[-1] <= DEFAULT_SCRATCHPAD:
            return group
    raise KernelError(
        f"{centres} centres of {coordinates} coordinates do not fit the scratchpad of "
        f"{DEFAULT_SCRATCHPAD} bytes"
    )


def matrix_of(centres: Elements) -> Elements:
    """The matrix from which costs are computed.

    Parameters:
        centres: centres x coordinates elements with :data:`FRACTION` fraction bits.

    Raises:
        KernelError: a value exceeds 16 bits, or a centre is too far from the origin.
    """
    centres = check_elements("centres", centres, centres.shape).astype(np.int64)
    squares = (centres**2).sum(axis=1) + (1 << 2 * FRACTION) >> 2 * FRACTION + 1
    matrix = np.column_stack([-centres, squares])
    return check_elements("centres and halves of their squares", matrix, matrix.shape)


def assign(points: Elements, centres: Elements) -> Elements:
    """Golden model, bit-exact.

    Parameters:
        points: points x coordinates elements. centres: see :func:`matrix_of`.

    Returns:
        The number of the nearest centre for each point, the first of several; costs are rounded to
        whole numbers.
    """
    costs = dot(_extended(points), matrix_of(centres).T, FRACTION)
    nearest: Elements = costs.argmin(axis=1)
    return nearest.astype(ELEMENT)


def _extended(points: Elements) -> Elements:
    points = check_elements("points", points, points.shape)
    return np.pad(points, ((0, 0), (0, 1)), constant_values=1 << FRACTION)


def moved_centres(points: Elements, assignment: Elements, centres: Elements) -> Elements:
    """The host's part: each centre moves to the mean of its points, if it has any."""
    moved = centres.copy()
    for number in np.unique(assignment):
        mean = points[assignment == number].mean(axis=0)
        moved[number] = np.floor(mean * (1 << FRACTION) + 0.5)
    return moved


@lru_cache(maxsize=64)
def _program(count: int, coordinates: int, centres: int) -> Program:
    """The program that assigns ``count`` points, with data at :func:`_places`."""
    # A point or centre with the additional coordinate.
    length, pitch = coordinates + 1, (coordinates + 1) * ELEMENT_BYTES
    group = _group(count, coordinates, centres)
    _, numbers_at, use_at, fill_at, costs_at, made_at, kept_at, end = _held(pitch, centres, group)
    matrix, numbers, points, target, _ = _places(count, coordinates, centres)
    w = KernelBuilder(
        f"k-means: {count} points of {coordinates} coordinates, {centres} centres.",
        f"Generated by {__name__}, which explains it.",
        f"Groups of {group} points.",
        "",
        f"Scratchpad ({end} bytes)",
        f"  {0:>4} matrix of the centres",
        f"  {numbers_at:>4} numbers of the centres, and how many they are",
        f"  {use_at:>4} two groups of points",
        f"  {costs_at:>4} costs, and the least of each point",
        f"  {made_at:>4} two groups of results",
    )
    size = w.constant("length", length, "elements of a point")
    rows = w.constant("rows", centres, "centres")
    group_points = w.constant("count", group, "points of a group")
    every = w.constant("every", group * centres, "costs of a group")
    group_size = w.constant("group_size", group * length, "elements of a group")
    fraction = w.constant("fraction", FRACTION, "fraction bits")
    last = w.constant("last", points + (count - group) * pitch, "last group")
    last_out = w.constant("last_out", target + (count - group) * ELEMENT_BYTES, "its results")
    number = w.constant("numbers", numbers_at, "numbers of the centres")
    factor = w.constant("factor", numbers_at + centres * ELEMENT_BYTES, "how many they are")
    costs = w.constant("costs", costs_at, "costs")
    least = w.constant("least", costs_at + group * centres * ELEMENT_BYTES, "least costs")
    at = w.variable("at", points, "address of the group on its way")
    out = w.variable("out", target, "where the results go")
    use = w.variable("use", use_at, "group in use")
    fill = w.variable("fill", fill_at, "group on its way")
    result = w.variable("made", made_at, "results being made")
    stored = w.variable("kept", kept_at, "the other ones")
    point = w.register("point", "point of the group; its least cost")
    cost = w.register("cost", "its costs; temporary")
    final = w.variable("final", 0, "1 if the group in use is the last")

    w.set_constants()
    w.op("li", point, matrix)
    w.op("li", cost, centres * length)
    w.load(w.zero, point, cost)
    w.op("li", point, numbers)
    w.op("add", cost, rows, 1)
    w.load(number, point, cost)
    w.load(use, at, group_size)
    w.label("group")
    with w.unless("beq", at, last):
        w.offset(at, at, group * pitch)
        with w.unless("blt", at, last):
            w.op("mov", at, last)
        w.load(fill, at, group_size)
        w.op("jmp", "loaded")
    w.op("mov", final, 1)
    w.label("loaded")
    w.note("Costs of all centres for each point.")
    w.op("set.vl", size)
    w.op("set.mr", rows)
    w.op("set.fx", fraction)
    w.op("mov", point, use)
    w.op("mov", cost, costs)
    for index in range(group):
        if index:
            w.op("add", point, point, pitch)
            w.op("add", cost, cost, centres * ELEMENT_BYTES)
        w.vector("m.v.mul.add", cost, w.zero, point)
    w.note("What each is above the least, times the number of centres.")
    w.op("set.vl", rows)
    w.op("set.mr", group_points)
    w.op("set.fx", w.zero)
    w.op("v.drain")
    w.vector("m.v.nop.min", least, costs, costs)
    w.op("v.drain")
    w.op("mov", point, least)
    w.op("mov", cost, costs)
    for index in range(group):
        if index:
            w.op("add", point, point, ELEMENT_BYTES)
            w.op("add", cost, cost, centres * ELEMENT_BYTES)
        w.vector("v.s.sub", cost, cost, point)
    w.op("set.vl", every)
    w.op("v.drain")
    w.vector("v.s.mul", costs, costs, factor)
    w.op("set.vl", rows)
    w.op("v.drain")
    w.vector("m.v.add.min", result, costs, number, note="the first with the least")
    w.op("v.drain")
    w.store(out, result, group_points)
    w.swap(use, fill, cost)
    w.swap(result, stored, cost)
    with w.unless("bne", final, w.zero):
        w.op("add", out, out, group * ELEMENT_BYTES)
        w.op("blt", out, last_out, "group")
        w.op("mov", out, last_out)
        w.op("jmp", "group")
    w.op("halt")
    return w.program(f"kmeans_{count}x{coordinates}x{centres}.s")


def kmeans_job(points: Elements, centres: Elements) -> KernelJob:
    """The assignment of points to centres; parameters as for :func:`assign`.

    Raises:
        KernelError: the arrays don't fit each other or the kernel, or a value exceeds 16 bits.
    """
    if points.ndim != 2 or centres.ndim != 2 or points.shape[1] != centres.shape[1]:
        raise KernelError(f"points {points.shape} and centres {centres.shape} do not fit")
    sizes = (*points.shape, len(centres))
    program = _program(*sizes)
    matrix, numbers, source, target, _ = _places(*sizes)
    return array_job(
        "k-means",
        program,
        {
            matrix: matrix_of(centres),
            numbers: np.arange(len(centres) + 1).astype(ELEMENT),
            source: _extended(points),
        },
        target,
        lambda: assign(points, centres),
        len(points) * len(centres) * (2 * points.shape[1] + 2),
    )
