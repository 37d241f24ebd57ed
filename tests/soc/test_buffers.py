"""A host whose buffers are the vaults' memories: fakes of PYNQ and XRT around a simulated chip."""

import queue
import random
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from amaranth.hdl import Value

from isa.assembly.assembler import assemble
from isa.table import ISA_VERSION
from memory.axi.layout import AxiConfig
from noc.config import NetworkConfig
from soc.chip.chip import Chip
from soc.chip.config import ChipConfig
from soc.host.buffers import PynqBuffer, XrtBuffer, XrtRegisters, open_host
from soc.host.register_map import CHIP, IDENTITY, MAP_VERSION
from soc.host.transport import HostError, run
from soc.tile.config import VaultTileConfig
from tests.memory.axi_memory import OKAY, AxiMemory, payload
from tests.soc.host_dut import small
from tests.soc.lite_manager import LiteManager

_VAULT = 1 << 14
_BASES = (0x1234_5678_9ABC_D000, 0xFFFF_F000)


def _chip() -> Chip:
    """Two vaults of one engine, whose memories the host serves."""
    pe = replace(small().pe, address_bits=14, load_store_queue=8)
    vault = AxiConfig(address_bits=14, tag_bits=pe.tag_bits + 1, data_bits=64, outstanding=4)
    tile = VaultTileConfig(pe=pe, vault=vault, pes=1, extra_ports=1)
    network = NetworkConfig(columns=2, rows=1, address_bits=14, tag_bits=tile.port_tag_bits)
    return Chip(ChipConfig(tile=tile, network=network, remote=False, host_data="none"))


class PynqArray(np.ndarray):
    """Cached bytes: those of the device arrive by ``invalidate``, and go there by ``flush``."""

    device_address: int
    shared: memoryview

    @classmethod
    def allocate(cls, address, device):
        array = np.zeros(len(device), np.uint8).view(cls)
        array.device_address, array.shared = address, device
        return array

    def __getitem__(self, part):
        view = super().__getitem__(part)
        view.shared = self.shared[part]
        return view

    def flush(self):
        self.shared[:] = memoryview(self)

    def invalidate(self):
        memoryview(self)[:] = self.shared


class XrtObject:
    """A buffer object with the methods of ``pyxrt.bo``."""

    DIRECTIONS = SimpleNamespace(XCL_BO_SYNC_BO_TO_DEVICE=0, XCL_BO_SYNC_BO_FROM_DEVICE=1)

    def __init__(self, address, device) -> None:
        self.address = lambda: address
        self.size = lambda: len(device)
        self.host = memoryview(bytearray(len(device)))
        self.device = device

    def write(self, content, seek):
        self.host[seek : seek + len(content)] = content

    def read(self, size, skip):
        return np.frombuffer(self.host[skip : skip + size], np.int8)

    def sync(self, direction, size, offset):
        part = slice(offset, offset + size)
        if direction:
            self.host[part] = self.device[part]
        else:
            self.device[part] = self.host[part]


class Bridge:
    """Registers for a thread: the simulation performs what it asks for."""

    def __init__(self) -> None:
        self.requests = queue.Queue()
        self.answers = queue.Queue()

    def read_register(self, offset):
        self.requests.put((offset, None))
        return self.answers.get()

    def write_register(self, offset, data):
        self.requests.put((offset, data))
        self.answers.get()


class Served(AxiMemory):
    """A vault's memory at its base."""

    def __init__(self, rng, base) -> None:
        super().__init__(rng, bytes(_VAULT), 64)
        self.base = base

    def _address(self, channel, beat):
        assert self.base <= beat["addr"] < self.base + _VAULT
        beat["addr"] -= self.base
        super()._address(channel, beat)

    async def cycle(self, ctx, bus):
        """Drive a cycle of ``bus``, and take what the chip offers in it."""
        self.drive(ctx, bus)
        await ctx.delay(0)
        offers = [
            {name: ctx.get(Value.cast(signal)) for name, signal in payload(bus, channel).items()}
            if ctx.get(getattr(bus, f"{channel}valid"))
            else None
            for channel in ("aw", "w", "ar")
        ]
        self.step(*offers, ctx.get(bus.bready), ctx.get(bus.rready))


