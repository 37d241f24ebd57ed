"""Runs of random accesses between the vaults of a torus of nodes, in simulation."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from hdl.ports import COLUMN_BYTES
from isa.image import DramImage
from isa.support.scratch import scratch_folder
from noc.config import NetworkConfig
from noc.node.counters import INDEX_BITS, LAG_CYCLES
from sim_tb.dut.nodes import COUNTED_NODES, TOP, nodes_design, ports_of
from sim_tb.runner.build import build
from sim_tb.runner.jobs import perform_jobs

from .memory_models import Pattern, TrafficJob, TrafficOutcome, TrafficResult
from .models import MemoryBehaviour
from .network_models import NetworkError

__all__ = ["NodesJob", "run_nodes"]

#: Cycles after the last response until all counters tell.
_SETTLE = LAG_CYCLES + 8


@dataclass(frozen=True, kw_only=True)
class NodesJob:
    """One run: every requester goes through columns of its own in all vaults.

    Attributes:
        pattern: of every requester, but for its seed; ``outside`` is the share of accesses to
            vaults that don't exist, where there are such numbers.
        memory: how every memory port behaves, but for its seed.
        patience: cycles after which an access without an answer counts as lost.
        max_cycles: a run that takes longer is an error.
    """

    pattern: Pattern
    memory: MemoryBehaviour
    patience: int = 100_000
    max_cycles: int = 10_000_000


def run_nodes(
    config: NetworkConfig, requesters: int, jobs: Sequence[NodesJob]
) -> list[TrafficResult]:
    """Run ``jobs`` one after the other, each from reset, on a torus of nodes.

    Requesters check every response against the order of their own requests; memories check that
    nodes keep the rules of a port, and relax all that these leave open; at the end the memories'
    contents are compared with what the writes must have made of them.

    Returns:
        What became of each. ``counters`` are those of the first four nodes, 16 each.

    Raises:
        NetworkError: a rule of a port broken, an access lost, late or performed out of order.
        sim_tb.runner.build.BuildError: the simulator can't be built.
        hdl.config.ConfigurationError: ``requesters`` outside its range.
    """
    total = config.vaults * requesters
    size = config.vaults << config.address_bits
    folder = build(nodes_design(config, requesters))
    with scratch_folder("nodes") as work:
        raw = {
            "jobs": [_job(job, total, size) for job in jobs],
            "ports": ports_of(config, requesters),
            "size": size,
            "limit": 1 << config.chip_address_bits,
            "counters": COUNTED_NODES << INDEX_BITS,
            "settle": _SETTLE,
        }
        (work / "jobs").write_text(json.dumps(raw))
        with DramImage(size, work / "image"):
            perform_jobs(
                folder, TOP, serving="sim_tb.harness.nodes_serve", work=work, error=NetworkError
            )
        results = [
            TrafficResult.from_json(line) for line in (work / "results").read_text().splitlines()
        ]
    for number, result in enumerate(results):
        if result.outcome is not TrafficOutcome.DONE:
            reason = result.violation or f"not done after {result.total_cycles} cycles"
            raise NetworkError(f"run {number}: {reason}")
    return results


def _job(job: NodesJob, requesters: int, size: int) -> tuple[object, object]:
    """What the simulator reads of ``job``."""
    patterns = tuple(
        Pattern(**(asdict(job.pattern) | {"seed": job.pattern.seed + number}))
        for number in range(requesters)
    )
    column = COLUMN_BYTES * requesters
    traffic = TrafficJob(
        patterns=patterns,
        begin=0,
        span=size // column * column,
        patience=job.patience,
        max_cycles=job.max_cycles,
    )
    return traffic.to_dict(), asdict(job.memory)
