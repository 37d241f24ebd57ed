"""Products of pairs on the Verilog: random programs against the simulator, and convolutions."""

from pathlib import Path

import pytest

from bench.byte_convolution import byte_machine, layer_jobs
from pe.config import PeConfig
from sim_tb.cosim.kernels import run_on
from sim_tb.random.comparison import check_programs
from sim_tb.random.program_builder import NEEDED

FEW = PeConfig(
    instructions=frozenset({*NEEDED, "halt", "set.vl", "set.mr", "set.fx"})
    | {"m.v.dot.add[16]", "m.v.mul.add[8]", "v.v.mul[16]", "v.s.max[16]"},
    scratchpad_bytes=1024,
)


@pytest.mark.slow
def test_random_programs(tmp_path: Path) -> None:
    report = check_programs(FEW, programs=300, seed=1, folder=tmp_path)
    assert report.programs == 300
    assert not report.different, report.different[0]


@pytest.mark.slow
@pytest.mark.parametrize("sharers", [1, 4])
def test_a_convolution_of_bytes_takes_half_the_cycles(sharers: int) -> None:
    config = byte_machine()
    taken = {}
    for name, job in layer_jobs(8, sharers).items():
        if sharers == 1:
            outcome = run_on(job, config.pe)
            found, taken[name] = outcome.match, outcome.cycles
        else:
            run = run_on(job, config)
            found, taken[name] = run.match, run.cycles
        assert found, name
    assert taken["bytes"] <= 0.55 * taken["elements"]
