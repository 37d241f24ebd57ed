"""The host driver over plain functions, and over chips that it does not know."""

import asyncio

import pytest

from isa.table import ISA_VERSION
from soc.host.driver import Host
from soc.host.register_map import CHIP, GROUP_PES, IDENTITY, MAP_VERSION, PE
from soc.host.transport import Blocking, BusError, HostError, run


class Cable:
    """A transport of plain functions to 40 PEs that end at once."""

    def __init__(self, **registers) -> None:
        values = {
            "IDENTITY": IDENTITY,
            "VERSION": MAP_VERSION | ISA_VERSION << 16,
            "GRID": 5 | 2 << 16,
            "PES": 40 | 4 << 16,
            "INSTRUCTION_WORDS": 64,
            "MEMORY": 12 | 16 << 8,
            **registers,
        }
        self.registers = {CHIP.address(name): value for name, value in values.items()}
        self.memory = bytearray(10 << 12)
        self.log = []
        self.waits = []

    def read32(self, address):
        return self.registers.get(address, 0)

    def write32(self, address, value):
        self.log.append((address, value))

    def write_block(self, address, words):
        self.log.append((address, tuple(words)))

    def read_memory(self, address, length):
        return bytes(self.memory[address : address + length])

    def write_memory(self, address, content):
        self.memory[address : address + len(content)] = content

    def wait_interrupt(self, seconds):
        self.waits.append(seconds)
        if len(self.waits) == 3:
            self.registers[CHIP.address("RUNNING", 1)] = 0


def test_plain_functions_need_no_event_loop():
    cable = Cable()
    host = Host(Blocking(cable))
    run(host.write(100, b"abc"))
    assert run(host.read(99, 5)) == b"\0abc\0"
    assert run(host.read(99, 0)) == b""
    run(host.place_vault(9, 0x5_1234_5000))
    assert cable.log == [(0x4000 + 9 * 8, (0x1234_5000, 5))]
    with pytest.raises(HostError, match="vault 10"):
        run(host.place_vault(10, 0))
    identity = run(host.identify())
    assert (identity.vaults, identity.pe_count, identity.memory_bytes) == (10, 40, 10 << 12)


def test_programs_go_to_the_pes_named_and_to_no_others():
    cable = Cable()
    host = Host(Blocking(cable))
    run(host.load([7, 8, 9], [1, 39]))
    assert cable.log == [
        (CHIP.address("SELECT_ALL"), 0),
        (CHIP.address("SELECT", 0), 1 << 1),
        (CHIP.address("SELECT", 1), 1 << 39 - GROUP_PES),
        (CHIP.address("PROGRAM"), (7, 8, 9)),
    ]
    run(host.load([7]))
    assert cable.log[4:] == [
        (CHIP.address("SELECT_ALL"), 1),
        (CHIP.address("PROGRAM"), (7,)),
    ]


def test_programs_of_different_lengths_are_launched_one_after_the_other():
    cable = Cable()
    host = Host(Blocking(cable))
    run(host.load([7, 8, 9], [1, 2]))
    run(host.load([7], [3]))
    cable.log.clear()
    run(host.launch([1, 2, 3], parameters={1: 64, 2: 128, 3: 64}))
    starts = [value for address, value in cable.log if address == CHIP.address("START")]
    assert starts == [1, 3]
    assert (PE.address("PARAMETERS_LOW", page=2), (128, 0)) in cable.log


def test_waiting_polls_until_the_chip_rests():
    cable = Cable()
    cable.registers[CHIP.address("RUNNING", 1)] = 1 << 5
    host = Host(Blocking(cable))
    assert run(host.running()) == (37,)
    run(host.wait([0], timeout=1))
    assert cable.waits == []
    run(host.wait(timeout=1, poll=0.125))
    assert cable.waits == [0.125] * 3


@pytest.mark.parametrize(
    ("registers", "message"),
    [
        ({"IDENTITY": 0xFFFFFFFF}, "not a VIP chip: the identity is 0xffffffff"),
        ({"VERSION": 9 | ISA_VERSION << 16}, "register map has version 9, this driver knows 1"),
        ({"VERSION": MAP_VERSION | 77 << 16}, "instruction set has version 77"),
    ],
)
def test_a_chip_of_another_kind_is_refused(registers, message):
    with pytest.raises(HostError, match=message):
        run(Host(Blocking(Cable(**registers))).identify())


def test_a_transport_that_wants_an_event_loop_is_told_so():
    class Slow(Blocking):
        async def read32(self, address):
            await asyncio.sleep(0)
            return await super().read32(address)

    with pytest.raises(HostError, match="the transport wants an event loop"):
        run(Host(Slow(Cable())).identify())
    assert asyncio.run(Host(Slow(Cable())).identify()).pe_count == 40


def test_an_error_answer_names_the_access():
    error = BusError("read of the control port at", 0x44, "DECERR")
    assert str(error) == "read of the control port at 0x44 was answered with DECERR"
    assert (error.address, error.response) == (0x44, "DECERR")
