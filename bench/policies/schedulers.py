"""Benchmark of a vault's scheduling policies: bandwidth and fairness, what the agent learns, and
what it costs."""

from collections.abc import Iterator
from dataclasses import replace

import sim_tb.measure.agents.learning
import sim_tb.measure.schedulers
import sim_tb.measure.traces
from bench import fingerprints
from bench.measurement import Measurement
from hdl.component import Component
from hdl.emission import emit
from memory.config import SchedulerPolicy, VaultConfig
from memory.controller.policies import make_scheduler
from sim_tb.dut.memory import vault_design
from sim_tb.harness.trace import TRACE_WORD
from sim_tb.measure.agents.learning import LENGTHS, measure_bandwidth
from sim_tb.measure.schedulers import (
    POLICIES,
    REQUESTERS,
    measure_alone,
    measure_policy,
    policy_vault,
)
from sim_tb.measure.traces import APPLICATIONS, traced_launch, traced_vault
from synth.physical.area import measure_unit
from synth.physical.targets import find_target
from synth.physical.units import EngineUnit

__all__ = ["SIZED", "made_of_schedulers", "part_kge", "schedulers", "windowed"]

#: Policies whose area and longest path are measured.
SIZED: tuple[SchedulerPolicy, ...] = (
    "first-ready",
    "first-ready-timed",
    "par-bs",
    "learned",
    "meta",
)


def schedulers() -> Iterator[Measurement]:
    """Four requesters, alike and unlike, at a vault's memory with each scheduling policy; what the
    learned one moves by the length of a run; areas."""
    alone = measure_alone()
    for policy in POLICIES:
        for mix, found in measure_policy(policy_vault(policy), alone).items():
            key = f"{_key(policy)}_{mix}"
            yield Measurement(f"{key}_gbs", found.gbs, "GB/s", 0.01, True)
            yield Measurement(f"{key}_speedup", found.speedup, "", 0.01, True)
            yield Measurement(f"{key}_slowest", found.slowest, "", 0.02)
            yield Measurement(f"{key}_longest", found.longest, "cycles", 0.05)
    for mix, values in measure_bandwidth(policy_vault("learned"), LENGTHS).items():
        for length, gbs in zip(LENGTHS, values, strict=True):
            yield Measurement(f"learned_after_{length}_{mix}", gbs, "GB/s", 0.01, True)
    for policy in SIZED:
        kge = part_kge(make_scheduler(windowed(policy)))
        yield Measurement(f"{_key(policy)}_kge", kge, "kGE", 0.01)


def made_of_schedulers() -> dict[str, str]:
    """The memory with each policy, with the models around it, and the traffic; the mappings."""
    found = {
        "traffic": fingerprints.code(
            sim_tb.measure.schedulers, sim_tb.measure.agents.learning, sim_tb.measure.traces
        ),
        "replay": fingerprints.texts(TRACE_WORD, TRACE_WORD.with_name("vault_replay.h")),
        "traced programs": fingerprints.programs(
            traced_launch(name)[1].program for name in APPLICATIONS
        ),
        "traced vault": fingerprints.hardware(traced_vault()),
        "mapping": fingerprints.mapping(find_target("generic")),
    }
    for policy in POLICIES:
        design = vault_design(policy_vault(policy), REQUESTERS)
        found |= fingerprints.simulator(f"the memory {policy}", design)
    for policy in SIZED:
        part = make_scheduler(windowed(policy))
        found[f"Verilog of the scheduler {policy}"] = fingerprints.component(part)
    return found


def part_kge(part: Component) -> float:
    """A component alone in 1,000 gate equivalents, mapped for area.

    Raises:
        synth.errors.SynthesisError: Yosys fails.
    """
    emission = emit(part, "part")
    unit = EngineUnit("part", ((emission.top, 1),))
    return measure_unit(unit, find_target("generic"), emission, emission).values["logic_ge"] / 1000


def _key(policy: str) -> str:
    return policy.replace("-", "_")


def windowed(policy: SchedulerPolicy) -> VaultConfig:
    """The vault with ``policy``, and with the port to its weights if it has any."""
    vault = policy_vault(policy)
    if not vault.learns:
        return vault
    return replace(vault, agent=replace(vault.agent, window_base=0))
