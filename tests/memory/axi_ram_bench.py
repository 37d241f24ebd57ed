"""Runs inside the simulator: the AXI back end between a random requester and cocotbext-axi's RAM.

``VIP_AXI_BENCH`` holds the parameters as JSON.
"""

import json
import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ReadOnly, RisingEdge
from cocotbext.axi import AxiBus, AxiRam

from hdl.ports import memory_request, memory_response
from tests.memory.port_traffic import Requester

COLUMNS = 24


def pack(layout, fields):
    """The bits of a payload."""
    return sum(fields[name] << layout[name].offset for name, _ in layout)


def unpack(layout, bits):
    """The fields of a payload."""
    found = {}
    for name, _ in layout:
        field = layout[name]
        found[name] = bits >> field.offset & (1 << field.width) - 1
    return found


@cocotb.test()
async def random_accesses(dut):
    """Every access comes back right, and the RAM ends as the accesses say."""
    case = json.loads(os.environ["VIP_AXI_BENCH"])
    rng = random.Random(case["seed"])
    content = rng.randbytes(32 * COLUMNS)
    request_layout = memory_request(case["address_bits"], case["tag_bits"])
    response_layout = memory_response(case["tag_bits"])
    dut.rst.value = 1
    dut.port__request__valid.value = 0
    dut.port__response__ready.value = 0
    ram = AxiRam(AxiBus.from_prefix(dut, "axi_"), dut.clk, dut.rst, size=1 << case["address_bits"])
    ram.write(0, content)
    write, read = ram.write_if, ram.read_if
    for channel in (
        write.aw_channel,
        write.w_channel,
        write.b_channel,
        read.ar_channel,
        read.r_channel,
    ):
        channel.set_pause_generator(_pauses(random.Random(rng.random()), case["pause"]))
    cocotb.start_soon(Clock(dut.clk, 800, "ps").start())
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    requester = Requester(
        rng,
        content,
        range(COLUMNS),
        accesses=case["accesses"],
        tag_bits=case["tag_bits"],
        take=1 - case["pause"],
    )
    while not requester.done:
        beat, ready = requester.plan()
        dut.port__request__valid.value = beat is not None
        dut.port__request__payload.value = 0 if beat is None else pack(request_layout, beat)
        dut.port__response__ready.value = ready
        await ReadOnly()
        accepted = bool(dut.port__request__ready.value)
        response = None
        if dut.port__response__valid.value:
            response = unpack(response_layout, int(dut.port__response__payload.value))
        await RisingEdge(dut.clk)
        requester.step(accepted, response)
        assert requester.cycle < 100 * case["accesses"], "no end"
    assert ram.read(0, len(content)) == bytes(requester.memory)
    with open(case["report"], "w") as file:
        json.dump({"cycles": requester.cycle, "finished": len(requester.finished)}, file)


def _pauses(rng, chance):
    while True:
        yield rng.random() < chance
