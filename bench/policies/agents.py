"""Benchmark of the search for an agent: its winners on other traffic, and what features are
worth."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median

import sim_tb.measure.agents.feature_search
import sim_tb.measure.agents.learning
import sim_tb.measure.schedulers
import sim_tb.measure.traces
import sim_tb.timed.vault
import synth.timing.sta
from bench import fingerprints
from bench.measurement import Measurement
from bench.terminal import say
from hdl.component import Component
from hdl.emission import emit
from memory.agent.config import AgentConfig
from memory.agent.features import FEATURES
from memory.agent.sarsa import Sarsa
from memory.agent.state import VaultState
from memory.config import VaultConfig
from memory.controller.policies import make_scheduler
from memory.controller.snapshot import SNAPSHOT_CYCLES
from memory.controller.starvation import GROUP_BURSTS, PATIENCE_CYCLES
from sim_tb.dut.memory import vault_design
from sim_tb.harness.trace import TRACE_WORD
from sim_tb.measure.agents.feature_search import (
    RATES,
    Generation,
    cost,
    search,
    without_each_feature,
)
from sim_tb.measure.agents.learning import LENGTHS, measure_bandwidth
from sim_tb.measure.schedulers import REQUESTERS, measure_alone, measure_policy, policy_vault
from sim_tb.measure.traces import APPLICATIONS, traced_launch, traced_vault
from synth.physical.asic import NANGATE45
from synth.physical.mapping import engine_netlist
from synth.physical.targets import find_cells, find_target
from synth.sram import SramTimes
from synth.timing.sta import longest_paths

from .schedulers import SIZED, part_kge, windowed

__all__ = ["GENERATIONS", "WINNERS", "agents", "made_of_agents"]

#: Generations of the search, and candidates of the last that are measured in Verilog.
GENERATIONS, WINNERS = 30, 3


def agents() -> Iterator[Measurement]:
    """A genetic search for features and rates of the learned policy, on the timing model; the best
    agents in Verilog, on all mixes, with other seeds and longer runs than in the search; on the
    model what each feature of an agent is worth; and area and longest paths of schedulers. A cost
    is time for what "first-ready-timed" moves in 1."""
    past = search(GENERATIONS, progress=_say)
    for generation in past:
        number = generation.number + 1
        costs = [value for _, value in generation.ranked]
        yield Measurement(f"search_best_{number}", generation.best[0][1], "", 0.01)
        yield Measurement(f"search_middle_{number}", median(costs), "", 0.01)
    # Candidates may differ in buckets of a feature that has no more than two.
    best_ones = dict.fromkeys(candidate.agent for candidate, _ in past[-1].best)
    winners = list(best_ones)[:WINNERS]
    alone = measure_alone()
    for place, agent in enumerate(winners, start=1):
        yield from _described(f"winner_{place}", agent)
        for mix, found in measure_policy(_vault(agent), alone).items():
            key = f"winner_{place}_{mix}"
            yield Measurement(f"{key}_gbs", found.gbs, "GB/s", 0.01, True)
            yield Measurement(f"{key}_speedup", found.speedup, "", 0.01, True)
            yield Measurement(f"{key}_slowest", found.slowest, "", 0.02)
            yield Measurement(f"{key}_longest", found.longest, "cycles", 0.05)
    best, *_ = winners
    for name, vault in (("winner_1", _vault(best)), ("timed", policy_vault("first-ready-timed"))):
        for mix, values in measure_bandwidth(vault, LENGTHS).items():
            for length, gbs in zip(LENGTHS, values, strict=True):
                yield Measurement(f"{name}_after_{length}_{mix}", gbs, "GB/s", 0.01, True)
    part = make_scheduler(_vault(replace(best, window_base=0)))
    yield Measurement("winner_1_kge", part_kge(part), "kGE", 0.01)
    for name, agent in (("default", AgentConfig()), ("winner_1", best)):
        yield Measurement(f"{name}_cost", cost(agent), "", 0.01)
        for feature, value in without_each_feature(agent).items():
            yield Measurement(f"{name}_without_{feature}", value, "", 0.01)
    yield from _hardware()


def _hardware() -> Iterator[Measurement]:
    """Parts of the learned scheduler, and the longest path of each scheduler before layout, with
    the loads of pins: of all, and of those to an output."""
    for name, part in _parts().items():
        yield Measurement(f"{name}_kge", part_kge(part), "kGE", 0.01)
    cells, library = find_cells(NANGATE45)
    for policy in SIZED:
        netlist = engine_netlist(emit(make_scheduler(windowed(policy)), "part"), cells)
        paths = longest_paths(netlist, library, SramTimes(library.node_nm))
        key = policy.replace("-", "_")
        yield Measurement(f"{key}_ns", max(path.ns for path in paths.values()), "ns", 0.02)
        yield Measurement(f"{key}_output_ns", paths["output"].ns, "ns", 0.02)


def _parts() -> dict[str, Component]:
    """The agent, and what it knows of its vault."""
    vault = policy_vault("learned")
    state = VaultState(
        vault.agent,
        banks=vault.banks,
        entries=vault.transaction_queue,
        run_bits=GROUP_BURSTS.bit_length(),
        patience_bits=PATIENCE_CYCLES.bit_length(),
        age_bits=SNAPSHOT_CYCLES.bit_length(),
    )
    return {"agent": Sarsa(vault.agent), "state": state}


def _say(generation: Generation) -> None:
    say(f"generation {generation.number + 1} of {GENERATIONS}")


def _vault(agent: AgentConfig) -> VaultConfig:
    return replace(policy_vault("learned"), agent=agent)


def _described(prefix: str, agent: AgentConfig) -> Iterator[Measurement]:
    """An agent's buckets by feature, 0 for one that it does not have, and its rates."""
    buckets = {feature.name: len(feature.thresholds) + 1 for feature in agent.state}
    for feature in FEATURES:
        yield Measurement(f"{prefix}_{feature}", buckets.get(feature, 0), "buckets", None)
    for rate in RATES:
        yield Measurement(f"{prefix}_{rate}", getattr(agent, rate), "", None)


def made_of_agents() -> dict[str, str]:
    """The search, the timing model of a vault, the memory with an agent and the models around it,
    and the traffic."""
    (room,) = map(Path, sim_tb.timed.vault.__path__)
    model = [file for file in room.iterdir() if file.suffix in (".cpp", ".h")]
    return {
        "search and traffic": fingerprints.code(
            sim_tb.measure.agents.feature_search,
            sim_tb.measure.agents.learning,
            sim_tb.measure.schedulers,
            sim_tb.measure.traces,
        ),
        "timing model of a vault": fingerprints.texts(*model),
        "replay": fingerprints.texts(TRACE_WORD, TRACE_WORD.with_name("vault_replay.h")),
        "traced programs": fingerprints.programs(
            traced_launch(name)[1].program for name in APPLICATIONS
        ),
        "traced vault": fingerprints.hardware(traced_vault()),
        **fingerprints.simulator("the memory", vault_design(policy_vault("learned"), REQUESTERS)),
        "mapping": fingerprints.mapping(find_target("generic")),
        "mapping to standard cells": fingerprints.mapping(find_target(NANGATE45)),
        "timing analysis": fingerprints.code(synth.timing.sta),
        **{
            f"Verilog of the scheduler {policy}": fingerprints.component(
                make_scheduler(windowed(policy))
            )
            for policy in SIZED
        },
    }
