"""Chips whose memory has a clock of its own, in Verilog."""

from dataclasses import replace

import pytest

from bench.clocks import clocks_chip
from isa.image import DramImage
from memory.controller.counters import VaultCounter
from memory.crossing import CounterMirror
from microkernels.suite import choose
from sim_tb.cosim.chip import ChipSimulation, Periods
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from sim_tb.cosim.vault import VaultSimulation
from sim_tb.workloads.stress import RATIOS
from soc.chip.config import ChipConfig
from soc.generate.presets import tile_preset
from soc.host.driver import Host
from soc.host.transport import Blocking
from soc.host.transport import run as blocking
from soc.tile.config import ClockConfig

TWO = ClockConfig(domains="two")


def with_two(config: ChipConfig, clocks: ClockConfig = TWO) -> ChipConfig:
    return replace(config, tile=replace(config.tile, clocks=clocks))


def small() -> ChipConfig:
    """One vault with a DRAM controller, and one engine."""
    config = clocks_chip(ClockConfig())
    vault = replace(tile_preset("vault").vault, tag_bits=config.tile.vault.tag_bits)
    return replace(config, tile=replace(config.tile, vault=vault))


def run(name: str, config: ChipConfig, periods: Periods) -> int:
    """Cycles of an application whose outputs were all right."""
    (application,) = choose([name])
    cycles = 0
    for job in application.jobs:
        outcome = run_on(job, config, periods=periods)
        assert outcome.match
        cycles += outcome.cycles
        for result in outcome.results.values():
            (vault,) = result.vaults
            columns = sum(result.counters[0][key] for key in ("BYTES_LOADED", "BYTES_STORED")) // 32
            assert columns <= vault["READS"] + vault["WRITES"] <= 2 * columns
    return cycles


@pytest.mark.slow
def test_an_engine_whose_dram_has_another_clock() -> None:
    fast, slow = (run("bp-copy", with_two(small()), RATIOS[n]) for n in (7, 15))
    assert fast < slow


@pytest.mark.slow
@pytest.mark.parametrize("periods", RATIOS)
@pytest.mark.parametrize("back_end", ["dram", "axi"])
def test_belief_propagation_is_exact_at_every_ratio(back_end: str, periods: Periods) -> None:
    clocks = TWO if periods.jitter_ps else replace(TWO, request_depth=4, response_depth=16)
    config = small() if back_end == "dram" else clocks_chip(ClockConfig())
    run("bp", with_two(config, clocks), periods)


def test_periods_are_for_chips_with_two_clocks() -> None:
    (application,) = choose(["bp-copy"])
    with pytest.raises(CosimError, match=r"no periods \(clocks.domains must be 'two'\)"):
        run_on(application.jobs[0], small(), periods=Periods())


@pytest.mark.slow
def test_only_the_verilog_of_chips_has_two_clocks() -> None:
    (application,) = choose(["bp-copy"])
    job = application.jobs[0]
    with pytest.raises(CosimError, match=r"timing model has one clock"):
        run_on(job, with_two(small()), on="model", preload=True)
    tile = with_two(small()).tile
    with pytest.raises(CosimError, match=r"a vault alone runs with one clock"):
        VaultSimulation(tile)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"engine_ps": 198}, "engine_ps must be a whole number from 200 to 200000, not 198"),
        ({"memory_ps": 200_002}, "memory_ps must be a whole number from 200 to 200000, not 200002"),
        ({"memory_ps": 801}, "memory_ps must be even, not 801"),
        ({"memory_ps": 6402}, r"1/8 of engine_ps to 8 times it \(100 to 6400\), not 6402"),
        ({"engine_ps": 6402}, r"1/8 of engine_ps to 8 times it \(801 to 51216\), not 800"),
        ({"jitter_ps": 201}, "jitter_ps must be a whole number from 0 to 200, not 201"),
        ({"jitter_ps": -1}, "jitter_ps must be a whole number from 0 to 200, not -1"),
        ({"memory_ps": "fast"}, "memory_ps must be"),
    ],
)
def test_periods_are_checked(values: dict[str, object], expected: str) -> None:
    with pytest.raises(CosimError, match=expected):
        Periods(**values)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("periods", [RATIOS[0], RATIOS[7], RATIOS[8], RATIOS[-1]])
def test_a_host_reads_counters_of_the_memory_while_they_count(periods: Periods) -> None:
    """Each value is that of some cycle not long before, and none is older than the one before."""
    ratio = periods.engine_ps / periods.memory_ps
    config = with_two(small())
    with DramImage(config.memory_bytes) as image:
        chip = ChipSimulation(config, image, periods=periods)
        with chip:
            host = Host(Blocking(chip))
            # The clocks do not start at the same time, nor do their counters.
            begin, last = None, 0
            for _ in range(60):
                count = blocking(host.vault_counters(0))[VaultCounter.CYCLES]
                assert count >= last
                last, now = count, chip.cycles * ratio
                begin = now - count if begin is None else begin
                # A value waits while all counters are copied; then it is read before 15 others.
                assert abs(now - count - begin) < 32 * max(3, ratio) + 40 * (1 + ratio)
                chip.run(37)
    assert last > 60 * 37 * ratio
    assert chip.period_ns == periods.engine_ps / 1000


def test_copies_of_counters_are_never_torn(simulate) -> None:
    mirror = CounterMirror(sram="behavioural")
    low, high = 0x155555, 0x2AAAAA

    async def testbench(ctx):
        # All bits of the value change in each cycle of the memory.
        seen = set()
        for cycle in range(600):
            ctx.set(mirror.counter_value, low << 22 | high if cycle % 2 else high << 22 | low)
            ctx.set(mirror.index, cycle // 3 % 32)
            await ctx.tick()
            if cycle > 400:
                seen.add(ctx.get(mirror.value))
        assert seen <= {low << 22 | high, high << 22 | low}
        assert len(seen) == 2

    simulate(mirror, testbench, clocks={"mem": 613e-12})
