"""Endings of random programs: one instruction that faults, for each cause."""

from collections.abc import Callable, Iterable

from isa.table import IMM14, MAX_FX, Opcode, ScalarOp, Unit, find
from isa.timing import VectorOperation

from .program_builder import ProgramBuilder

#: Offsets that make a valid address invalid without changing its low bits.
_FAR = (1 << 32, 1 << 40, 1 << 63)


def _illegal(code: ProgramBuilder) -> None:
    config, random = code.config, code.random
    legal = {row.key for row in config.rows}
    while True:
        word = random.choice((0, random.getrandbits(32), random.getrandbits(26) | 0x28 << 26))
        row = find(word)
        if row is None or row.key not in legal:
            code.word(word)
            return


def _setting(code: ProgramBuilder) -> None:
    config = code.config
    limits = (("vl", 1, config.max_vl), ("mr", 1, config.max_mr), ("fx", 0, MAX_FX))
    built = [limit for limit in limits if f"set.{limit[0]}" in config.instructions]
    which, low, high = code.random.choice(built)
    bad = (low - 1, high + 1, -1, high << 9, *(far + 1 for far in _FAR))
    code.emit(f"set.{which}", code.address(code.random.choice(bad)))


def _bad_scratchpad(code: ProgramBuilder, size: int) -> int:
    """An address from which at least one of ``size`` bytes (at least 1) is outside."""
    room = code.config.scratchpad_bytes
    good = code.random.randint(0, max(0, room - size))
    edge = max(0, room - size + 1)
    return code.random.choice((edge, room, -1, -size, *(far + good for far in _FAR)))


def _vector_range(code: ProgramBuilder) -> None:
    random = code.random
    row = random.choice(code.config.rows_of(Unit.VECTOR))
    for which, limit in (("vl", min(16, code.config.max_vl)), ("mr", min(8, code.config.max_mr))):
        if f"set.{which}" in code.config.instructions:
            code.set_vector(which, random.randint(1, limit))
        elif code.settings[which] is None:
            code.settings[which] = 1
    vl, mr = code.settings["vl"], code.settings["mr"]
    assert vl is not None
    assert mr is not None
    spans = VectorOperation(row, 0, 0, 0, vl, mr).spans
    room = code.config.scratchpad_bytes
    places = [code.scratchpad_address(min(span.size, room)) for span in spans]
    wrong = random.randrange(len(spans))
    if not code.ragged(row, vl) or random.random() < 0.5:
        places[wrong] = _bad_scratchpad(code, spans[wrong].size)
    numbers = code.addresses(*places)
    numbers += [code.any_register()] * (len(row.operands) - len(numbers))
    code.emit(row.key, *numbers)


def _transfer_range(code: ProgramBuilder, good_scratchpad: bool) -> None:
    """A load or store outside the memory or outside the scratchpad."""
    random = code.random
    rows = [row for row in code.config.rows if row.opcode in (Opcode.LD_SRAM, Opcode.ST_SRAM)]
    row = random.choice(rows)
    assert row.width is not None
    top = 1 << code.config.address_bits
    fitting = code.config.scratchpad_bytes // row.width.bytes
    size = row.width.bytes * random.randint(1, min(16, fitting))
    count = size // row.width.bytes
    if good_scratchpad:
        scratchpad = code.scratchpad_address(size)
        good = random.randrange(top - size)
        dram = random.choice((top - size + 1, top, top + good, -1, -size, (1 << 63) + good))
    else:
        scratchpad = _bad_scratchpad(code, size)
        dram = random.randrange(top - size)
        if random.random() < 0.3:
            scratchpad = 0
            count = random.choice((code.config.scratchpad_bytes + 1, *_FAR, (1 << 64) - 1))
    places = [scratchpad, dram] if row.opcode == Opcode.LD_SRAM else [dram, scratchpad]
    code.emit(row.key, *code.addresses(*places, count))


