"""Product of two matrices of 16-bit elements on one processing engine.

``out[i, j] = saturate(round(sum over p of first[i, p] * second[p, j] >> fraction))``, sums exact.
The second matrix lies in memory transposed, so that one ``m.v.mul.add`` multiplies a row of the
first matrix with a block of the second one's columns.

Blocks of columns come one after the other. For each, the rows of the first matrix pass through the
scratchpad in groups: while one is multiplied the next is on its way, behind the last the first
again, for the block that follows. The last group ends with the matrix, as does the last block:
where there is no whole number of them, they repeat some of what is done.
"""

from dataclasses import dataclass
from functools import lru_cache

from isa.assembly.assembler import assemble
from isa.program import Program
from isa.table import BY_KEY, MAX_MR, MAX_VL
from isa.timing import RANGE_BYTES, row_beats
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import round_up
from microkernels.common.fixed_point import (
    ELEMENT_BYTES,
    Elements,
    check_elements,
    check_fraction,
    dot,
)
from microkernels.common.writer import KernelWriter
from microkernels.nn.conv_plan import DEFAULT_SCRATCHPAD
from microkernels.runtime.job import KernelJob

from .array_job import addresses, array_job

__all__ = [
    "MultiplyShape",
    "matrix_multiply_job",
    "matrix_multiply_program",
    "matrix_multiply_source",
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
        KernelError: a value outside its range.
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
        """Addresses of the first matrix, the second one, the result, and behind it."""
        sizes = (self.rows * self.row_bytes, self.columns * self.row_bytes)
        return addresses(*sizes, self.rows * self.out_bytes)


@dataclass(frozen=True)
class _Plan:
    """Rows of a group and columns of a block, and where they lie in the scratchpad: at its start
    the block, then two groups of rows, then the results of two groups."""

    shape: MultiplyShape
    group: int
    block: int

    @property
    def rows(self) -> int:
        return round_up(self.block * self.shape.row_bytes, RANGE_BYTES)

    @property
    def group_bytes(self) -> int:
        return round_up(self.group * self.shape.row_bytes, RANGE_BYTES)

    @property
    def results(self) -> int:
        return self.rows + 2 * self.group_bytes

    @property
    def result_bytes(self) -> int:
        """Bytes from the results of a row to those of the next."""
        return round_up(self.block * ELEMENT_BYTES, RANGE_BYTES)

    @property
    def end(self) -> int:
        return self.results + 2 * self.group * self.result_bytes

    @property
    def cycles(self) -> float:
        """Estimate for an element of the result."""
        products = self.group * self.block * row_beats(_PRODUCT, self.shape.inner)
        return (products + _GROUP_COST + _ROW_COST * self.group) / (self.group * self.block)


def _plan(shape: MultiplyShape) -> _Plan:
    found = [
        plan
        for group in range(1, min(_MOST_GROUP, shape.rows) + 1)
        for block in range(1, min(MAX_MR, shape.columns) + 1)
        if (plan := _Plan(shape, group, block)).end <= DEFAULT_SCRATCHPAD
    ]
    return min(found, key=lambda plan: plan.cycles)


@CHECK.arguments
@lru_cache(maxsize=64)
def matrix_multiply_program(shape: MultiplyShape, *, fraction: int) -> Program:
    """The assembled kernel; see :func:`matrix_multiply_source`."""
    name = f"matrix_multiply_{shape.rows}x{shape.inner}x{shape.columns}.s"
    return assemble(matrix_multiply_source(shape, fraction=fraction), name=name)


def matrix_multiply_source(shape: MultiplyShape, *, fraction: int) -> str:
    """Assembly of a product of matrices that lie at :attr:`MultiplyShape.places`.

    Parameters:
        fraction: bits by which sums of products are shifted right, 0..15.

    Raises:
        KernelError: ``fraction`` outside its range.
    """
    check_fraction(fraction)
    plan = _plan(shape)
    group, block = plan.group, plan.block
    first, second, target, _ = shape.places
    w = KernelWriter(
        f"Product of matrices: {shape.rows} x {shape.inner} and {shape.inner} x {shape.columns}.",
        "Generated by microkernels.apps.matrix_multiply, which explains it.",
        f"Groups of {group} rows, blocks of {block} columns.",
        "",
        f"Scratchpad ({plan.end} bytes)",
        f"  {0:>4} block of columns",
        f"  {plan.rows:>4} two groups of rows",
        f"  {plan.results:>4} two groups of results",
    )
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
    ahead = w.variable("ahead", first, "address of the group on its way")
    at = w.register("at", "address of the group in use")
    columns = w.variable("columns", second, "address of the block of columns")
    out = w.register("out", "address of the group's results")
    corner = w.variable("corner", target, "address of the block's first results")
    use = w.variable("use", plan.rows, "rows in use")
    fill = w.variable("fill", plan.rows + plan.group_bytes, "rows on their way")
    made = w.variable("made", plan.results, "results being made")
    kept = w.variable("kept", plan.results + group * plan.result_bytes, "the other ones")
    row = w.register("row", "row of the group")
    result = w.register("result", "results of that row; value on its way to a setting")

    w.set_constants()
    w.op("set.vl", inner)
    w.op("set.mr", outs)
    w.op("mov", result, fraction)
    w.op("set.fx", result)
    w.load(use, ahead, group_size)
    w.label("block")
    w.load(w.zero, columns, block_size)
    w.op("mov", out, corner)
    w.label("group")
    w.op("mov", at, ahead)
    w.note("The group behind this one, or the first.")
    w.op("mov", row, ahead)
    w.op("mov", ahead, start)
    w.op("beq", row, last, "chosen")
    w.offset(ahead, row, group * shape.row_bytes)
    w.op("blt", ahead, last, "chosen")
    w.op("mov", ahead, last)
    w.label("chosen")
    w.load(fill, ahead, group_size)
    w.op("mov", row, use)
    w.op("mov", result, made)
    for number in range(group):
        if number:
            w.op("add", row, row, shape.row_bytes)
            w.op("add", result, result, plan.result_bytes)
        w.vector("m.v.mul.add", result, w.zero, row)
    w.op("v.drain")
    w.op("mov", result, made)
    w.op("mov", row, out)
    for number in range(group):
        if number:
            w.op("add", result, result, plan.result_bytes)
            w.op("add", row, row, row_step)
        w.store(row, result, outs)
    w.swap(use, fill, result)
    w.swap(made, kept, result)
    w.op("beq", at, last, "next_block")
    w.offset(out, out, group * shape.out_bytes)
    w.op("bne", ahead, last, "group")
    w.op("add", out, corner, span)
    w.op("jmp", "group")
    w.label("next_block")
    w.op("beq", columns, end, "finish")
    w.offset(columns, columns, block * shape.row_bytes)
    w.op("add", corner, corner, block * ELEMENT_BYTES)
    w.op("blt", columns, end, "block")
    w.op("mov", columns, end)
    w.op("li", corner, target + (shape.columns - block) * ELEMENT_BYTES)
    w.op("jmp", "block")
    w.label("finish")
    w.op("halt")
    return w.text()


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
