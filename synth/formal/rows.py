"""Values of instructions in an engine's registers, from its encodings."""

from collections.abc import Callable, Iterable, Mapping

from amaranth.hdl import Cat, Const, Value

from isa.table import (
    FIELD_A,
    FIELD_B,
    FIELD_C,
    WIDTH,
    BitField,
    Format,
    Instruction,
    Opcode,
    ScalarOp,
    Unit,
)
from isa.timing import WORD_BYTES
from pe.capabilities import OPERATION, Capabilities
from pe.codes import CLASSES, CONTROL
from pe.config import PeConfig

from .relation import Codes, Condition, Pair, View

#: Fields of an operation that loads and stores also have.
_OF_TRANSFERS = ("kind", "width")
_IMMEDIATE = (Format.AB_IMM, Format.A_IMM, Format.IMM)
#: Values of a register's members for an instruction; None: anything.
Values = Mapping[str, int | None]


def any_of(terms: Iterable[Value]) -> Value:
    """1 if one of ``terms`` is (0 without terms)."""
    return Cat(Const(0, 1), *(term.bool() for term in terms)).any()


def held(view: View, name: str) -> Value:
    """Field ``name``, which has no bits if it is the same in all instructions."""
    return view[name] if view.has(name) else Const(0, 0)


def is_set(flag: str, view: View) -> Value:
    """The value of ``flag``."""
    return view[flag]


def reads(row: Instruction, field: BitField) -> bool:
    """Whether ``row`` reads the register in ``field``."""
    return field in row.reads


def codes_of(
    prefix: str,
    values: Callable[[PeConfig, Instruction], list[Values]],
    configs: tuple[PeConfig, PeConfig],
    rows: Iterable[Instruction],
    when: Condition | None = None,
) -> Codes | None:
    """A rule that members with ``prefix`` encode one of ``rows``, each configuration in its way."""
    words: dict[tuple[Pair, ...], None] = {}
    names: tuple[str, ...] = ()
    for row in rows:
        for full, trimmed in zip(*(values(config, row) for config in configs), strict=True):
            names = tuple(full)
            words[tuple((full[name], trimmed[name]) for name in names)] = None
    if not names:
        return None
    return Codes(tuple(prefix + name for name in names), tuple(words), when)


def matching(view: View, prefix: str, values: Values) -> list[Value]:
    """Whether each member with ``prefix`` that the design has is as in ``values``."""
    return [
        view[prefix + name] == value
        for name, value in values.items()
        if value is not None and view.has(prefix + name)
    ]


def decoded_values(config: PeConfig, row: Instruction) -> list[Values]:
    """Members of :func:`pe.frontend.decode.issued` that ``row`` determines."""
    caps = Capabilities.of(config)
    word = row.match
    plain = row.format not in _IMMEDIATE and row.unit in (Unit.VECTOR, Unit.LOAD_STORE)
    moves = row.opcode in (Opcode.MOV, Opcode.MOV_IMM)
    scalar: int | None = None
    if row.unit is Unit.SCALAR and row.branch is None:
        scalar = caps.scalar.code(ScalarOp.OR if moves else row.opcode & 7)
    vector = row.unit is Unit.VECTOR
    return [
        {
            "unit": caps.unit.code(CLASSES[row.unit].value),
            "writes": int(row.writes is not None),
            "branch": int(row.branch is not None),
            "inverted": int(
                row.branch is not None
                or row.scalar is ScalarOp.SUB
                or (row.scalar is ScalarOp.SLL and not config.narrow)
            ),
            "reads_c": int(reads(row, FIELD_C)) if vector else None,
            "scalar": scalar,
            "condition": None if row.branch is None else caps.condition.code(row.branch),
            "control": caps.control.code(CONTROL[Opcode(row.opcode)])
            if row.unit is Unit.ISSUE
            else None,
            **{
                name: packing.code(OPERATION[name].extract(word))
                if vector or (plain and name in _OF_TRANSFERS)
                else None
                for name, packing in caps.operation.items()
            },
        }
    ]


def dispatched_values(config: PeConfig, row: Instruction) -> list[Values]:
    """Members of :func:`pe.frontend.dispatch.dispatched` that ``row`` determines."""
    (decoded,) = decoded_values(config, row)
    operation = {name: decoded[name] for name in OPERATION}
    return [{"vector": int(row.unit is Unit.VECTOR), **operation}]


def command_values(config: PeConfig, row: Instruction) -> list[Values]:
    """Members of :func:`pe.ports.vector_command` that ``row`` determines."""
    operation = Capabilities.of(config).vector.operation
    return [
        {
            name: packing.code(OPERATION[name].extract(row.match))
            for name, packing in operation.items()
        }
    ]


def transfer_values(config: PeConfig, row: Instruction) -> list[Values]:
    """Members of :func:`pe.ports.transfer_layout` that ``row`` determines."""
    register = row.opcode >> 1 & 1
    width = Capabilities.of(config).registers.width
    return [
        {
            "store": row.opcode & 1,
            "register": register,
            "width": width.code(WIDTH.extract(row.match)) if register else None,
        }
    ]


def entry_values(config: PeConfig, row: Instruction) -> list[Values]:
    """Members of :func:`pe.lsu.ports.load_table_entry` that ``row`` determines, for each position
    in a word where its data may begin: a register's value is at a multiple of its width."""
    (transfer,) = transfer_values(config, row)
    if row.opcode & 1:
        return [{"store": 1, "register": None, "target.register.width": None, "first": None}]
    register = transfer["register"]
    assert row.width is not None
    return [
        {
            "store": 0,
            "register": register,
            "target.register.width": transfer["width"],
            "first": first,
        }
        for first in range(0, WORD_BYTES, row.width.bytes if register else 1)
    ]


def is_aligned(address: Value, width: Value) -> Value:
    """1 if ``address`` is a multiple of the bytes of an element of ``width``."""
    below = (Const(1, WORD_BYTES) << width) - 1
    return (address[: (WORD_BYTES - 1).bit_length()] & below) == 0


def is_word(word: Value, row: Instruction, register_bits: int) -> Value:
    """1 if ``word`` encodes ``row`` with register numbers of up to ``register_bits`` bits."""
    fixed = [word[bit] ^ (~row.match >> bit & 1) for bit in range(len(word)) if row.mask >> bit & 1]
    terms: list[Value] = [Cat(fixed).all()]
    for field in (FIELD_A, FIELD_B, FIELD_C):
        if any(operand.is_register and operand.field == field for operand in row.operands):
            terms.append(word[field.low + register_bits : field.high + 1] == 0)
    return Cat(terms).all()
