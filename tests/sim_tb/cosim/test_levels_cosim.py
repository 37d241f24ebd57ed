"""Hierarchical belief propagation on the Verilog of a small vault."""

import numpy as np
import pytest

from microkernels.bp import jobs
from microkernels.bp.golden import coarse_problem
from microkernels.bp.jobs import bp_between_job, bp_levels_job
from microkernels.common.errors import KernelError
from microkernels.data.stereo import motorcycle
from microkernels.runtime.job import KernelJob
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import tile_preset

SMALL = tile_preset("vault-small")


def job(
    *,
    pes: int = 2,
    rows: int = 1,
    size: tuple[int, int] = (13, 9),
    labels: int = 8,
) -> KernelJob:
    """Odd sides: blocks at the edges are not full."""
    return bp_levels_job(
        motorcycle(*size, labels).problem,
        1,
        1,
        engines=ChipEngines(
            rows=rows, address_bits=20, pes=pes, scratchpad_bytes=SMALL.pe.scratchpad_bytes
        ),
    )


def test_all_phases_on_verilog_equal_the_golden_model() -> None:
    outcome = run_on(job(), SMALL)
    assert outcome.match
    assert list(outcome.results) == ["construct", "coarse", "copy", "fine"]
    blocks = 7 * 5
    columns = {name: result.vaults[0] for name, result in outcome.results.items()}
    # Columns of a block: four data costs in and one out; messages to four pixels, of which up and
    # down share a column, left and right lie in two.
    assert columns["construct"]["WRITES"] == blocks
    assert columns["copy"]["WRITES"] == 4 * 3 * blocks
    assert columns["construct"]["READS"] >= 4 * blocks
    stored = {
        name: [pe.counters["BYTES_STORED"] > 0 for pe in result.engines]
        for name, result in outcome.results.items()
    }
    # Copy is one engine's work: a second one would close the rows that the first writes to.
    assert stored["construct"] == [True, True]
    assert stored["copy"] == [True, False]


@pytest.mark.parametrize(("size", "labels", "pes"), [((2, 3), 5, 2), ((38, 3), 3, 1)])
def test_other_shapes_on_verilog(size: tuple[int, int], labels: int, pes: int) -> None:
    """Fewer blocks than a batch has, and rows that end within batches."""
    assert run_on(job(size=size, labels=labels, pes=pes), SMALL).match


def test_construct_and_copy_on_one_vault_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    engines = ChipEngines(
        columns=2, address_bits=20, pes=2, scratchpad_bytes=SMALL.pe.scratchpad_bytes
    )
    odd = motorcycle(13, 9, 8).problem
    with pytest.raises(KernelError, match="13 x 9 pixels: both sides must be even"):
        bp_between_job(odd, odd.no_messages(), engines=engines)
    problem = motorcycle(14, 10, 8).problem
    shape = coarse_problem(problem).no_messages().shape
    messages = np.random.default_rng(1).integers(-1000, 1000, shape, np.int16)

    def between() -> KernelJob:
        return bp_between_job(problem, messages, engines=engines)

    outcome = run_on(between(), SMALL)
    assert outcome.match
    # Of 7 x 5 blocks in 2 x 2 tiles, the first vault has 4 x 3 and 3 x 2.
    assert {name: result.vaults[0]["WRITES"] for name, result in outcome.results.items()} == {
        "construct": 18,
        "copy": 4 * 3 * 18,
    }
    monkeypatch.setattr(jobs, "copied", lambda problem, begun: problem.no_messages())
    assert not run_on(between(), SMALL).match


@pytest.mark.parametrize(
    ("pes", "rows", "message"),
    [
        (3, 1, "3 engines can't work in a vault of 2"),
        (2, 2, "a job of 2 vaults can't run on 1"),
    ],
)
def test_a_job_for_another_machine_is_refused_in_one_line(
    pes: int, rows: int, message: str
) -> None:
    with pytest.raises(CosimError, match=message) as error:
        run_on(job(pes=pes, rows=rows), SMALL)
    assert "\n" not in str(error.value)
