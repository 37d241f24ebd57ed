"""Belief propagation with few labels on Verilog and on the timing model."""

import numpy as np
import pytest

from microkernels.bp.few import FewPlan
from microkernels.bp.jobs import bp_job
from microkernels.bp.problem import BpProblem
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import preset, tile_preset


def problem(width: int, height: int, labels: int, bits: int) -> BpProblem:
    rng = np.random.default_rng([width, height, labels, bits])
    limit = 1 << bits - 3
    return BpProblem(
        rng.integers(0, limit, (height, width, labels)),
        rng.integers(-limit, limit, (labels, labels)),
        bits,
    )


@pytest.mark.parametrize(
    ("labels", "bits"),
    [
        (2, 16),
        pytest.param(8, 8, marks=pytest.mark.slow),
        pytest.param(6, 16, marks=pytest.mark.slow),
    ],
)
def test_verilog_is_exact_and_takes_the_model_s_cycles(labels: int, bits: int) -> None:
    config = preset("pe")
    job = bp_job(problem(6, 8, labels, bits), 2)
    outcome = run_on(job, config)
    assert outcome.match
    assert run_on(job, config, on="model").cycles == outcome.cycles


@pytest.mark.parametrize(
    ("labels", "bits", "limit"), [(2, 16, 20), (4, 16, 21), (8, 8, 24), (8, 16, 33)]
)
def test_an_engine_takes_the_cycles_that_choose_the_form(labels, bits, limit: float) -> None:
    outcome = run_on(bp_job(problem(64, 32, labels, bits)), preset("pe"), on="model")
    assert outcome.match
    assert outcome.cycles_per_update <= limit
    assert outcome.cycles_per_update == pytest.approx(
        FewPlan(labels=labels, bits=bits).cycles, rel=0.1
    )


@pytest.mark.parametrize(("labels", "bits", "bus", "limit"), [(2, 16, 20, 26), (5, 16, 32, 40)])
def test_four_engines_of_a_vault(labels, bits, bus: int, limit: float) -> None:
    """Three vectors are read and half a column is written: ``bus`` cycles of the vault's bus."""
    config = tile_preset("vault")
    job = bp_job(problem(60, 34, labels, bits), engines=ChipEngines(pes=config.pes))
    outcome = run_on(job, config, on="model")
    assert outcome.match
    assert bus <= outcome.cycles_per_update <= limit