def _element(code: ProgramBuilder, aligned: bool) -> None:
    """``ld.reg`` or ``st.reg``, misaligned, or aligned and outside the memory."""
    random = code.random
    rows = [
        row
        for row in code.config.rows
        if row.opcode in (Opcode.LD_REG, Opcode.ST_REG)
        and row.width is not None
        and (aligned or row.width.bytes > 1)
    ]
    row = random.choice(rows)
    assert row.width is not None
    width = row.width.bytes
    top = 1 << code.config.address_bits
    good = random.randrange(0, top, width)
    if aligned:
        address = random.choice((top, top + good, -width, (1 << 63) + good))
    else:
        address = random.choice((good, top + good)) + random.randrange(1, width)
    if row.opcode == Opcode.LD_REG:
        code.emit(row.key, code.data_register(), code.address(address))
    else:
        code.emit(row.key, code.address(address), code.any_register())


def _branch_out(code: ProgramBuilder) -> None:
    pc = len(code.words)
    beyond = min(max(code.config.instruction_words - pc, 1), IMM14.range[-2])
    distance = code.random.choice(
        (-pc - 1, -pc - 2, IMM14.range[0], beyond, beyond + 1, IMM14.range[-1])
    )
    if code.random.random() < 0.5:
        code.emit("jmp", distance)
    else:
        register = code.any_register()
        names = [name for name in ("beq", "bge") if name in code.config.instructions]
        code.emit(code.random.choice(names), register, register, distance)


def _too_wide(code: ProgramBuilder) -> None:
    """A result that narrow registers can't hold."""
    random = code.random
    row = random.choice([row for row in code.config.rows if row.scalar in _OVERFLOWING])
    assert row.scalar is not None
    bits = code.config.register_width
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    choices = {
        ScalarOp.ADD: ((high, 1), (low, -1), (low, low), (high, high)),
        ScalarOp.SUB: ((high, -1), (low, 1), (low, high), (0, low)),
        ScalarOp.SLL: ((high, 1), (low, 1), (1, bits - 1), (-1, bits), (-1, 63)),
        ScalarOp.SRL: ((low, 1), (-1, 63)),
    }
    immediate = row.opcode < Opcode.ALU_REG
    pairs = [pair for pair in choices[row.scalar] if pair[1] in IMM14.range or not immediate]
    first, second = random.choice(pairs)
    code.constant(a := code.data_register(), first)
    if immediate:
        code.emit(row.key, a, a, second)
    else:
        code.constant(b := code.loop_registers[0], second)
        code.emit(row.key, a, a, b)


def _fall_off(code: ProgramBuilder) -> None:
    """Append nothing: the program has no ``halt``."""


_OVERFLOWING = (ScalarOp.ADD, ScalarOp.SUB, ScalarOp.SLL, ScalarOp.SRL)

#: Name -> function that appends the fault.
FAULTS: dict[str, Callable[[ProgramBuilder], None]] = {
    "branch out of the program": _branch_out,
    "element misaligned": lambda code: _element(code, False),
    "element out of memory": lambda code: _element(code, True),
    "fell off the end": _fall_off,
    "illegal word": _illegal,
    "result too wide": _too_wide,
    "transfer out of memory": lambda code: _transfer_range(code, True),
    "transfer out of scratchpad": lambda code: _transfer_range(code, False),
    "vector out of scratchpad": _vector_range,
    "vector setting": _setting,
}


def possible_faults(code: ProgramBuilder, faults: Iterable[str]) -> list[str]:
    """The ``faults`` with which a program for ``code``'s engine can end, sorted."""
    config = code.config
    opcodes = {row.opcode for row in config.rows}
    elements = [row for row in config.rows if row.opcode in (Opcode.LD_REG, Opcode.ST_REG)]
    needs = {
        "element misaligned": any(row.width for row in elements),
        "element out of memory": bool(elements),
        "result too wide": config.narrow,
        "transfer out of memory": bool(opcodes & {Opcode.LD_SRAM, Opcode.ST_SRAM}),
        "transfer out of scratchpad": bool(opcodes & {Opcode.LD_SRAM, Opcode.ST_SRAM}),
        "vector out of scratchpad": bool(config.rows_of(Unit.VECTOR)),
        "vector setting": bool(opcodes & {Opcode.SET_VL, Opcode.SET_MR, Opcode.SET_FX}),
    }
    return [name for name in sorted(faults) if needs.get(name, True)]
