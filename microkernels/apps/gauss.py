"""Gaussian elimination in fixed point: systems of linear equations on one processing engine.

Elements have 32 bits with :data:`FRACTION` fraction bits; products are rounded, differences
saturate. A system has ``unknowns`` rows of ``unknowns`` coefficients and the right side. It must
not need row exchanges, and every pivot must be between :data:`LEAST_PIVOT` and
:data:`MOST_PIVOT`, as in a diagonally dominant matrix with its diagonal scaled to about 1.

For each pivot, Newton's iteration computes the reciprocal, starting from a straight line with a
relative error of at most 1/7; each of three steps squares the error, which ends up below the last
place. The pivot's row is multiplied by the reciprocal; its product with the coefficient of each row
below is subtracted from that row, while the product for the next row is computed. Back substitution
is one ``m.v.mul.add`` per unknown, of the whole row with the negated unknowns so far (0 for the
others) and 1 for the right side.

The next system is loaded while one is solved.
"""

from functools import lru_cache

import numpy as np

from isa.program import Program
from isa.table import Width
from microkernels.common.builder import KernelBuilder
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements, check_elements, clip
from microkernels.runtime.job import KernelJob

from .array_job import addresses, array_job

#: Fraction bits of all numbers.
FRACTION = 20
#: Valid range of pivots.
LEAST_PIVOT, MOST_PIVOT = 0.5, 1.5
_NUMBER = np.dtype("<i4")
_BYTES = _NUMBER.itemsize
_ONE = 1 << FRACTION
_STEPS = 3
#: The line ``_LINE[0] - _LINE[1] * pivot``, whose product with the pivot is within 1/7 of 1; and 2.
_LINE = (round(16 / 7 * _ONE), round(8 / 7 * _ONE))
_CONSTANTS = np.array([*_LINE, 2 * _ONE, 0], _NUMBER)
#: Numbers at the start of the scratchpad: constants, a reciprocal, a product.
_NUMBERS = len(_CONSTANTS) + 2
_MOST_UNKNOWNS = 20
_MOST_SYSTEMS = 4096
_BITS = 8 * _BYTES


def _places(systems: int, unknowns: int) -> tuple[int, ...]:
    """Addresses of the constants, the initial vector of back substitution, the systems, the
    solutions, and the end."""
    row, solutions = unknowns + 1, systems * unknowns
    elements = (len(_CONSTANTS), row, solutions * row, solutions)
    return addresses(*(count * _BYTES for count in elements))


def _saturated(values: Elements) -> Elements:
    limit = 1 << (_BITS - 1)
    return clip(values, -limit, limit - 1)


def _times(first: Elements, second: Elements) -> Elements:
    """Rounded products of elements, stored as 64-bit numbers."""
    return _saturated((first * second + (_ONE >> 1)) >> FRACTION)


def solve(systems: Elements) -> Elements:
    """Golden model, bit-exact.

    Parameters:
        systems: systems x unknowns x (unknowns + 1) elements.

    Returns:
        systems x unknowns elements.

    Raises:
        KernelError: the shape is wrong, a value exceeds 32 bits, or a pivot is out of range.
    """
    count, unknowns = _sizes(systems)
    rows = check_elements("systems", systems, systems.shape, _NUMBER).astype(np.int64)
    for k in range(unknowns):
        pivots = rows[:, k, k]
        outside = np.flatnonzero((pivots < LEAST_PIVOT * _ONE) | (pivots > MOST_PIVOT * _ONE))
        if outside.size:
            number = int(outside[0])
            raise KernelError(
                f"pivot {k} of system {number} is {pivots[number] / _ONE:.3f}, not from "
                f"{LEAST_PIVOT} to {MOST_PIVOT}"
            )
        inverse = _saturated(_LINE[0] - _times(pivots, np.array(_LINE[1])))
        for _ in range(_STEPS):
            inverse = _times(inverse, _saturated(2 * _ONE - _times(pivots, inverse)))
        rows[:, k] = _times(rows[:, k], inverse[:, np.newaxis])
        below = rows[:, k + 1 :]
        multiples = _times(rows[:, k, np.newaxis], below[:, :, k, np.newaxis])
        rows[:, k + 1 :] = _saturated(below - multiples)
    factors = np.zeros((count, unknowns + 1), object)
    factors[:, -1] = _ONE
    solution = np.zeros((count, unknowns), np.int64)
    for k in reversed(range(unknowns)):
        # Sums of 64-bit products need more than 64 bits.
        sums = (rows[:, k].astype(object) * factors).sum(axis=1)
        solution[:, k] = _saturated((sums + (_ONE >> 1)) >> FRACTION)
        factors[:, k] = _saturated(-solution[:, k])
    return solution.astype(_NUMBER)


def _check_sizes(systems: int, unknowns: int) -> None:
    CHECK.within("unknowns", unknowns, 1, _MOST_UNKNOWNS)
    CHECK.within("systems", systems, 1, _MOST_SYSTEMS)


