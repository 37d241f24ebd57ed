"""TRW-S on Verilog and on the timing model."""

import os

import numpy as np
import pytest

from microkernels.bp.problem import BpProblem
from microkernels.bp.smoothness import smoothness_costs
from microkernels.bp.trws.jobs import trws_job
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


def problem(width: int, height: int, labels: int, bits: int, name: str) -> BpProblem:
    rng = np.random.default_rng([width, height, labels, bits])
    costs = rng.integers(-200, 200, (height, width, labels))
    return BpProblem(costs, smoothness_costs(labels, name, 20), bits)


@pytest.mark.parametrize(
    ("width", "height", "labels", "bits", "name", "form"),
    [
        (9, 6, 16, 16, "linear:2", "shifts"),
        (6, 5, 16, 16, "linear:2", "matrix"),
        (5, 4, 64, 16, "potts", "shifts"),
        (5, 4, 9, 32, "quadratic:7", "shifts"),
    ],
)
def test_verilog_is_exact_and_takes_the_model_s_cycles(
    width: int, height: int, labels: int, bits: int, name: str, form
) -> None:
    job = trws_job(problem(width, height, labels, bits, name), 1, form=form)
    outcome = run_on(job, PE, memory=HOSTILE)
    assert outcome.match
    assert run_on(job, PE, on="model", memory=HOSTILE).cycles == outcome.cycles


@pytest.mark.parametrize(("form", "limit"), [("shifts", 56), ("matrix", 103)])
def test_an_engine_with_ideal_memory(form, limit: float) -> None:
    job = trws_job(problem(240, 12, 16, 16, "linear:2"), 1, form=form)
    outcome = run_on(job, PE, on="model")
    assert outcome.match
    assert outcome.cycles_per_update <= limit


@pytest.mark.parametrize("name", ["vault-small", pytest.param("vault", marks=pytest.mark.slow)])
def test_the_engines_of_a_vault_share_the_rows(name: str) -> None:
    config = tile_preset(name)
    one = problem(14, 9, 16, 16, "linear:2")
    job = trws_job(one, 2, engines=ChipEngines(pes=config.pes), block=4)
    outcome = run_on(job, config)
    assert outcome.match
    assert run_on(job, config, on="model").cycles == outcome.cycles


def test_four_engines_of_a_vault() -> None:
    """Four vectors of 32 bytes are read and two written for two messages: 48 cycles of the bus."""
    config = tile_preset("vault")
    job = trws_job(problem(120, 60, 16, 16, "linear:2"), 1, engines=ChipEngines(pes=config.pes))
    outcome = run_on(job, config, on="model")
    assert outcome.match
    assert 48 <= outcome.cycles_per_update <= 70
