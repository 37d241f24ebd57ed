"""Goals that check one engine against the instruction table, so that a bug in both engines violates
them.

They derive from the rows of :mod:`isa.table` (extents, roles, functions), not from the units.
"""

from collections.abc import Callable, Mapping

from amaranth.hdl import Cat, Const, Mux, Value

from hdl.ports import COLUMN_BYTES
from isa.limits import RANGE_BYTES
from isa.table import (
    FIELD_A,
    FIELD_B,
    FIELD_C,
    BranchOp,
    Extent,
    Instruction,
    Opcode,
    Role,
    ScalarOp,
    Unit,
    VerticalOp,
)
from isa.timing import WORD_BYTES
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.vector.control import VectorControl

from .relation import Relation, View
from .rows import command_values, decoded_values, held, matching

_CONTROL = VectorControl.probes.within("control")
_NAMES = {FIELD_A: "a", FIELD_B: "b", FIELD_C: "c"}
_FIELDS = tuple(_NAMES)


def _is(view: View, config: PeConfig, row: Instruction) -> Value:
    """1 if the decoded instruction is ``row``."""
    (values,) = decoded_values(config, row)
    return Cat(Const(1, 1), *matching(view, "decoded.", values)).all()


def range_goals(relation: Relation, config: PeConfig) -> None:
    """Add goals for :class:`pe.frontend.range_check.RangeCheck` of ``config``, the trimmed engine:
    faults, scratchpad ranges, and the bytes of a transfer."""
    alike: dict[object, list[Instruction]] = {}
    for row in (*config.rows_of(Unit.VECTOR), *Capabilities.of(config).memory.rows):
        operands = tuple(
            (operand.field.name, operand.role, operand.use) for operand in row.operands
        )
        alike.setdefault((row.unit, row.width, operands), []).append(row)
    #: One of each kind of instruction that accesses the same places.
    kinds = {rows[0]: rows for rows in alike.values()}
    transfers = [row for row in kinds if row.unit is Unit.LOAD_STORE]

    def all_rows(goal: Mapping[Instruction, Value], t: View) -> Value:
        return Cat(
            ~Cat(_is(t, config, operand) for operand in kinds[row]).any() | holds
            for row, holds in goal.items()
        ).all()

    def faults(f: View, t: View) -> Value:
        goal = {}
        for row in kinds:
            expected = _faults(config, row, t)
            # The first cause of any range counts.
            same: list[Value] = []
            none: Value = Const(1, 1)
            for name in ("outside", "misaligned", "dram"):
                same.append(~none | (held(t, f"faults.{name}").any() == expected[name].any()))
                none = none & ~expected[name].any()
            goal[row] = Cat(same).all()
        return all_rows(goal, t)

    def ranges(f: View, t: View) -> Value:
        goal = {}
        for row in kinds:
            expected = _ranges(row, t)
            sound = ~_any(_faults(config, row, t))
            terms = []
            for number in range(len(_FIELDS)):
                name = f"ranges__{number}."
                if number not in expected:
                    terms.append(~t[f"{name}used"])
                    continue
                start, size = expected[number]
                same = (t[f"{name}start"] == start) & (
                    t[f"{name}end"] == (start + size + (RANGE_BYTES - 1)) // RANGE_BYTES
                )
                writes = t[f"{name}writes"] == int(number == 0 and row.unit is Unit.VECTOR)
                terms.append((t[f"{name}used"] == (size != 0)) & ((size == 0) | (same & writes)))
            goal[row] = ~sound | Cat(terms).all()
        return all_rows(goal, t)

    def moved(f: View, t: View) -> Value:
        goal = {}
        for row in transfers:
            far, size = _moved(row, t)
            columns = ((far % COLUMN_BYTES) + size + (COLUMN_BYTES - 1)) // COLUMN_BYTES
            terms = [t["bytes"] == size, (size == 0) | (t["dram"] == far)]
            if row.scratchpad:
                terms += [t["is_empty"] == (size == 0), (size == 0) | (t["columns"] == columns)]
            goal[row] = _any(_faults(config, row, t)) | Cat(terms).all()
        return all_rows(goal, t)

    relation.guarantee("faults are those of the instruction table", faults)
    relation.guarantee("ranges are those of the instruction table", ranges)
    relation.guarantee("transfers are those of the instruction table", moved)


