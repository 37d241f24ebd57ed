"""Engines whose accesses to the scratchpad share ports: the timing model takes the cycles of the
Verilog, and programs leave what they leave in the simulator."""

import random
from dataclasses import replace
from functools import partial

import pytest

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.run import Launch
from pe.config import PeConfig
from sim_tb.harness.memory import MemoryBehaviour
from sim_tb.random.comparison import check_programs
from sim_tb.workloads.certificate import certified_runs, run_certified
from soc.generate.presets import tile_preset

from .test_timed_chip import TINY, both, traffic
from .test_timed_model import SHARED, SMALL_SHARED, Run, results_of_both, same_on_vault

_MOVES = ("ld.sram [8-bit] r5, r7, r6", "ld.sram [8-bit] r5, r7, r6", "st.sram [8-bit] r7, r2, r6")
_ADDS = ("v.v.add", "v.v.add", "v.s.add", "m.v.nop.add")


def crowd(seed: int, _image: DramImage) -> Run:
    """Additions, loads and stores in any order, mostly aligned, with nothing between that would
    keep them apart: all ports are asked for at once, and each wait delays the end."""
    rng = random.Random(seed)
    places = [64 * number + rng.choice((0, 8, rng.randrange(8))) for number in range(4)]
    values = (48, *places, rng.choice((8, 32, 48)))
    adds = (f"{name} [8-bit] r4, r2, r3" for name in rng.choices(_ADDS, k=12))
    work = rng.sample((*rng.choices(_MOVES, k=12), *adds), 24)
    lines = [f"mov r{number}, #{value}" for number, value in enumerate(values, 1)]
    program = assemble("\n".join((*lines, "set.vl r1", *work, "memfence", "halt\n")))
    memory = MemoryBehaviour(latency=rng.randint(1, 20))
    return Launch(program=program, max_cycles=5000), {
        "memory": memory,
        "scratchpad": rng.randbytes(256),
    }


def test_accesses_that_crowd_take_the_cycles_of_the_verilog() -> None:
    ends = results_of_both(SMALL_SHARED, (partial(crowd, seed) for seed in range(100)))
    assert {end.state for end in ends} == {"halted"}


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
