"""Stream buffers and the round-robin choice."""

import pytest

from hdl.config import ConfigurationError
from hdl.round_robin import RoundRobin
from hdl.stream_buffer import StreamBuffer


@pytest.mark.parametrize("depth", [2, 3, 4, 7, 64])
@pytest.mark.parametrize(("offer", "take"), [(1, 1), (0.5, 1), (1, 0.5), (0.5, 0.5)])
def test_buffer_keeps_order_and_speed(simulate, rng, depth, offer, take):
    dut = StreamBuffer(shape=16, depth=depth)
    sent, got, levels = [], [], []

    async def bench(ctx):
        value, offered = 0, False
        for _ in range(200):
            offered = offered or rng.random() < offer
            ready = rng.random() < take
            ctx.set(dut.input.valid, offered)
            ctx.set(dut.input.payload, value)
            ctx.set(dut.output.ready, ready)
            seen = await ctx.tick().sample(
                dut.input.ready, dut.output.valid, dut.output.payload, dut.level
            )
            _, _, accepted, valid, payload, level = seen
            assert level == len(sent) - len(got)
            assert accepted == (level < depth)
            assert valid == (level > 0)
            levels.append(level)
            if offered and accepted:
                sent.append(value)
                value, offered = value + 1, False
            if valid and ready:
                got.append(payload)

    simulate(dut, bench)
    assert got == list(range(len(got)))
    if offer == take == 1:
        assert len(got) == 199
    if offer == 1 and take < 1 and depth < 64:
        assert max(levels) == depth


def test_round_robin_serves_all_in_turns_and_only_requests(simulate, rng):
    dut = RoundRobin(count=5)
    waits = [0] * 5

    async def bench(ctx):
        last = 4
        for _ in range(400):
            requests = rng.getrandbits(5)
            advance = rng.random() < 0.7
            ctx.set(dut.requests, requests)
            ctx.set(dut.advance, advance and requests != 0)
            _, _, grant = await ctx.tick().sample(dut.grant)
            order = [(last + 1 + i) % 5 for i in range(5)]
            chosen = next((i for i in order if requests >> i & 1), None)
            assert grant == (0 if chosen is None else 1 << chosen)
            if advance and chosen is not None:
                last = chosen
                for i in range(5):
                    waits[i] = waits[i] + 1 if requests >> i & 1 and i != chosen else 0
                assert max(waits) <= 4

    simulate(dut, bench)


@pytest.mark.parametrize("depth", [1, 65])
def test_buffer_of_a_wrong_depth_is_refused(depth):
    with pytest.raises(ConfigurationError, match="2 to 64 words"):
        StreamBuffer(shape=8, depth=depth)


@pytest.mark.parametrize("count", [0, 65])
def test_round_robin_of_a_wrong_count_is_refused(count):
    with pytest.raises(ConfigurationError, match="1 to 64 requests"):
        RoundRobin(count=count)
