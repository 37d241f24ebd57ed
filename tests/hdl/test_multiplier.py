"""The limb multiplier, in each of its builds, against Python integers."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.sim import Simulator

from hdl.multiplier import LimbMultiplier, ProductSum


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


@pytest.mark.parametrize("gates", [False, True])
@pytest.mark.parametrize(("bytewise", "limbwise"), [(True, True), (True, False), (False, True)])
def test_products(bytewise: bool, limbwise: bool, gates: bool) -> None:
    rng = random.Random(1)
    unit = LimbMultiplier(bytewise, limbwise, gates)
    adder = ProductSum(bytewise)
    dut = Module()
    dut.submodules.unit = unit
    dut.submodules.adder = adder
    dut.d.comb += [adder.partial.eq(unit.partial), adder.carry.eq(unit.carry)]
    dut.d.comb += adder.bytes.eq(unit.bytes)
    extremes = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x8080, 0x7F80, 0x807F]

    async def bench(ctx) -> None:
        for _ in range(1500):
            a, b = (rng.choice([rng.getrandbits(16), rng.choice(extremes)]) for _ in range(2))
            by_bytes = bytewise and (not limbwise or rng.random() < 0.5)
            a_signed = by_bytes or rng.random() < 0.5
            carry = not by_bytes and rng.random() < 0.5
            ctx.set(unit.a, a)
            ctx.set(unit.b, b)
            ctx.set(unit.a_signed, a_signed)
            ctx.set(unit.b_carry, carry)
            ctx.set(unit.bytes, by_bytes)
            if by_bytes:
                low = _signed(a, 8) * _signed(b, 8)
                high = _signed(a >> 8, 8) * _signed(b >> 8, 8)
                expected = (low & 0xFFFF) | (high & 0xFFFF) << 16
            else:
                exact = (_signed(a, 16) if a_signed else a) * (_signed(b, 16) + carry)
                assert exact == _signed(exact, 32)
                expected = exact & 0xFFFF_FFFF
            assert ctx.get(adder.product) == expected
            assert unit.saves_carries or ctx.get(unit.carry) == 0

    sim = Simulator(dut)
    sim.add_testbench(bench)
    sim.run()
