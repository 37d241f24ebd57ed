"""Belief propagation by shifts on Verilog and on the timing model."""

import os

import numpy as np
import pytest

from microkernels.bp.jobs import bp_job
from microkernels.bp.problem import BpProblem
from microkernels.bp.smoothness import smoothness_costs
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import preset, tile_preset

PE = preset("pe")
HOSTILE = MemoryBehaviour(
    latency=3, extra_latency=60, bandwidth=128, stall=0.4, gap=0.4, out_of_order=True, seed=5
)


@pytest.fixture(autouse=True)
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})


def problem(width: int, height: int, labels: int, bits: int, name: str, weight: int) -> BpProblem:
    rng = np.random.default_rng([width, height, labels, bits])
    limit = (1 << (bits - 1)) - 1
    costs = rng.integers(-limit // 2, limit // 2, (height, width, labels))
    return BpProblem(costs, smoothness_costs(labels, name, weight), bits)


@pytest.mark.parametrize(
    ("width", "height", "labels", "bits", "name", "sums"),
    [
        (9, 6, 16, 16, "linear:2", False),
        (9, 6, 16, 16, "linear:2", True),
        (7, 9, 16, 8, "linear:2", False),
        (6, 8, 16, 8, "linear:2", False),
        (6, 8, 16, 8, "linear:2", True),
        (5, 5, 60, 16, "potts", False),
        (5, 5, 60, 16, "linear:2", True),
        (6, 4, 16, 16, "quadratic:7", False),
        (5, 3, 60, 16, "linear:2", False),
        (4, 3, 256, 16, "linear:2", False),
    ],
)
@pytest.mark.parametrize("memory", [MemoryBehaviour(), HOSTILE])
def test_verilog_is_exact_and_takes_the_model_s_cycles(
    width: int,
    height: int,
    labels: int,
    bits: int,
    name: str,
    sums: bool,
    memory: MemoryBehaviour,
) -> None:
    job = bp_job(problem(width, height, labels, bits, name, 20), 2, form="shifts", sums=sums)
    outcome = run_on(job, PE, memory=memory)
    assert outcome.match
    assert run_on(job, PE, on="model", memory=memory).cycles == outcome.cycles


@pytest.mark.parametrize(
    ("labels", "bits", "limit"), [(16, 16, 46), (16, 8, 30), (32, 16, 80), (60, 16, 130)]
)
def test_an_engine_with_ideal_memory(labels: int, bits: int, limit: float) -> None:
    job = bp_job(problem(64, 32, labels, bits, "linear:2", 5), 1, form="shifts")
    outcome = run_on(job, PE, on="model")
    assert outcome.match
    assert outcome.cycles_per_update <= limit


@pytest.mark.parametrize(
    ("bits", "sums", "bus", "limit"), [(16, False, 64, 74), (16, None, 48, 55), (8, None, 32, 42)]
)
def test_four_engines_of_a_vault(bits: int, sums: bool | None, bus: int, limit: float) -> None:
    """Three vectors are read and one is written, one and one in half of the visits with sums:
    ``bus`` cycles of the vault's bus."""
    config = tile_preset("vault")
    one = problem(60, 34, 16, bits, "linear:2", 5)
    job = bp_job(one, 1, engines=ChipEngines(pes=config.pes), form="shifts", sums=sums)
    outcome = run_on(job, config, on="model")
    assert outcome.match
    assert bus <= outcome.cycles_per_update <= limit


@pytest.mark.slow
@pytest.mark.parametrize(("width", "bits"), [(9, 16), (10, 8)])
def test_labels_on_verilog(width: int, bits: int) -> None:
    config = tile_preset("vault")
    job = bp_job(
        problem(width, 6, 16, bits, "linear:2", 5),
        1,
        engines=ChipEngines(pes=config.pes),
        form="shifts",
        choose=True,
    )
    outcome = run_on(job, config)
    assert outcome.match
    model = run_on(job, config, on="model")
    assert model.match
    assert [one.cycles for one in model.results.values()] == [
        one.cycles for one in outcome.results.values()
    ]
