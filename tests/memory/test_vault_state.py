"""The state that an agent sees, against counts of the flags, in any combination of these."""

import pytest

from memory.agent.config import AgentConfig
from memory.agent.state import VaultState

FLAGS = ("waiting", "hit", "write", "row", "same")


@pytest.mark.parametrize(
    "features",
    [
        ("reads:1,2,3", "writes:1,2,3", "hits", "other_hits", "rows:1,2,3", "direction"),
        ("run", "patience", "queue:1,3,5", "waiting:1,2,4", "sweep:1"),
    ],
)
def test_buckets_are_those_of_the_counts(simulate, rng, features):
    agent = AgentConfig(features=features)
    dut = VaultState(agent, banks=4, entries=6, run_bits=6, patience_bits=8, age_bits=4)

    async def bench(ctx):
        for _ in range(300):
            values = {name: rng.getrandbits(len(getattr(dut, name))) for name in FLAGS}
            values["occupied"] = rng.getrandbits(6) & rng.getrandbits(6)
            values |= {"writing": rng.getrandbits(1), "age": rng.getrandbits(4)}
            values |= {"run": rng.getrandbits(6), "patience": rng.getrandbits(8)}
            for name, value in values.items():
                ctx.set(getattr(dut, name), value)
            counts = {
                "reads": (values["waiting"] & ~values["write"]).bit_count(),
                "writes": (values["waiting"] & values["write"]).bit_count(),
                "hits": (values["hit"] & values["same"]).bit_count(),
                "other_hits": (values["hit"] & ~values["same"]).bit_count(),
                "rows": values["row"].bit_count(),
                "queue": values["occupied"].bit_count(),
                "waiting": values["waiting"].bit_count(),
                "direction": values["writing"],
                "sweep": values["age"],
                **{name: values[name] for name in ("run", "patience")},
            }
            await ctx.tick()
            for number, feature in enumerate(agent.state):
                found = ctx.get(getattr(dut, f"state_{number}"))
                assert found == feature.bucket(counts[feature.name]), feature.name

    simulate(dut, bench)
