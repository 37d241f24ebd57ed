"""A torus of nodes in Amaranth's simulator, with requesters and memories at their ports."""

from amaranth.hdl import Module
from amaranth.lib import wiring

from hdl.component import Component
from hdl.emission import shared_instance
from noc.node.node import Node
from noc.topology import join_nodes
from tests.memory.port_play import play_memory, play_requester
from tests.memory.port_traffic import PortMemory, Requester

COLUMN_BYTES = 32


class Torus(Component):
    """Joined nodes; their ports are reached through ``nodes``."""

    def __init__(self, config, requesters):
        self.config = config
        self.requesters = requesters
        self.nodes = [Node(config, requesters=requesters) for _ in range(config.vaults)]
        super().__init__({"unused": wiring.Out(0)})

    def elaborate(self, platform):
        m = Module()
        for vault, node in enumerate(self.nodes):
            m.submodules[f"node_{vault}"] = shared_instance(node, platform)
        join_nodes(m, self.config, self.nodes)
        return m


class Traffic:
    """Requesters and memories for every port of a torus.

    Each requester has columns of its own in all vaults, and in those that don't exist. Of those
    that do, the share ``failing`` is answered with errors.
    """

    def __init__(
        self, rng, config, requesters, *, accesses, request=None, memory=None, failing=0.0
    ):
        self.config = config
        self.torus = Torus(config, requesters)
        vault_bytes = 1 << config.address_bits
        start = bytearray(rng.randbytes(vault_bytes << config.vault_bits))
        total = config.vaults * requesters
        columns = len(start) // COLUMN_BYTES
        own_columns = vault_bytes // COLUMN_BYTES
        there = config.vaults * own_columns
        self.failing = frozenset(rng.sample(range(there), int(failing * there)))
        self.requesters = [
            Requester(
                rng,
                start,
                range(number, columns, total),
                accesses=accesses,
                tag_bits=config.tag_bits,
                failing=self.failing | frozenset(range(there, columns)),
                **(request or {}),
            )
            for number in range(total)
        ]
        self.memories = []
        benches = []
        for vault, node in enumerate(self.torus.nodes):
            own = start[vault * vault_bytes : (vault + 1) * vault_bytes]
            ports = [*node.local, node.served]
            first = vault * own_columns
            fails = frozenset(n for n in range(own_columns) if first + n in self.failing)
            self.memories.append(
                [PortMemory(rng, own, failing=fails, **(memory or {})) for _ in ports]
            )
            for model, port in zip(self.memories[-1], ports, strict=True):
                benches.append(play_memory(model, port, self.requesters))
            mine = self.requesters[vault * requesters : (vault + 1) * requesters]
            for requester, port in zip(mine, node.ports, strict=True):
                benches.append(play_requester(requester, port))
        self.benches = benches

    def check_memories(self):
        """Each column holds in the end what its requester wrote there last."""
        config = self.config
        each = len(self.requesters) // config.vaults
        vault_columns = (1 << config.address_bits) // COLUMN_BYTES
        for number, requester in enumerate(self.requesters):
            for column in requester.columns:
                vault, place = divmod(column, vault_columns)
                if vault >= config.vaults:
                    continue
                local = vault == number // each
                memory = self.memories[vault][number % each if local else each].memory
                here = slice(place * COLUMN_BYTES, (place + 1) * COLUMN_BYTES)
                there = slice(column * COLUMN_BYTES, (column + 1) * COLUMN_BYTES)
                assert memory[here] == requester.memory[there]
