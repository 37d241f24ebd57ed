"""The kernel for few labels on blocks of pixels against the golden model, and where it is used."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microkernels.bp.choice import Form, plan_of
from microkernels.bp.few import FewPlan
from microkernels.bp.golden import iterate, labels
from microkernels.bp.jobs import bp_job
from microkernels.bp.kernel import MatrixPlan
from microkernels.bp.labels import split_outputs
from microkernels.bp.plan import Shifts
from microkernels.bp.problem import BpProblem
from microkernels.bp.smoothness import smoothness_costs
from microkernels.bp.tiles import fastest_cut
from microkernels.data.stereo import motorcycle
from microkernels.runtime.job import execute, simulate
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.kernels import bp_job_on, run_on
from soc.generate.presets import chip_preset


def on_blocks(problem: BpProblem, *_, **options) -> FewPlan:
    return FewPlan.of(problem)


def random_problem(seed: int, width: int, height: int, count: int, bits: int) -> BpProblem:
    """Costs that are not symmetric; sums saturate now and then."""
    rng = np.random.default_rng([seed, width, height, count])
    limit = min(2 ** rng.integers(3, bits), (1 << (bits - 1)) - 1)
    return BpProblem(
        rng.integers(-limit, limit, (height, width, count)),
        rng.integers(-limit, limit, (count, count)),
        bits,
    )


@given(
    width=st.integers(1, 5),
    height=st.integers(1, 5),
    shape=st.sampled_from([(1, 16), (2, 16), (4, 16), (7, 16), (3, 8), (8, 8), (2, 32), (4, 32)]),
    pes=st.integers(1, 4),
    seed=st.integers(0, 99),
)
@settings(max_examples=5, deadline=None, derandomize=True)
def test_messages_equal_the_golden_model_s(width, height, shape, pes, seed) -> None:
    one = random_problem(seed, 2 * width, 2 * height, *shape)
    rng = np.random.default_rng(seed)
    start = rng.integers(-90, 90, one.no_messages().shape).astype(one.data_costs.dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("microkernels.bp.jobs.plan_of", on_blocks)
        job = bp_job(one, 2, engines=ChipEngines(pes=pes), messages=start)
    outputs, hazards = simulate(job, seed=seed)
    assert (outputs == iterate(one, 2, start)).all()
    assert not hazards


@pytest.mark.parametrize("count", [2, 5])
def test_messages_and_labels_of_vaults(count: int, monkeypatch) -> None:
    monkeypatch.setattr("microkernels.bp.jobs.plan_of", on_blocks)
    engines = ChipEngines(columns=2, rows=2, address_bits=22, pes=3)
    rng = np.random.default_rng(count)
    costs = rng.integers(0, 90, (14, 22, count))
    one = BpProblem(costs, smoothness_costs(count, "potts", 20))
    run = execute(bp_job(one, 2, engines=engines, choose=True))
    assert run.match
    messages, chosen = split_outputs(one, run.outputs)
    assert (messages == iterate(one, 2)).all()
    assert (chosen == labels(one, messages)).all()


def test_where_it_is_used() -> None:
    def used(one: BpProblem, damping: int = 0, **options: int) -> bool:
        plan = plan_of(one, "matrix", ChipEngines(**options), blocks=True, damping=damping)
        return isinstance(plan, FewPlan)

    one = random_problem(0, 4, 2, 2, 16)
    assert used(one)
    assert not used(one, damping=1)
    assert not used(one, instruction_words=512)
    assert not used(one, scratchpad_bytes=1024)
    for width, height, count in ((5, 2, 2), (4, 3, 2), (4, 2, 9)):
        assert not used(random_problem(0, width, height, count, 16))


@pytest.mark.parametrize(("count", "by_shifts"), [(2, False), (4, False), (5, True), (8, True)])
def test_the_faster_form_is_chosen(count: int, by_shifts: bool) -> None:
    rng = np.random.default_rng(count)
    costs = rng.integers(0, 90, (8, 8, count))
    one = BpProblem(costs, smoothness_costs(count, "linear:2", 5))
    chosen = plan_of(one, "auto", blocks=True)
    assert isinstance(chosen, Shifts) == by_shifts
    assert chosen.cycles <= min(kind(labels=count).cycles for kind in (FewPlan, MatrixPlan))


@pytest.mark.parametrize("form", ["matrix", "auto"])
def test_a_chip_s_kernel_is_not_the_slower_one(form: Form, monkeypatch) -> None:
    """Tiles have three lines of blocks, and an engine always works on two."""
    config = chip_preset("fpga")
    problem = motorcycle(24, 18, 8).problem
    chosen = bp_job_on(problem, 1, config, form=form)
    monkeypatch.setattr("microkernels.bp.jobs.plan_of", on_blocks)
    jobs = chosen, bp_job_on(problem, 1, config)
    cycles, block_cycles = (run_on(job, config, on="model", preload=True).cycles for job in jobs)
    assert cycles < 0.85 * block_cycles


def test_the_kernel_of_few_large_tiles_is_theirs() -> None:
    """Blocks are right for a tile per vault, one pixel at a time for the fewer tiles of the cut."""
    one, engines = random_problem(0, 24, 18, 8, 16), ChipEngines.of(chip_preset("thesis"))
    cut = fastest_cut(24, 18, vaults=engines.vaults, pes=engines.pes)
    assert plan_of(one, "matrix", engines, blocks=True).in_blocks
    assert not plan_of(one, "matrix", engines, blocks=True, cut=cut).in_blocks
    kinds = [bp_job(one, engines=engines, cut=cut).program, bp_job(one, engines=engines).program]
    assert kinds[0].words != kinds[1].words
