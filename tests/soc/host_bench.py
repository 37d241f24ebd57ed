"""Runs inside the simulator: cocotbext-axi's masters and the host driver on a small chip."""

import random

import cocotb
import pytest
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge, with_timeout
from cocotb.utils import get_sim_time
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiMaster

from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from memory.controller.counters import VaultCounter
from memory.line_buffer.layout import LineCounter
from pe.interface import PeCounter
from soc.host.driver import Host, HostTimeout
from soc.host.register_map import CHIP, PE, VAULT
from soc.host.transport import BusError, HostError
from tests.soc.axi_transport import AxiTransport

PERIOD_NS = 2
OKAY, SLVERR, DECERR = 0, 2, 3
#: No case takes a quarter of this; a bus that hangs takes all of it.
_LIMIT = {"timeout_time": 200, "timeout_unit": "us"}

#: Doubles the word at the parameters and stores the engine's index after it.
DOUBLE = """
    ld.reg [64-bit] r10, r5
    add r10, r10, r10
    st.reg [64-bit] r5, r10
    add r6, r5, #8
    st.reg [64-bit] r6, r1
    memfence
    halt
"""
#: Stores at its parameters. PEs with an odd one fault.
STORE = """
    st.reg [64-bit] r5, r1
    halt
"""
#: Stores at its parameters and runs off its end.
STORE_AND_LEAVE = "st.reg [64-bit] r5, r1"
ENDLESS = """
again:
    jmp again
    halt
"""


async def start(dut, pauses=0.0):
    """Reset the chip; a driver and the masters."""
    rng = random.Random(pauses)
    cocotb.start_soon(Clock(dut.clk, PERIOD_NS, "ns").start())
    dut.rst.value = 1
    lite = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "control_"), dut.clk, dut.rst)
    data = AxiMaster(AxiBus.from_prefix(dut, "data_"), dut.clk, dut.rst)
    for master in (lite, data):
        for channel in (
            master.write_if.aw_channel,
            master.write_if.w_channel,
            master.write_if.b_channel,
            master.read_if.ar_channel,
            master.read_if.r_channel,
        ):
            channel.log.setLevel("WARNING")
            if pauses:
                channel.set_pause_generator(_pauses(random.Random(rng.random()), pauses))
        for interface in (master.write_if, master.read_if):
            interface.log.setLevel("WARNING")
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    await RisingEdge(dut.clk)
    return Host(AxiTransport(lite, data, dut.host_interrupt)), lite, data


def _pauses(rng, chance):
    while True:
        yield rng.random() < chance


@cocotb.test(**_LIMIT)
@cocotb.parametrize(pauses=[0.0, 0.5])
async def programs_run_from_load_to_result(dut, pauses):
    host, _, _ = await start(dut, pauses)
    count = (await host.identify()).pe_count
    values = [random.Random(pe).getrandbits(60) for pe in range(count)]
    for pe, value in enumerate(values):
        await host.write(64 * pe, value.to_bytes(8, "little") + bytes(8))
    await host.load(assemble(DOUBLE))
    await host.launch(parameters={pe: 64 * pe for pe in range(count)})
    await host.wait(timeout=1e-5)
    for pe, value in enumerate(values):
        content = await host.read(64 * pe, 16)
        assert int.from_bytes(content[:8], "little") == 2 * value
        assert int.from_bytes(content[8:], "little") == pe
        status = await host.status(pe)
        assert (status.state, status.cause) == ("halted", FaultCause.NONE)
        counters = await host.counters(pe)
        assert counters[PeCounter.ISSUED_LOAD_STORE] == 3
        assert counters[PeCounter.BYTES_STORED] == 16
    assert await host.halted() == tuple(range(count))
    assert await host.faults() == ()


@cocotb.test(**_LIMIT)
async def each_pe_has_its_program_and_its_launch(dut):
    host, _, _ = await start(dut)
    await host.load(assemble(DOUBLE), [1, 2])
    await host.load(assemble(STORE), [3])
    await host.write(0, (5).to_bytes(8, "little"))
    await host.launch([1, 3], parameters={1: 0, 3: 32})
    await host.wait(timeout=1e-5)
    assert await host.halted() == (1, 3)
    assert (await host.status(0)).state == "idle"
    assert int.from_bytes(await host.read(0, 8), "little") == 10
    assert int.from_bytes(await host.read(32, 8), "little") == 3
    # The same programs again, and another one in their place.
    await host.launch([2], parameters=0)
    await host.wait([2], timeout=1e-5)
    assert int.from_bytes(await host.read(0, 8), "little") == 20
    await host.load(assemble(STORE), [1])
    await host.launch([1], parameters=64)
    await host.wait(timeout=1e-5)
    assert int.from_bytes(await host.read(64, 8), "little") == 1


