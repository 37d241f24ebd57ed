"""A convolution from a workspace on a vault: Verilog, timing model, golden model."""

from dataclasses import replace

import numpy as np
import pytest

from sim_tb.cosim.kernels import run_on
from soc.generate.presets import tile_preset
from tests.microkernels.lowered_convolution import lowered_convolution_job


@pytest.mark.slow
def test_the_model_takes_the_cycles_of_the_verilog() -> None:
    tile = tile_preset("vault-small")
    instructions = tile.pe.instructions | {"set.ws"}
    pe = replace(tile.pe, instructions=instructions, scratchpad_bytes=4096)
    generator = np.random.default_rng(1)
    image = generator.integers(-200, 200, (7, 9, 8)).astype(np.int16)
    filters = generator.integers(-100, 100, (8, 3, 3, 8)).astype(np.int16)
    job = lowered_convolution_job(image, filters, fraction=6, stride=2, padding=1)
    first, second = (run_on(job, replace(tile, pe=pe), on=on) for on in ("rtl", "model"))
    assert first.match
    assert second.match
    assert first.cycles == second.cycles
    counters = [[result.vaults[0] for result in each.results.values()] for each in (first, second)]
    assert [each["READS"] for each in counters[0]] == [each["READS"] for each in counters[1]]
