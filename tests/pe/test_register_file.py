import pytest

from hdl.config import PeConfig
from pe.register_file import RegisterFile


@pytest.mark.parametrize("registers", [8, 64])
def test_reads_see_every_earlier_write_at_once(simulate, rng, registers):
    dut = RegisterFile(PeConfig(registers=registers))

    async def bench(ctx):
        values = [0] * registers
        valid = [1] * registers
        expected = [None, None, None]
        for _ in range(1500):
            # Few registers, so that reads and writes meet.
            indices = [rng.randrange(registers) % 5 for _ in range(3)]
            write = rng.random() < 0.6
            index, value = rng.randrange(registers) % 5, rng.getrandbits(64)
            invalidate, pending = rng.random() < 0.3, rng.randrange(registers) % 5
            for port, number in zip(dut.read, indices, strict=True):
                ctx.set(port.index, number)
            ctx.set(dut.write, write)
            ctx.set(dut.index, index)
            ctx.set(dut.value, value)
            ctx.set(dut.invalidate, invalidate)
            ctx.set(dut.pending, pending)
            for port, want in zip(dut.read, expected, strict=True):
                if want is not None:
                    assert ctx.get(port.value) == want
            if invalidate:
                valid[pending] = 0
            if write:
                values[index], valid[index] = value, 1
            expected = [values[number] for number in indices]
            await ctx.tick()
            assert ctx.get(dut.valid) == sum(bit << i for i, bit in enumerate(valid))

    simulate(dut, bench)
