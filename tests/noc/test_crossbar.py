"""The crossbar between random requesters and a random memory."""

import random
from collections import Counter

import pytest

from hdl.config import ConfigurationError
from noc.crossbar import Crossbar
from tests.memory.port_play import play_memory, play_requester
from tests.memory.port_traffic import PortMemory, Requester

COLUMNS = 16


def run(simulate, crossbar, memory, requesters):
    pairs = zip(requesters, crossbar.ports, strict=True)
    benches = [play_requester(requester, port) for requester, port in pairs]
    simulate(crossbar, play_memory(memory, crossbar.memory, requesters), *benches)


def setup(seed, count, tag_bits=3, memory=(), always_ready=0, failing=frozenset(), **options):
    """A crossbar of ``count`` requesters with their columns, and a memory, of which some fail.

    The first ``always_ready`` requesters take all responses at once."""
    rng = random.Random(seed)
    content = rng.randbytes(32 * COLUMNS * count)
    crossbar = Crossbar(
        requesters=count, address_bits=16, tag_bits=tag_bits, always_ready=always_ready
    )
    requesters = [
        Requester(
            random.Random(f"{seed} {number}"),
            content,
            range(number, COLUMNS * count, count),
            tag_bits=tag_bits,
            failing=failing,
            **(options | ({"take": 1} if number < always_ready else {})),
        )
        for number in range(count)
    ]
    return crossbar, PortMemory(rng, content, failing=failing, **dict(memory)), requesters


