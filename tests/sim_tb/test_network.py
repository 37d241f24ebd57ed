"""Networks in Verilator: flits of random traffic, and accesses between nodes."""

from dataclasses import replace

import pytest

from noc.config import NetworkConfig
from noc.node.counters import INDEX_BITS, NetworkCounter
from noc.router.router import HOP_CYCLES
from sim_tb.harness.memory import MemoryBehaviour
from sim_tb.harness.network import Destinations, FlitJob, NetworkError
from sim_tb.harness.traffic import Pattern, Walk
from sim_tb.harness.traffic_runs import run_network
from tests.sim_tb.nodes import run_nodes


def pressed(destinations, *, answers, seed=1):
    return FlitJob(
        destinations=destinations,
        flits=20_000,
        longest=6,
        offer=0.9,
        take=0.7,
        pause=300,
        answers=answers,
        seed=seed,
    )


@pytest.mark.parametrize(("columns", "rows"), [(2, 2), (5, 1)])
def test_all_traffic_arrives_in_order_under_back_pressure(columns, rows):
    config = NetworkConfig(columns=columns, rows=rows)
    jobs = [
        pressed(destinations, answers=answers)
        for destinations in Destinations
        for answers in (False, True)
    ]
    # In a single row the transposed place of a vault is the vault itself.
    sending = [job for job in jobs if rows > 1 or job.destinations is not Destinations.TRANSPOSE]
    for job, result in zip(sending, run_network(config, sending), strict=True):
        assert sum(result.flits) >= job.flits
        assert min(result.packets) > 1000
        if job.answers:
            assert result.packets[0] == result.packets[1]


def test_a_hop_takes_two_cycles_and_a_link_a_flit_each_cycle():
    jobs = [
        FlitJob(rate=0.02, cycles=20_000, warmup=100),
        FlitJob(destinations=Destinations.NEIGHBOUR, cycles=3000, warmup=1000),
    ]
    idle, full = run_network(NetworkConfig(columns=5, rows=1), jobs)
    assert idle.fastest[1:3] == (2 * HOP_CYCLES, 3 * HOP_CYCLES)
    assert idle.mean < 2.5 * HOP_CYCLES + 5 + 2
    assert full.measured_flits == 5 * 2000


def test_what_is_never_taken_counts_as_lost():
    job = FlitJob(flits=1000, take=0.001, patience=2000)
    with pytest.raises(NetworkError, match=r"run 0: cycle \d+: LOST: a packet of class"):
        run_network(NetworkConfig(columns=2, rows=2), [job])


def test_a_job_that_does_not_fit_is_refused():
    with pytest.raises(NetworkError, match="packets of 9 flits in a network for at most 6"):
        run_network(NetworkConfig(columns=2, rows=2), [FlitJob(flits=10, longest=9)])


def test_accesses_between_nodes_keep_their_order_and_are_counted():
    config = NetworkConfig(columns=3, rows=1, address_bits=11, tag_bits=4)
    rough = Pattern(accesses=2000, writes=0.5, partial=True, offer=0.9, take=0.7, outside=0.05)
    slow = MemoryBehaviour(latency=5, extra_latency=60, stall=0.2, gap=0.2, out_of_order=True)
    runs = [
        (rough, slow),
        (Pattern(accesses=2000, writes=0.5), MemoryBehaviour(latency=1)),
        (Pattern(accesses=1000, writes=1.0), slow),
    ]
    for (pattern, _), result in zip(runs, run_nodes(config, 2, runs), strict=True):
        accesses = 6 * pattern.accesses
        assert result.reads + result.writes == accesses
        nodes = [
            dict(zip(NetworkCounter, result.counters[start:], strict=False))
            for start in range(0, 3 << INDEX_BITS, 1 << INDEX_BITS)
        ]
        total = {name: sum(node[name] for node in nodes) for name in NetworkCounter}
        outside = (
            accesses - total[NetworkCounter.LOCAL_REQUESTS] - total[NetworkCounter.REMOTE_REQUESTS]
        )
        assert (outside > 0) == (pattern.outside > 0)
        assert total[NetworkCounter.REMOTE_REQUESTS] == total[NetworkCounter.SERVED_REQUESTS]
        assert total[NetworkCounter.REMOTE_REQUESTS] > total[NetworkCounter.LOCAL_REQUESTS]
        assert total[NetworkCounter.SENT_FLITS] == total[NetworkCounter.RECEIVED_FLITS]
        # On a ring of three every route is one link long.
        links = total[NetworkCounter.EAST_FLITS] + total[NetworkCounter.WEST_FLITS]
        assert links == total[NetworkCounter.SENT_FLITS]


def test_traffic_takes_the_cycles_that_it_took():
    """A change that costs or gains a cycle, or serves another first, is seen; if it is intended,
    so are its figures."""
    jobs = [
        replace(pressed(destinations, answers=answers), flits=10_000, take=take)
        for destinations in (Destinations.UNIFORM, Destinations.HOT_SPOT)
        for answers, take in ((True, 0.9), (False, 0.5))
    ]
    found = [
        (result.cycles, result.longest, *result.flits)
        for result in run_network(NetworkConfig(columns=2, rows=2), jobs)
    ]
    assert found == [
        (4347, 624, 4994, 5106),
        (4086, 458, 4924, 5078),
        (5149, 452, 5092, 5014),
        (4108, 432, 4877, 5127),
    ]


def test_accesses_between_nodes_take_the_cycles_that_they_took():
    config = NetworkConfig(columns=3, rows=1, address_bits=11, tag_bits=4)
    runs = [
        (Pattern(accesses=1000, writes=0.4, partial=True, take=0.8), MemoryBehaviour(latency=3)),
        (Pattern(accesses=1000, writes=0.5, walk=Walk.SEQUENTIAL), MemoryBehaviour(latency=1)),
        (Pattern(accesses=500, writes=0.3, outside=0.5), MemoryBehaviour(latency=1)),
    ]
    found = [(result.cycles, result.latency_sum) for result in run_nodes(config, 2, runs)]
    assert found == [(7062, 484169), (9309, 528692), (2382, 154565)]
