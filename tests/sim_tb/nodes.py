"""Traffic on a torus of nodes in Verilator, between requesters and memories in C++."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal

from hdl.emission import emit
from hdl.ports import COLUMN_BYTES
from noc.config import NetworkConfig
from noc.node import counters
from noc.node.node import Node
from noc.topology import join_nodes
from sim_tb.dut.top import Top, join, surrounded
from sim_tb.harness import traffic_runs
from sim_tb.harness.memory import MEMORY, MemoryBehaviour
from sim_tb.harness.models import ARRAYS, MEMORIES
from sim_tb.harness.traffic import REQUESTER, TRAFFIC, Pattern, TrafficJob, TrafficResult
from sim_tb.runner.build import Design

#: Cycles after which an access counts as lost, and limit of a run.
_PATIENCE, _CYCLES = 100_000, 10_000_000
#: The first nodes, whose counters are read.
COUNTED_NODES = 4


class NodesTop(Top):
    """Nodes in a torus, between requesters and memories."""

    name = "vip_nodes_top"
    models = (TRAFFIC, REQUESTER, MEMORY)

    def __init__(self, config: NetworkConfig, requesters: int) -> None:
        self.config = config
        self.requesters = requesters
        super().__init__()

    def surround(self, m: Module) -> Any:
        config = self.config
        host = self.model(TRAFFIC)
        nodes = []
        failed = []
        for vault in range(config.vaults):
            node = self.design(m, Node(config, requesters=self.requesters), "node", f"node_{vault}")
            nodes.append(node)
            for number, port in enumerate(node.ports):
                requester = self.model(REQUESTER, vault * self.requesters + number)
                join(m, port, requester)
                m.d.comb += [
                    requester.reset.eq(host.reset),
                    requester.tags.eq(1 << config.tag_bits),
                ]
            for number, port in enumerate([*node.local, node.served]):
                memory = self.model(MEMORY, vault * (self.requesters + 1) + number)
                join(m, port, memory)
                failed.append(memory.failed)
                # The vault's number above the address selects its part of the common image.
                address = Cat(port.request.payload.address, Const(vault, config.vault_bits))
                m.d.comb += [
                    memory.reset.eq(host.reset),
                    memory.request_address.eq(address),
                ]
            m.d.comb += node.counter_index.eq(host.counter_index)
        join_nodes(m, config, nodes)
        counted = Signal(COUNTED_NODES.bit_length() - 1, reset_less=True)
        m.d.sync += counted.eq(host.counter_index >> counters.INDEX_BITS)
        with m.Switch(counted):
            for number, node in enumerate(nodes[:COUNTED_NODES]):
                with m.Case(number):
                    m.d.comb += host.counter_value.eq(node.counter_value)
        m.d.comb += [host.failed.eq(Cat(failed).any()), self.idle.eq(host.idle)]
        return host.reset


def nodes_design(config: NetworkConfig, requesters: int) -> Design:
    """The design of the simulator of a torus of ``config`` with ``requesters`` at each node.

    All memories share one image, with a part for each vault.

    Raises:
        hdl.config.ConfigurationError: ``requesters`` outside its range.
    """
    verilog = "".join(emit(Node(config, requesters=requesters), "node").modules.values())
    top = NodesTop(config, requesters)
    return surrounded(top, {"node.v": verilog}, support=(ARRAYS,), control=MEMORIES)


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