@cocotb.test(**_LIMIT)
@cocotb.parametrize(pauses=[0.0, 0.5])
async def a_fault_stops_its_pe_alone_and_the_chip_goes_on(dut, pauses):
    host, _, _ = await start(dut, pauses)
    end = (await host.identify()).memory_bytes
    await host.write(0, bytes(range(64)))
    await host.load(assemble(STORE))
    # PE 1 misaligned, PE 2 at the column at which this memory fails.
    await host.launch(parameters={0: 8, 1: 17, 2: end - 8, 3: 24})
    await host.wait(timeout=1e-5)
    assert await host.halted() == (0, 3)
    assert await host.faulted() == (1, 2)
    first, second = await host.faults()
    assert str(first) == (
        "PE 1 (vault 0, slot 1): <assembly>:2: st.reg [64-bit] r5, r1: the address is not "
        "aligned as this instruction or engine needs"
    )
    assert (second.pe, second.vault, second.slot) == (2, 1, 0)
    assert second.cause == FaultCause.MEMORY_ERROR
    assert (first.memory_error, second.memory_error) == (False, True)
    # Relaunched without a reset, what is in the memory stays.
    await host.launch(parameters={0: 8, 1: 16, 2: 40, 3: 24})
    await host.wait(timeout=1e-5)
    assert await host.faults() == ()
    expected = bytearray(range(64))
    for pe, address in enumerate((8, 16, 40, 24)):
        expected[address : address + 8] = pe.to_bytes(8, "little")
    assert await host.read(0, 64) == expected


@cocotb.test(**_LIMIT)
async def a_memory_error_beside_another_fault_is_told_too(dut):
    host, lite, _ = await start(dut)
    end = (await host.identify()).memory_bytes
    await host.load(assemble(STORE_AND_LEAVE))
    await host.launch(parameters={0: 8, 1: 16, 2: end - 8, 3: 24})
    await host.wait(timeout=1e-5)
    found = await host.faults()
    assert [fault.memory_error for fault in found] == [False, False, True, False]
    assert {fault.cause for fault in found} == {FaultCause.PC_OUT_OF_PROGRAM}
    line = (
        "<assembly>:1: st.reg [64-bit] r5, r1: ran past the last instruction: is a `halt` missing?"
    )
    assert str(found[0]) == f"PE 0 (vault 0, slot 0): {line}"
    assert str(found[2]) == f"PE 2 (vault 1, slot 0): {line}; also a memory error"
    assert (await host.status(2)).memory_error
    # A driver that does not know the bit sees the same state, cause and place.
    words = [(await read(lite, PE.address("STATUS", page=pe)))[1] for pe in (0, 2)]
    assert words[1] == words[0] | 4
    await host.launch([2], parameters=32)
    await host.wait([2], timeout=1e-5)
    assert not (await host.status(2)).memory_error


@cocotb.test(**_LIMIT)
async def what_does_not_end_is_told_and_stopped(dut):
    host, lite, _ = await start(dut)
    await host.load(assemble(ENDLESS))
    await host.launch([0, 2])
    with pytest.raises(HostTimeout, match=r"after 2e-06 s PEs 0, 2 still run$"):
        await host.wait(timeout=2e-6, poll=5e-7)
    with pytest.raises(HostError, match=r"^PE 0 can't be loaded while running$"):
        await host.load(assemble(STORE), [0, 1])
    with pytest.raises(HostError, match=r"^PEs 0, 2 can't be launched while running$"):
        await host.launch()
    await host.stop([0])
    await host.wait([0], timeout=1e-6)
    assert await host.running() == (2,)
    assert await host.halted() == (0,)
    await host.stop()
    await host.wait(timeout=1e-6)
    # Past the driver: a PE that runs keeps its program, the others take theirs.
    await host.launch([2])
    await write(lite, CHIP.address("SELECT_ALL"), 1)
    assert await write(lite, CHIP.address("PROGRAM"), 0) == SLVERR
    assert await write(lite, CHIP.address("START"), 1) == SLVERR
    await host.stop([2])
    await host.wait(timeout=1e-6)
    assert await host.halted() == (2,)
    assert await host.faulted() == (0, 1, 3)


