"""Instructions bound to the state of a simulated processing engine, ready to be called.

Decoding happens once per word of a program; each execution is a call without arguments.

Results of vector instructions are bit-exact, on NumPy arrays. Numbers are signed two's complement.
Everything from the operands to the single final saturation is exact: 64-bit lanes compute with
Python integers, narrower lanes with 64-bit integers wherever these hold every intermediate value.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from isa.faults import FaultCause
from isa.instruction import fits
from isa.table import (
    FIELD_A,
    FIELD_B,
    IMM14,
    MAX_FX,
    REGISTER_WIDTH,
    Instruction,
    Opcode,
    ReductionOp,
    Role,
    ScalarOp,
    VerticalOp,
    Width,
)
from isa.units import SPECIAL_UNITS

from .state import Halt, Operation, ProcessorFault, ProcessorState, declare, keep_out, lowered

Array = np.ndarray[Any, Any]

#: ``f(*operands, fx)``: results for the operands that the instruction table lists: vectors of VL
#: elements, one element, or a matrix of MR x VL.
VectorFunction = Callable[..., Array]

#: Called with the number of values that saturated.
Count = Callable[[int], None]

_VERTICAL: dict[VerticalOp, Callable[[Array, Array], Array]] = {
    VerticalOp.ADD: np.add,
    VerticalOp.SUB: np.subtract,
    VerticalOp.MIN: np.minimum,
    VerticalOp.MAX: np.maximum,
    VerticalOp.MUL: np.multiply,
    VerticalOp.ABSDIFF: lambda b, c: abs(b - c),
    VerticalOp.AVG: lambda b, c: (b + c + 1) >> 1,
}
#: Those whose results may not fit the element.
_SATURATES = (VerticalOp.ADD, VerticalOp.SUB, VerticalOp.ABSDIFF)
_REDUCE = {
    ReductionOp.ADD: np.add.reduce,
    ReductionOp.MIN: np.minimum.reduce,
    ReductionOp.MAX: np.maximum.reduce,
}
_HALF_BITS = 32


def element_type(width: Width) -> np.dtype[Any]:
    """The little-endian signed type of an element in the scratchpad and in memory."""
    return np.dtype(f"<i{width.bytes}")


def _exact_type(width: Width) -> np.dtype[Any]:
    """A type that holds every sum, difference and product of two elements."""
    return np.dtype(object if width is Width.W64 else np.int64)


class _Saturation:
    """Clamps values to the range of an element of ``width``, and reports to ``count`` how many were
    outside; None: not counted."""

    def __init__(self, width: Width, count: Count | None) -> None:
        self._highest = (1 << (width.bits - 1)) - 1
        self._count = count

    def __call__(self, values: Array) -> Array:
        """``values``, clamped; same type."""
        limited: Array = np.minimum(np.maximum(values, -self._highest - 1), self._highest)
        if self._count is not None and (clipped := np.count_nonzero(limited != values)):
            self._count(int(clipped))
        return limited


def _round_shift(values: Array, fx: int) -> Array:
    """``values`` shifted right by ``fx`` (0..63) bits and rounded to nearest, halves up.

    Equal to ``(values + 2**(fx - 1)) >> fx``, without the sum, which could exceed 64 bits.
    """
    if not fx:
        return values
    shifted: Array = ((values >> (fx - 1)) + 1) >> 1
    return shifted


def element_wise(vertical: VerticalOp, width: Width, count: Count | None = None) -> VectorFunction:
    """The function of a ``v.v`` or ``v.s`` instruction; results have the element's type.

    Parameters:
        vertical: any but ``NOP``.
        count: called with the number of values that saturate, if any do.
    """
    operation = _VERTICAL[vertical]
    saturate = _Saturation(width, count)
    element, exact = element_type(width), _exact_type(width)
    if vertical in (VerticalOp.MIN, VerticalOp.MAX):
        return lambda b, c, fx: operation(b, c)
    if vertical is VerticalOp.MUL:
        return lambda b, c, fx: saturate(
            _round_shift(operation(b.astype(exact), c.astype(exact)), fx)
        ).astype(element)
    return lambda b, c, fx: saturate(operation(b.astype(exact), c.astype(exact))).astype(element)


def _sum_of_wide_products(products: Array) -> Array:
    """Exact sums of the rows of 64-bit ``products``, which may need more than 64 bits."""
    high = (products >> _HALF_BITS).sum(axis=1).astype(object)
    low = (products & ((1 << _HALF_BITS) - 1)).sum(axis=1).astype(object)
    total: Array = (high << _HALF_BITS) + low
    return total


def _numbers(elements: Array, half: np.dtype[Any]) -> Array:
    """The numbers of pairs, each pair in the place of its element."""
    numbers: Array = np.ascontiguousarray(elements).view(half)
    return numbers


def matrix_vector(
    vertical: VerticalOp,
    reduction: ReductionOp,
    width: Width,
    count: Count | None = None,
    *,
    pairs: bool = False,
) -> VectorFunction:
    """The function of an ``m.v`` instruction; results have the element's type.

    Parameters:
        pairs: as of :class:`isa.table.Instruction`.
        count: called with the number of values that saturate, if any; reduced and written values
            both count.
    """
    saturate = _Saturation(width, count)
    reduce = _REDUCE[reduction]
    element, exact = element_type(width), _exact_type(width)

    if vertical is VerticalOp.MUL:
        wide_sum = width is Width.W32 and reduction is ReductionOp.ADD
        half = np.dtype(f"<i{width.bytes // 2}") if pairs else element

        def multiply(matrix: Array, vector: Array, fx: int) -> Array:
            if pairs:
                matrix, vector = _numbers(matrix, half), _numbers(vector, half)
            products = matrix.astype(exact) * vector.astype(exact)
            total = _sum_of_wide_products(products) if wide_sum else reduce(products, axis=1)
            return saturate(_round_shift(total, fx)).astype(element)

        return multiply

    def reduced(values: Array) -> Array:
        total = reduce(values, axis=1)
        if reduction is ReductionOp.ADD:
            total = saturate(total)
        return np.asarray(total).astype(element)

    if vertical is VerticalOp.NOP:
        return lambda matrix, fx: reduced(matrix.astype(exact))
    operation = _VERTICAL[vertical]
    saturates = vertical in _SATURATES

    def combine(matrix: Array, vector: Array, fx: int) -> Array:
        values = operation(matrix.astype(exact), vector.astype(exact))
        return reduced(saturate(values) if saturates else values)

    return combine


_M64 = (1 << 64) - 1
#: Index of a matrix's number of elements among 1, VL, MR and VL x MR.
_MATRIX = 3


_Binder = Callable[[ProcessorState, Instruction, int, int], Operation]


def bind(state: ProcessorState, row: Instruction | None, word: int, address: int) -> Operation:
    """The operation of ``word`` at word ``address`` of the program.

    Parameters:
        row: the instruction that ``word`` encodes; None: not one of the engine's.

    The operation raises :class:`Halt`, or :class:`ProcessorFault` before it changes anything.
    """
    if row is None or any(
        operand.field.extract(word) >= len(state.registers)
        for operand in row.operands
        if operand.is_register
    ):
        return _illegal
    binder: _Binder
    if row.scalar is not None:
        binder = _scalar
    elif row.branch is not None:
        binder = _branch
    else:
        binder = _BY_OPCODE[Opcode(row.opcode)]
    return binder(state, row, word, address)


def _illegal() -> int:
    raise ProcessorFault(FaultCause.ILLEGAL_INSTRUCTION)


def _halt(state: ProcessorState, row: Instruction, word: int, address: int) -> Operation:
    def operation() -> int:
        raise Halt

    return operation


def _wait(state: ProcessorState, row: Instruction, word: int, address: int) -> Operation:
    following = address + 1
    return lambda: following


def _evaluation(state: ProcessorState, op: ScalarOp) -> Callable[[int, int], int]:
    """The result of ``op`` on two registers, or its fault."""
    width = state.register_width
    if width == REGISTER_WIDTH:
        return op.evaluate

    def evaluate(b: int, c: int) -> int:
        result = op.evaluate_narrow(b, c, width)
        if result is None:
            raise ProcessorFault(FaultCause.REGISTER_RANGE)
        return result

    return evaluate


def _last_operand(state: ProcessorState, row: Instruction, word: int) -> tuple[list[int], int]:
    """Where the last operand of a scalar instruction lies: a list of numbers and the index in it. A
    constant has a list of its own."""
    operand = row.operands[-1]
    value = operand.field.extract(word)
    return (state.registers, value) if operand.is_register else ([value & _M64], 0)


def _scalar(state: ProcessorState, row: Instruction, word: int, address: int) -> Operation:
    assert row.scalar is not None
    registers, following, evaluate = state.registers, address + 1, _evaluation(state, row.scalar)
    a, b = FIELD_A.extract(word), FIELD_B.extract(word)
    numbers, c = _last_operand(state, row, word)

    def operation() -> int:
        registers[a] = evaluate(registers[b], numbers[c])
        return following

    return operation


def _move(state: ProcessorState, row: Instruction, word: int, address: int) -> Operation:
    registers, following, a = state.registers, address + 1, FIELD_A.extract(word)
    numbers, b = _last_operand(state, row, word)

    def operation() -> int:
        registers[a] = numbers[b]
        return following

    return operation


def _branch(state: ProcessorState, row: Instruction, word: int, address: int) -> Operation:
    assert row.branch is not None
    target, following = address + IMM14.extract(word), address + 1
    if not row.operands[0].is_register:
        return lambda: target
    registers, is_taken = state.registers, row.branch.taken
    a, b = FIELD_A.extract(word), FIELD_B.extract(word)
    return lambda: target if is_taken(registers[a], registers[b]) else following


def _setting(name: str, low: int, limit: Callable[[ProcessorState], int]) -> _Binder:
    def bind_setting(state: ProcessorState, row: Instruction, word: int, address: int) -> Operation:
        registers, following, a = state.registers, address + 1, FIELD_A.extract(word)
        high = limit(state)

        def operation() -> int:
            value = registers[a]
            if not low <= value <= high:
                raise ProcessorFault(FaultCause.VECTOR_SETTING)
            setattr(state, name, value)
            return following

        return operation

    return bind_setting


def _counter(state: ProcessorState, address: int) -> Count | None:
    """Counter of the values that the instruction at ``address`` clamps."""
    counts = state.saturated
    if counts is None:
        return None

    def count(values: int) -> None:
        counts[address] += values

    return count


def _vector_function(state: ProcessorState, row: Instruction, address: int) -> VectorFunction:
    """The function that the vector instruction ``row`` at ``address`` computes."""
    assert row.width is not None
    if row.special:
        unit = SPECIAL_UNITS[row.special]
        return partial(unit.evaluate, unit.function_of(row))
    assert row.vertical is not None
    count = _counter(state, address)
    if row.reduction is not None:
        return matrix_vector(row.vertical, row.reduction, row.width, count, pairs=row.pairs)
    return element_wise(row.vertical, row.width, count)


def _vector(state: ProcessorState, row: Instruction, word: int, address: int) -> Operation:
    assert row.width is not None
    registers, following = state.registers, address + 1
    pad, size, unaligned = state.scratchpad, len(state.scratchpad), state.unaligned
    width, element = row.width.bytes, element_type(row.width)
    function = _vector_function(state, row, address)
    # Register with the address, and which of the numbers of elements lies there.
    (result_register, result_which), *operands = (
        (operand.field.extract(word), operand.extent.by_vl + 2 * operand.extent.by_mr)
        for operand in row.scratchpad
    )

    def operation() -> int:
        vl, mr = state.vl, state.mr
        counts = (1, vl, mr, vl * mr)
        values = []
        for number, which in operands:
            start, count = registers[number], counts[which]
            # Rows of a matrix are as aligned as it.
            places = start | vl * width if which == _MATRIX else start
            if places & unaligned or start + count * width > size:
                raise ProcessorFault(FaultCause.SCRATCHPAD_RANGE)
            read = np.frombuffer(pad, element, count, start)
            values.append(read.reshape(mr, vl) if which == _MATRIX else read)
        start = registers[result_register]
        end = start + counts[result_which] * width
        if start & unaligned or end > size:
            raise ProcessorFault(FaultCause.SCRATCHPAD_RANGE)
        pad[start:end] = function(*values, state.fx).tobytes()
        return following

    return operation


def _transfer(state: ProcessorState, row: Instruction, word: int, address: int) -> Operation:
    assert row.width is not None
    registers, following = state.registers, address + 1
    load = row.loads
    named = row.by_role(word)
    scratchpad_register, memory_register = named[Role.SCRATCHPAD_ADDRESS], named[Role.DRAM_ADDRESS]
    length_register = named[Role.LENGTH]
    pad, size = state.scratchpad, len(state.scratchpad)
    width, memory, memory_bytes = row.width.bytes, state.memory, state.memory_bytes
    unaligned = state.unaligned

    def operation() -> int:
        near, far = registers[scratchpad_register], registers[memory_register]
        length = registers[length_register] * width
        if near + length > size or near & unaligned:
            raise ProcessorFault(FaultCause.SCRATCHPAD_RANGE)
        if far & unaligned:
            raise ProcessorFault(FaultCause.MISALIGNED)
        workspace = state.workspace
        if workspace is not None and load and length and workspace.contains(far, length):
            pad[near : near + length] = lowered(state, workspace, far, length)
            return following
        if far + length > memory_bytes:
            raise ProcessorFault(FaultCause.DRAM_RANGE)
        if workspace is not None:
            keep_out(workspace, far, length, load=load)
        if load:
            pad[near : near + length] = memory.read(far, length)
        else:
            memory.write(far, pad[near : near + length])
        return following

    return operation


def _transfer_register(
    state: ProcessorState, row: Instruction, word: int, address: int
) -> Operation:
    assert row.width is not None
    registers, following = state.registers, address + 1
    load = row.loads
    named = row.by_role(word)
    address_register = named[Role.DRAM_ADDRESS]
    data_register = named[Role.DESTINATION if load else Role.SOURCE]
    width, memory, memory_bytes = row.width.bytes, state.memory, state.memory_bytes
    mask, register_width = (1 << row.width.bits) - 1, state.register_width

    def operation() -> int:
        far = registers[address_register]
        if far % width:
            raise ProcessorFault(FaultCause.MISALIGNED)
        if far + width > memory_bytes:
            raise ProcessorFault(FaultCause.DRAM_RANGE)
        if state.workspace is not None:
            keep_out(state.workspace, far, width, load=load)
        if load:
            value = int.from_bytes(memory.read(far, width), "little", signed=True)
            if not fits(value, register_width):
                raise ProcessorFault(FaultCause.REGISTER_RANGE)
            registers[data_register] = value & _M64
        else:
            memory.write(far, (registers[data_register] & mask).to_bytes(width, "little"))
        return following

    return operation


_BY_OPCODE: dict[Opcode, _Binder] = {
    Opcode.MOV: _move,
    Opcode.MOV_IMM: _move,
    Opcode.MATRIX_VECTOR: _vector,
    Opcode.VECTOR_VECTOR: _vector,
    Opcode.VECTOR_SCALAR: _vector,
    Opcode.SPECIAL: _vector,
    Opcode.SET_VL: _setting("vl", 1, lambda state: state.max_vl),
    Opcode.SET_MR: _setting("mr", 1, lambda state: state.max_mr),
    Opcode.SET_FX: _setting("fx", 0, lambda state: MAX_FX),
    Opcode.DRAIN: _wait,
    Opcode.LD_SRAM: _transfer,
    Opcode.ST_SRAM: _transfer,
    Opcode.LD_REG: _transfer_register,
    Opcode.ST_REG: _transfer_register,
    Opcode.MEMFENCE: _wait,
    Opcode.SET_WS: declare,
    Opcode.HALT: _halt,
}
