import pytest

from hdl.counter_bank import COUNTER_BITS, CounterBank

MOST = (1, 0, 200, 1, 7)


@pytest.mark.parametrize("settles", ["always", "at last"])
def test_every_step_is_counted_whenever_counting_was_cleared(simulate, rng, settles):
    dut = CounterBank(max_steps=MOST, kind="behavioural")

    async def bench(ctx):
        expected = [0] * len(MOST)
        for phase in range(2 * dut.depth):
            cycles = rng.randrange(5 * dut.depth)
            # Often the largest step in every cycle, which gathers most.
            most = rng.random() < 0.5
            for left in reversed(range(cycles)):
                ctx.set(dut.settle, settles == "always" or left == 0)
                for number, largest in enumerate(MOST):
                    if largest:
                        step = largest if most else rng.choice((0, largest))
                        ctx.set(getattr(dut, f"step_{number}"), step)
                        expected[number] += step
                await ctx.tick()
            ctx.set(dut.settle, 1)
            for number, largest in enumerate(MOST):
                if largest:
                    ctx.set(getattr(dut, f"step_{number}"), 0)
            for _ in range(dut.lag + phase):
                await ctx.tick()
            for number, value in enumerate(expected):
                ctx.set(dut.index, number)
                await ctx.tick()
                assert ctx.get(dut.value) == value, (phase, number)
            if rng.random() < 0.5:
                ctx.set(dut.clear, 1)
                await ctx.tick()
                ctx.set(dut.clear, 0)
                expected = [0] * len(MOST)

    simulate(dut, bench)


def test_counters_wrap_at_their_bits_and_leave_the_others_alone(simulate, rng):
    """Eight of the largest steps of the first counter are once around."""
    most = (1 << (COUNTER_BITS - 3), 3)
    dut = CounterBank(max_steps=most, kind="behavioural")

    async def bench(ctx):
        expected = [0, 0]
        wraps = 0
        ctx.set(dut.settle, 1)
        for _ in range(40):
            steps = [rng.choice((0, most[0], most[0] - 1)), rng.randrange(most[1] + 1)]
            for number, step in enumerate(steps):
                ctx.set(getattr(dut, f"step_{number}"), step)
            await ctx.tick()
            wraps += expected[0] + steps[0] >> COUNTER_BITS
            expected = [
                (old + new) % (1 << COUNTER_BITS) for old, new in zip(expected, steps, strict=True)
            ]
            for number in range(2):
                ctx.set(getattr(dut, f"step_{number}"), 0)
            for _ in range(dut.lag + dut.depth):
                await ctx.tick()
            for number, value in enumerate(expected):
                ctx.set(dut.index, number)
                await ctx.tick()
                assert ctx.get(dut.value) == value
        assert wraps > 2

    simulate(dut, bench)
