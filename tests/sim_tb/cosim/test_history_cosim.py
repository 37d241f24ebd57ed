"""Engines with a load history: random programs and a kernel, against the simulator."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from isa.image import DramImage
from pe.config import PeConfig
from pe.interface import HistoryCounter
from sim_tb.cosim.engine import MemoryBehaviour, PeSimulation
from sim_tb.cosim.kernels import run_on
from sim_tb.random.comparison import check_programs
from sim_tb.random.programs import random_program
from tests.microkernels.lowered_convolution import lowered_convolution_job
from tests.sim_tb.cosim.test_cosim import CONFIG, SMALL

KEYS = CONFIG.instructions | {"set.ws"}
KERNEL = replace(CONFIG, instructions=KEYS, load_history=32)


def _history(config: PeConfig, entries: int, ways: int) -> PeConfig:
    keys = config.instructions | {"set.ws"}
    return replace(config, instructions=keys, load_history=entries, load_history_ways=ways)


def _agrees(config: PeConfig, programs: int) -> None:
    report = check_programs(config, programs=programs, seed=1)
    assert report.different == ()
    assert report.programs == programs


def test_random_programs() -> None:
    """They have hits: counted on some of them."""
    _agrees(KERNEL, 80)
    found: Counter[str] = Counter()
    with PeSimulation(KERNEL) as simulation, DramImage(1 << KERNEL.address_bits) as image:
        for seed in range(40):
            program = random_program(seed, KERNEL)
            for address, content in program.windows:
                image.write(address, content)
            result = simulation.run(program.launch, image, memory=program.memory).engine
            found.update({item.name: result.counters[item.name] for item in HistoryCounter})
    assert found["HISTORY_HITS"] > 100
    assert found["WORKSPACE_COLUMNS"] > 100
    assert found["HISTORY_PROBES"] >= found["HISTORY_HITS"] + found["WORKSPACE_COLUMNS"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "entries", "ways"),
    [(SMALL, 8, 1), (SMALL, 8, 0), (SMALL, 16, 2), (CONFIG, 64, 0), (CONFIG, 64, 4)],
)
def test_random_programs_of_all_sizes(config: PeConfig, entries: int, ways: int) -> None:
    _agrees(_history(config, entries, ways), 400)


def test_a_convolution_from_a_workspace() -> None:
    """Its outputs are the golden model's, and half of its columns come from the scratchpad."""
    generator = np.random.default_rng(3)
    image = generator.integers(-200, 200, (6, 10, 16)).astype(np.int16)
    filters = generator.integers(-100, 100, (8, 3, 3, 16)).astype(np.int16)
    job = lowered_convolution_job(image, filters, fraction=6, padding=1)
    outcome = run_on(job, KERNEL, memory=MemoryBehaviour(latency=60))
    assert outcome.match
    counters = outcome.result.engine.counters
    assert counters["HISTORY_HITS"] > 0.4 * counters["WORKSPACE_COLUMNS"]
