"""Runs inside the simulator of a chip: cocotbext-axi's channels at its data port, with bursts as
AXI has them and as it has not."""

import ctypes
import json
import os
import random
from pathlib import Path

import cocotb
from cocotb.triggers import RisingEdge, Timer, with_timeout
from cocotbext.axi import AxiBus
from cocotbext.axi.axi_channels import (
    AxiARSource,
    AxiARTransaction,
    AxiAWSource,
    AxiAWTransaction,
    AxiBSink,
    AxiRSink,
    AxiWSource,
    AxiWTransaction,
)

from memory.model.device_model import DeviceSetup
from sim_tb.harness.chip import Kind, Operation
from sim_tb.harness.models import PERIOD_PS, Library
from sim_tb.harness.serve import perform
from tests.soc.axi_manager import (
    DECERR,
    FIXED,
    INCR,
    OKAY,
    PAGE,
    SLVERR,
    WRAP,
    Manager,
    make,
    random_burst,
)

#: Environment variable with what the test hands over, as JSON.
VARIABLE = "VIP_CHIP_AXI"
#: Cycles within which any burst is answered.
PATIENCE = 20_000
RESERVED = 3


class Port:
    """The data port's channels, driven by cocotbext-axi, and a model of what must come back."""

    def __init__(self, dut, content):
        bus = AxiBus.from_prefix(dut, "data")
        clock = dut.external_clk
        self.aw = AxiAWSource(bus.write.aw, clock)
        self.w = AxiWSource(bus.write.w, clock)
        self.b = AxiBSink(bus.write.b, clock)
        self.ar = AxiARSource(bus.read.ar, clock)
        self.r = AxiRSink(bus.read.r, clock)
        for channel in (self.aw, self.w, self.b, self.ar, self.r):
            channel.log.setLevel("WARNING")
        self.manager = Manager(random.Random(1), content, [])
        self.manager.ready = {"b": True, "r": True}

    async def perform(self, *bursts):
        """Send ``bursts``, all reads or all writes, without waiting between; check all answers."""
        manager = self.manager
        for burst in bursts:
            manager.start(burst)
        for name, source, kind in (
            ("aw", self.aw, AxiAWTransaction),
            ("w", self.w, AxiWTransaction),
            ("ar", self.ar, AxiARTransaction),
        ):
            while manager.queues[name]:
                beat = manager.queues[name].popleft()
                await source.send(kind(**{f"{name}{key}": value for key, value in beat.items()}))
        for burst in bursts:
            for _ in range(1 if burst.write else burst.length):
                sink = self.b if burst.write else self.r
                beat = await with_timeout(sink.recv(), PATIENCE * PERIOD_PS, "ps")
                if burst.write:
                    manager.step({}, {"id": int(beat.bid), "resp": int(beat.bresp)}, None)
                else:
                    seen = {
                        "id": int(beat.rid),
                        "data": int(beat.rdata),
                        "resp": int(beat.rresp),
                        "last": int(beat.rlast),
                    }
                    manager.step({}, None, seen)
        assert not manager.writes
        assert not manager.reads


async def start(dut):
    """The chip after reset, at its data port; and what the test handed over."""
    given = json.loads(os.environ[VARIABLE])
    await Timer(PERIOD_PS, "ps")
    devices = tuple(DeviceSetup(**setup) for setup in given["setups"])
    reset = Operation(kind=Kind.RESET, count=8, image=given["path"], devices=devices)
    await perform(dut, Library(ctypes.CDLL(None)), reset)
    await RisingEdge(dut.clk)
    dut.external.value = 1
    return Port(dut, Path(given["content"]).read_bytes()), given