@cocotb.test(**_LIMIT)
async def the_driver_refuses_what_the_chip_cant_do(dut):
    host, _, _ = await start(dut)
    words = (await host.identify()).instruction_words
    end = (await host.identify()).memory_bytes
    for operation, message in (
        (host.load([0] * (words + 1)), f"1 to {words} words on this chip, not {words + 1}"),
        (host.load([]), "not 0"),
        (host.load([0], [4]), "no PE 4; this chip has PEs 0 to 3"),
        (host.load([0], []), "no PE is selected"),
        (host.launch([0]), "PE 0 can't be launched: it has no program"),
        (host.counters(-1), "no PE -1"),
        (host.vault_counters(2), "no vault 2; this chip has vaults 0 to 1"),
        (host.read(end - 8, 9), f"read: 9 bytes at {end - 8:#x} are not in the DRAM"),
        (host.write(-1, b"1"), "write: 1 bytes at -0x1 are not in the DRAM"),
    ):
        with pytest.raises(HostError, match=message):
            await operation
    await host.load(assemble(STORE))
    for parameters, message in (
        ({0: 0}, "PE 1 can't be launched: it has no parameter block"),
        (end, f"parameter block of PE 0: 1 bytes at {end:#x}"),
    ):
        with pytest.raises(HostError, match=message):
            await host.launch(parameters=parameters)
    with pytest.raises(BusError, match=rf"read of the DRAM at {end - 32:#x} .* SLVERR"):
        await host.read(end - 32, 8)
    assert await host.running() == ()


async def write(lite, address, value):
    answer = await with_timeout(lite.write(address, value.to_bytes(4, "little")), 2, "us")
    return answer.resp


async def read(lite, address):
    answer = await with_timeout(lite.read(address, 4), 2, "us")
    return answer.resp, int.from_bytes(answer.data, "little")


@cocotb.test(**_LIMIT)
@cocotb.parametrize(pauses=[0.0, 0.5])
async def no_access_hangs_either_bus(dut, pauses):
    host, lite, data = await start(dut, pauses)
    end = (await host.identify()).memory_bytes
    for address, response in (
        (CHIP.address("IDENTITY"), OKAY),
        (CHIP.address("START"), SLVERR),
        (CHIP.address("PROGRAM"), SLVERR),
        (CHIP.address("SELECT_ALL") + 4, DECERR),
        (CHIP.address("SELECT", 1), DECERR),
        (PE.address("STATUS", page=3), OKAY),
        (PE.address("STATUS", page=4), DECERR),
        (PE.address("STATUS") + 4, DECERR),
        (VAULT.address("COUNTER_LOW", page=2), DECERR),
        (VAULT.address("NETWORK_LOW", 4), OKAY),
        (VAULT.address("NETWORK_LOW", 5), DECERR),
        (0xFFFFC, DECERR),
    ):
        assert (await read(lite, address))[0] == response, hex(address)
    for address, value, response in (
        (CHIP.address("IDENTITY"), 0, SLVERR),
        (CHIP.address("START"), 0, SLVERR),
        (CHIP.address("START"), 257, SLVERR),
        (CHIP.address("PROGRAM", 256), 0, SLVERR),
        (CHIP.address("SELECT"), 0x10, SLVERR),
        (CHIP.address("PARAMETERS_LOW"), end, SLVERR),
        (CHIP.address("PARAMETERS_HIGH"), 1, SLVERR),
        (PE.address("STATUS"), 0, SLVERR),
        (PE.address("PARAMETERS_LOW", page=4), 0, DECERR),
        (CHIP.address("SELECT_ALL"), 0, OKAY),
        (CHIP.address("START"), 1, SLVERR),
        (CHIP.address("PROGRAM"), 0, SLVERR),
        (CHIP.address("STOP"), 0, SLVERR),
    ):
        assert await write(lite, address, value) == response, hex(address)
    # A block has no copies at other addresses.
    for register in (CHIP.address("IDENTITY"), PE.address("STATUS"), VAULT.address("COUNTER_LOW")):
        assert (await read(lite, register))[0] == OKAY
        assert (await read(lite, register | 3 << 18))[0] == DECERR
    answer = await lite.write(CHIP.address("SELECT"), b"\x01")
    assert answer.resp == SLVERR
    assert await read(lite, CHIP.address("SELECT")) == (OKAY, 0)
    for operation, response in (
        (data.read(end, 64), DECERR),
        (data.write(end + 4096, bytes(4096)), DECERR),
        (data.read(1 << 47, 8), DECERR),
        (data.write(end - 40, bytes(16)), SLVERR),
        (data.read(end - 40, 8), OKAY),
    ):
        assert (await with_timeout(operation, 20, "us")).resp == response


@cocotb.test(**_LIMIT)
async def counters_are_those_of_their_vault(dut):
    host, _, _ = await start(dut)
    counters = await host.vault_counters(1)
    assert counters[VaultCounter.BUS_BUSY] == 1 << 33 | VaultCounter.BUS_BUSY
    lines = await host.line_counters(1)
    assert lines == {counter: 1 << 33 | counter for counter in LineCounter}
    assert await host.vault_latencies(0) == tuple(range(16, 24))
    assert await host.network_counters(1) == tuple(1 << 34 | index for index in range(5))


