"""Nodes joined to a torus, between random requesters and random memories."""

import pytest

from hdl.emission import emit
from noc.config import NetworkConfig
from noc.node.node import REQUEST_CYCLES, RESPONSE_CYCLES, Node
from noc.router.router import HOP_CYCLES
from tests.memory.port_traffic import Access
from tests.noc.torus_bench import Torus, Traffic


@pytest.mark.parametrize(
    ("columns", "rows", "requesters", "accesses"), [(1, 1, 2, 40), (1, 3, 1, 40), (2, 2, 2, 25)]
)
def test_accesses_reach_their_vault_in_order(simulate, rng, columns, rows, requesters, accesses):
    config = NetworkConfig(columns=columns, rows=rows, address_bits=10, tag_bits=3)
    traffic = Traffic(
        rng,
        config,
        requesters,
        accesses=accesses,
        request={"offer": 0.7, "take": 0.4},
        memory={"accept": 0.6, "offer": 0.6, "latency": 8},
        failing=0.2,
    )
    simulate(traffic.torus, *traffic.benches)
    traffic.check_memories()
    failed = [access for each in traffic.requesters for access in each.finished if access.error]
    assert any(access.address // 32 in traffic.failing for access in failed)


async def cycles_until(ctx, value):
    """Clock ticks until ``value`` is 1."""
    cycles = 0
    while not ctx.get(value):
        await ctx.tick()
        cycles += 1
        assert cycles < 100
    return cycles


@pytest.mark.parametrize("links", [1, 2])
@pytest.mark.parametrize(
    ("write", "words", "strobe", "more"),
    [(False, 4, 0xFF, 0), (True, 1, 0xFF, 2), (True, 4, 0xFF, 5), (True, 2, 0x0F, 5)],
)
def test_an_idle_network_takes_the_cycles_that_it_says(simulate, links, write, words, strobe, more):
    config = NetworkConfig(columns=4, rows=1, address_bits=10, tag_bits=3)
    torus = Torus(config, 1)
    port, served = torus.nodes[0].ports[0], torus.nodes[links].served
    access = Access(
        tag=5,
        address=links << config.address_bits,
        words=words,
        write=write,
        data=[7] * words,
        strobes=[strobe] * words,
    )

    async def testbench(ctx):
        ctx.set(port.response.ready, 1)
        ctx.set(served.request.ready, 1)
        ctx.set(port.request.valid, 1)
        for beat in access.beats():
            ctx.set(port.request.payload, beat)
            await cycles_until(ctx, port.request.ready)
            assert not ctx.get(served.request.valid)
            await ctx.tick()
        ctx.set(port.request.valid, 0)
        took = 1 + await cycles_until(ctx, served.request.valid)
        assert took == REQUEST_CYCLES + links * HOP_CYCLES + more
        tag = ctx.get(served.request.payload.tag)
        await ctx.tick().repeat(words)

        ctx.set(served.response.valid, 1)
        ctx.set(served.response.payload, {"tag": tag, "data": 9, "last": 1, "error": 0})
        assert ctx.get(served.response.ready)
        await ctx.tick()
        ctx.set(served.response.valid, 0)
        took = 1 + await cycles_until(ctx, port.response.valid)
        assert took == RESPONSE_CYCLES + links * HOP_CYCLES + (not write)
        assert ctx.get(port.response.payload.tag) == access.tag

    simulate(torus, testbench)


def test_an_access_to_the_own_vault_takes_no_time(simulate):
    config = NetworkConfig(columns=2, rows=1, address_bits=10, tag_bits=3)
    torus = Torus(config, 1)
    node = torus.nodes[1]

    async def testbench(ctx):
        beat = Access(tag=2, address=1 << 10 | 64, words=1, write=False).beats()[0]
        ctx.set(node.ports[0].request.valid, 1)
        ctx.set(node.ports[0].request.payload, beat)
        await ctx.delay(1e-12)
        assert ctx.get(node.local[0].request.valid)
        assert ctx.get(node.local[0].request.payload.address) == 64
        assert not ctx.get(node.ports[0].request.ready)
        ctx.set(node.local[0].request.ready, 1)
        assert ctx.get(node.ports[0].request.ready)
        answer = {"tag": 2, "data": 1, "last": 1, "error": 0}
        ctx.set(node.local[0].response.valid, 1)
        ctx.set(node.local[0].response.payload, answer)
        assert ctx.get(node.ports[0].response.valid)

    simulate(torus, testbench)


def test_all_nodes_of_a_chip_are_one_module():
    found = emit(Torus(NetworkConfig(columns=3, rows=2), 2), "torus")
    assert found.instances["torus"] == {"node": 6}
    assert found.instances["node"]["demux"] == 2
    assert found.instances["node"]["router"] == 1


def test_counters_can_be_left_out():
    found = emit(Node(NetworkConfig(columns=2, rows=1, counters=False), requesters=1), "node")
    assert "counter_bank" not in found.modules
