"""Product of two matrices of 16-bit elements on one processing engine.

``out[i, j] = saturate(round(sum over p of first[i, p] * second[p, j] >> fraction))``, sums exact.
The second matrix lies in memory transposed, so that one ``m.v.mul.add`` multiplies a row of the
first matrix with a block of the second one's columns.

Blocks of columns are processed one after the other. For each block, the rows of the first matrix
pass through the scratchpad in groups: while one group is multiplied the next one is loaded; the
first group follows the last one again, for the next block. The last group and the last block end
with the end of the matrix: if the matrix is not a whole number of groups or blocks, they repeat
some elements.
"""

from dataclasses import dataclass
from functools import lru_cache

from isa.program import Program
from isa.table import BY_KEY, MAX_MR, MAX_VL
from isa.timing import RANGE_BYTES, row_beats
from microkernels.common.builder import DEFAULT_SCRATCHPAD, KernelBuilder
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import (
    ELEMENT_BYTES,
    Elements,
    check_elements,
    check_fraction,
    dot,
)
from microkernels.runtime.job import KernelJob

from .array_job import addresses, array_job

__all__ = [
    "MultiplyShape",
    "matrix_multiply_job",
    "matrix_multiply_program",
]

_MOST = 4096
_MOST_GROUP = 4
#: Estimated cycles for a group beside its products: the drain, and a row's instructions.
_GROUP_COST = 12
_ROW_COST = 3
_PRODUCT = BY_KEY["m.v.mul.add[16]"]


