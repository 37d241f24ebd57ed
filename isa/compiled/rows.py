"""C++ that is generated from the instruction table.

Each row of the table becomes an instance of an instruction kind in ``engine.h``, with operations
named in ``semantics.h``. The compiler reports an operation that lacks a structure there.
"""

from collections.abc import Callable

from isa.faults import FaultCause
from isa.image import PAGE_BYTES
from isa.instruction import Extent
from isa.limits import SCRATCHPAD_BYTES
from isa.table import (
    IMM14,
    INSTRUCTIONS,
    MAX_FX,
    MAX_MR,
    MAX_VL,
    Instruction,
    Opcode,
    Unit,
    Width,
)
from isa.timing import VECTOR_HELD, VECTOR_LATENCY, WORD_BYTES, HazardKind
from isa.workspace import DESCRIPTOR_BYTES, MOST_KERNEL, MOST_PADDING, MOST_PIXELS

#: Rows that special units execute: their results come from tables.
SPECIAL_ROWS: tuple[Instruction, ...] = tuple(row for row in INSTRUCTIONS if row.special)
#: Values that FX can have.
FRACTIONS = MAX_FX + 1
#: Number of 16-bit elements: a table's results.
ELEMENTS = 1 << Width.W16.bits
#: Results of a run, other than the cause of a fault: the host failed, the limit is reached, the
#: program halted, the log of hazards must see the next instruction.
FAILED, LIMIT, HALTED, _FOLLOWED = (max(FaultCause) + number for number in (1, 2, 3, 4))
#: Hazard kinds in the order of their numbers in C++.
HAZARD_KINDS = tuple(HazardKind)

#: Row -> its number, by key; then those of a word that is not an instruction of the engine, and of
#: one that the log of hazards must see.
NUMBERS = {row.key: number for number, row in enumerate(INSTRUCTIONS)}
ILLEGAL, SEEN = len(NUMBERS), len(NUMBERS) + 1


def constants() -> str:
    """``constants.inc``: results of a run, the size of a page of an image, kinds of hazards and
    the timing of the vector unit."""
    values = {_camel(cause.name): cause.value for cause in FaultCause}
    values |= {"Failed": FAILED, "Limit": LIMIT, "Halted": HALTED, "Page": PAGE_BYTES}
    values |= {"Followed": _FOLLOWED, "FollowedRow": SEEN}
    values |= {
        "MostPixels": MOST_PIXELS,
        "MostKernel": MOST_KERNEL,
        "MostPadding": MOST_PADDING,
        "DescriptorBytes": DESCRIPTOR_BYTES,
        "MostScratchpad": SCRATCHPAD_BYTES[1],
    }
    values |= {_camel(kind.name): number for number, kind in enumerate(HAZARD_KINDS)}
    values |= {"HazardKinds": len(HAZARD_KINDS)}
    values |= {"VectorLatency": VECTOR_LATENCY, "VectorHeld": VECTOR_HELD, "WordBytes": WORD_BYTES}
    lines = [f"constexpr uint32_t k{name} = {value};\n" for name, value in values.items()]
    return "".join(["#include <cstdint>\n\nnamespace vip {\n", *lines, "}\n"])


def _camel(name: str) -> str:
    return name.title().replace("_", "")


def rows() -> str:
    """``rows.inc``: each row of the table with the kind that executes it."""
    lines = []
    for number, row in enumerate(INSTRUCTIONS):
        if row.opcode == Opcode.HALT:
            lines.append(f"VIP_HALT({number})")
        else:
            lines.append(f"VIP_ROW({number}, {_kind(row)})  // {row.key}")
    return "\n".join(lines) + "\n"


def hazard_rows() -> str:
    """``hazard_rows.inc``: each row of the table as hazards know it."""
    return "".join(f"{_hazard_row(row)},  // {row.key}\n" for row in INSTRUCTIONS)


def _hazard_row(row: Instruction) -> str:
    part = _part(row)
    width = 0 if row.width is None else row.width.bytes
    if part != "Vector":
        return f"{{Part::k{part}, {width}, {row.passes}, false, 0, {{}}}}"
    extents = [operand.extent for operand in row.scratchpad]
    listed = ", ".join(f"{{{_flag(extent.by_vl)}, {_flag(extent.by_mr)}}}" for extent in extents)
    reduces = _flag(row.reduction is not None)
    return f"{{Part::kVector, {width}, {row.passes}, {reduces}, {len(extents) - 1}, {{{listed}}}}}"


def _part(row: Instruction) -> str:
    if row.unit is Unit.VECTOR:
        return "Vector"
    if row.scratchpad:
        return "Load" if row.loads else "Store"
    return "Drain" if row.opcode == Opcode.DRAIN else "None"


def _type(row: Instruction) -> str:
    assert row.width is not None
    return f"int{row.width.bits}_t"


def _kind(row: Instruction) -> str:
    if row.scalar is not None:
        constant = row.operands[2].field is IMM14
        return f"Scalar<Scalar{_camel(row.scalar.name)}, {_flag(constant)}>"
    if row.branch is not None:
        return f"Branch<Branch{_camel(row.branch.name)}>"
    if row.special:
        first = SPECIAL_ROWS.index(row) * FRACTIONS
        return f"Special<{_type(row)}, {NUMBERS[row.key]}, {first}>"
    if row.vertical is not None:
        return _vector(row)
    return _OTHERS[Opcode(row.opcode)](row)


def _vector(row: Instruction) -> str:
    assert row.vertical is not None
    kind, operation = _type(row), "Dot" if row.pairs else _camel(row.vertical.name)
    if row.reduction is not None:
        return f"MatrixVector<{kind}, {operation}, {_camel(row.reduction.name)}>"
    one = row.scratchpad[2].extent is Extent.ELEMENT
    second = "OneElement" if one else "Elements"
    return f"ElementWise<{kind}, {operation}, {second}<{kind}>>"


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _setting(name: str, low: int, limit: str, high: int) -> str:
    bound = f"&Engine::{limit}" if limit else "nullptr"
    return f"Set<&Engine::{name}, {low}, {bound}, {high}>"


_OTHERS: dict[Opcode, Callable[[Instruction], str]] = {
    Opcode.MOV: lambda row: "Move<false>",
    Opcode.MOV_IMM: lambda row: "Move<true>",
    Opcode.SET_VL: lambda row: _setting("vl", 1, "max_vl", MAX_VL),
    Opcode.SET_MR: lambda row: _setting("mr", 1, "max_mr", MAX_MR),
    Opcode.SET_FX: lambda row: _setting("fx", 0, "", MAX_FX),
    Opcode.DRAIN: lambda row: "Wait",
    Opcode.MEMFENCE: lambda row: "Wait",
    Opcode.SET_WS: lambda row: "Declare",
    Opcode.LD_SRAM: lambda row: f"Transfer<{_type(row)}, true>",
    Opcode.ST_SRAM: lambda row: f"Transfer<{_type(row)}, false>",
    Opcode.LD_REG: lambda row: f"RegisterTransfer<{_type(row)}, true>",
    Opcode.ST_REG: lambda row: f"RegisterTransfer<{_type(row)}, false>",
}

#: Numbers of the rows that a hazard log must see.
CONCERNED = frozenset(NUMBERS[row.key] for row in INSTRUCTIONS if _part(row) != "None")
