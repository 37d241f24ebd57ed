"""Generates the instruction set manual, ``docs/isa.md``.

``python -m isa.manual`` writes it; a test compares the file with this module's output.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from itertools import pairwise
from pathlib import Path

from support.errors import counted
from support.files import write_atomically

from .faults import FaultCause
from .launch import START_FX, START_MR, START_REGISTERS, START_VL
from .manual_text import (
    ASSEMBLY,
    FAULTS,
    FIRST_PROGRAM,
    HAZARDS,
    INTRODUCTION,
    MEMORY,
    NUMBERS,
    OPERANDS,
    START_VALUES,
    STATE,
    WORKSPACE,
)
from .table import (
    BY_KEY,
    FIELD_A,
    FIELD_B,
    FIELD_C,
    IMM14,
    IMM20,
    INSTRUCTIONS,
    OPCODE,
    PAIRS,
    REDUCTION,
    VERTICAL,
    WIDTH,
    BitField,
    Format,
    Instruction,
    Origin,
    ReductionOp,
    Role,
    Unit,
    VerticalOp,
    Width,
)
from .timing import WORD_BYTES, beats
from .units import SPECIAL_UNITS

#: Path of the manual.
MANUAL_PATH = Path(__file__).parent.parent / "docs" / "isa.md"

_WORD_BITS = 32
_FIELDS = (OPCODE, FIELD_A, FIELD_B, FIELD_C, IMM14, IMM20)
_FUNCTION = BitField("function", 7, 0)


def _group(row: Instruction) -> str:
    """Title of the section that describes ``row``."""
    if row.branch is not None:
        return "Branches"
    if row.unit is Unit.SCALAR:
        return "Scalar arithmetic"
    if row.special:
        return f"{row.special.capitalize()} functions (optional unit)"
    if row.unit is Unit.VECTOR:
        if row.reduction is not None:
            return "Matrix with vector: element-wise, then reduced"
        one = any(operand.role is Role.ELEMENT_ADDRESS for operand in row.operands)
        return "Vector with one element" if one else "Vector with vector"
    return "Loads and stores" if row.unit is Unit.LOAD_STORE else "Settings and control"


def _families(rows: Iterable[Instruction]) -> list[list[Instruction]]:
    """Rows that differ in width alone, together."""
    families: dict[tuple[str, Format], list[Instruction]] = {}
    for row in rows:
        families.setdefault((row.mnemonic, row.format), []).append(row)
    return list(families.values())


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |\n" for line in lines
    )


def _syntax(row: Instruction) -> str:
    """Assembly syntax of ``row``, with fields for operands."""
    operands = []
    for operand in row.operands:
        if operand.is_register:
            operands.append(f"r{operand.field.name.upper()}")
        else:
            operands.append("target" if operand.role is Role.TARGET else f"#{operand.field.name}")
    width = ""
    if row.width is not None:
        widths = [other.width for other in INSTRUCTIONS if other.mnemonic == row.mnemonic]
        width = " [w-bit]" if len(widths) > 1 else f" [{row.width.bits}-bit]"
    return f"`{row.mnemonic.removesuffix('.imm')}{width} {', '.join(operands)}".rstrip() + "`"


def _pattern(family: Sequence[Instruction]) -> str:
    """The word bit by bit; fields as letters, the width as ``w``."""
    bits = []
    for bit in range(_WORD_BITS - 1, -1, -1):
        letter = ""
        for field in family[0].format.value:
            if field.mask >> bit & 1:
                letter = field.name[0]
        values = {row.match >> bit & 1 for row in family}
        bits.append(letter or ("w" if len(values) > 1 else str(values.pop())))
    text = "".join(bits)
    cuts: list[int] = []
    for field in (OPCODE, *family[0].format.value):
        cuts += [_WORD_BITS - 1 - field.high, _WORD_BITS - field.low]
    return " ".join(text[start:end] for start, end in pairwise(sorted({*cuts, _WORD_BITS})))


def _bits(fmt: Format) -> str:
    """The fields of a format, most significant bit first."""
    fields = [OPCODE, *fmt.value]
    if not any(field in (IMM14, IMM20) for field in fields):
        fields.append(_FUNCTION)
    return ", ".join(f"{field.name} {field.high}:{field.low}" for field in fields)


def _short_name(row: Instruction) -> str:
    """The mnemonic; the many combinations of vector operations as one."""
    if row.vertical is not None:
        return ".".join(row.mnemonic.split(".")[:2]) + ".*"
    return row.mnemonic.removesuffix(".imm")


def _glance() -> str:
    """Every mnemonic with its operands and what it does."""
    rows: dict[str, tuple[str, str]] = {}
    for row, *_ in _families(INSTRUCTIONS):
        name, summary = _short_name(row), row.summary
        if row.vertical is not None:
            if name in rows or row.vertical is not VerticalOp.ADD:
                continue
            summary = f"{_group(row)}, such as `{row.mnemonic}`."
        operands = _syntax(row).strip("`").partition(" ")[2]
        if name in rows:
            before, meaning = rows[name]
            operands = f"{before} or {operands.rpartition(', ')[2]}"
            is_same = summary.startswith(meaning[:-1])
            summary = (
                meaning if is_same else f"{meaning[:-1]}, or {summary[0].lower()}{summary[1:]}"
            )
        rows[name] = operands, summary
    lines = [
        (f"`{name}`", f"`{operands}`" if operands else "", summary)
        for name, (operands, summary) in rows.items()
    ]
    return "## All instructions\n\n" + _table(("mnemonic", "operands", "what it does"), lines)


def _encoding() -> str:
    parts = ["## Encoding\n"]
    parts.append(
        "Every instruction is one 32-bit word. Bits that it does not use are 0. A word that "
        "encodes no instruction is illegal, and so is every word with opcode 0.\n"
    )
    formats = []
    for fmt in Format:
        users = [row for row in INSTRUCTIONS if row.format is fmt]
        listed = ", ".join(f"`{name}`" for name in dict.fromkeys(map(_short_name, users)))
        formats.append((f"`{fmt.name}`", _bits(fmt), listed))
    parts.append(_table(("format", "fields and their bits", "instructions"), formats))
    parts.append(
        "An immediate is signed: "
        + "; ".join(
            f"`{field.name}` from {field.range[0]} to {field.range[-1]}" for field in (IMM14, IMM20)
        )
        + ". The function bits:\n"
    )
    special = [
        (VERTICAL, f"{unit.name} function", unit.functions) for unit in SPECIAL_UNITS.values()
    ]
    fields: list[tuple[BitField, str, type[IntEnum]]] = [
        (VERTICAL, VERTICAL.name, VerticalOp),
        *special,
        (REDUCTION, REDUCTION.name, ReductionOp),
    ]
    rows: list[tuple[str, str, str]] = []
    for field, name, items in fields:
        meaning = ", ".join(f"{item.value} `{item.name.lower()}`" for item in items)
        rows.append((f"{field.high}:{field.low}", name, meaning))
    widths = ", ".join(f"{item.value} {item.bits}-bit" for item in Width)
    rows.append((f"{PAIRS.high}", PAIRS.name, "1: elements are pairs of numbers (`dot`)"))
    rows.insert(0, (f"{WIDTH.high}:{WIDTH.low}", WIDTH.name, widths))
    parts.append(_table(("bits", "field", "values"), rows))
    return "\n".join(parts)


def _instructions() -> str:
    parts = ["## Instructions\n", OPERANDS]
    groups: dict[str, list[Instruction]] = {}
    for row in INSTRUCTIONS:
        groups.setdefault(_group(row), []).append(row)
    for title, rows in groups.items():
        parts.append(f"### {title}\n")
        if rows[0].reduction is not None:
            parts.append(_compositions(rows))
        lines = []
        for family in _families(rows):
            first = family[0]
            remarks = []
            if first.origin is Origin.OURS:
                remarks.append("*Not in the thesis.*")
            if first.optional:
                remarks.append("*Optional.*")
            lines.append(
                (
                    _syntax(first),
                    " ".join([first.summary, *remarks]),
                    f"`{first.semantics}`",
                    f"`{_pattern(family)}`",
                )
            )
        parts.append(_table(("instruction", "what it does", "exactly", "word"), lines))
        parts.append(_roles(rows))
    return "\n".join(parts)


def _compositions(rows: Iterable[Instruction]) -> str:
    """The instructions by element-wise operation and reduction."""
    names: dict[str, dict[ReductionOp, str]] = {}
    for row in rows:
        assert row.reduction is not None
        operation, _, _ = row.mnemonic.removeprefix("m.v.").partition(".")
        names.setdefault(operation, {})[row.reduction] = f"`{row.mnemonic}`"
    heads = [f"reduced by {reduction.name.lower()}" for reduction in ReductionOp]
    return _table(
        ("element-wise", *heads),
        (
            (f"`{operation}`", *(by.get(reduction, "") for reduction in ReductionOp))
            for operation, by in names.items()
        ),
    )


def _roles(rows: Iterable[Instruction]) -> str:
    """Roles of the operands of a group of instructions."""
    seen: dict[str, dict[str, list[str]]] = {}
    for family in _families(rows):
        for operand in family[0].operands:
            name = operand.field.name
            name = f"r{name.upper()}" if operand.is_register else f"#{name}"
            name = "target" if operand.role is Role.TARGET else name
            users = seen.setdefault(name, {}).setdefault(operand.role.value, [])
            mnemonic = family[0].mnemonic.removesuffix(".imm")
            if mnemonic not in users:
                users.append(mnemonic)
    lines = []
    for name, meanings in seen.items():
        if len(meanings) == 1:
            lines.append(f"- `{name}`: {next(iter(meanings))}\n")
            continue
        listed = (
            f"{meaning} ({', '.join(f'`{user}`' for user in users)})"
            for meaning, users in meanings.items()
        )
        lines.append(f"- `{name}`: {'; '.join(listed)}\n")
    return "".join(lines)


def _start() -> str:
    rows = [
        (f"`r{number}`", f"`{name}`", START_VALUES[name])
        for number, name in START_REGISTERS.items()
    ]
    settings = f"VL = {START_VL}, MR = {START_MR}, FX = {START_FX}"
    return (
        "## Start state\n\nA launch sets these registers, all others to 0, and "
        f"{settings}. Execution starts at word 0. Scratchpad and memory keep what they held.\n\n"
        + _table(("register", "name", "value"), rows)
    )


def _faults() -> str:
    rows = [(cause.value, f"`{cause.name}`", FAULTS[cause]) for cause in FaultCause]
    return (
        "## Faults\n\nAn instruction that can't be executed has no effect: the engine stops and "
        "reports the cause and the word address of the instruction. Accesses that earlier "
        "instructions began are completed. Other engines continue. Of several causes the engine "
        "reports the one with the lowest number.\n\n"
        + _table(("number", "cause", "when"), rows)
        + "\n"
        "An engine reports one cause, the one that stopped it. Memory may also answer an earlier "
        "access with an error, before the fault or while the engine completes its transfers; "
        "the bit `memory_error` of the status reports this beside any cause, from the answer "
        "until the next launch. While it is 1, stores of the program may be missing, whatever "
        "the cause.\n"
    )


def _timing() -> str:
    product = [BY_KEY[f"v.v.mul[{width.bits}]"] for width in Width]
    rest = BY_KEY[f"v.v.add[{Width.W16.bits}]"]
    rows = [
        (f"{row.width.bits}-bit", WORD_BYTES // row.width.bytes, row.passes, rest.passes)
        for row in product
        if row.width is not None
    ]
    lengths = [
        (f"`{row.mnemonic} [16-bit]`", vl, mr, beats(row, vl, mr))
        for row, vl, mr in (
            (BY_KEY["v.v.add[16]"], 16, 1),
            (BY_KEY["m.v.add.min[16]"], 16, 16),
            (BY_KEY["m.v.mul.add[16]"], 192, 1),
            (BY_KEY["m.v.nop.add[16]"], 3, 1),
        )
    ]
    return "\n".join(
        [
            HAZARDS,
            _table(
                ("elements", "elements per word", "cycles per word, products", "everything else"),
                rows,
            ),
            *(
                f"A {unit.name} function takes {counted(unit.passes, 'cycle')} per word.\n"
                for unit in SPECIAL_UNITS.values()
            ),
            "Examples:\n",
            _table(("instruction", "VL", "MR", "cycles"), lengths),
        ]
    )


def _ours() -> str:
    families = _families(row for row in INSTRUCTIONS if row.origin is Origin.OURS)
    names = ", ".join(f"`{family[0].mnemonic}`" for family in families)
    return (
        "## Additions to the thesis\n\nTable 4.1 of the thesis has all instructions but these. The "
        "encoding, the fixed point of products, the start state and the faults are additions, too: "
        "the thesis does not define them.\n\n" + names + "\n"
    )


def manual() -> str:
    """The manual, in Markdown; depends on nothing but the instruction table and its companions."""
    return "\n".join(
        [
            INTRODUCTION,
            FIRST_PROGRAM,
            _glance(),
            STATE,
            _start(),
            NUMBERS,
            *(unit.manual for unit in SPECIAL_UNITS.values()),
            _instructions(),
            _timing(),
            MEMORY,
            WORKSPACE,
            _faults(),
            ASSEMBLY,
            _encoding(),
            _ours(),
        ]
    )


def main() -> None:
    """Write the manual to :data:`MANUAL_PATH`.

    Raises:
        OSError: the file can't be written.
    """
    write_atomically(MANUAL_PATH, manual().encode())


if __name__ == "__main__":
    main()