@pytest.mark.parametrize(
    ("count", "always_ready"), [(1, 0), (2, 1), (3, 0), (3, 3), (6, 0), (8, 7), (16, 0)]
)
@pytest.mark.parametrize(
    ("offer", "take", "accept", "answer"),
    [(1, 1, 1, 1), (0.3, 1, 1, 1), (1, 0.3, 1, 1), (1, 1, 0.3, 1), (0.7, 0.6, 0.7, 0.6)],
)
def test_every_access_comes_back_right(simulate, count, always_ready, offer, take, accept, answer):
    memory = {"accept": accept, "offer": answer, "latency": 5}
    options = {"accesses": 120 // count, "offer": offer, "take": take}
    options["failing"] = frozenset(range(0, COLUMNS * count, 7))
    crossbar, model, requesters = setup(
        1, count, always_ready=always_ready, **options, memory=memory
    )
    run(simulate, crossbar, model, requesters)
    size = len(model.memory)
    for number, requester in enumerate(requesters):
        for column in range(number, size // 32, count):
            span = slice(32 * column, 32 * column + 32)
            assert model.memory[span] == requester.memory[span]


def test_requests_keep_each_requesters_order(simulate):
    crossbar, model, requesters = setup(2, 4, accesses=80, offer=0.8, memory={"accept": 0.6})
    run(simulate, crossbar, model, requesters)
    for number, requester in enumerate(requesters):
        asked = sorted(requester.finished, key=lambda access: access.issued)
        served = [access for access in model.requests if access.tag >> 3 == number]
        assert [(a.tag, a.address) for a in asked] == [(a.tag & 7, a.address) for a in served]


@pytest.mark.parametrize("writes", [0.0, 0.5, 1.0])
def test_saturated_requesters_are_served_in_turns(simulate, writes):
    """While all have requests waiting, each gets one in each round."""
    crossbar, model, requesters = setup(3, 5, tag_bits=7, accesses=60, writes=writes)
    run(simulate, crossbar, model, requesters)
    sources = [access.tag >> 7 for access in model.requests]
    # From the first round on, until the first requester has used up its accesses.
    end = next(
        i for i in range(len(sources)) if Counter(sources[: i + 1]).most_common(1)[0][1] == 60
    )
    for i in range(5, end - 5):
        assert sorted(sources[i : i + 5]) == [0, 1, 2, 3, 4]


def test_one_eager_requester_cannot_hold_up_a_rare_one(simulate):
    """A request that is offered is taken after at most one request of each other requester."""
    crossbar, model, requesters = setup(4, 4, tag_bits=7, accesses=100, writes=1.0, whole=True)
    rare = requesters[2]
    rare.offer, rare.accesses = 0.05, 8
    waits = []
    plan = rare.plan

    def watched():
        beat, ready = plan()
        if beat is not None and beat["words"] == 3:
            waits.append(rare.cycle)
        return beat, ready

    rare.plan = watched
    run(simulate, crossbar, model, requesters)
    # The first beat waits for three whole writes of four beats, and moves in the next cycle.
    longest = max(Counter(waits_of(waits)).values())
    assert 1 < longest <= 3 * 4 + 1


def waits_of(cycles):
    """For each cycle of waiting, the cycle in which that wait began."""
    start = previous = None
    for cycle in cycles:
        if previous is None or cycle != previous + 1:
            start = cycle
        previous = cycle
        yield start


@pytest.mark.parametrize("count", [1, 4])
@pytest.mark.parametrize("writes", [0.0, 1.0])
def test_one_beat_a_cycle_without_gaps(simulate, count, writes):
    """Reads fill the responses, writes the requests, from one requester or from many."""
    memory = {"latency": 3, "in_order": True}
    crossbar, model, requesters = setup(
        5, count, tag_bits=7, accesses=96 // count, writes=writes, whole=True, memory=memory
    )
    cycles = []
    step = model.step

    def watched(request, response_ready):
        moving = model.ready and request is not None if writes else model.offered is not None
        if moving and (writes or response_ready):
            cycles.append(model.cycle)
        step(request, response_ready)

    model.step = watched
    run(simulate, crossbar, model, requesters)
    assert len(cycles) == 4 * 96
    assert cycles[-1] - cycles[0] == 4 * 96 - 1


def test_reads_are_accepted_one_a_cycle(simulate):
    crossbar, model, requesters = setup(6, 3, tag_bits=5, accesses=30, writes=0.0)
    run(simulate, crossbar, model, requesters)
    cycles = sorted(cycle for requester in requesters for cycle in requester.request_cycles)
    assert cycles == list(range(cycles[0], cycles[0] + 90))


def test_a_requester_that_pauses_for_one_response_costs_the_others_nothing(simulate):
    """The buffer of a requester holds a whole response while another one's passes."""
    crossbar = Crossbar(requesters=2, address_bits=12, tag_bits=2)
    taken = []

    async def memory(ctx):
        ctx.set(crossbar.memory.response.valid, 1)
        for beat in range(12):
            source = 0 if beat < 4 else 1
            ctx.set(
                crossbar.memory.response.payload,
                {"tag": source << 2 | 1, "data": beat, "last": beat % 4 == 3, "error": 0},
            )
            _, _, ready = await ctx.tick().sample(crossbar.memory.response.ready)
            assert ready
        # A fifth beat for the first requester, which has taken none, has to wait.
        ctx.set(crossbar.memory.response.payload, {"tag": 1, "data": 12, "last": 1, "error": 0})
        _, _, ready = await ctx.tick().sample(crossbar.memory.response.ready)
        assert not ready
        ctx.set(crossbar.ports[0].response.ready, 1)
        await ctx.tick().until(crossbar.memory.response.ready)

    async def other(ctx):
        port = crossbar.ports[1].response
        ctx.set(port.ready, 1)
        for _ in range(8):
            (payload,) = await ctx.tick().sample(port.payload).until(port.valid)
            taken.append((payload.tag, payload.data))

    simulate(crossbar, memory, other)
    assert taken == [(1, beat) for beat in range(4, 12)]


@pytest.mark.parametrize("requesters", [0, 17])
def test_size_outside_its_range_is_refused(requesters):
    with pytest.raises(ConfigurationError, match="1 to 16 requesters"):
        Crossbar(requesters=requesters, address_bits=28, tag_bits=6)


def test_more_prompt_requesters_than_there_are():
    with pytest.raises(ConfigurationError, match="of 2 requesters, 3 can't be always ready"):
        Crossbar(requesters=2, address_bits=28, tag_bits=6, always_ready=3)
