"""The kernel that chooses labels, against equation 2.11 in exact numbers."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from microkernels.bp import golden
from microkernels.bp.jobs import bp_job, bp_levels_job
from microkernels.bp.kernel import MatrixPlan
from microkernels.bp.labels import labels_kernel, machine_labels, split_outputs
from microkernels.bp.problem import BpProblem
from microkernels.bp.smoothness import smoothness_costs
from microkernels.common.errors import KernelError
from microkernels.runtime.job import execute, simulate
from microkernels.runtime.ring import ChipEngines


def problem(width: int, height: int, labels: int, bits: int = 16, most: int = 9) -> BpProblem:
    """Small costs, so that beliefs are often equal."""
    rng = np.random.default_rng([width, height, labels])
    costs = rng.integers(-most, most, (height, width, labels), endpoint=True)
    return BpProblem(costs, smoothness_costs(labels, "linear:2", 1), bits)


@given(
    width=st.integers(1, 11),
    height=st.integers(1, 7),
    labels=st.sampled_from([1, 2, 3, 7, 16, 33, 60]),
    bits=st.sampled_from([8, 16, 32]),
    pes=st.integers(1, 4),
    seed=st.integers(0, 9),
)
@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate])
def test_labels_are_those_of_the_least_beliefs(width, height, labels, bits, pes, seed) -> None:
    one = problem(width, height, labels, bits)
    job = bp_job(one, 1, engines=ChipEngines(pes=pes), form="auto", choose=True)
    outputs, hazards = simulate(job, seed=seed)
    messages, chosen = split_outputs(one, outputs)
    assert (messages == golden.iterate(one, 1)).all()
    assert (chosen == golden.labels(one, messages)).all()
    assert not job.differing(outputs)
    assert not hazards


@pytest.mark.parametrize(("labels", "bits"), [(256, 16), (127, 8), (128, 32)])
def test_many_labels(labels: int, bits: int) -> None:
    one = problem(3, 2, labels, bits)
    outputs, hazards = simulate(bp_job(one, 1, form="shifts", choose=True))
    messages, chosen = split_outputs(one, outputs)
    assert (chosen == golden.labels(one, messages)).all()
    assert not hazards


def test_beliefs_that_saturate() -> None:
    one = problem(6, 5, 4, 8, most=127)
    begun = np.random.default_rng(1).integers(-128, 128, one.no_messages().shape)
    job = bp_job(one, 0, messages=begun, choose=True)
    outputs, _ = simulate(job)
    messages, chosen = split_outputs(one, outputs)
    assert (chosen == machine_labels(one, messages)).all()
    assert (chosen != golden.labels(one, messages)).any()
    assert job.saturated > 0


@pytest.mark.parametrize("levels", [False, True])
def test_on_vaults_of_a_chip(levels: bool) -> None:
    engines = ChipEngines(columns=2, rows=2, address_bits=22)
    one = problem(21, 17, 16)
    if levels:
        job = bp_levels_job(one, 1, 1, engines=engines, choose=True)
    else:
        job = bp_job(one, 1, engines=engines, choose=True)
    run = execute(job)
    assert run.match
    messages, chosen = split_outputs(one, run.outputs)
    assert (chosen == golden.labels(one, messages)).all()


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(KernelError, match="labels 0 to 127 on an engine need more than 8 bits"):
        bp_job(problem(2, 2, 128, 8), form="shifts", choose=True)
    with pytest.raises(KernelError, match="do not fit a scratchpad of 1024"):
        labels_kernel(MatrixPlan(labels=128, scratchpad_bytes=1024))
