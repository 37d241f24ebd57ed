"""Runs inside the simulator: a vault with engines and an AXI back end on cocotbext-axi's RAM.

``VIP_VAULT_AXI_BENCH`` holds the parameters as JSON.
"""

import json
import os
import random

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiBus, AxiRam

from hdl.ports import memory_request, memory_response
from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from memory.controller.counters import VaultCounter
from pe.interface import PeState, launch_command, load_word, status_layout
from soc.generate.presets import tile_preset
from tests.memory.axi_ram_bench import pack, unpack

PARAMETERS = 0x800
SIZE = 1 << 16


@cocotb.test()
async def copy(dut):
    """Each engine moves its partition of the memory, each extra port reads a word of it, and the
    vault's counters show it."""
    case = json.loads(os.environ["VIP_VAULT_AXI_BENCH"])
    pe = tile_preset("vault-small").pe
    rng = random.Random(case["seed"])
    content = rng.randbytes(SIZE // 2)
    for slot in range(case["pes"]):
        for name in ("load__valid", "launch__valid", "stop", "counter_index"):
            getattr(dut, f"control__{slot}__{name}").value = 0
    for port in range(case["extra_ports"]):
        getattr(dut, f"ports__{port}__request__valid").value = 0
        getattr(dut, f"ports__{port}__response__ready").value = 1
    dut.rst.value = 1
    dut.vault.value = dut.first_pe.value = dut.counter_index.value = 0
    dut.pe_count.value = case["pes"]
    ram = AxiRam(AxiBus.from_prefix(dut, "axi_"), dut.clk, dut.rst, size=SIZE)
    ram.write(0, content)
    for interface, names in ((ram.write_if, ("aw", "w", "b")), (ram.read_if, ("ar", "r"))):
        for name in names:
            pauses = _pauses(random.Random(rng.random()), case["pause"])
            getattr(interface, f"{name}_channel").set_pause_generator(pauses)
    cocotb.start_soon(Clock(dut.clk, 800, "ps").start())
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    words = assemble(case["program"]).words
    for address, word in enumerate(words):
        bits = pack(load_word(pe), {"address": address, "word": word})
        await _send(dut, case["pes"], "load", bits)
    command = {"words": len(words), "parameters": PARAMETERS}
    await _send(dut, case["pes"], "launch", pack(launch_command(pe), command))
    states = []
    for slot in range(case["pes"]):
        status = getattr(dut, f"control__{slot}__status")
        for _ in range(20_000):
            await RisingEdge(dut.clk)
            now = unpack(status_layout(), int(status.value))
            if PeState(now["state"]) in (PeState.HALTED, PeState.FAULTED):
                break
        states.append([PeState(now["state"]).name, FaultCause(now["cause"]).name, now["pc"]])
    read = [await _read(dut, case, port) for port in range(case["extra_ports"])]
    counters = {}
    for counter in (VaultCounter.READS, VaultCounter.WRITES, VaultCounter.ROW_HITS):
        dut.counter_index.value = counter
        for _ in range(40):
            await RisingEdge(dut.clk)
        counters[counter.name] = int(dut.counter_value.value)
    report = {
        "states": states,
        "read": read,
        "counters": counters,
        "before": content.hex(),
        "after": ram.read(0, SIZE).hex(),
    }
    with open(case["report"], "w") as file:
        json.dump(report, file)


async def _send(dut, pes, channel, bits):
    """Hand ``bits`` to all engines at once; they are in the same state."""
    for slot in range(pes):
        getattr(dut, f"control__{slot}__{channel}__payload").value = bits
        getattr(dut, f"control__{slot}__{channel}__valid").value = 1
    await RisingEdge(dut.clk)
    for slot in range(pes):
        assert getattr(dut, f"control__{slot}__{channel}__ready").value
        getattr(dut, f"control__{slot}__{channel}__valid").value = 0


async def _read(dut, case, port):
    """The word at its own number that an extra port reads, in hexadecimal digits."""
    tags = case["port_tag_bits"]
    layout = memory_request(tile_preset("vault-small").pe.address_bits, tags)
    beat = dict.fromkeys(layout.members, 0) | {"address": 8 * port, "tag": port, "last": 1}
    name = f"ports__{port}__"
    getattr(dut, f"{name}request__payload").value = pack(layout, beat | {"strobe": 0xFF})
    valid, ready = (getattr(dut, f"{name}request__{one}") for one in ("valid", "ready"))
    valid.value = 1
    await RisingEdge(dut.clk)
    while not ready.value:
        await RisingEdge(dut.clk)
    valid.value = 0
    while not getattr(dut, f"{name}response__valid").value:
        await RisingEdge(dut.clk)
    answer = unpack(memory_response(tags), int(getattr(dut, f"{name}response__payload").value))
    assert (answer["tag"], answer["last"], answer["error"]) == (port, 1, 0)
    return answer["data"].to_bytes(8, "little").hex()


def _pauses(rng, chance):
    while True:
        yield rng.random() < chance
