"""Lane arithmetic against Python integers, for every mixture of lane widths."""

import random

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.sim import Simulator

from hdl.simd import (
    LaneAdder,
    LaneReducer,
    LaneShifter,
    lane_bounds,
    lane_joins,
    one_of,
    rotate_units_right,
    signed_less,
)
from isa.table import ReductionOp


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def _lanes(word: int, width: int, bits: int) -> list[int]:
    return [_signed(word >> at, width) for at in range(0, bits, width)]


def _word(rng: random.Random, width: int, bits: int) -> int:
    extremes = [0, 1, -1, (1 << width - 1) - 1, -(1 << width - 1)]
    word = 0
    for at in range(0, bits, width):
        value = rng.choice([*extremes, rng.getrandbits(width)])
        word |= (value & (1 << width) - 1) << at
    return word


def _simulate(dut: Elaboratable, bench) -> None:
    sim = Simulator(dut)
    sim.add_testbench(bench)
    sim.run()


def test_lane_adder() -> None:
    rng = random.Random(1)
    dut = LaneAdder(8, 8)

    async def bench(ctx) -> None:
        for _ in range(1200):
            width = rng.choice([8, 16, 32, 64])
            a, b = _word(rng, width, 64), _word(rng, width, 64)
            subtract = rng.random() < 0.5
            ctx.set(dut.a, a)
            ctx.set(dut.b, ~b if subtract else b)
            ctx.set(dut.subtract, subtract)
            ctx.set(dut.joins, sum(1 << k for k in range(7) if (k + 1) * 8 % width))
            total = _lanes(ctx.get(dut.sum), width, 64)
            negative, overflow = ctx.get(dut.negative), ctx.get(dut.overflow)
            for lane, (x, y) in enumerate(
                zip(_lanes(a, width, 64), _lanes(b, width, 64), strict=True)
            ):
                exact = x - y if subtract else x + y
                top = (lane + 1) * width // 8 - 1
                assert total[lane] == _signed(exact, width)
                assert negative >> top & 1 == (exact < 0)
                assert overflow >> top & 1 == (exact != _signed(exact, width))

    _simulate(dut, bench)


@pytest.mark.parametrize(
    "operations", [set(ReductionOp), {ReductionOp.ADD}, {ReductionOp.MIN, ReductionOp.MAX}]
)
@pytest.mark.parametrize(("widths", "chained"), [((16, 32), False), ((32,), True)])
def test_lane_reducer(operations: set[ReductionOp], widths: tuple[int, ...], chained: bool) -> None:
    rng = random.Random(2)
    dut = LaneReducer(16, 4, frozenset(operations), widths, chained)

    async def bench(ctx) -> None:
        for _ in range(600):
            index, width = rng.choice(list(enumerate(widths)))
            operation = rng.choice(sorted(operations))
            a, b = _word(rng, width, 64), _word(rng, width, 64)
            use_b = rng.randrange(16)
            ctx.set(dut.a, a)
            ctx.set(dut.b, b)
            ctx.set(dut.reduction, operation)
            ctx.set(dut.active, 1)
            ctx.set(dut.lanes, 1 << index)
            ctx.set(dut.use_b, use_b)
            value, sign = ctx.get(dut.value), ctx.get(dut.sign)
            for lane, (x, y) in enumerate(
                zip(_lanes(a, width, 64), _lanes(b, width, 64), strict=True)
            ):
                top = (lane + 1) * width // 16 - 1
                got = (value >> lane * width) & (1 << width) - 1
                got -= (sign >> top & 1) << width
                if operation is ReductionOp.ADD:
                    assert got == x + y
                elif use_b >> top & 1:
                    assert got == (min if operation is ReductionOp.MIN else max)(x, y)
                else:
                    assert got == x

    _simulate(dut, bench)