@dataclass(frozen=True, kw_only=True)
class MultiplyShape:
    """Sizes of a product of matrices.

    Attributes:
        rows: of the first matrix, 1..4096. inner: columns of the first and rows of the second one,
            1..256. columns: of the second one, 1..4096.

    Raises:
        KernelError: a value out of range.
    """

    rows: int
    inner: int
    columns: int

    def __post_init__(self) -> None:
        CHECK.fields(self)
        CHECK.within("rows", self.rows, 1, _MOST)
        CHECK.within("inner", self.inner, 1, MAX_VL)
        CHECK.within("columns", self.columns, 1, _MOST)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of the first matrix, or of a column of the second one."""
        return self.inner * ELEMENT_BYTES

    @property
    def out_bytes(self) -> int:
        """Bytes of a row of the result."""
        return self.columns * ELEMENT_BYTES

    @property
    def places(self) -> tuple[int, ...]:
        """Addresses of the first matrix, the second one, the result, and the first one after it."""
        sizes = (self.rows * self.row_bytes, self.columns * self.row_bytes)
        return addresses(*sizes, self.rows * self.out_bytes)


def _held(shape: MultiplyShape, group: int, block: int) -> tuple[int, ...]:
    """Scratchpad addresses: of a block of columns, of two groups of rows, of the results of each
    row of two groups, and of the end."""
    rows, results = group * shape.row_bytes, [block * ELEMENT_BYTES] * (2 * group)
    return addresses(block * shape.row_bytes, rows, rows, *results, align=RANGE_BYTES)


def _plan(shape: MultiplyShape, *, repeats: bool) -> tuple[int, int]:
    """Rows of a group and columns of a block: the fastest that fit, by estimate.

    Parameters:
        repeats: elements that the last group and the last block repeat count, too. Without them
            the plan is the best for matrices of many blocks.
    """

    def cycles(plan: tuple[int, int]) -> float:
        """Estimated cycles for an element of the result, or for all with ``repeats``."""
        group, block = plan
        products = group * block * row_beats(_PRODUCT, shape.inner)
        once = products + _GROUP_COST + _ROW_COST * group
        if repeats:
            return once * -(-shape.rows // group) * -(-shape.columns // block)
        return once / (group * block)

    fitting = [
        (group, block)
        for group in range(1, min(_MOST_GROUP, shape.rows) + 1)
        for block in range(1, min(MAX_MR, shape.columns) + 1)
        if _held(shape, group, block)[-1] <= DEFAULT_SCRATCHPAD
    ]
    return min(fitting, key=cycles)


def _advance(w: KernelBuilder, group: str, current: str, start: str, last: str, step: int) -> None:
    """Move ``group`` to the group of rows after it, at most to the last one; from there to the
    first. ``current`` gets its address before."""
    w.note("The group after this one, or the first.")
    w.op("mov", current, group)
    w.op("mov", group, start)
    w.op("beq", current, last, "chosen")
    w.offset(group, current, step)
    w.op("blt", group, last, "chosen")
    w.op("mov", group, last)
    w.label("chosen")


def _comment(shape: MultiplyShape, group: int, block: int) -> tuple[str, ...]:
    """What the program is, and its map of the scratchpad."""
    _, use_at, _, *results, end_at = _held(shape, group, block)
    return (
        f"Product of matrices: {shape.rows} x {shape.inner} and {shape.inner} x {shape.columns}.",
        "Generated by microkernels.apps.matrix_multiply, which explains it.",
        f"Groups of {group} rows, blocks of {block} columns.",
        "",
        f"Scratchpad ({end_at} bytes)",
        f"  {0:>4} block of columns",
        f"  {use_at:>4} two groups of rows",
        f"  {results[0]:>4} two groups of results",
    )


@CHECK.arguments
@lru_cache(maxsize=64)
def matrix_multiply_program(
    shape: MultiplyShape,
    *,
    fraction: int,
    places: tuple[int, int, int] | None = None,
    descriptor: int | None = None,
) -> Program:
    """The program of a product of matrices.

    Parameters:
        fraction: bits by which sums of products are shifted right, 0..15.
        places: addresses of the first matrix, the second one and the result; None: those of
            :attr:`MultiplyShape.places`.
        descriptor: address of the descriptor of a workspace (:mod:`isa.workspace`) that the program
            declares first, so that a matrix may lie in its window; None: it declares none.

    Raises:
        KernelError: ``fraction`` outside its range.
    """
    check_fraction(fraction)
    group, block = _plan(shape, repeats=descriptor is not None)
    _, use_at, fill_at, *results, _ = _held(shape, group, block)
    result_bytes = results[1] - results[0]
    first, second, target = places or shape.places[:3]
    w = KernelBuilder(*_comment(shape, group, block))
    inner = w.constant("inner", shape.inner, "elements of a row")
    outs = w.constant("outs", block, "columns of a block")
    group_size = w.constant("group_size", group * shape.inner, "elements of a group")
    block_size = w.constant("block_size", block * shape.inner, "elements of a block")
    start = w.constant("start", first, "first group of rows")
    last = w.constant("last", first + (shape.rows - group) * shape.row_bytes, "last group")
    row_step = w.constant("row_step", shape.out_bytes, "bytes of a row of the result")
    span = w.constant("span", (shape.rows - group) * shape.out_bytes, "to the last group's results")
    last_columns = second + (shape.columns - block) * shape.row_bytes
    end = w.constant("end", last_columns, "last block of columns")
    load_group = w.variable("ahead", first, "address of the group on its way")
    at = w.register("at", "address of the group in use")
    columns = w.variable("columns", second, "address of the block of columns")
    out = w.register("out", "address of the group's results")
    corner = w.variable("corner", target, "address of the block's first results")
    use = w.variable("use", use_at, "rows in use")
    fill = w.variable("fill", fill_at, "rows on their way")
    sums = w.variable("made", results[0], "results being made")
    stored_sums = w.variable("kept", results[group], "the other ones")
    row = w.register("row", "row of the group")
    result = w.register("result", "results of that row; value on its way to a setting")

    w.set_constants()
    if descriptor is not None:
        w.op("li", result, descriptor)
        w.op("set.ws", result)
    w.op("set.vl", inner)
    w.op("set.mr", outs)
    w.op("mov", result, fraction)
    w.op("set.fx", result)
    w.load(use, load_group, group_size)
    w.label("block")
    w.load(w.zero, columns, block_size)
    w.op("mov", out, corner)
    w.label("group")
    w.op("mov", at, load_group)
    _advance(w, load_group, row, start, last, group * shape.row_bytes)
    w.load(fill, load_group, group_size)
    w.op("mov", row, use)
    w.op("mov", result, sums)
    for number in range(group):
        if number:
            w.op("add", row, row, shape.row_bytes)
            w.op("add", result, result, result_bytes)
        w.vector("m.v.mul.add", result, w.zero, row)
    w.op("v.drain")
    w.op("mov", result, sums)
    w.op("mov", row, out)
    for number in range(group):
        if number:
            w.op("add", result, result, result_bytes)
            w.op("add", row, row, row_step)
        w.store(row, result, outs)
    w.swap(use, fill, result)
    w.swap(sums, stored_sums, result)
    with w.unless("beq", at, last):
        w.offset(out, out, group * shape.out_bytes)
        w.op("bne", load_group, last, "group")
        w.op("add", out, corner, span)
        w.op("jmp", "group")
    with w.unless("beq", columns, end):
        w.offset(columns, columns, block * shape.row_bytes)
        w.op("add", corner, corner, block * ELEMENT_BYTES)
        w.op("blt", columns, end, "block")
        w.op("mov", columns, end)
        w.op("li", corner, target + (shape.columns - block) * ELEMENT_BYTES)
        w.op("jmp", "block")
    w.op("halt")
    return w.program(f"matrix_multiply_{shape.rows}x{shape.inner}x{shape.columns}.s")


def matrix_multiply_job(first: Elements, second: Elements, *, fraction: int) -> KernelJob:
    """The product of two matrices.

    Raises:
        KernelError: matrices that do not fit each other or the kernel, or values beyond 16 bits.
    """
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[0]:
        raise KernelError(
            f"matrices of {first.shape} and {second.shape} elements can't be multiplied"
        )
    shape = MultiplyShape(rows=first.shape[0], inner=first.shape[1], columns=second.shape[1])
    first = check_elements("first", first, first.shape)
    second = check_elements("second", second, second.shape)
    left, right, target, _ = shape.places
    return array_job(
        "matrix multiplication",
        matrix_multiply_program(shape, fraction=fraction),
        {left: first, right: second.T.copy()},
        target,
        lambda: dot(first, second, fraction),
        2 * first.size * shape.columns,
    )
