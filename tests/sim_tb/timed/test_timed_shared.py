"""Engines whose accesses to the scratchpad share ports: the timing model takes the cycles of the
Verilog, and programs leave what they leave in the simulator."""

from dataclasses import replace

import pytest

from pe.config import PeConfig
from sim_tb.random.comparison import check_programs
from sim_tb.workloads.certificate import certified_runs, run_certified
from soc.generate.presets import tile_preset

from .test_timed_chip import TINY, both, traffic
from .test_timed_model import SHARED, SMALL_SHARED, same_on_vault


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    [
        SHARED,
        SMALL_SHARED,
        replace(SMALL_SHARED, scratchpad_bytes=64, scratchpad_alignment=8),
        replace(SHARED, register_width=40, sram="macro"),
    ],
    ids=["full", "small", "aligned", "narrow"],
)
def test_random_programs_leave_what_they_leave_in_the_simulator(config: PeConfig) -> None:
    report = check_programs(config, programs=300, seed=1, disturbed=0.2)
    assert not report.different
    assert report.faulting > 30


_KERNELS = ("bp", "conv-short", "matrix-transposition", "median-pooling", "bitonic-sort", "lstm")


@pytest.mark.slow
@pytest.mark.parametrize("name", _KERNELS)
def test_kernels_take_the_cycles_of_the_verilog(name: str) -> None:
    (run,) = (each for each in certified_runs(["engine"]) if each.name == name)
    assert isinstance(run.config, PeConfig)
    shared = replace(run, config=replace(run.config, scratchpad_banks=16))
    ends = run_certified(shared, "model")
    assert ends == run_certified(shared, "rtl")
    assert ends[0] >= run_certified(run, "model")[0]


@pytest.mark.slow
def test_a_vault_takes_the_cycles_of_the_verilog() -> None:
    vault = tile_preset("vault-small")
    shared = replace(vault, pe=replace(vault.pe, scratchpad_banks=16))
    same_on_vault(shared, width=12, height=9, iterations=2)


@pytest.mark.slow
def test_a_chip_takes_the_cycles_of_the_verilog() -> None:
    tile = replace(TINY.tile, pe=replace(TINY.tile.pe, scratchpad_banks=16))
    config = replace(TINY, tile=tile)
    program = traffic(config, vaults=config.vaults, transfers=60)
    assert both(config, (program, 0), (program, 0))[0].faults == ()
