"""A field of a vector operation is declared in one place and reaches the vector unit from there.

Beside the instruction table and what the vector unit does with it, a new field touches
``pe/capabilities.py`` alone: the test declares one and changes no other file.
"""

import pytest

from isa.table import BY_KEY, VERTICAL, BitField
from pe import capabilities
from pe.capabilities import OPERATION, Capabilities
from pe.config import PeConfig
from pe.frontend.decode import decoded, issued
from pe.frontend.dispatch import Dispatch, dispatched
from pe.ports import vector_command
from synth.formal.rows import command_values, decoded_values, dispatched_values
from tests.pe.issue_bench import Bench

#: Twice the lowest bit of the vertical operation: the additions have 0, the products 1.
FIELD = BitField("flavour", VERTICAL.low, VERTICAL.low)
KEYS = ("m.v.add.add[16]", "m.v.mul.add[16]")
#: Of this test alone, as capabilities are kept by configuration.
CONFIG = PeConfig(address_bits=29, instruction_words=32)


@pytest.fixture(autouse=True)
def flavour(monkeypatch) -> None:
    def packing(caps: Capabilities) -> object:
        values = (FIELD.extract(row.match) for row in caps.vector.rows)
        return capabilities._packing(values, FIELD.bits)

    monkeypatch.setitem(OPERATION, FIELD.name, FIELD)
    monkeypatch.setattr(Capabilities, FIELD.name, property(packing), raising=False)


def test_each_layout_has_it() -> None:
    for layout in (decoded, issued, dispatched, vector_command):
        assert FIELD.name in layout(CONFIG).members, layout.__name__


@pytest.mark.parametrize("key", KEYS)
def test_it_passes_decode_and_issue(key: str) -> None:
    async def work(bench: Bench) -> None:
        await bench.issue(key, 1, 2, 3, a=64, first=128, second=256)
        assert bench.offered
        assert bench.ctx.get(bench.dut.offer.payload.flavour) == FIELD.extract(BY_KEY[key].match)

    Bench(CONFIG).run(work)


@pytest.mark.parametrize("value", [0, 1])
def test_it_passes_dispatch(simulate, value: int) -> None:
    dut = Dispatch(CONFIG)

    async def work(ctx) -> None:
        ctx.set(dut.run, 1)
        ctx.set(dut.vector.ready, 1)
        ctx.set(dut.offer.payload.vector, 1)
        ctx.set(dut.offer.payload.flavour, value)
        ctx.set(dut.offer.valid, 1)
        await ctx.tick()
        ctx.set(dut.offer.valid, 0)
        await ctx.tick()
        assert ctx.get(dut.vector.valid)
        assert ctx.get(dut.vector.payload.flavour) == value

    simulate(dut, work)


@pytest.mark.parametrize("values", [decoded_values, dispatched_values, command_values])
def test_proofs_know_it(values) -> None:
    for key in KEYS:
        (members,) = values(CONFIG, BY_KEY[key])
        assert members[FIELD.name] == FIELD.extract(BY_KEY[key].match)
