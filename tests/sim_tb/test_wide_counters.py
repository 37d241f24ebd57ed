"""Counters of 44 bits in Verilog, with each bit in use: they start from values that no run reaches,
and count on from there, past their end."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from hdl.counter_bank import COUNTER_BITS
from isa.image import DramImage
from memory.controller.counters import VaultCounter
from noc.config import NetworkConfig
from sim_tb.cosim.engine import PeSimulation
from sim_tb.harness import traffic_runs
from sim_tb.harness.memory import MemoryBehaviour
from sim_tb.harness.traffic import Pattern, TrafficResult
from sim_tb.random.comparison import fill, program_job
from sim_tb.random.programs import random_program
from sim_tb.random.random_program import RandomProgram
from sim_tb.runner.build import build
from sim_tb.runner.session import Session
from sim_tb.workloads.stress import random_case
from tests.sim_tb.cosim.test_cosim import SMALL
from tests.sim_tb.nodes import run_nodes
from tests.sim_tb.preset_counters import PresetRun

#: Of each memory of counters, those that are just being written miss what is added.
IN_FLIGHT = 2


def check_sums(before: Sequence[int], after: Sequence[int], added: Sequence[int]) -> set[int]:
    """The counters that got what was ``added``; all others but a few must, too."""
    gained = [(new - old) % (1 << COUNTER_BITS) for old, new in zip(before, after, strict=True)]
    missed = [number for number, gain in enumerate(gained) if gain != added[number]]
    assert len(missed) <= IN_FLIGHT
    assert not any(gained[number] for number in missed)
    return set(range(len(gained))) - set(missed)


def test_counters_of_an_engine() -> None:
    right = set()
    with PeSimulation(SMALL) as simulation, DramImage(1 << SMALL.address_bits) as image:

        def ended(program: RandomProgram, after: int = 0) -> Any:
            fill(image, program)
            job = program_job(program, image, simulation, reset=True)
            jobs: list[Any] = [PresetRun(job, after, program.seed) if after else job]
            (result,) = simulation._session.run_many(jobs)
            return result

        programs = (random_program(seed, SMALL) for seed in itertools.count())
        long = ((each, ended(each)) for each in programs)
        for program, plain in itertools.islice((each for each in long if each[1].cycles > 400), 6):
            # Loading takes a cycle a word.
            preset, added = ended(program, len(program.words) + plain.cycles // 2)
            (values,) = added.values()
            assert preset.cycles == plain.cycles
            right |= check_sums(plain.counters, preset.counters, values)
    assert right == set(range(len(plain.counters)))


def _both(monkeypatch: pytest.MonkeyPatch, run: Callable[[], list[TrafficResult]]) -> list[Any]:
    """Results of ``run``, and those with counters that start from other values."""

    def preset(design: Any, runs: Sequence[Any], arguments: Sequence[str] = ()) -> list[Any]:
        with Session(build(design), design.top, arguments=arguments) as session:
            jobs = [PresetRun(job, 300 + seed, seed) for seed, job in enumerate(runs)]
            for result, added in session.run_many(jobs):
                every.append(added)
                results.append(result)
        return results

    plain = run()
    every: list[dict[str, list[int]]] = []
    results: list[TrafficResult] = []
    monkeypatch.setattr(traffic_runs, "simulated", preset)
    run()
    return list(zip(plain, results, every, strict=True))


def test_counters_of_a_vault(monkeypatch: pytest.MonkeyPatch) -> None:
    case = random_case(2668, 3000)
    count = max(VaultCounter) + 1
    right = set()
    for plain, preset, added in _both(
        monkeypatch,
        lambda: traffic_runs.run_traffic(case.config, case.requesters, case.jobs),
    ):
        (values,) = added.values()
        assert plain.ends == preset.ends
        right |= check_sums(plain.counters[:count], preset.counters[:count], values[:count])
    assert right == set(range(count))


def test_counters_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    config = NetworkConfig(columns=3, rows=1, address_bits=11, tag_bits=4)
    runs = [
        (Pattern(accesses=300, writes=0.5, seed=seed), MemoryBehaviour(latency=1))
        for seed in range(6)
    ]
    for plain, preset, added in _both(monkeypatch, lambda: run_nodes(config, 2, runs)):
        assert len(added) == 3
        count = len(plain.counters) // 4
        for number, scope in enumerate(sorted(added)):
            part = slice(number * count, number * count + count)
            check_sums(plain.counters[part], preset.counters[part], added[scope])
