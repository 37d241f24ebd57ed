"""Routes of packets, and the search for cycles of waiting packets."""

import pytest

from noc.config import NetworkConfig
from noc.deadlock import DeadlockError, check_deadlock_free, dependency_graph
from noc.routing import LOCAL, Channel, PortChannel, ring_step, route, turns
from noc.topology import links, neighbour, position

SIZES = [(columns, rows) for columns in range(1, 10) for rows in range(1, 6)]


def along(start, end, size):
    return min((end - start) % size, (start - end) % size)


def free_of_cycles(config, virtual_channels):
    """Whether channels can be removed until none is left, each when it waits for no other."""
    graph = dependency_graph(config, virtual_channels)
    waiting = {end: 0 for ends in graph.values() for end in ends}
    waiting.update({node: len(ends) for node, ends in graph.items()})
    wanting = {node: [] for node in waiting}
    for node, ends in graph.items():
        for end in ends:
            wanting[end].append(node)
    free = [node for node, count in waiting.items() if count == 0]
    for node in free:
        for other in wanting[node]:
            waiting[other] -= 1
            if waiting[other] == 0:
                free.append(other)
    return len(free) == len(waiting)


@pytest.mark.parametrize(("columns", "rows"), [(1, 4), (2, 2), (3, 3), (8, 4), (5, 7)])
def test_every_packet_arrives_on_a_shortest_route(columns, rows):
    config = NetworkConfig(columns=columns, rows=rows)
    possible = {(link.source, link.direction) for link in links(config)}
    for source in range(config.vaults):
        for target in range(config.vaults):
            channels = route(config, source, target, 0, config.virtual_channels)
            x, y = position(config, source)
            to_x, to_y = position(config, target)
            assert len(channels) == along(x, to_x, columns) + along(y, to_y, rows)
            here = source
            for channel in channels:
                assert channel.vault == here
                assert (here, channel.direction) in possible
                here = neighbour(config, here, channel.direction)
            assert here == target


def test_halfway_packets_use_both_directions_alike():
    size = 8
    forward = [ring_step(size, here, (here + size // 2) % size, 1).forward for here in range(size)]
    assert sum(forward) == size // 2


def test_a_router_can_do_what_packets_need_and_no_more():
    config = NetworkConfig(columns=8, rows=4)
    ports = {(turn.source.port, turn.target.port) for turn in turns(config)}
    assert ("north", "east") not in ports, "from a column back into a row"
    assert ("east", "east") not in ports, "back where it came from"
    assert ("west", "east") in ports
    assert all(turn.target.port != turn.source.port for turn in turns(config))
    # In a ring of three no packet passes a vault in the same direction.
    short = {
        (turn.source.port, turn.target.port) for turn in turns(NetworkConfig(columns=3, rows=1))
    }
    assert short == {(LOCAL, "east"), (LOCAL, "west"), ("east", LOCAL), ("west", LOCAL)}


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_no_network_can_wait_in_a_cycle(columns, rows):
    check_deadlock_free(NetworkConfig(columns=columns, rows=rows))


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_a_second_virtual_channel_is_built_exactly_where_a_cycle_needs_it(columns, rows):
    config = NetworkConfig(columns=columns, rows=rows)
    assert free_of_cycles(config, 1) == (config.virtual_channels == 1)


def test_without_datelines_the_cycle_is_named(monkeypatch):
    monkeypatch.setattr(NetworkConfig, "virtual_channels", 1)
    # Another address width, as results of the check are cached.
    config = NetworkConfig(columns=5, rows=1, address_bits=20)
    with pytest.raises(DeadlockError, match=r"5 x 1 vaults can wait .* cycle: ") as refused:
        check_deadlock_free(config)
    named = str(refused.value).partition("cycle: ")[2].split(", ")
    graph = dependency_graph(config, 1)
    steps = {
        f"{node.direction} of vault {node.vault}" for node in graph if isinstance(node, Channel)
    }
    assert len(named) == 5
    assert set(named) <= steps
    vaults = [int(step.rsplit(" ", 1)[1]) for step in named]
    steps_round = {(b - a) % 5 for a, b in zip(vaults, [*vaults[1:], vaults[0]], strict=True)}
    assert steps_round == ({1} if named[0].startswith("east") else {4})


def test_requests_that_were_accepted_wait_for_responses_but_not_in_reverse():
    graph = dependency_graph(NetworkConfig(columns=3, rows=2), 1)
    requests = {node for node in graph if node.message_class == 0}
    edges = [(here, wanted) for here, ends in graph.items() for wanted in ends]
    crossing = [(a, b) for a, b in edges if (a in requests) != (b in requests)]
    assert len(crossing) == 6
    assert all(a in requests and a.vault == b.vault for a, b in crossing)


def test_local_ports_have_one_virtual_channel():
    for turn in turns(NetworkConfig(columns=8, rows=8)):
        for channel in turn:
            assert channel.port != LOCAL or channel == PortChannel(LOCAL, 0)
