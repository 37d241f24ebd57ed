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
    """Each engine moves its partition of the memory, and the vault's counters show it."""
    case = json.loads(os.environ["VIP_VAULT_AXI_BENCH"])
    pe = tile_preset("vault-small").pe
    rng = random.Random(case["seed"])
    content = rng.randbytes(SIZE // 2)
    for slot in range(case["pes"]):
        for name in ("load__valid", "launch__valid", "stop", "counter_index"):
            getattr(dut, f"control__{slot}__{name}").value = 0
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
    counters = {}
    for counter in (VaultCounter.READS, VaultCounter.WRITES, VaultCounter.ROW_HITS):
        dut.counter_index.value = counter
        for _ in range(40):
            await RisingEdge(dut.clk)
        counters[counter.name] = int(dut.counter_value.value)
    report = {
        "states": states,
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


def _pauses(rng, chance):
    while True:
        yield rng.random() < chance
