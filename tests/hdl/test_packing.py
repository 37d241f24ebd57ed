from random import Random

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.packing import Packing

WANTED = (1, 2, 6)


class Packed(wiring.Component):
    """A value packed, unpacked, and compared while packed."""

    def __init__(self, packing: Packing) -> None:
        self.packing = packing
        super().__init__({"value": In(packing.bits), "back": Out(packing.bits), "found": Out(1)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        packed = Signal(self.packing.width)
        m.d.comb += [
            packed.eq(self.packing.pack(self.value)),
            self.back.eq(self.packing.unpack(packed)),
            self.found.eq(self.packing.is_one_of(packed, WANTED)),
        ]
        return m


@pytest.mark.parametrize(
    ("values", "width"),
    [
        ({5}, 0),
        ({0, 7}, 1),
        ({1, 2}, 1),
        ({0, 2, 6}, 2),
        (set(range(8)), 3),
        (set(range(6)), 3),
        ({0b0110, 0b1001, 0b1111}, 2),
    ],
)
def test_what_is_kept_tells_the_values_apart(simulate, values, width):
    packing = Packing(frozenset(values), 4)
    assert packing.width == width
    assert len({packing.code(value) for value in values}) == len(values)
    dut = Packed(packing)

    async def bench(ctx):
        for value in sorted(values):
            ctx.set(dut.value, value)
            assert ctx.get(dut.back) == value
            assert ctx.get(dut.found) == (value in WANTED)

    simulate(dut, bench, combinational=True)


def test_no_value_is_a_field_of_zeros():
    packing = Packing(frozenset(), 3)
    assert packing.width == 0
    assert len(packing.unpack(Signal(0))) == 3


def test_random_sets_come_back(simulate):
    rng = Random(4)
    for _ in range(10):
        values = {rng.getrandbits(6) for _ in range(rng.randint(1, 7))}
        dut = Packed(Packing(frozenset(values), 6))

        async def bench(ctx, dut=dut, values=values):
            for value in sorted(values):
                ctx.set(dut.value, value)
                assert ctx.get(dut.back) == value

        simulate(dut, bench, combinational=True)
