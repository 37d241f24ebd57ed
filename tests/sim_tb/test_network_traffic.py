"""The C++ traffic model of the network, before a network in Python that can be made to fail."""

from collections import deque
from dataclasses import replace

import pytest

from noc.config import NetworkConfig
from sim_tb.harness.network import (
    NETWORK,
    VAULT,
    Destinations,
    FlitJob,
    NetworkResult,
)
from sim_tb.harness.traffic import TrafficOutcome
from tests.sim_tb.model_library import compiled

CONFIG = NetworkConfig(columns=2, rows=2)
VAULTS = 4
ROOM = CONFIG.buffer_flits
#: Bits of the model's headers for destination, source and class.
ENDS = 0x7FF


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return compiled(tmp_path_factory.mktemp("network"), NETWORK, VAULT)


class PythonNetwork:
    """Keeps whole packets until it delivers them; ``spoil`` may change what is delivered.

    ``spoil`` gets the packets delivered so far and the next one, a list of flits, and returns the
    packets to deliver in its place.
    """

    def __init__(self, model, job, spoil=lambda count, packet: [packet], ignore_credits=False):
        self.model = model
        self.spoil = spoil
        self.ignore_credits = ignore_credits
        self.delivered = 0
        self.arriving = {}
        self.queues = {(vault, kind): deque() for vault in range(VAULTS) for kind in range(2)}
        self.credits = dict.fromkeys(self.queues, ROOM)
        self.returned = [0] * VAULTS
        self.now = [None] * VAULTS
        size = {name: getattr(CONFIG, name) for name in ("columns", "rows", "buffer_flits")}
        replace(job, **size).start(model)

    def run(self):
        for _ in range(100_000):
            if self.model.cycle(NETWORK, 0).idle:
                return self.model.result("network", NetworkResult)
            for vault in range(VAULTS):
                self._cycle(vault)
        raise AssertionError("the model does not end")

    def _cycle(self, vault):
        out = None
        for kind in range(2):
            queue = self.queues[vault, kind]
            if queue and out is None and (self.ignore_credits or self.credits[vault, kind] > 0):
                out = (kind, *queue.popleft())
                self.credits[vault, kind] -= 1
        kind, data, last, error = out or (0, 0, 0, 0)
        found = self.model.cycle(
            VAULT,
            vault,
            in_credit=self.returned[vault],
            out_valid=out is not None,
            out_channel=kind,
            out_flit_data=data,
            out_flit_last=last,
            out_flit_error=error,
        )
        self.returned[vault] = 0
        for kind in range(2):
            self.credits[vault, kind] += found.out_credit >> kind & 1
        if found.in_valid:
            self.returned[vault] = 1 << found.in_channel
            packet = self.arriving.setdefault((vault, found.in_channel), [])
            packet.append((found.in_flit_data, found.in_flit_last, found.in_flit_error))
            if found.in_flit_last:
                del self.arriving[vault, found.in_channel]
                self._deliver(found.in_channel, packet)

    def _deliver(self, kind, packet):
        for item in self.spoil(self.delivered, packet):
            self.queues[item[0][0] & 3, kind].extend(item)
        self.delivered += 1


def job(**change):
    values = {"flits": 3000, "longest": 6, "take": 0.8, "patience": 3000, "max_cycles": 50_000}
    return FlitJob(**(values | change))


@pytest.mark.parametrize("destinations", Destinations)
@pytest.mark.parametrize("answers", [False, True])
def test_a_right_network_passes(model, destinations, answers):
    result = PythonNetwork(model, job(destinations=destinations, answers=answers, pause=50)).run()
    assert result.outcome is TrafficOutcome.DONE
    assert result.violation == ""
    assert sum(result.flits) >= 3000
    assert all(result.packets)


class Swap:
    """Delivers a packet after the next one of its source, destination and class."""

    def __init__(self):
        self.held = None

    def __call__(self, count, packet):
        if self.held is None and count >= 100:
            self.held = packet
            return []
        if self.held and packet[0][0] & ENDS == self.held[0][0] & ENDS:
            found, self.held = [packet, self.held], []
            return found
        return [packet]


def at_100(change):
    return lambda count, packet: change(packet) if count == 100 else [packet]


def end_changed(data, error):
    """Changes the last flit of every packet."""

    def spoil(count, packet):
        *others, last = packet
        return [[*others, (last[0] ^ data, last[1], last[2] ^ error)]]

    return spoil


@pytest.mark.parametrize(
    ("spoil", "rules"),
    [
        (at_100(lambda packet: []), {"CONTENT", "LOST"}),
        (at_100(lambda packet: [packet, packet]), {"CONTENT", "UNKNOWN"}),
        (at_100(lambda packet: [[(packet[0][0] ^ 3, *packet[0][1:]), *packet[1:]]]), None),
        (lambda count, packet: [packet if len(packet) < 3 else packet[:1] + packet[2:]], None),
        (end_changed(1 << 60, 0), {"CONTENT"}),
        (end_changed(0, 1), {"CONTENT"}),
        (Swap(), {"CONTENT"}),
    ],
    ids=["lost", "doubled", "misled", "flit lost", "bit changed", "error changed", "out of order"],
)
def test_a_wrong_network_is_found_out(model, spoil, rules):
    result = PythonNetwork(model, job(), spoil).run()
    assert result.outcome is TrafficOutcome.VIOLATION
    rule = result.violation.split(": ")[1]
    assert rule in (rules or {"CONTENT", "UNKNOWN"})


def test_flits_without_credit_are_found_out(model):
    result = PythonNetwork(model, job(take=0.05), ignore_credits=True).run()
    assert "ROOM: vault" in result.violation


def test_the_last_packet_must_arrive_too(model):
    result = PythonNetwork(
        model, job(flits=30), lambda count, packet: [packet] if count < 8 else []
    ).run()
    assert "LOST: a packet of class" in result.violation


def test_rates_and_latencies_are_those_asked_for(model):
    result = PythonNetwork(
        model, job(flits=0, cycles=12_000, warmup=2000, rate=0.3, take=1.0)
    ).run()
    assert result.measured_flits == pytest.approx(0.3 * VAULTS * 10_000, rel=0.05)
    assert sum(result.latencies) > 1000
    assert 5 < result.mean < 60


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 0}, "rate must be above 0"),
        ({"take": 1.5}, "take must be above 0 and at most 1"),
        ({"hot": -1}, "hot must be from 0 to 1"),
        ({"flits": 0}, "a run needs a limit of flits or of cycles"),
        ({"shortest": 7}, "shortest and longest must be in order"),
        ({"pause": -1}, "pause must be 0 or more"),
        ({"seed": -1}, "seed must be from 0"),
    ],
)
def test_bad_jobs_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        job(**change)
