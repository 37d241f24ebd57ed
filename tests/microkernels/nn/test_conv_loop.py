"""The loop of Figure 6.5 on the simulator of instructions, against NumPy."""

import numpy as np
import pytest

from isa.image import DramImage
from isa.iss.simulator import Simulator
from microkernels.common.errors import KernelError
from microkernels.nn.conv_loop import (
    COLUMN,
    TAPS,
    conv_loop_data,
    conv_loop_golden,
    conv_loop_job,
    conv_loop_program,
)


@pytest.mark.parametrize("positions", [4, 12])
def test_results_to_the_bit(positions: int) -> None:
    job = conv_loop_job(*conv_loop_data(positions, seed=positions))
    with DramImage(job.end) as memory:
        job.prepare(memory)
        simulator = Simulator(job.program, memory, parameters=job.parameters)
        assert simulator.run(100_000).state == "halted"
        results = job.outputs(memory)
    assert results.tolist() == job.expected.tolist()
    assert len(set(results.tolist())) > 1
    assert job.operations == 2 * positions * TAPS * COLUMN
    products = [n for key, n in simulator.executed.items() if key.startswith("m.v.mul.add")]
    assert products == [positions * TAPS]


def test_sums_saturate() -> None:
    weights, inputs = (np.full((rows, COLUMN), 32767, np.int16) for rows in (TAPS, 4 + TAPS))
    assert conv_loop_golden(weights, inputs).tolist() == [32767] * 4


@pytest.mark.parametrize("positions", [0, 6, 516])
def test_other_numbers_of_positions_are_refused(positions: int) -> None:
    with pytest.raises(KernelError, match=f"multiple of 4 from 4 to 512, not {positions}"):
        conv_loop_program(positions)