def _sizes(systems: Elements) -> tuple[int, int]:
    """Numbers of systems and of unknowns."""
    if systems.ndim != 3 or systems.shape[2] != systems.shape[1] + 1:
        raise KernelError(
            f"systems must be systems x unknowns x (unknowns + 1), not {systems.shape}"
        )
    count, unknowns, _ = systems.shape
    _check_sizes(count, unknowns)
    return count, unknowns


@CHECK.arguments
@lru_cache(maxsize=64)
def gauss_program(systems: int, unknowns: int) -> Program:
    """The program that solves 1..4096 systems of 1..20 unknowns.

    Raises:
        KernelError: a size is out of range.
    """
    _check_sizes(systems, unknowns)
    return _Gauss(systems, unknowns).build().program(f"gauss_{systems}x{unknowns}.s")


class _Gauss:
    def __init__(self, systems: int, unknowns: int) -> None:
        row = unknowns + 1
        self.row_bytes = row * _BYTES
        self.system_bytes = unknowns * self.row_bytes
        self.out_bytes = unknowns * _BYTES
        constants, start, source, target, _ = _places(systems, unknowns)
        self.writer = w = KernelBuilder(
            f"Gaussian elimination: {systems} systems of {unknowns} unknowns.",
            f"Generated by {__name__}, which explains it.",
            width=Width.W32,
            place_drains=True,
        )
        w.place("the line's two numbers, 2 and 0; a reciprocal, and a product", _NUMBERS * _BYTES)
        self.one = w.constant("one", 1, "1")
        self.row = w.constant("row", row, "elements of a row")
        self.size = w.constant("size", unknowns * row, "elements of a system")
        self.unknowns = w.constant("unknowns", unknowns, "unknowns of a system")
        places = [number * _BYTES for number in range(_NUMBERS)]
        names = ("slope", "two", "nothing", "inverse", "term")
        self.slope, self.two, self.nothing, self.inverse, self.term = (
            w.constant(name, place, "address of a number")
            for name, place in zip(names, places[1:], strict=True)
        )
        values = w.place("negated unknowns, and 1", self.row_bytes)
        self.values = w.constant("values", values, "negated unknowns")
        product = w.place("product of two rows", self.row_bytes)
        self.product = w.variable("product", product, "a row's product")
        other = w.place("the next product", self.row_bytes)
        self.other = w.variable("other", other, "the next row's")
        solution = w.place("unknowns", self.row_bytes)
        self.found = w.constant("found", solution, "unknowns")
        self.constants = w.variable("constants", constants, "address of the constants")
        self.start = w.constant("start", start, "what the negated unknowns begin with")
        self.ahead = w.variable("ahead", source, "address of the next system")
        self.out = w.variable("out", target, "where the unknowns go")
        self.left = w.variable("left", systems, "systems left")
        first, second = (w.place(f"{name} system", self.system_bytes) for name in ("a", "another"))
        self.use = w.variable("use", first, "system in use")
        self.fill = w.variable("fill", second, "system on its way")
        self.pivot_row = w.register("pivot_row", "row of the pivot")
        self.pivot = w.register("pivot", "address of the pivot")
        self.below = w.register("below", "row below it")
        self.next_row = w.register("next_row", "the row below that")
        self.element = w.register("element", "its element below the pivot; temporary")
        self.end = w.register("end", "end of the system in use")

    def build(self) -> KernelBuilder:
        """Write the complete program."""
        w = self.writer
        w.set_constants()
        w.op("li", self.element, FRACTION)
        w.op("set.fx", self.element)
        w.op("li", self.element, len(_CONSTANTS))
        w.load(w.zero, self.constants, self.element)
        w.load(self.use, self.ahead, self.size)
        with w.loop("system", self.left):
            w.load(self.values, self.start, self.row)
            with w.unless("beq", self.left, self.one):
                w.offset(self.ahead, self.ahead, self.system_bytes)
                w.load(self.fill, self.ahead, self.size)
            w.op("mov", self.pivot_row, self.use)
            w.op("mov", self.pivot, self.use)
            w.op("add", self.end, self.use, self.system_bytes)
            w.label("pivot_loop")
            self._reciprocal()
            self._eliminate()
            w.op("add", self.pivot_row, self.pivot_row, self.row_bytes)
            w.op("add", self.pivot, self.pivot, self.row_bytes + _BYTES)
            w.op("v.drain")
            w.op("bne", self.pivot_row, self.end, "pivot_loop")
            self._substitute()
            w.store(self.out, self.found, self.unknowns)
            w.op("add", self.out, self.out, self.out_bytes)
            w.swap(self.use, self.fill, self.element)
        w.op("halt")
        return w

    def _reciprocal(self) -> None:
        w = self.writer
        w.note("The reciprocal of the pivot.")
        w.op("set.vl", self.one)
        self._alone("v.v.mul", self.term, self.pivot, self.slope)
        self._alone("v.v.sub", self.inverse, w.zero, self.term)
        for _ in range(_STEPS):
            self._alone("v.v.mul", self.term, self.pivot, self.inverse)
            self._alone("v.v.sub", self.term, self.two, self.term)
            self._alone("v.v.mul", self.inverse, self.inverse, self.term)

    def _alone(self, mnemonic: str, result: str, *operands: str) -> None:
        """Write an instruction whose result the next one reads, followed by a drain."""
        self.writer.vector(mnemonic, result, *operands)
        self.writer.op("v.drain")

    def _eliminate(self) -> None:
        w = self.writer
        w.note("The row times that, and less of it from each row below.")
        w.op("set.vl", self.row)
        self._alone("v.s.mul", self.pivot_row, self.pivot_row, self.inverse)
        w.op("add", self.below, self.pivot_row, self.row_bytes)
        with w.unless("beq", self.below, self.end):
            w.op("add", self.element, self.pivot, self.row_bytes)
            w.vector("v.s.mul", self.product, self.pivot_row, self.element)
            w.op("add", self.next_row, self.below, self.row_bytes)
            with w.unless("beq", self.next_row, self.end):
                with w.loop("row_loop"):
                    w.op("add", self.element, self.element, self.row_bytes)
                    w.vector("v.s.mul", self.other, self.pivot_row, self.element)
                    w.vector("v.v.sub", self.below, self.below, self.product)
                    w.swap(self.product, self.other, self.below)
                    w.op("mov", self.below, self.next_row)
                    w.op("add", self.next_row, self.next_row, self.row_bytes)
                    w.op("bne", self.next_row, self.end, "row_loop")
            w.op("v.drain")
            w.vector("v.v.sub", self.below, self.below, self.product)

    def _substitute(self) -> None:
        w, last = self.writer, self.out_bytes - _BYTES
        w.note("The unknowns, from the last on.")
        w.op("mov", self.below, self.end)
        w.op("add", self.pivot, self.values, last)
        w.op("add", self.element, self.found, last)
        w.op("set.mr", self.one)
        w.label("unknown_loop")
        w.op("sub", self.below, self.below, self.row_bytes)
        w.op("set.vl", self.row)
        self._alone("m.v.mul.add", self.element, self.below, self.values)
        w.op("set.vl", self.one)
        self._alone("v.v.sub", self.pivot, self.nothing, self.element)
        w.op("sub", self.pivot, self.pivot, _BYTES)
        w.op("sub", self.element, self.element, _BYTES)
        w.op("bne", self.below, self.use, "unknown_loop")


