"""Belief propagation with edge weights and damping on Verilog and on the timing model."""

import os

import numpy as np
import pytest

from microkernels.bp.jobs import bp_job
from microkernels.bp.problem import BpProblem, EdgeWeights
from microkernels.bp.smoothness import smoothness_costs
from microkernels.bp.trws.jobs import trws_job
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import preset

PE = preset("pe")
HOSTILE = MemoryBehaviour(
    latency=3, extra_latency=60, bandwidth=128, stall=0.4, gap=0.4, out_of_order=True, seed=5
)


@pytest.fixture(autouse=True)
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})


def problem(width: int, height: int, labels: int, bits: int, *, weighted: bool) -> BpProblem:
    rng = np.random.default_rng([width, height, labels, bits])
    costs = rng.integers(0, 1 << min(bits, 16) - 3, (height, width, labels))
    weights = None
    if weighted:
        weights = EdgeWeights(
            rng.integers(0, 4, (height, width - 1)), rng.integers(0, 4, (height - 1, width))
        )
    return BpProblem(costs, smoothness_costs(labels, "linear:2", 5), bits, weights)


@pytest.mark.parametrize(
    ("size", "labels", "bits", "form", "damping"),
    [
        ((5, 6), 16, 16, "shifts", 5),
        pytest.param((5, 4), 16, 8, "shifts", 5, marks=pytest.mark.slow),
        ((4, 3), 60, 16, "shifts", 5),
        ((4, 3), 10, 16, "matrix", 5),
    ],
)
def test_verilog_is_exact_and_takes_the_model_s_cycles(
    size: tuple[int, int], labels: int, bits: int, form: str, damping: int
) -> None:
    job = bp_job(problem(*size, labels, bits, weighted=True), 2, form=form, damping=damping)
    outcome = run_on(job, PE, memory=HOSTILE)
    assert outcome.match
    assert run_on(job, PE, on="model", memory=HOSTILE).cycles == outcome.cycles


def test_trws_on_verilog() -> None:
    one = problem(5, 4, 16, 32, weighted=True)
    outcome = run_on(trws_job(one, 1), PE, memory=HOSTILE)
    assert outcome.match
    assert run_on(trws_job(one, 1), PE, on="model", memory=HOSTILE).cycles == outcome.cycles


@pytest.mark.parametrize(
    ("weighted", "damping", "limit"), [(True, 0, 50), (False, 8, 53), (True, 8, 63)]
)
def test_an_engine_with_ideal_memory(weighted: bool, damping: int, limit: float) -> None:
    job = bp_job(problem(64, 48, 16, 16, weighted=weighted), 1, form="shifts", damping=damping)
    outcome = run_on(job, PE, on="model")
    assert outcome.match
    assert outcome.cycles_per_update <= limit
