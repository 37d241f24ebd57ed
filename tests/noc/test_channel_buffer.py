"""Queues that share a memory, against queues in Python."""

from collections import deque

import pytest
from amaranth.lib import data

from noc.router.channel_buffer import ChannelBuffer

DEPTH = 4


@pytest.mark.parametrize("kind", ["behavioural", "fpga"])
@pytest.mark.parametrize("channels", [1, 2, 4])
@pytest.mark.parametrize(("enter", "leave"), [(1.0, 1.0), (0.9, 0.5), (0.4, 0.9)])
def test_words_keep_their_order_and_nothing_waits(simulate, rng, kind, channels, enter, leave):
    dut = ChannelBuffer(
        channels=channels, depth=DEPTH, shape=data.StructLayout({"word": 16}), kind=kind
    )

    async def testbench(ctx):
        queues = [deque() for _ in range(channels)]
        passed = 0
        for _ in range(400):
            valid = ctx.get(dut.valid)
            for number, queue in enumerate(queues):
                assert (valid >> number & 1) == bool(queue)
                if queue:
                    assert ctx.get(dut.heads[number].word) == queue[0]
            full = [number for number in range(channels) if queues[number]]
            pop = rng.choice(full) if full and rng.random() < leave else None
            ctx.set(dut.pop, 0 if pop is None else 1 << pop)
            room = [number for number in range(channels) if len(queues[number]) < DEPTH]
            into = rng.choice(room) if room and rng.random() < enter else None
            ctx.set(dut.write, into is not None)
            if into is not None:
                word = rng.getrandbits(16)
                ctx.set(dut.channel, into)
                ctx.set(dut.word.word, word)
            await ctx.tick()
            if pop is not None:
                queues[pop].popleft()
                passed += 1
            if into is not None:
                queues[into].append(word)
        assert passed > 100

    simulate(dut, testbench)
