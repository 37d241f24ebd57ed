"""The serial line, on itself and with another rate at the other end."""

import pytest

from hdl.config import ConfigurationError
from soc.board.uart import Uart


@pytest.mark.parametrize(("divisor", "bit"), [(4, 4.0), (20, 20.0), (20, 20.6), (20, 19.4)])
def test_bytes_pass_both_ways(simulate, rng, divisor, bit):
    """``bit`` cycles a bit at the other end, within 3 %."""
    dut = Uart(divisor=divisor)
    there, back = rng.randbytes(20), rng.randbytes(20)

    async def send(ctx):
        ctx.set(dut.rx, 1)
        await ctx.tick().repeat(3)
        time = 0.0
        for byte in there:
            for level in [0, *(byte >> place & 1 for place in range(8)), 1]:
                ctx.set(dut.rx, level)
                time += bit
                await ctx.tick().repeat(round(time))
                time -= round(time)

    async def take(ctx):
        ctx.set(dut.received.ready, 1)
        taken = [
            (await ctx.tick().sample(dut.received.payload).until(dut.received.valid))[0]
            for _ in there
        ]
        assert bytes(taken) == there

    async def offer(ctx):
        ctx.set(dut.sent.valid, 1)
        for byte in back:
            ctx.set(dut.sent.payload, byte)
            await ctx.tick().until(dut.sent.ready)
        ctx.set(dut.sent.valid, 0)

    async def watch(ctx):
        for byte in back:
            await ctx.tick().until(~dut.tx)
            await ctx.tick().repeat(divisor // 2 - 1)
            levels = []
            for _ in range(10):
                levels.append(ctx.get(dut.tx))
                await ctx.tick().repeat(divisor if len(levels) < 10 else 1)
            assert levels[0] == 0
            assert levels[9] == 1
            assert sum(level << place for place, level in enumerate(levels[1:9])) == byte

    simulate(dut, send, take, offer, watch)


def test_a_byte_without_stop_bit_is_dropped(simulate):
    dut = Uart(divisor=8)

    async def bench(ctx):
        ctx.set(dut.received.ready, 0)
        ctx.set(dut.rx, 1)
        await ctx.tick().repeat(5)
        for level in [0] * 10 + [1] * 2 + [0, *[1, 0] * 4, 1]:
            ctx.set(dut.rx, level)
            await ctx.tick().repeat(8)
        assert ctx.get(dut.received.valid)
        assert ctx.get(dut.received.payload) == 0x55
        # The next one is lost, for this one waits.
        for level in [0, *[0] * 8, 1]:
            ctx.set(dut.rx, level)
            await ctx.tick().repeat(8)
        assert ctx.get(dut.received.payload) == 0x55

    simulate(dut, bench)


@pytest.mark.parametrize("divisor", [3, 1 << 17])
def test_wrong_divisors(divisor):
    with pytest.raises(ConfigurationError, match=r"^a bit of a serial line has 4 to 65536 cycles"):
        Uart(divisor=divisor)
