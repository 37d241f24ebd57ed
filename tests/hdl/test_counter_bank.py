import pytest

from hdl.counter_bank import CounterBank

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
