"""Nodes joined to a torus, between random requesters and random memories."""

import pytest

from noc.config import NetworkConfig
from tests.noc.torus_bench import Traffic

FAST = {"offer": 1.0, "take": 1.0}
SLOW = {"offer": 0.7, "take": 0.4}


@pytest.mark.parametrize(
    ("columns", "rows", "requesters", "accesses"),
    [(1, 1, 2, 40), (2, 1, 2, 60), (1, 3, 1, 60), (2, 2, 2, 40), (3, 3, 1, 25), (5, 1, 1, 40)],
)
def test_accesses_reach_their_vault_in_order(simulate, rng, columns, rows, requesters, accesses):
    config = NetworkConfig(columns=columns, rows=rows, address_bits=10, tag_bits=3)
    traffic = Traffic(
        rng,
        config,
        requesters,
        accesses=accesses,
        request=SLOW,
        memory={"accept": 0.6, "offer": 0.6, "latency": 8},
    )
    simulate(traffic.torus, *traffic.benches)
    traffic.check_memories()
