"""The AXI back end between a random requester and AXI memories of two kinds."""

import random

import pytest

from hdl.config import ConfigurationError
from hdl.emission import emit
from memory.axi.backend import AxiBackend
from memory.axi.layout import AxiConfig
from memory.controller.counters import LAG_CYCLES, VaultCounter
from tests.executed_lines import design_of
from tests.memory.axi_memory import AxiMemory, payload
from tests.memory.port_play import play_requester
from tests.memory.port_traffic import Requester

COLUMNS = 24


def value(item):
    """A plain number, of enumerations too."""
    return item.value if hasattr(item, "value") else item


def serve(memory, bus, requester):
    """A testbench that plays ``memory`` until ``requester`` is done."""
    channels = {name: payload(bus, name) for name in ("aw", "w", "ar")}
    signals = [signal for fields in channels.values() for signal in fields.values()]

    async def testbench(ctx):
        while not requester.done:
            memory.drive(ctx, bus)
            seen = await ctx.tick().sample(
                bus.awvalid, bus.wvalid, bus.arvalid, bus.bready, bus.rready, *signals
            )
            aw, w, ar, bready, rready = seen[2:7]
            values = iter(seen[7:])
            beats = [{name: value(next(values)) for name in fields} for fields in channels.values()]
            offered = [
                beat if valid else None for beat, valid in zip(beats, (aw, w, ar), strict=True)
            ]
            memory.step(*offered, bready, rready)

    return testbench


def run(simulate, config, seed, *, accesses, columns=COLUMNS, memory=None, **options):
    rng = random.Random(seed)
    content = rng.randbytes(32 * columns)
    failing = options.get("failing", frozenset())
    model = AxiMemory(rng, content, config.data_bits, failing=failing, **(memory or {}))
    requester = Requester(
        random.Random(f"{seed} requester"),
        content,
        range(columns),
        accesses=accesses,
        tag_bits=config.tag_bits,
        **options,
    )
    dut = design_of(AxiBackend, config)
    simulate(dut, play_requester(requester, dut.port), serve(model, dut.axi, requester))
    assert not model.ids["aw"] | model.ids["ar"]
    assert model.memory == requester.memory
    return model, requester


@pytest.mark.parametrize("data_bits", [64, 128, 256])
@pytest.mark.parametrize(
    ("offer", "take", "accept", "answer"),
    [(1, 1, 1, 1), (1, 0.4, 1, 1), (1, 1, 0.4, 1), (1, 1, 1, 0.3), (0.7, 0.7, 0.7, 0.7)],
)
def test_columns_keep_order_on_a_bus_that_keeps_none(
    simulate, data_bits, offer, take, accept, answer
):
    config = AxiConfig(address_bits=12, tag_bits=5, data_bits=data_bits, outstanding=16)
    behaviour = {"accept": accept, "answer": answer}
    model, _ = run(simulate, config, 1, accesses=160, offer=offer, take=take, memory=behaviour)
    if answer < 1:
        # The bus was hostile indeed.
        assert model.most_in_flight >= 4
        assert model.reordered > 3
        assert data_bits == 256 or model.interleaved > 3


def test_same_column_accesses_one_after_the_other(simulate):
    config = AxiConfig(address_bits=10, tag_bits=6, data_bits=64, outstanding=32)
    run(simulate, config, 2, accesses=200, columns=1, writes=0.5, memory={"answer": 0.5})