def cases(size, vault):
    """The documented answer: address, beats, log2 of their bytes, kind, answer."""
    return [
        # Kinds, sizes, lengths.
        (0, 1, 3, INCR, OKAY),
        (0, 256, 3, INCR, OKAY),
        (5, 256, 0, INCR, OKAY),
        (0x102, 16, 1, FIXED, OKAY),
        (0x103, 256, 2, FIXED, OKAY),
        (0x118, 16, 3, WRAP, OKAY),
        (0x104, 2, 2, WRAP, OKAY),
        (0x21, 3, 3, INCR, OKAY),
        # Accesses that AXI does not have.
        (0, 1, 4, INCR, SLVERR),
        (0, 4, 7, INCR, SLVERR),
        (0, 4, 3, RESERVED, SLVERR),
        (0x100, 3, 3, WRAP, SLVERR),
        (0x100, 1, 3, WRAP, SLVERR),
        (0x100, 32, 3, WRAP, SLVERR),
        (0x101, 4, 3, WRAP, SLVERR),
        # Up to the end of 4 KiB, and across.
        (PAGE - 8, 1, 3, INCR, OKAY),
        (PAGE - 7, 1, 3, INCR, OKAY),
        (PAGE - 8, 2, 3, INCR, SLVERR),
        (PAGE - 1, 2, 0, INCR, SLVERR),
        (PAGE - 8, 16, 3, FIXED, OKAY),
        (PAGE - 8, 2, 3, WRAP, OKAY),
        # At the ends of vaults.
        (vault - 64, 8, 3, INCR, OKAY),
        (vault, 8, 3, INCR, OKAY),
        (vault - 8, 2, 3, INCR, SLVERR),
        (2 * vault - 2048, 256, 3, INCR, OKAY),
        # At the end of the DRAM, and outside.
        (size - 8, 1, 3, INCR, OKAY),
        (size - 2048, 256, 3, INCR, OKAY),
        (size - 8, 2, 3, INCR, SLVERR),
        (size, 1, 3, INCR, DECERR),
        (size, 256, 3, INCR, DECERR),
        (1 << 47, 4, 3, WRAP, DECERR),
        # Outside comes before illegal.
        (size, 1, 7, INCR, DECERR),
    ]


@cocotb.test()
async def the_data_port_answers(dut):
    port, given = await start(dut)
    for part in (every_documented_answer, random_bursts_of_every_kind, answers_come_in_order):
        dut._log.info("%s", part.__name__)
        await part(port, given)


async def every_documented_answer(port, given):
    """The list of the documentation, each as a write and as a read."""
    rng = random.Random(2)
    for number, (address, length, size, kind, answer) in enumerate(
        cases(given["size"], given["vault"])
    ):
        for write in (True, False):
            burst = make(
                rng,
                write=write,
                address=address,
                length=length,
                size=size,
                kind=kind,
                identifier=number % 16,
            )
            await port.perform(burst)
            # The model of the answers and the list of them are two things.
            assert set(burst.responses) == {answer}, burst


async def random_bursts_of_every_kind(port, given):
    """Several at a time."""
    rng = random.Random(3)
    answers = set()
    for _ in range(40):
        bursts = [random_burst(rng, given["size"], 4, illegal=0.3) for _ in range(12)]
        for write in (True, False):
            group = [burst for burst in bursts if burst.write == write]
            await port.perform(*group)
            answers.update(answer for burst in group for answer in burst.responses)
    assert answers == {OKAY, SLVERR, DECERR}


async def answers_come_in_order(port, given):
    """Whatever their identifiers, and whether their vaults are near or far."""
    rng = random.Random(4)
    places = [vault * given["vault"] + 64 * number for number in range(8) for vault in (3, 0, 2, 1)]
    places.insert(5, given["size"])
    for write in (True, False):
        await port.perform(
            *(
                make(rng, write=write, address=place, length=4, identifier=15 - number % 16)
                for number, place in enumerate(places)
            )
        )
    # Writes that meet are done in their order too.
    for _ in range(10):
        await port.perform(
            *(
                make(
                    rng,
                    write=True,
                    address=rng.randrange(32),
                    length=rng.randint(1, 9),
                    size=rng.randint(0, 3),
                    identifier=rng.randrange(16),
                    sparse=True,
                )
                for _ in range(6)
            )
        )
        await port.perform(make(rng, write=False, address=0, length=16))