@pytest.mark.parametrize(
    ("bits", "granule", "widths"),
    [(136, 16, (16, 32, 64, 128)), (128, 32, (32, 128)), (40, 128, (128,))],
)
def test_lane_shifter(bits: int, granule: int, widths: tuple[int, ...]) -> None:
    rng = random.Random(3)
    dut = LaneShifter(bits, granule, widths, [1, 2, 4, 8, 16, 32])

    async def bench(ctx) -> None:
        for _ in range(500):
            index = rng.randrange(len(widths))
            width = min(widths[index], bits)
            starts = list(range(0, max(width, bits // width * width), width))
            ends = [*starts[1:], bits]
            data = rng.choice([rng.getrandbits(bits), _word(rng, width, bits) & (1 << bits) - 1])
            amount = rng.choice([0, 1, rng.randrange(64), 63])
            ctx.set(dut.data, data)
            ctx.set(dut.lanes, 1 << index)
            ctx.set(dut.amount, amount)
            shifted, dropped, sign = ctx.get(dut.shifted), ctx.get(dut.dropped), ctx.get(dut.sign)
            for start, end in zip(starts, ends, strict=True):
                value = _signed(data >> start, end - start)
                first = min(start // granule, dut.granules - 1)
                assert _signed(shifted >> start, end - start) == value >> amount
                assert sign >> first & 1 == (value < 0)
                expected = value >> amount - 1 & 1 if amount else 0
                assert dropped >> first & 1 == expected

    _simulate(dut, bench)


def test_lane_bounds_and_joins() -> None:
    flags = [Signal(name=f"flag_{index}") for index in range(8)]
    active = Signal(3)
    lanes = [(8, active[0]), (16, active[1]), (64, active[2])]
    m = Module()
    word = Signal(64)
    joins = Signal(7)
    m.d.comb += [
        word[index * 8 : index * 8 + 8].eq(part)
        for index, part in enumerate(lane_bounds(flags, lanes, 8))
    ]
    m.d.comb += joins.eq(lane_joins(lanes, 8, 64))

    async def bench(ctx) -> None:
        for index, (width, _) in enumerate(lanes):
            for pattern in (0, 0xFF, 0xA5, 0x3C, 0x0F):
                ctx.set(active, 1 << index)
                for place, flag in enumerate(flags):
                    ctx.set(flag, pattern >> place & 1)
                for lane, value in enumerate(_lanes(ctx.get(word), width, 64)):
                    top = (lane + 1) * width // 8 - 1
                    low = pattern >> top & 1
                    assert value == (-(1 << width - 1) if low else (1 << width - 1) - 1)
                expected = [int((place + 1) * 8 % width != 0) for place in range(7)]
                assert [ctx.get(joins) >> place & 1 for place in range(7)] == expected

    _simulate(m, bench)


def test_rotation_and_choice() -> None:
    word, amount, code = Signal(64), Signal(3), Signal(3)
    rotated = Signal(64)
    chosen = Signal(4)
    m = Module()
    m.d.comb += [
        rotated.eq(rotate_units_right(word, amount, 8)),
        chosen[0].eq(one_of(code, [1, 2], [0, 1, 2, 5])),
        chosen[1].eq(one_of(code, [0, 1, 2], [0, 1, 2, 5])),
        chosen[2].eq(one_of(code, [0, 1, 2, 5, 7], [0, 1, 2, 5])),
        chosen[3].eq(one_of(code, [3], [0, 1, 2, 5])),
    ]

    async def bench(ctx) -> None:
        data = bytes(range(1, 9))
        ctx.set(word, int.from_bytes(data, "little"))
        for by in range(8):
            ctx.set(amount, by)
            assert ctx.get(rotated).to_bytes(8, "little") == data[by:] + data[:by]
        for value, expected in ((0, 0b110), (1, 0b111), (2, 0b111), (5, 0b100)):
            ctx.set(code, value)
            assert ctx.get(chosen) == expected

    _simulate(m, bench)


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("bits", [1, 2, 3, 7, 8, 137])
def test_signed_comparison(bits: int, chained: bool) -> None:
    rng = random.Random(bits)
    a, b, less = Signal(bits), Signal(bits), Signal()
    m = Module()
    m.d.comb += less.eq(signed_less(a, b, chained=chained))
    ends = [0, (1 << bits) - 1, 1 << bits - 1, (1 << bits - 1) - 1]

    async def bench(ctx) -> None:
        for _ in range(300):
            x, y = (rng.choice([rng.getrandbits(bits), *ends]) for _ in range(2))
            if rng.random() < 0.3:
                y = x ^ 1 << rng.randrange(bits)
            ctx.set(a, x)
            ctx.set(b, y)
            left, right = (v - (v >> bits - 1 << bits) for v in (x, y))
            assert ctx.get(less) == (left < right)

    _simulate(m, bench)