def gauss_job(systems: Elements) -> KernelJob:
    """The solutions of systems; parameters and errors as for :func:`solve`."""
    count, unknowns = _sizes(systems)
    constants, start, source, target, _ = _places(count, unknowns)
    first_values = np.array([0] * unknowns + [_ONE], _NUMBER)
    # Multiplications and subtractions below and to the right of the diagonal; back substitution.
    elimination = sum(2 * k * (k + 2) for k in range(unknowns))
    return array_job(
        "Gaussian elimination",
        gauss_program(count, unknowns),
        {constants: _CONSTANTS, start: first_values, source: systems.astype(_NUMBER)},
        target,
        lambda: solve(systems),
        count * (elimination + 2 * unknowns * unknowns),
    )


#: Strength of the flow between equal pixels: keeps diagonals below 1.5.
_STRENGTH = 0.1
#: Difference of two pixels that halves the flow; 1 is from black to white.
_EDGE = 0.1


def diffusion_system(image: Elements) -> Elements:
    """The equations of a step of edge-preserving diffusion for a block of pixels, without flow
    across its border.

    Brightness flows between neighbouring pixels, less so the more they differ (Perona and Malik).
    The step is implicit: with the flow's strength ``w`` between pixels p and q determined by the
    previous image ``b``, ``x[p] + sum over neighbours q of w * (x[p] - x[q]) = b[p]``.

    Parameters:
        image: height x width real numbers, at most 20 in all.

    Returns:
        Rows of a system for :func:`solve`.
    """
    values = image.reshape(-1)
    number = np.arange(values.size).reshape(image.shape)
    matrix = np.eye(values.size)
    neighbours = [(number[1:], number[:-1]), (number[:, 1:], number[:, :-1])]
    for ones, neighbour_values in neighbours:
        for one, other in zip(ones.flat, neighbour_values.flat, strict=True):
            difference = (values[one] - values[other]) / _EDGE
            strength = _STRENGTH / (1 + difference * difference)
            matrix[one, one] += strength
            matrix[other, other] += strength
            matrix[one, other] -= strength
            matrix[other, one] -= strength
    real = np.column_stack([matrix, values])
    return np.floor(real * (1 << FRACTION) + 0.5).astype(np.int32)
