"""Traffic on a torus of nodes in Verilator."""

from collections.abc import Sequence
from dataclasses import replace

from hdl.ports import COLUMN_BYTES
from noc.config import NetworkConfig
from noc.node import counters
from sim_tb.dut.network import COUNTED_NODES, nodes_design
from sim_tb.harness import traffic_runs
from sim_tb.harness.memory import MemoryBehaviour
from sim_tb.harness.traffic import Pattern, TrafficJob, TrafficResult

#: Cycles after which an access counts as lost, and limit of a run.
_PATIENCE, _CYCLES = 100_000, 10_000_000


def run_nodes(
    config: NetworkConfig, requesters: int, runs: Sequence[tuple[Pattern, MemoryBehaviour]]
) -> list[TrafficResult]:
    """Run traffic on a torus of nodes, one run after another, each from reset. Every requester
    accesses columns of its own in all vaults.

    Requesters check every response against the order of their requests. Memories check the nodes
    against the port's rules, and behave no better than these require. At the end the memories'
    contents must be what the writes imply.

    Parameters:
        runs: the pattern of all requesters and the behaviour of all memory ports, both without
            their seeds, and without errors. ``outside`` is the share of accesses to vaults that
            don't exist, if the numbers of vaults have room for any.

    Returns:
        One result per run. ``counters`` are those of the first four nodes, 16 each.
    """
    total = config.vaults * requesters
    size = config.vaults << config.address_bits
    column = COLUMN_BYTES * total
    # One memory port per local requester, and one for all other vaults.
    ports = config.vaults * (requesters + 1)
    jobs = [
        TrafficJob(
            patterns=tuple(replace(pattern, seed=pattern.seed + number) for number in range(total)),
            memories=tuple(
                replace(memory, seed=memory.seed + port, errors=(0, 0)) for port in range(ports)
            ),
            begin=0,
            span=size // column * column,
            patience=_PATIENCE,
            max_cycles=_CYCLES,
        )
        for pattern, memory in runs
    ]
    return traffic_runs.run_jobs(
        lambda jobs: traffic_runs.simulated(nodes_design(config, requesters), jobs),
        jobs,
        size=size,
        limit=1 << config.chip_address_bits,
        counters=COUNTED_NODES << counters.INDEX_BITS,
        # Cycles after the last response until all counters include it.
        settle=counters.LAG_CYCLES + 8,
    )