def _buffers(kind, devices):
    if kind == "pynq":
        return [PynqBuffer(PynqArray.allocate(*device)) for device in devices]
    return [XrtBuffer(XrtObject(*device), XrtObject.DIRECTIONS) for device in devices]


def _increment(host) -> bytes:
    """Both words to which an engine of each vault added 5, and bytes across the vaults' border."""
    chip = run(host.identify())
    words = [
        (vault * _VAULT + 72, (7000 + vault).to_bytes(8, "little")) for vault in range(chip.vaults)
    ]
    for address, content in words:
        run(host.write(address, content))
    run(host.write(_VAULT - 3, b"border"))
    run(
        host.load(
            assemble(
                "mov r1, #72\nld.reg [64-bit] r2, r1\nadd r2, r2, #5\nst.reg [64-bit] r1, r2\n"
                "memfence\nhalt\n"
            )
        )
    )
    run(host.launch())
    run(host.wait(timeout=60.0))
    assert not run(host.faults())
    return b"".join(run(host.read(address, 8)) for address, _ in words) + run(
        host.read(_VAULT - 3, 6)
    )


@pytest.mark.parametrize("kind", ["pynq", "xrt"])
def test_programs_use_the_buffers_of_the_host(simulate, rng, kind):
    dut, bridge, results = _chip(), Bridge(), []
    memories = [Served(random.Random(vault), base) for vault, base in enumerate(_BASES)]
    devices = [(memory.base, memoryview(memory.memory)) for memory in memories]
    registers = XrtRegisters(bridge)

    def work():
        try:
            results.append(_increment(open_host(registers, _buffers(kind, devices))))
        except BaseException as error:
            results.append(error)
        bridge.requests.put(None)

    async def each(ctx):
        for memory, bus in zip(memories, dut.axi, strict=True):
            await memory.cycle(ctx, bus)

    async def bench(ctx):
        manager = LiteManager(dut.control, rng, pause=0.0)
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        while (request := bridge.requests.get(timeout=60)) is not None:
            offset, data = request
            if data is None:
                _, [(response, value)] = await manager.access(ctx, reads=[offset], each=each)
            else:
                writes = [(offset, data, 0xF)]
                [response], _ = await manager.access(ctx, writes=writes, each=each)
                value = None
            assert response == OKAY
            bridge.answers.put(value)
        thread.join()

    simulate(dut, bench)
    [content] = results
    assert (
        content == b"".join((7005 + vault).to_bytes(8, "little") for vault in range(2)) + b"border"
    )


class Registers(dict):
    """Of a chip of two vaults that nothing simulates; others are 0."""

    def __init__(self) -> None:
        values = {
            "IDENTITY": IDENTITY,
            "VERSION": MAP_VERSION | ISA_VERSION << 16,
            "GRID": 2 | 1 << 16,
            "PES": 2 | 1 << 16,
            "MEMORY": 14 | 15 << 8,
        }
        super().__init__({CHIP.address(name): value for name, value in values.items()})

    def read(self, offset):
        return self.get(offset, 0)

    def write(self, offset, data):
        raise AssertionError(f"{offset:#x} is written")


@pytest.mark.parametrize(
    ("buffers", "message"),
    [
        ([], "needs 2 buffers of 16,384 bytes, one per vault; there are 0 of none"),
        ([(0, 1 << 14)], "there are 1 of 16,384"),
        ([(0, 1 << 14), (1 << 14, 1 << 13)], "there are 2 of 16,384, 8,192"),
        ([(0x800, 1 << 14), (1 << 14, 1 << 14)], "vault 0 has to begin at a multiple of 4096, not"),
    ],
)
def test_other_buffers_are_refused_before_any_base_is_written(buffers, message):
    memories = [
        PynqBuffer(PynqArray.allocate(base, memoryview(bytearray(size)))) for base, size in buffers
    ]
    with pytest.raises(HostError, match=message):
        open_host(Registers(), memories)