def _ranges(row: Instruction, t: View) -> dict[int, tuple[Value, Value]]:
    """Operand number -> first address and bytes in the scratchpad."""
    ranges: dict[int, tuple[Value, Value]] = {}
    if row.unit is Unit.LOAD_STORE and not row.scratchpad:
        return ranges
    assert row.width is not None
    for operand in row.scratchpad:
        count: Value
        if row.unit is Unit.LOAD_STORE:
            count = _register(row, Role.LENGTH, t)
        elif operand.extent.by_vl and operand.extent.by_mr:
            count = t["elements"]
        elif operand.extent.by_vl:
            count = t["vl"]
        else:
            count = t["mr"] if operand.extent.by_mr else Const(1, 1)
        number = _FIELDS.index(operand.field)
        ranges[number] = t[_NAMES[operand.field]], count << row.width.value
    return ranges


def _register(row: Instruction, role: Role, t: View) -> Value:
    (field,) = (operand.field for operand in row.operands if operand.role is role)
    return t[_NAMES[field]]


def _moved(row: Instruction, t: View) -> tuple[Value, Value]:
    """First address in memory and bytes of a load or store."""
    assert row.width is not None
    far = _register(row, Role.DRAM_ADDRESS, t)
    if not row.scratchpad:
        return far, Const(row.width.bytes, 4)
    return far, _register(row, Role.LENGTH, t) << row.width.value


def _faults(config: PeConfig, row: Instruction, t: View) -> dict[str, Value]:
    """Faults of a vector instruction, load or store. Registers are taken as unsigned: a negative
    number is beyond every memory."""
    outside: list[Value] = [Const(0, 1)] * len(_FIELDS)
    for number, (start, size) in _ranges(row, t).items():
        outside[number] = (start + size > config.scratchpad_bytes) | (
            start % config.scratchpad_alignment != 0
        )
    if any(operand.extent is Extent.MATRIX for operand in row.scratchpad):
        assert row.width is not None
        rows = t["vl"] << row.width.value
        outside.append(rows % config.scratchpad_alignment != 0)
    faults: dict[str, Value] = {"outside": Cat(outside), "dram": Const(0, 1)}
    faults["misaligned"] = Const(0, 1)
    if row.unit is Unit.LOAD_STORE:
        assert row.width is not None
        far, size = _moved(row, t)
        # Beyond the address, a register may have only its sign.
        faults["dram"] = (far + size > 1 << config.address_bits) | far[-1]
        step = config.scratchpad_alignment if row.scratchpad else row.width.bytes
        faults["misaligned"] = far % step != 0
    return faults


def _any(faults: Mapping[str, Value]) -> Value:
    return Cat(faults.values()).any()


