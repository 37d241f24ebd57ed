"""Products of pairs on the Verilog: random programs against the simulator, convolutions and fully
connected layers."""

from functools import partial

import numpy as np
import pytest

from microkernels.nn.jobs import conv_job, dense_job
from microkernels.nn.window_shape import ConvShape
from microkernels.runtime.job import KernelJob
from pe.config import PeConfig
from sim_tb.cosim.engine import MemoryBehaviour, PeSimulation
from sim_tb.cosim.kernels import run_on, run_work
from sim_tb.random.comparison import check_programs
from sim_tb.random.program_builder import NEEDED
from soc.generate.presets import tile_preset

FEW = PeConfig(
    instructions=frozenset({*NEEDED, "halt", "set.vl", "set.mr", "set.fx"})
    | {"m.v.dot.add[16]", "m.v.mul.add[8]", "v.v.mul[16]", "v.s.max[16]"},
    scratchpad_bytes=1024,
)


@pytest.mark.slow
def test_random_programs() -> None:
    report = check_programs(FEW, programs=300, seed=1)
    assert report.programs == 300
    assert not report.different, report.different[0]


@pytest.mark.slow
@pytest.mark.parametrize("sharers", [1, 4])
def test_a_convolution_of_bytes_takes_half_the_cycles(sharers: int) -> None:
    config = tile_preset("vault-int8")
    shape = ConvShape(width=8, height=8, channels=64, filters=64, kernel=3, padding=1)
    random = np.random.default_rng(1)
    image = random.integers(-128, 128, (8, 8, 64))
    weights = random.integers(-128, 128, (64, 3, 3, 64))
    bias = random.integers(-1000, 1000, 64)
    layer = partial(conv_job, shape, image, weights, bias, fraction=4, sharers=sharers)
    jobs = {
        "elements": layer(),
        "sums": layer(bits=8),
        "bytes": layer(bits=8, narrow=6, depth=32),
    }
    taken = {}
    for name, job in jobs.items():
        if sharers == 1:
            outcome = run_on(job, config.pe)
            found, taken[name] = outcome.match, outcome.cycles
        else:
            run = run_on(job, config)
            found, taken[name] = run.match, run.cycles
        assert found, name
    assert taken["bytes"] <= 0.55 * taken["elements"]


def connected(narrow: int | None, *, sharers: int = 1) -> KernelJob:
    """An odd number of outputs of extreme and other bytes."""
    random = np.random.default_rng(3)
    weights = random.integers(-128, 128, (45, 300))
    weights[:4] = np.array([-128, 127, -128, 127])[:, np.newaxis]
    inputs = random.integers(-128, 128, (2, 300))
    inputs[1] = -128
    bias = random.integers(-3000, 3000, 45)
    more = {"bits": 8, "narrow": narrow, "relu": False, "sharers": sharers}
    return dense_job(inputs, weights, bias, fraction=7, **more)  # type: ignore[arg-type]


def narrowed(depth: int, filters: int = 10, *, sharers: int = 1) -> KernelJob:
    """A convolution of 16-bit elements whose outputs are bytes, in slices of ``depth`` channels."""
    shape = ConvShape(width=9, height=6, channels=24, filters=filters, padding=1)
    random = np.random.default_rng(4)
    image = random.integers(-32768, 32768, (shape.height, shape.width, shape.channels))
    weights = random.integers(-900, 900, (shape.filters, 3, 3, shape.channels))
    bias = random.integers(-3000, 3000, shape.filters)
    numbers = {"fraction": 13, "narrow": 7, "depth": depth, "sharers": sharers}
    return conv_job(shape, image, weights, bias, relu=False, **numbers)  # type: ignore[arg-type]


#: By name, each for a number of engines.
JOBS = {
    **{f"connected {narrow}": partial(connected, narrow) for narrow in (None, 0, 5)},
    **{f"narrowed {depth}": partial(narrowed, depth) for depth in (8, 24)},
    # Partial sums of two pixels move together.
    "narrowed in pairs": partial(narrowed, 8, 8),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_layers_of_bytes_are_exact_on_any_memory(name: str) -> None:
    hostile = MemoryBehaviour(
        latency=3, extra_latency=60, bandwidth=128, stall=0.4, gap=0.4, out_of_order=True, seed=5
    )
    with PeSimulation(tile_preset("vault-int8").pe) as simulation:
        for memory in (MemoryBehaviour(latency=300), hostile):
            assert run_work(JOBS[name](), simulation, memory=memory).differing == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["connected None", "connected 5", "narrowed 8", "narrowed in pairs"]
)
def test_the_timing_model_takes_the_cycles_of_a_vault(name: str) -> None:
    job, config = JOBS[name](sharers=4), tile_preset("vault-int8")
    runs = [run_on(job, config, on=on) for on in ("rtl", "model")]
    assert all(run.match for run in runs)
    assert runs[0].cycles == runs[1].cycles