@pytest.mark.parametrize("data_bits", [64, 256])
def test_counters_tell_what_was_done(simulate, data_bits):
    config = AxiConfig(address_bits=12, tag_bits=5, data_bits=data_bits, outstanding=8)
    rng = random.Random(6)
    content = rng.randbytes(32 * COLUMNS)
    memory = AxiMemory(rng, content, data_bits, accept=0.7, answer=0.7)
    requester = Requester(rng, content, range(COLUMNS), accesses=120, tag_bits=5, whole=True)
    dut = design_of(AxiBackend, config)
    counters = {}

    async def read(ctx):
        while not requester.done:
            await ctx.tick()
        for counter in VaultCounter:
            ctx.set(dut.counter_index, counter)
            await ctx.tick().repeat(LAG_CYCLES)
            counters[counter.name] = ctx.get(dut.counter_value)

    simulate(dut, play_requester(requester, dut.port), serve(memory, dut.axi, requester), read)
    writes = sum(access.write for access in requester.finished)
    assert (counters["READS"], counters["WRITES"]) == (120 - writes, writes)
    # Whole columns: so many beats each, and a beat of either direction may share a cycle.
    beats = 120 * 256 // data_bits
    assert beats - writes * 256 // data_bits <= counters["BUS_BUSY"] <= beats
    assert requester.cycle <= counters["CYCLES"] <= requester.cycle + 2 * LAG_CYCLES
    assert 0 < counters["OCCUPANCY"] <= config.outstanding * requester.cycle
    assert not any(counters[name] for name in ("ROW_HITS", "TURNAROUNDS", "REFRESHES", "LATENCY_0"))


def test_counters_can_be_left_out():
    with_counters, without = (
        emit(AxiBackend(AxiConfig(counters=counters)), "backend") for counters in (True, False)
    )
    assert "hdl.counter_bank.CounterBank" in with_counters.classes.values()
    assert "hdl.counter_bank.CounterBank" not in without.classes.values()


@pytest.mark.parametrize("outstanding", [4, 64])
def test_as_many_in_flight_as_configured_and_no_more(simulate, outstanding):
    config = AxiConfig(address_bits=16, tag_bits=7, data_bits=256, outstanding=outstanding)
    model, _ = run(
        simulate,
        config,
        3,
        accesses=3 * outstanding,
        columns=1000,
        writes=0.0,
        memory={"answer": 0.15},
    )
    assert model.most_in_flight <= outstanding
    assert model.most_in_flight >= min(outstanding, 60)


@pytest.mark.parametrize("data_bits", [64, 256])
def test_errors_reach_the_response_that_they_belong_to(simulate, data_bits):
    config = AxiConfig(address_bits=12, tag_bits=5, data_bits=data_bits, outstanding=8)
    failing = frozenset({3, 4, 11})
    _, requester = run(simulate, config, 4, accesses=200, failing=failing)
    failed = [access for access in requester.finished if access.error]
    assert {access.write for access in failed} == {False, True}


@pytest.mark.parametrize("data_bits", [64, 128, 256])
@pytest.mark.parametrize("writes", [0.0, 1.0])
def test_one_word_a_cycle(simulate, data_bits, writes):
    config = AxiConfig(address_bits=20, tag_bits=7, data_bits=data_bits, outstanding=64)
    _, requester = run(simulate, config, 5, accesses=120, columns=4000, writes=writes, whole=True)
    cycles = requester.request_cycles if writes else requester.response_cycles
    assert len(cycles) == 480
    # The bus is as good as its random order lets it be: a wait at the start, then no gaps.
    middle = cycles[40:-40]
    assert middle[-1] - middle[0] <= len(middle) + (4 if data_bits > 64 else 40)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"data_bits": 32}, "data_bits must be one of 64, 128, 256, not 32"),
        ({"outstanding": 5}, "outstanding must be one of 4, 8"),
        ({"address_bits": 49}, "address_bits must be a whole number from 8 to 48"),
        ({"tag_bits": 0}, "tag_bits must be a whole number from 1 to 16"),
        ({"tag_bits": True}, "tag_bits must be a whole number from 1 to 16, not True"),
        ({"counters": 1}, "counters must be True or False, not 1"),
        ({"sram": "paper"}, "sram must be one of .*, not 'paper'"),
    ],
)
def test_configuration_outside_its_range_is_refused(values, message):
    with pytest.raises(ConfigurationError, match=message):
        AxiConfig(**values)


def test_verilog_has_the_names_that_bus_models_look_for():
    verilog = emit(AxiBackend(AxiConfig()), "backend").modules["backend"]
    for name in ("awid", "awaddr", "wstrb", "bresp", "arlen", "rdata", "rlast"):
        assert f" axi__{name};" in verilog
