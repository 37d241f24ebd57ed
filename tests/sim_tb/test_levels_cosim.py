"""Hierarchical belief propagation on the Verilog of a small vault."""

import numpy as np
import pytest

from microkernels.bp.levels import coarse_problem
from microkernels.bp.levels_job import BpLevelsJob
from microkernels.data.stereo import motorcycle
from microkernels.runtime.ring import VaultRing
from sim_tb.cosim import levels as levels_cosim
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.levels import cosim_vault_between, cosim_vault_levels
from soc.generate.presets import tile_preset

SMALL = tile_preset("vault-small")


def job(
    *,
    pes: int = 2,
    columns: int = 1,
    rows: int = 1,
    size: tuple[int, int] = (13, 9),
    labels: int = 8,
) -> BpLevelsJob:
    """Odd sides: blocks at the edges are not full."""
    return BpLevelsJob(
        problem=motorcycle(*size, labels).problem,
        coarse_iterations=1,
        iterations=1,
        ring=VaultRing(columns=columns, rows=rows, address_bits=20),
        pes=pes,
        scratchpad_bytes=SMALL.pe.scratchpad_bytes,
    )


def test_all_phases_on_verilog_equal_the_golden_model() -> None:
    outcome = cosim_vault_levels(job(), SMALL)
    assert outcome.match
    assert list(outcome.phases) == ["construct", "coarse", "copy", "fine"]
    blocks = 7 * 5
    columns = {name: result.counters for name, result in outcome.phases.items()}
    # Columns of a block: four data costs in and one out; messages to four pixels, of which up and
    # down share a column, left and right lie in two.
    assert columns["construct"]["WRITES"] == blocks
    assert columns["copy"]["WRITES"] == 4 * 3 * blocks
    assert columns["construct"]["READS"] >= 4 * blocks
    stored = {
        name: [pe.counters["BYTES_STORED"] > 0 for pe in result.pes]
        for name, result in outcome.phases.items()
    }
    # Copy is one engine's work: a second one would close the rows that the first writes to.
    assert stored["construct"] == [True, True]
    assert stored["copy"] == [True, False]


@pytest.mark.parametrize(("size", "labels", "pes"), [((2, 3), 5, 2), ((38, 3), 3, 1)])
def test_other_shapes_on_verilog(size: tuple[int, int], labels: int, pes: int) -> None:
    """Fewer blocks than a batch has, and rows that end within batches."""
    assert cosim_vault_levels(job(size=size, labels=labels, pes=pes), SMALL).match


def test_construct_and_copy_on_one_vault_of_several(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CosimError, match="13 x 9 pixels: both sides must be even"):
        cosim_vault_between(job(columns=2), job().problem.no_messages(), SMALL)
    several = job(columns=2, size=(14, 10))
    coarse = coarse_problem(several.problem)
    shape = coarse.no_messages().shape
    messages = np.random.default_rng(1).integers(-1000, 1000, shape, np.int16)
    results = cosim_vault_between(several, messages, SMALL)
    # Of 7 x 5 blocks in 2 x 2 tiles, the first vault has 4 x 3 and 3 x 2.
    assert {name: result.counters["WRITES"] for name, result in results.items()} == {
        "construct": 18,
        "copy": 4 * 3 * 18,
    }
    monkeypatch.setattr(levels_cosim, "copied", lambda problem, begun: problem.no_messages())
    with pytest.raises(CosimError, match="wrong bytes from address"):
        cosim_vault_between(several, messages, SMALL)


@pytest.mark.parametrize(("pes", "rows"), [(3, 1), (2, 2)])
def test_a_job_for_another_machine_is_refused_in_one_line(pes: int, rows: int) -> None:
    with pytest.raises(CosimError, match="the vault has 2, 2048, 1048576") as error:
        cosim_vault_levels(job(pes=pes, rows=rows), SMALL)
    assert "\n" not in str(error.value)
