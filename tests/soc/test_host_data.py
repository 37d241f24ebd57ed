"""The host's data port between a hostile AXI manager and a hostile memory."""

from dataclasses import replace

import pytest

from hdl.config import ConfigurationError
from soc.host.data import HostData
from tests.memory.port_play import play_memory
from tests.memory.port_traffic import PortMemory
from tests.soc.axi_manager import COLUMN, FIXED, INCR, WRAP, Manager, make, random_burst
from tests.soc.host_dut import small


def run(simulate, config, manager, memory, limit=60_000):
    """Run until the manager is done; the memory must then hold what it wrote."""
    dut = HostData(config)
    axi, port = dut.axi, dut.port

    async def drive(ctx):
        while not manager.done:
            offers, ready = manager.plan()
            for name, beat in offers.items():
                ctx.set(getattr(axi, f"{name}valid"), beat is not None)
                for key, value in (beat or {}).items():
                    signal = getattr(axi, name + key)
                    ctx.set(signal.as_value() if key == "burst" else signal, value)
            ctx.set(axi.bready, ready["b"])
            ctx.set(axi.rready, ready["r"])
            seen = await ctx.tick().sample(
                axi.awready,
                axi.wready,
                axi.arready,
                *(axi.bvalid, axi.bid, axi.bresp),
                *(axi.rvalid, axi.rid, axi.rresp, axi.rdata, axi.rlast),
            )
            aw, w, ar, bvalid, bid, bresp, rvalid, rid, rresp, rdata, rlast = seen[2:]
            b = {"id": bid, "resp": bresp.value} if bvalid else None
            r = {"id": rid, "resp": rresp.value, "data": rdata, "last": rlast} if rvalid else None
            manager.step({"aw": aw, "w": w, "ar": ar}, b, r)
            assert manager.cycle < limit, f"{manager.total - len(manager.finished)} bursts hang"

    simulate(dut, drive, play_memory(memory, port, [manager]))
    if manager.stuck != "b":
        assert memory.memory == manager.memory


@pytest.mark.parametrize(
    ("offer", "take", "accept", "answer", "latency", "values"),
    [
        (1, 1, 1, 1, 0, {"columns": 1, "tag_bits": 2}),
        (1, 0.3, 1, 1, 5, {"columns": 3, "tag_bits": 4}),
        (1, 1, 0.4, 0.5, 30, {"columns": 4, "tag_bits": 6}),
        (0.6, 0.6, 0.6, 0.6, 10, {"columns": 2, "rows": 3, "tag_bits": 4}),
    ],
)
def test_every_burst_as_axi_has_it_and_as_it_has_not(
    simulate, rng, offer, take, accept, answer, latency, values
):
    config = small(**values)
    content = rng.randbytes(config.memory_bytes)
    failing = frozenset(rng.sample(range(config.memory_bytes // COLUMN), 60))
    bursts = [
        random_burst(rng, config.memory_bytes, config.id_bits, illegal=0.3) for _ in range(60)
    ]
    manager = Manager(rng, content, bursts, offer=offer, take=take, failing=failing)
    memory = PortMemory(rng, content, accept=accept, offer=answer, latency=latency, failing=failing)
    run(simulate, config, manager, memory)
    answers = {answer for burst in manager.finished for answer in burst.responses}
    assert answers == {0, 2, 3}


@pytest.mark.parametrize("write", [False, True])
@pytest.mark.parametrize("length", [4, 256])
def test_nine_tenths_of_a_word_a_cycle(simulate, rng, write, length):
    config = small(tag_bits=6)
    content = rng.randbytes(config.memory_bytes)
    bursts = [
        make(rng, write=write, address=8 * length * number, length=length, identifier=number % 3)
        for number in range(1024 // length)
    ]
    manager = Manager(rng, content, bursts, outstanding=32)
    memory = PortMemory(rng, content, latency=60)
    run(simulate, config, manager, memory)
    cycles = manager.beat_cycles["w" if write else "r"]
    assert len(cycles) == 1024
    assert 1024 / (cycles[-1] - cycles[0] + 1) >= 0.9


@pytest.mark.parametrize("stuck", ["b", "r"])
def test_answers_not_taken_hold_up_no_bursts_of_the_other_kind(simulate, rng, stuck):
    config = small()
    content = rng.randbytes(config.memory_bytes)
    bursts = [
        make(rng, write=write, address=(1 << 12) * write + 64 * number, length=8)
        for number in range(40)
        for write in (False, True)
    ]
    manager = Manager(rng, content, bursts, outstanding=100, stuck=stuck)
    memory = PortMemory(rng, content, latency=3)
    run(simulate, config, manager, memory, limit=2000)
    stuck_requests = [access for access in memory.requests if access.write == (stuck == "b")]
    assert 0 < len(stuck_requests) < 40


def test_a_column_is_one_request_however_narrow_the_beats(simulate, rng):
    config = small()
    content = rng.randbytes(config.memory_bytes)
    bursts = [
        make(rng, write=True, address=3, length=61, size=0),
        make(rng, write=True, address=0x48, length=4, size=3, kind=WRAP),
        make(rng, write=True, address=0x81, length=16, size=1, kind=FIXED),
        make(rng, write=False, address=0x1F, length=2, size=3, kind=INCR),
    ]
    memory = PortMemory(rng, content)
    run(simulate, config, Manager(rng, content, bursts), memory)
    requests = [(access.address, access.words) for access in memory.requests if access.write]
    assert requests == [(0x00, 4), (0x20, 4), (0x40, 4), (0x80, 1)]
    assert [(a.address, a.words) for a in memory.requests if not a.write] == [(0x18, 1), (0x20, 1)]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tag_bits": 9}, "tag_bits must be a whole number from 2 to 8, not 9"),
        ({"columns": 4}, "pe.address_bits must be 16 for 4 vaults of 14 address bits, or at "),
        ({"vault_address_bits": 11}, "vault_address_bits must be a whole number from 12 to 40"),
        ({"rows": 600, "columns": 2}, "columns times rows must be at most 1024, not 1200"),
        ({"pes": 600}, "a chip has at most 1024 PEs, not 2 vaults of 600"),
        ({"network_counters": 33}, "network_counters must be a whole number from 0 to 32"),
        ({"vault_counters": 1}, "vault_counters must be True or False, not 1"),
    ],
)
def test_a_configuration_that_cant_be_is_refused(values, message):
    config = small()
    with pytest.raises(ConfigurationError, match=message):
        replace(config, **values)
