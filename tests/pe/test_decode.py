from dataclasses import replace

import pytest
from amaranth.hdl import Value

from isa.table import (
    BY_KEY,
    FIELD_A,
    FIELD_B,
    FIELD_C,
    IMM14,
    IMM20,
    Opcode,
    ScalarOp,
    Unit,
    find,
)
from pe.codes import DECLARE, ControlOp, IssueClass
from pe.config import ALL_INSTRUCTIONS, PeConfig
from pe.frontend.decode import Decode

ROWS = PeConfig(instructions=ALL_INSTRUCTIONS).rows

CLASS = {
    Unit.SCALAR: IssueClass.SCALAR,
    Unit.VECTOR: IssueClass.VECTOR,
    Unit.LOAD_STORE: IssueClass.LOAD_STORE,
    Unit.ISSUE: IssueClass.CONTROL,
}

CONTROL = {
    "set.vl": ControlOp.SET_VL.value,
    "set.mr": ControlOp.SET_MR.value,
    "set.fx": ControlOp.SET_FX.value,
    "v.drain": ControlOp.DRAIN.value,
    "memfence": ControlOp.MEMFENCE.value,
    "halt": ControlOp.HALT.value,
    "set.ws": DECLARE,
}


def _random_operands(rng, row):
    return (row.match | (rng.getrandbits(32) & ~row.mask)) & 0xFFFF_FFFF


def _check(ctx, dut, word, row):
    out = dut.out
    ctx.set(dut.word, word)
    assert ctx.get(out.legal) == 1, row.key
    assert ctx.get(out.unit) == CLASS[row.unit]
    assert ctx.get(out.a) == FIELD_A.extract(word)
    assert ctx.get(out.b) == FIELD_B.extract(word)
    assert ctx.get(out.c) == FIELD_C.extract(word)
    for field, read in ((FIELD_A, out.reads_a), (FIELD_B, out.reads_b), (FIELD_C, out.reads_c)):
        assert ctx.get(read) == (field in row.reads), (row.key, field)
    assert ctx.get(out.writes) == (row.writes is not None)
    assert ctx.get(out.branch) == (row.branch is not None)
    inverted = row.branch is not None or row.scalar in (ScalarOp.SUB, ScalarOp.SLL)
    assert ctx.get(out.inverted) == inverted
    if row.width is not None:
        assert ctx.get(out.width) == row.width
    if row.vertical is not None:
        assert ctx.get(out.vertical) == row.vertical
        assert ctx.get(out.reduction) == (row.reduction or 0)
        assert ctx.get(out.kind) == row.opcode & 3
    if row.scalar is not None:
        assert ctx.get(out.scalar) == row.scalar
        assert ctx.get(out.immediate) == (IMM14 in row.format.value)
    if row.branch is not None:
        assert ctx.get(out.condition) == row.branch
    if row.unit is Unit.ISSUE:
        assert ctx.get(Value.cast(out.control)) == CONTROL[row.mnemonic]
    if row.unit is Unit.LOAD_STORE:
        assert ctx.get(out.kind) == row.mnemonic.startswith("st") + 2 * row.mnemonic.endswith("reg")
    if row.opcode in (Opcode.MOV, Opcode.MOV_IMM):
        # A move is an OR with 0.
        assert ctx.get(out.scalar) == ScalarOp.OR
        assert ctx.get(out.immediate) == 1
        assert ctx.get(out.zero) == (row.opcode == Opcode.MOV_IMM)
    if IMM14 in row.format.value:
        assert ctx.get(out.value) == IMM14.extract(word)
    if row.opcode == Opcode.MOV_IMM:
        assert ctx.get(out.value) == IMM20.extract(word)
    if row.opcode == Opcode.MOV:
        assert ctx.get(out.value) == 0


def test_every_instruction(simulate, rng):
    dut = Decode(PeConfig(instructions=ALL_INSTRUCTIONS))

    async def bench(ctx):
        for row in ROWS:
            for _ in range(8):
                _check(ctx, dut, _random_operands(rng, row), row)

    simulate(dut, bench, combinational=True)


def _near_misses(rng, count):
    """Random words, and instructions with one bit flipped, which are the hard ones."""
    for _ in range(count):
        yield rng.getrandbits(32)
        row = rng.choice(ROWS)
        yield _random_operands(rng, row) ^ (1 << rng.randrange(32))
    yield from (0, 0xFFFF_FFFF)


@pytest.mark.parametrize("registers", [64, 16])
def test_legal_is_what_the_table_says(simulate, rng, registers):
    keys = {"halt", *rng.sample(sorted(ALL_INSTRUCTIONS), 60)}
    configs = [PeConfig(registers=registers), PeConfig(instructions=frozenset(keys))]

    for config in configs:
        dut = Decode(config)

        async def bench(ctx, config=config, dut=dut):
            for word in _near_misses(rng, 1500):
                row = find(word)
                legal = row is not None and row.key in config.instructions
                if legal:
                    legal = all(
                        operand.field.extract(word) < config.registers
                        for operand in row.operands
                        if operand.is_register
                    )
                ctx.set(dut.word, word)
                assert ctx.get(dut.out.legal) == legal, hex(word)

        simulate(dut, bench, combinational=True)


def test_trimmed_away_instruction_is_illegal(simulate, rng):
    config = replace(PeConfig(), instructions=ALL_INSTRUCTIONS - {"m.v.mul.add[16]"})
    dut = Decode(config)

    async def bench(ctx):
        for key, legal in (("m.v.mul.add[16]", 0), ("m.v.mul.add[8]", 1), ("m.v.mul.min[16]", 1)):
            ctx.set(dut.word, _random_operands(rng, BY_KEY[key]))
            assert ctx.get(dut.out.legal) == legal

    simulate(dut, bench, combinational=True)
