"""The loop of Figure 6.5 on the simulator of instructions, against NumPy."""

import numpy as np
import pytest

from isa.image import DramImage
from isa.iss.simulator import Simulator
from microkernels.common.errors import KernelError
from microkernels.nn.conv_loop import COLUMN, TAPS, ConvLoop, conv_loop_program


@pytest.mark.parametrize("positions", [4, 12])
def test_results_to_the_bit(positions: int) -> None:
    data = ConvLoop.random(positions, seed=positions)
    program = conv_loop_program(positions)
    with DramImage(1 << 20) as memory:
        memory.write(4096, data.memory())
        simulator = Simulator(program, memory, parameters=4096)
        assert simulator.run(100_000).state == "halted"
        results = np.frombuffer(memory.read(4096 + len(data.memory()), 2 * positions), dtype="<i2")
    assert results.tolist() == data.expected().tolist()
    assert len(set(results.tolist())) > 1
    assert data.products == positions * TAPS * COLUMN
    products = [n for key, n in simulator.executed.items() if key.startswith("m.v.mul.add")]
    assert products == [positions * TAPS]


def test_sums_saturate() -> None:
    data = ConvLoop(
        np.full((TAPS, COLUMN), 32767, np.int16), np.full((4 + TAPS, COLUMN), 32767, np.int16)
    )
    assert data.expected().tolist() == [32767] * 4


@pytest.mark.parametrize("positions", [0, 6, 516])
def test_other_numbers_of_positions_are_refused(positions: int) -> None:
    with pytest.raises(KernelError, match=f"multiple of 4 from 4 to 512, not {positions}"):
        conv_loop_program(positions)
