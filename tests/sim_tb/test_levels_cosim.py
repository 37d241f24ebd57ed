"""Hierarchical belief propagation on the Verilog of a small vault."""

import pytest

from kernels.bp_levels_job import BpLevelsJob
from kernels.stereo import motorcycle
from kernels.vault_ring import VaultRing
from sim_tb.cosim import CosimError
from sim_tb.levels_cosim import cosim_vault_levels
from soc.presets import tile_preset

SMALL = tile_preset("vault-small")


def job(*, pes: int = 2, address_bits: int = 20, rows: int = 1) -> BpLevelsJob:
    """Odd sides: blocks at the edges are not full."""
    return BpLevelsJob(
        problem=motorcycle(13, 9, 8).problem,
        coarse_iterations=1,
        iterations=1,
        ring=VaultRing(rows=rows, address_bits=address_bits),
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


@pytest.mark.parametrize("other", [{"pes": 3}, {"rows": 2}])
def test_a_job_for_another_machine_is_refused_in_one_line(other: dict[str, int]) -> None:
    with pytest.raises(CosimError, match="the vault has 2, 2048, 1048576") as error:
        cosim_vault_levels(job(**other), SMALL)
    assert "\n" not in str(error.value)
