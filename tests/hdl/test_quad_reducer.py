"""Four numbers reduced to one, against Python."""

import pytest

from hdl.quad_reducer import QuadReducer
from isa.table import ReductionOp

FUNCTIONS = {ReductionOp.ADD: sum, ReductionOp.MIN: min, ReductionOp.MAX: max}


@pytest.mark.parametrize(
    "operations", [frozenset({op}) for op in FUNCTIONS] + [frozenset(FUNCTIONS)]
)
def test_reduces_what_is_used(operations: frozenset[ReductionOp], simulate, rng) -> None:
    bits = 6
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    dut = QuadReducer(bits, operations)

    async def testbench(ctx) -> None:
        for _ in range(1500):
            operation = rng.choice(sorted(operations))
            use = rng.choice([0b0001, 0b0011, 0b0101, 0b0111, 0b1101, 0b1111])
            values = [rng.choice([low, high, 0, rng.randint(low, high)]) for _ in range(4)]
            used = [value for n, value in enumerate(values) if use >> n & 1]
            if operation is ReductionOp.ADD:
                values = [value if use >> n & 1 else 0 for n, value in enumerate(values)]
            for port, value in zip(dut.values, values, strict=True):
                ctx.set(port, value)
            ctx.set(dut.use, use)
            ctx.set(dut.reduction, operation)
            ctx.set(dut.active, 1)
            assert ctx.get(dut.result) == FUNCTIONS[operation](used)
            ctx.set(dut.active, 0)
            assert ctx.get(dut.result) == 0

    simulate(dut, testbench, combinational=True)
