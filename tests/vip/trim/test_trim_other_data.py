"""Engines trimmed to an application do on other data what the full engine does."""

from dataclasses import replace

import numpy as np
import pytest

from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.run import Launch
from microkernels.suite import suite
from pe.config import PeConfig
from sim_tb.cosim.trim_check import check_trimmed, measure
from soc.generate.presets import preset
from synth.analysis.contents import Subject
from synth.analysis.trim import TrimReport, report
from vip.trimming.runs import load_subjects, subjects_of

#: One of each kind of kernel, whose data are made quickly.
QUICK = ("matrix-addition", "bitonic-sort", "bp", "bp-copy", "conv-mid", "fully-connected", "lstm")


def trimmed(name: str) -> tuple[list[Subject], TrimReport]:
    application = suite()[name]
    full = replace(preset(application.preset), counters=False)
    launches = load_subjects(list(subjects_of(application)), full, 0)
    return launches, report(launches, full)


def other_data(launch: Subject, seed: int) -> bytes:
    """The memory with random bytes, but for what is declared."""
    (memory,) = launch.memories
    data = bytearray(np.random.default_rng(seed).bytes(len(memory)))
    contents = launch.contents(PeConfig())
    for start, held in contents.constants.items():
        data[start : start + len(held)] = held
    for numbers in contents.numbers:
        width = numbers.width // 8
        for place in range(numbers.span.start, numbers.span.end, width):
            value = (numbers.low + seed % 2) if numbers.high > numbers.low else numbers.low
            data[place : place + width] = value.to_bytes(width, "little", signed=True)
    return bytes(data)


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in suite()],
)
def test_the_simulator_ends_alike_on_other_data(name: str) -> None:
    launches, cut = trimmed(name)
    assert all(bound.basis != "profiled" for bound in cut.bounds)
    for seed, launch in enumerate(launches):
        data = other_data(launch, seed)
        ends = []
        for config in (cut.full, cut.trimmed):
            with DramImage(1 << cut.full.address_bits) as image:
                image.write(0, data)
                simulator = Simulator(
                    launch.program,
                    image,
                    parameters=launch.parameters or 0,
                    pe_count=1,
                    **config.limits,
                )
                outcome = simulator.run(10_000_000)
                registers = simulator.registers + [0] * (cut.full.registers - config.registers)
                ends.append((outcome, registers, image.read(0, len(data))))
        assert ends[0][0].state == "halted"
        assert ends[0] == ends[1]


def smaller(config: PeConfig) -> PeConfig:
    """Fewer transfers in flight than any run needs: only cycles change."""
    return replace(config, arc_entries=1, load_store_queue=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["max-pooling", "bp"])
def test_the_hardware_ends_alike_on_other_data(name: str) -> None:
    launches, cut = trimmed(name)
    for launch in launches:
        work = Launch(
            program=launch.program, parameters=launch.parameters or 0, max_cycles=100_000_000
        )
        runs = [
            measure(work, contents, cut.full, watched=False)
            for contents in (launch.memories[0], other_data(launch, 1))
        ]
        checks = [check_trimmed(run, cut.full, cut.trimmed, try_removed=False) for run in runs]
        assert all(check.match for check in checks)
        # The programs are steady: data do not change the cycles.
        assert checks[0].cycles_full == checks[1].cycles_full
        found = check_trimmed(runs[1], cut.full, smaller(cut.trimmed), try_removed=False)
        assert found.different == ("cycles",)
