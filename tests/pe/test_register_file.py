import pytest

from pe.config import PeConfig
from pe.frontend.register_file import LOOKUP_BITS, RegisterFile


@pytest.mark.parametrize(
    "config",
    [
        PeConfig(),
        PeConfig(registers=8, register_width=34),
        PeConfig(registers=8, instructions=frozenset({"halt", "add"})),
        PeConfig(registers=8, sram="fpga"),
        PeConfig(sram="fpga"),
    ],
    ids=["full", "narrow", "without ld.reg", "in LUT RAM", "in block RAM"],
)
def test_reads_see_every_earlier_write_and_are_held(simulate, rng, config):
    """In LUT RAM they see a later write, too."""
    dut = RegisterFile(config)
    registers = config.registers
    loads = "ld.reg[8]" in config.instructions
    in_lookup_tables = config.sram == "fpga" and registers * config.register_width <= LOOKUP_BITS

    async def bench(ctx):
        values = [0] * registers
        valid = [1] * registers
        expected = places = [None, None, None]
        for _ in range(1500):
            # Few registers, so that reads and writes meet.
            indices = [rng.randrange(registers) % 5 for _ in range(3)]
            write = rng.random() < 0.6
            index, value = rng.randrange(registers) % 5, rng.getrandbits(config.register_width)
            invalidate, pending = loads and rng.random() < 0.3, rng.randrange(registers) % 5
            # Most often all of them, as what is not read with another one is undefined.
            read = rng.choice([(1, 1, 1), (1, 1, 1), (0, 0, 0), [rng.randrange(2) for _ in "abc"]])
            for place, reads in enumerate(read):
                ctx.set(dut.read[place], reads)
            for place, number in enumerate(indices):
                ctx.set(dut.index[place], number)
            ctx.set(dut.write, write)
            ctx.set(dut.target, index)
            ctx.set(dut.data, value)
            ctx.set(dut.invalidate, invalidate)
            ctx.set(dut.pending, pending)
            for place, want in enumerate(expected):
                if want is not None:
                    assert ctx.get(dut.value[place]) == want
            if invalidate:
                valid[pending] = 0
            if write:
                values[index], valid[index] = value, 1
            if any(read):
                places = [
                    number if reads else None for number, reads in zip(indices, read, strict=True)
                ]
            if any(read) or in_lookup_tables:
                expected = [None if place is None else values[place] for place in places]
            await ctx.tick()
            assert ctx.get(dut.valid) == sum(bit << i for i, bit in enumerate(valid))

    simulate(dut, bench)
