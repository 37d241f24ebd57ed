"""A cocotb test of the generated Verilog; the test itself knows nothing of VIP but the ports.

It loads ``sums.s`` over the control port of an engine, serves the engine's memory port, and checks
the sums. Payloads are packed: the README beside the Verilog lists the bits of each field, which are
those of ``pe-small`` here.

``python examples/engine_cocotb.py`` runs it in Verilator, with the argument ``icarus`` in Icarus.
"""

import os
import sys
from contextlib import nullcontext
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge
from cocotb_tools.runner import get_runner

import vip
from sim_tb.runner.build import simulator_environment

HERE = Path(__file__).parent
BUILD = Path("build/engine_cocotb").absolute()
HALTED = 2
MEMORY_BYTES = 1 << 12


def field(payload, low, bits):
    """Bits ``low`` to ``low + bits - 1`` of a payload, whose other bits may be X."""
    return payload.value[low + bits - 1 : low].to_unsigned()


async def send(dut, stream, payloads):
    """Send payloads to an input stream, one per cycle in which it is ready."""
    payload, valid, ready = (
        getattr(dut, f"{stream}__{name}") for name in ("payload", "valid", "ready")
    )
    for word in payloads:
        payload.value, valid.value = word, 1
        await RisingEdge(dut.clk)
        while not ready.value:
            await RisingEdge(dut.clk)
    valid.value = 0


async def serve(dut, memory):
    """Answer the requests of the memory port in order."""
    beat = dut.memory__request__payload
    while True:
        dut.memory__request__ready.value = 1
        await RisingEdge(dut.clk)
        if not dut.memory__request__valid.value:
            continue
        address, tag, words = field(beat, 0, 24), field(beat, 24, 3), field(beat, 28, 2) + 1
        if field(beat, 27, 1):
            for byte in range(8):
                if field(beat, 94 + byte, 1):
                    memory[address + byte] = field(beat, 30 + 8 * byte, 8)
            last = field(beat, 102, 1)
            answers = [tag | 1 << 67] if last else []
        else:
            data = [memory[address + 8 * n : address + 8 * n + 8] for n in range(words)]
            answers = [tag | int.from_bytes(word, "little") << 3 for word in data]
            answers[-1] |= 1 << 67
        if answers:
            dut.memory__request__ready.value = 0
            await send(dut, "memory__response", answers)


@cocotb.test(timeout_time=1, timeout_unit="ms")
async def sums(dut):
    """The program adds two arrays of 32 numbers."""
    memory = bytearray((HERE / "sums.bin").read_bytes().ljust(MEMORY_BYTES, b"\0"))
    program = vip.assemble(HERE / "sums.s").words
    for name in dir(dut):
        if name.endswith("valid") and "request" not in name:
            getattr(dut, name).value = 0
    dut.control__stop.value = 0
    dut.control__counter_index.value = 0
    for name in ("pe_index", "vault", "slot"):
        getattr(dut, f"identity__{name}").value = 0
    dut.identity__pe_count.value = 1
    cocotb.start_soon(Clock(dut.clk, 10, "ns").start())
    dut.rst.value = 1
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    cocotb.start_soon(serve(dut, memory))

    words = [address | word << 8 for address, word in enumerate(program)]
    await send(dut, "control__load", words)
    await send(dut, "control__launch", [len(program)])  # words; parameters, above, are 0
    while field(dut.control__status, 0, 2) != HALTED:
        await RisingEdge(dut.clk)

    array = memoryview(memory).cast("h")
    assert [array[256 + n] for n in range(32)] == [array[n] + array[128 + n] for n in range(32)]
    await ClockCycles(dut.clk, 1)
    dut._log.info("%d cycles", dut.control__counter_value.value.to_unsigned())


def main(simulator="verilator"):
    """Generate the Verilog, build its simulator, and run the test above."""
    vip.generate("pe-small", BUILD / "verilog")
    verilator = simulator == "verilator"
    runner = get_runner(simulator)
    # The Verilator that comes with VIP is not on the path.
    with simulator_environment() if verilator else nullcontext(({}, None)) as (environment, _):
        os.environ.update(environment)
        runner.build(
            sources=sorted((BUILD / "verilog" / "rtl").glob("*.v")),
            hdl_toplevel="pe",
            build_dir=BUILD / simulator,
            build_args=["-Wno-fatal", "-j", "2"] if verilator else [],
            timescale=("1ns", "1ps"),
        )
        runner.test(
            hdl_toplevel="pe",
            test_module=Path(__file__).stem,
            test_dir=HERE,
            results_xml=str(BUILD / "results.xml"),
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
