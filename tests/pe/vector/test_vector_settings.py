"""Vector settings and the size of a matrix, against a product."""

import pytest

from isa.table import MAX_MR, MAX_VL
from pe.config import PeConfig
from pe.vector.settings import VectorSettings


@pytest.mark.parametrize("limits", [(MAX_VL, MAX_MR), (1, 256), (200, 1), (17, 5)])
def test_elements_follow_every_change(simulate, rng, limits):
    max_vl, max_mr = limits
    dut = VectorSettings(PeConfig(max_vl=max_vl, max_mr=max_mr))

    async def bench(ctx):
        settings = {"vl": 1, "mr": 1, "fx": 0}
        longest = 0
        for _ in range(200):
            name = rng.choice(sorted(settings))
            most = {"vl": max_vl, "mr": max_mr, "fx": 63}[name]
            settings[name] = rng.choice((1, most, max(1, most - 1), rng.randint(1, most)))
            ctx.set(dut.value, settings[name])
            ctx.set(getattr(dut, f"set_{name}"), 1)
            await ctx.tick()
            ctx.set(getattr(dut, f"set_{name}"), 0)
            # Settings may change while the product is still being formed.
            if rng.random() < 0.3:
                continue
            waited = 0
            while ctx.get(dut.settling):
                waited += 1
                await ctx.tick()
            longest = max(longest, waited)
            assert ctx.get(dut.elements) == settings["vl"] * settings["mr"]
            for each, value in settings.items():
                assert ctx.get(getattr(dut, each)) == value
        # The same whatever the limits, as a program must not take other cycles.
        assert longest == MAX_MR.bit_length()
        ctx.set(dut.reset, 1)
        await ctx.tick()
        ctx.set(dut.reset, 0)
        while ctx.get(dut.settling):
            await ctx.tick()
        assert [ctx.get(getattr(dut, name)) for name in ("vl", "mr", "fx", "elements")] == [
            1,
            1,
            0,
            1,
        ]

    simulate(dut, bench)