@cocotb.test(**_LIMIT)
async def a_host_that_takes_no_answers_loses_none(dut):
    host, lite, _ = await start(dut)
    await host.load(assemble(150 * "add r10, r10, #1\n"))
    await host.launch(parameters=0)
    await host.wait(timeout=1e-5)
    # Of the chip, of engines that left their programs far from the start, of both tiles.
    registers = [
        CHIP.address("IDENTITY"),
        *(PE.address("STATUS", page=pe) for pe in range(4)),
        *(VAULT.address("COUNTER_LOW", word, page=1) for word in range(8)),
        *(PE.address("COUNTER_LOW", word, page=3) for word in range(4)),
    ]
    expected = {register: await read(lite, register) for register in registers}
    rng = random.Random(5)
    # Between the rounds, as many cycles as change the sum of all answers taken.
    for idle in (0, 21, 43):
        for _ in range(idle):
            await RisingEdge(dut.clk)
        asked = [rng.choice(registers) for _ in range(40)]
        masks = [rng.getrandbits(2) for _ in range(64)]
        answers = (lite.read_if.r_channel, lite.write_if.b_channel)
        for channel in answers:
            channel.pause = True
        reads = [cocotb.start_soon(lite.read(register, 4)) for register in asked]
        enable = CHIP.address("INTERRUPT_ENABLE")
        writes = [cocotb.start_soon(lite.write(enable, bytes([mask, 0, 0, 0]))) for mask in masks]
        for _ in range(150):
            await RisingEdge(dut.clk)
        for channel in answers:
            channel.pause = False
            channel.set_pause_generator(_pauses(random.Random(idle), 0.7))
        for register, task in zip(asked, reads, strict=True):
            answer = await with_timeout(task, 2, "us")
            found = answer.resp, int.from_bytes(answer.data, "little")
            assert found == expected[register], hex(register)
        for task in writes:
            assert (await with_timeout(task, 2, "us")).resp == OKAY
        for channel in answers:
            channel.clear_pause_generator()
            channel.pause = False
        assert await read(lite, enable) == (OKAY, masks[-1])


@cocotb.test(**_LIMIT)
async def reads_and_writes_of_data_go_on_together(dut):
    host, _, data = await start(dut)
    await host.identify()
    rng = random.Random(6)
    content = bytearray(rng.randbytes(8192))
    await host.write(0, bytes(content))
    for _ in range(4):
        reads = [(rng.randrange(0, 3584), rng.randrange(1, 512)) for _ in range(6)]
        places = [4096 + 512 * number + rng.randrange(64) for number in range(8)]
        pieces = [rng.randbytes(rng.randrange(1, 448)) for _ in places]
        written = list(zip(places, pieces, strict=True))
        writing = [cocotb.start_soon(data.write(*one)) for one in written]
        reading = [cocotb.start_soon(data.read(*one)) for one in reads]
        for (place, size), task in zip(reads, reading, strict=True):
            answer = await with_timeout(task, 20, "us")
            assert bytes(answer.data) == content[place : place + size]
        for (place, piece), task in zip(written, writing, strict=True):
            assert (await with_timeout(task, 20, "us")).resp == OKAY
            content[place : place + len(piece)] = piece
    assert await host.read(0, len(content)) == content


def cycles():
    return get_sim_time("ns") / PERIOD_NS


@cocotb.test(**_LIMIT)
async def programs_and_data_move_fast(dut):
    host, _, data = await start(dut)
    await host.identify()
    began = cycles()
    await host.load([0] * 256)
    load = cycles() - began
    content = random.Random(1).randbytes(16384)
    began = cycles()
    await host.write(0, content)
    write_cycles = cycles() - began
    began = cycles()
    assert await host.read(0, len(content)) == content
    read_cycles = cycles() - began
    dut._log.info("256 words %d, 16 KiB written %d, read %d", load, write_cycles, read_cycles)
    assert load < 256 * 1.3
    assert write_cycles < 2048 / 0.9
    assert read_cycles < 2048 / 0.9
    # Any length and alignment, in one piece and with narrow beats.
    rng = random.Random(2)
    expected = bytearray(content)
    for size in (0, 1, 2, 3):
        address, length = rng.randrange(8000), rng.randrange(1, 600)
        piece = rng.randbytes(length)
        await data.write(address, piece, size=size)
        expected[address : address + length] = piece
        answer = await data.read(address - 3, length + 7, size=3 - size)
        assert bytes(answer.data) == expected[address - 3 : address + length + 4]
    assert await host.read(0, len(content)) == expected
