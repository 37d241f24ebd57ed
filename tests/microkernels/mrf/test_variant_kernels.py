"""Kernels with edge weights and damping against the golden model."""

import numpy as np
import pytest
from hypothesis import Phase, given, reject, settings
from hypothesis import strategies as st

from microkernels.bp import choice
from microkernels.bp.choice import plan_of
from microkernels.bp.jobs import bp_job, bp_levels_job
from microkernels.bp.problem import BpProblem, EdgeWeights
from microkernels.bp.shifts.wide import WideShifts
from microkernels.bp.smoothness import smoothness_costs
from microkernels.bp.trws.jobs import trws_job
from microkernels.common.errors import KernelError
from microkernels.runtime.job import execute, simulate
from microkernels.runtime.ring import ChipEngines

NAMES = ("potts", "linear:2", "quadratic:7", "linear")


def problem(
    width: int,
    height: int,
    labels: int,
    bits: int = 16,
    name: str = "linear:2",
    *,
    weighted: bool = True,
    most: int = 60,
    heaviest: int = 4,
) -> BpProblem:
    rng = np.random.default_rng([width, height, labels])
    costs = rng.integers(-most if most > 60 else 0, most, (height, width, labels), endpoint=True)
    smoothness = smoothness_costs(labels, name, 1 if bits == 8 else 3)
    weights = None
    if weighted:
        # No two edges have to be alike, and some have no cost.
        limits = np.iinfo(f"i{bits // 8}")
        heaviest = min(heaviest, limits.max // max(1, int(smoothness.max())))
        weights = EdgeWeights(
            rng.integers(0, heaviest, (height, width - 1), endpoint=True),
            rng.integers(0, heaviest, (height - 1, width), endpoint=True),
        )
    return BpProblem(costs, smoothness, bits, weights)


@given(
    width=st.integers(1, 7),
    height=st.integers(1, 7),
    labels=st.integers(1, 18),
    bits=st.sampled_from([8, 16, 32]),
    name=st.sampled_from(NAMES),
    form=st.sampled_from(["shifts", "matrix"]),
    variant=st.sampled_from([(True, 0), (False, 5), (True, 9)]),
    pes=st.integers(1, 4),
    seed=st.integers(0, 9),
)
@settings(max_examples=4, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_messages_are_the_golden_model_s(
    width, height, labels, bits, name, form, variant, pes, seed
) -> None:
    weighted, damping = variant
    one = problem(width, height, labels, bits, name, weighted=weighted)
    try:
        job = bp_job(one, 2, engines=ChipEngines(pes=pes), form=form, damping=damping)
    except KernelError:
        # Labels, shifts or instructions that don't fit an engine: another test counts these.
        reject()
    outputs, hazards = simulate(job, seed=seed)
    assert not job.differing(outputs)
    assert not hazards


@pytest.mark.parametrize(
    ("labels", "lanes", "weighted", "damping"),
    [
        (16, 4, False, 8),
        (16, 2, True, 0),
        (60, 0, True, 3),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in ((60, 1, True, 3), (60, 0, True, 0), (60, 0, False, 8), (128, 0, True, 3))
        ),
    ],
)
def test_every_number_of_lanes(
    labels: int, lanes: int, weighted: bool, damping: int, monkeypatch
) -> None:
    """Odd lines, cut pairs and twos of pairs; 0 stands for the kernel for many labels."""
    monkeypatch.setattr("microkernels.bp.choice.KINDS", (lanes,))
    best = choice._best
    best.cache_clear()
    try:
        one = problem(9, 11, labels, weighted=weighted)
        found = plan_of(one, "shifts", damping=damping)
        job = bp_job(one, 1, engines=ChipEngines(pes=4), form="shifts", damping=damping)
        outputs, hazards = simulate(job)
    finally:
        best.cache_clear()
    assert (found.lines, isinstance(found, WideShifts)) == (lanes or 1, not lanes)
    assert not job.differing(outputs)
    assert not hazards


@pytest.mark.parametrize(
    ("labels", "bits", "form"),
    [(16, 8, "shifts"), (16, 16, "shifts"), (120, 16, "shifts"), (20, 16, "matrix")],
)
def test_they_are_where_sums_saturate(labels: int, bits: int, form: str) -> None:
    most = (1 << bits - 1) - 1
    one = problem(5, 4, labels, bits, most=most, heaviest=min(255, most // 8))
    job = bp_job(one, 2, form=form, damping=6)
    outputs, hazards = simulate(job)
    assert not job.differing(outputs)
    assert not hazards
    assert job.saturated > 50


@pytest.mark.parametrize(("levels", "form"), [(True, "shifts"), (False, "matrix")])
def test_on_vaults_of_a_chip(levels: bool, form: str) -> None:
    """Lines go on in other vaults, and labels are chosen on the engines."""
    engines = ChipEngines(columns=2, rows=2, address_bits=22, pes=2)
    one = problem(11, 9, 12)
    options = {"engines": engines, "form": form, "damping": 4, "choose": True}
    job = bp_levels_job(one, 1, 1, **options) if levels else bp_job(one, 2, **options)
    assert execute(job).match


def test_a_matrix_that_is_no_transform() -> None:
    rng = np.random.default_rng(4)
    weights = EdgeWeights(rng.integers(0, 9, (4, 4)), rng.integers(0, 9, (3, 5)))
    one = BpProblem(rng.integers(0, 90, (4, 5, 6)), rng.integers(-20, 50, (6, 6)), weights=weights)
    job = bp_job(one, 2, form="auto", damping=2)
    outputs, hazards = simulate(job)
    assert not job.differing(outputs)
    assert not hazards


@pytest.mark.parametrize(
    ("labels", "name", "bits", "pes"),
    [
        (5, "potts", 16, 1),
        (12, "quadratic:7", 32, 2),
        (16, "linear:2", 16, 4),
        (20, "linear", 32, 1),
    ],
)
def test_trws_with_weights(labels: int, name: str, bits: int, pes: int) -> None:
    job = trws_job(problem(6, 5, labels, bits, name, most=20), 2, engines=ChipEngines(pes=pes))
    outputs, hazards = simulate(job, seed=labels)
    assert not job.differing(outputs)
    assert not hazards


def test_labels_that_do_not_fit_are_counted() -> None:
    with pytest.raises(KernelError, match=r"40 labels .* edge weights do not fit .* 1 to \d+ fit"):
        bp_job(problem(3, 3, 40), form="matrix")
    with pytest.raises(KernelError, match="damping in sixteenths"):
        bp_job(problem(3, 3, 4), damping=16)
