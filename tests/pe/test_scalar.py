from dataclasses import replace

import pytest

from isa.table import BY_KEY, BranchOp, ScalarOp
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.frontend.scalar import Scalar

M64 = (1 << 64) - 1
HOSTILE = (0, 1, 2, 63, 64, M64, M64 - 1, 1 << 63, (1 << 63) - 1, 0x8000_0000, 0xFFFF_FFFF)


def _values(rng, count):
    values = list(HOSTILE)
    values += [rng.getrandbits(64) >> rng.randrange(64) for _ in range(count)]
    return values


@pytest.mark.parametrize("op", ScalarOp)
def test_operation_matches_the_table(simulate, rng, op):
    dut = Scalar(PeConfig())

    async def bench(ctx):
        inverted = op in (ScalarOp.SUB, ScalarOp.SLL)
        ctx.set(dut.decoded.scalar, op)
        ctx.set(dut.decoded.inverted, inverted)
        for b in _values(rng, 20):
            for c in _values(rng, 10):
                ctx.set(dut.first, b)
                ctx.set(dut.second, c ^ (M64 * inverted))
                assert ctx.get(dut.result) == op.evaluate(b, c), (op, b, c)

    simulate(dut, bench, combinational=True)


@pytest.mark.parametrize("op", BranchOp)
def test_branch_matches_the_table(simulate, rng, op):
    dut = Scalar(PeConfig())

    async def bench(ctx):
        ctx.set(dut.decoded.branch, 1)
        ctx.set(dut.decoded.inverted, 1)
        ctx.set(dut.decoded.condition, op)
        # The decoder sends the low bits of the opcode here too.
        ctx.set(dut.decoded.scalar, op)
        values = _values(rng, 8)
        for a in values:
            for b in (*values, a):
                ctx.set(dut.first, a)
                ctx.set(dut.second, b ^ M64)
                assert ctx.get(dut.taken) == op.taken(a, b), (op, a, b)

    simulate(dut, bench, combinational=True)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"mov"}, {ScalarOp.OR}),
        ({"sra", "sll.imm"}, {ScalarOp.SRA, ScalarOp.SLL}),
        ({"blt"}, set()),
    ],
)
def test_builds_what_the_configuration_needs(keys, expected):
    dut = Scalar(replace(PeConfig(), instructions=frozenset({"halt", *keys})))
    assert dut.operations == expected


@pytest.mark.parametrize("bits", [20, 24, 33, 63])
@pytest.mark.parametrize("keys", [set(ScalarOp), {ScalarOp.SLL}, {ScalarOp.SRA, ScalarOp.SRL}])
def test_narrow_unit_gives_the_same_results_or_faults(simulate, rng, bits, keys):
    names = {op.name.lower() for op in keys}
    config = PeConfig(
        instructions=frozenset({"halt", "mov", *names}), register_width=bits, address_bits=12
    )
    dut = Scalar(config)
    code = Capabilities.of(config).scalar.code
    limit = 1 << (bits - 1)
    hostile = (0, 1, -1, limit - 1, -limit, -limit + 1, limit // 2, bits - 1, bits, 63)
    values = [*hostile, *(rng.randrange(-limit, limit) >> rng.randrange(bits) for _ in range(20))]
    seen = set()

    async def bench(ctx):
        for op in keys:
            inverted = op is ScalarOp.SUB
            ctx.set(dut.decoded.scalar, code(op))
            ctx.set(dut.decoded.inverted, inverted)
            for b in values:
                for c in values:
                    ctx.set(dut.first, b % (2 * limit))
                    ctx.set(dut.second, ~c % (2 * limit) if inverted else c % (2 * limit))
                    expected = op.evaluate_narrow(b & M64, c & M64, bits)
                    assert ctx.get(dut.overflow) == (expected is None), (op, b, c)
                    seen.add((op, expected is None))
                    if expected is not None:
                        assert ctx.get(dut.result) == expected % (2 * limit), (op, b, c)

    simulate(dut, bench, combinational=True)
    overflowing = {ScalarOp.ADD, ScalarOp.SUB, ScalarOp.SLL, ScalarOp.SRL} & keys
    assert {op for op, overflow in seen if overflow} == overflowing


@pytest.mark.parametrize("op", BranchOp)
def test_narrow_branches_match_the_table(simulate, rng, op):
    bits = 20
    config = PeConfig(register_width=bits, address_bits=12)
    dut = Scalar(config)
    limit = 1 << (bits - 1)

    async def bench(ctx):
        ctx.set(dut.decoded.inverted, 1)
        ctx.set(dut.decoded.condition, op)
        values = [0, 1, -1, limit - 1, -limit, *(rng.randrange(-limit, limit) for _ in range(9))]
        for a in values:
            for b in values:
                ctx.set(dut.first, a % (2 * limit))
                ctx.set(dut.second, ~b % (2 * limit))
                assert ctx.get(dut.taken) == op.taken(a & M64, b & M64), (op, a, b)

    simulate(dut, bench, combinational=True)


@pytest.mark.parametrize("key", ["add", "sub.imm", "sra", "sll.imm", "srl", "xor.imm"])
def test_trimmed_unit_gives_the_same_results(simulate, rng, key):
    row = BY_KEY[key]
    dut = Scalar(replace(PeConfig(), instructions=frozenset({"halt", key, "blt"})))

    async def bench(ctx):
        inverted = row.scalar in (ScalarOp.SUB, ScalarOp.SLL)
        ctx.set(dut.decoded.inverted, inverted)
        for b in _values(rng, 10):
            for c in _values(rng, 10):
                ctx.set(dut.first, b)
                ctx.set(dut.second, c ^ (M64 * inverted))
                assert ctx.get(dut.result) == row.scalar.evaluate(b, c)

    simulate(dut, bench, combinational=True)