def scalar_goals(relation: Relation, config: PeConfig) -> None:
    """Add goals for :class:`pe.frontend.scalar.Scalar` of ``config``, the full engine with all 64
    bits: results and branches."""
    caps = Capabilities.of(config)

    def operands(f: View) -> tuple[Value, Value]:
        second = f["second"] ^ f["decoded.inverted"].replicate(len(f["second"]))
        return f["first"].as_signed(), second.as_signed()

    def result(f: View, t: View) -> Value:
        b, c = operands(f)
        amount = c[:6]
        results: dict[ScalarOp, Value] = {
            ScalarOp.ADD: b + c,
            ScalarOp.SUB: b - c,
            ScalarOp.AND: b & c,
            ScalarOp.OR: b | c,
            ScalarOp.XOR: b ^ c,
            ScalarOp.SLL: b << amount,
            ScalarOp.SRL: b.as_unsigned() >> amount,
            ScalarOp.SRA: b >> amount,
        }
        terms = []
        for row in config.rows_of(Unit.SCALAR):
            if row.branch is None:
                moves = row.opcode in (Opcode.MOV, Opcode.MOV_IMM)
                operation = ScalarOp.OR if moves else row.scalar
                assert operation is not None
                same = f["result"] == results[operation][: len(f["result"])]
                terms.append(~_is(f, config, row) | same)
        return Cat(Const(1, 1), *terms).all()

    def branches(f: View, t: View) -> Value:
        b, c = operands(f)
        decisions = {
            BranchOp.BLT: b < c,
            BranchOp.BGE: b >= c,
            BranchOp.BEQ: b == c,
            BranchOp.BNE: b != c,
            BranchOp.JMP: Const(1, 1),
        }
        terms = [
            ~_is(f, config, row) | (f["taken"] == decisions[row.branch])
            for row in config.rows_of(Unit.SCALAR)
            if row.branch is not None
        ]
        return Cat(Const(1, 1), *terms).all()

    if caps.scalar:
        relation.guarantee("results are those of the instruction table", result)
    relation.guarantee("branches are those of the instruction table", branches)


#: Operations on single elements that are not products.
_ELEMENTS: Mapping[VerticalOp, Callable[[Value, Value], Value]] = {
    VerticalOp.ADD: lambda b, c: b + c,
    VerticalOp.SUB: lambda b, c: b - c,
    VerticalOp.MIN: lambda b, c: Mux(b < c, b, c),
    VerticalOp.MAX: lambda b, c: Mux(b < c, c, b),
    VerticalOp.ABSDIFF: lambda b, c: Mux(b < c, c - b, b - c),
    VerticalOp.AVG: lambda b, c: (b + c + 1) >> 1,
}


def element_goals(relation: Relation, config: PeConfig) -> None:
    """Add goals for :class:`pe.vector.unit.VectorUnit` of ``config``, the trimmed engine, beat by
    beat: results of element-wise instructions without products, and which bytes are written."""
    rows = [
        row
        for row in config.rows_of(Unit.VECTOR)
        if row.reduction is None and row.vertical in _ELEMENTS
    ]

    def here(row: Instruction, t: View) -> Value:
        (codes,) = command_values(config, row)
        return Cat(t[_CONTROL.running], *matching(t, f"{_CONTROL.current}.", codes)).all()

    def results(f: View, t: View) -> Value:
        goal = []
        for row in rows:
            assert row.width is not None
            assert row.vertical is not None
            bits, size = row.width.bits, row.width.bytes
            scalar = row.scratchpad[-1].extent is Extent.ELEMENT
            same = []
            for place in range(0, WORD_BYTES, size):
                b = t["read__0__data"].word_select(place // size, bits)
                c = t["read__1__data"].word_select(0 if scalar else place // size, bits)
                exact = _ELEMENTS[row.vertical](b.as_signed(), c.as_signed())
                element = t["write__data"].word_select(place // size, bits)
                same.append(
                    ~t["write__strobe"][place] | (element.as_signed() == _saturated(exact, bits))
                )
            goal.append(~here(row, t) | Cat(same).all())
        return Cat(Const(1, 1), *goal).all()

    def written(f: View, t: View) -> Value:
        """All bytes up to the last one of the row."""
        unfinished = t[_CONTROL.left] != 0
        end = t[_CONTROL.row_end][: (WORD_BYTES - 1).bit_length()]
        bytes_of_row = Cat(unfinished | (end >= byte) for byte in range(WORD_BYTES))
        goal = [~here(row, t) | (t["write__strobe"] == bytes_of_row) for row in rows]
        return Cat(Const(1, 1), *goal).all()

    relation.guarantee("elements are those of the instruction table", results)
    relation.guarantee("a row is written up to its last byte", written)


def _saturated(exact: Value, bits: int) -> Value:
    """The nearest signed number of ``bits`` bits."""
    highest = (1 << bits - 1) - 1
    return Mux(exact > highest, highest, Mux(exact < -highest - 1, -highest - 1, exact))
