"""A host beside the FPGA: registers at an address, and vaults' memories in buffers that it shares.

For chips with ``host_data`` "none", with PYNQ, on a Zynq or a card of Alveo::

    arrays = [pynq.allocate(vault_bytes, "u1") for _ in range(vaults)]
    host = open_host(overlay.chip_ip.mmio, [PynqBuffer(array) for array in arrays])

and with XRT, whose ``pyxrt`` of 2.16 has no ``ip`` yet::

    objects = [pyxrt.bo(device, vault_bytes, flags, group) for group in groups]
    host = open_host(XrtRegisters(ip), [XrtBuffer(bo, pyxrt.xclBOSyncDirection) for bo in objects])

Written from the sources of both, and tried with a simulated chip alone.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from .config import PAGE_BYTES
from .driver import Host
from .register_types import WORD_BYTES
from .transport import Blocking, HostError, run


class Registers(Protocol):
    """A chip's control port, as a ``pynq.MMIO``."""

    def read(self, offset: int) -> int:
        """The register at byte ``offset``."""

    def write(self, offset: int, data: int) -> None:
        """Write a register."""


class DeviceBuffer(Protocol):
    """Bytes that host and chip reach."""

    @property
    def address(self) -> int:
        """Of the first byte, on the chip's bus."""

    @property
    def length(self) -> int:
        """Number of bytes."""

    def read(self, begin: int, length: int) -> bytes:
        """``length`` bytes from byte ``begin`` on, as the chip wrote them."""

    def write(self, begin: int, content: bytes) -> None:
        """Write ``content`` from byte ``begin`` on, for the chip to see."""


class PynqBuffer:
    """A :class:`DeviceBuffer` of an array of bytes from ``pynq.allocate``."""

    def __init__(self, array: Any) -> None:
        self._array = array
        self.address: int = array.device_address
        self.length: int = array.nbytes

    def read(self, begin: int, length: int) -> bytes:
        part = self._array[begin : begin + length]
        part.invalidate()
        return bytes(part)

    def write(self, begin: int, content: bytes) -> None:
        part = self._array[begin : begin + len(content)]
        memoryview(part)[:] = content
        part.flush()


class XrtRegisters:
    """:class:`Registers` of an ``xrt::ip``."""

    def __init__(self, ip: Any) -> None:
        self.read = ip.read_register
        self.write = ip.write_register


class XrtBuffer:
    """A :class:`DeviceBuffer` of an ``xrt::bo``.

    Parameters:
        bo: the buffer object.
        directions: ``pyxrt.xclBOSyncDirection``.
    """

    def __init__(self, bo: Any, directions: Any) -> None:
        self._bo = bo
        self._directions = directions
        self.address: int = bo.address()
        self.length: int = bo.size()

    def read(self, begin: int, length: int) -> bytes:
        self._bo.sync(self._directions.XCL_BO_SYNC_BO_FROM_DEVICE, length, begin)
        return bytes(self._bo.read(length, begin))

    def write(self, begin: int, content: bytes) -> None:
        self._bo.write(content, begin)
        self._bo.sync(self._directions.XCL_BO_SYNC_BO_TO_DEVICE, len(content), begin)


def open_host(registers: Registers, memories: Sequence[DeviceBuffer]) -> Host:
    """The host of a chip, whose vaults begin at ``memories`` from now on.

    Parameters:
        registers: the chip's control port.
        memories: of each vault, exactly as large as it.

    Raises:
        HostError: other numbers or sizes of buffers than the chip's, a buffer that begins at no
            multiple of 4096, or a chip unknown to the driver.
    """
    host = Host(Blocking(_Transport(registers, memories)))
    chip = run(host.identify())
    size = 1 << chip.vault_address_bits
    lengths = [memory.length for memory in memories]
    if lengths != [size] * chip.vaults:
        raise HostError(
            f"the chip needs {chip.vaults} buffers of {size:,} bytes, one per vault; there are "
            f"{len(lengths)} of {', '.join(f'{length:,}' for length in lengths) or 'none'}"
        )
    for vault, memory in enumerate(memories):
        if memory.address % PAGE_BYTES:
            raise HostError(
                f"the buffer of vault {vault} has to begin at a multiple of {PAGE_BYTES}, not at "
                f"{memory.address:#x}"
            )
    for vault, memory in enumerate(memories):
        run(host.place_vault(vault, memory.address))
    return host


class _Transport:
    """A :class:`soc.host.transport.BlockingTransport`; ``memories`` are all of one size."""

    def __init__(self, registers: Registers, memories: Sequence[DeviceBuffer]) -> None:
        self._registers = registers
        self._memories = memories

    def read32(self, address: int) -> int:
        return self._registers.read(address)

    def write32(self, address: int, value: int) -> None:
        self._registers.write(address, value)

    def write_block(self, address: int, words: Sequence[int]) -> None:
        for number, word in enumerate(words):
            self._registers.write(address + number * WORD_BYTES, word)

    def _parts(self, address: int, length: int) -> Iterator[tuple[DeviceBuffer, int, int]]:
        """The buffer, first byte there and number of bytes of each vault's part."""
        end = address + length
        while address < end:
            vault, begin = divmod(address, self._memories[0].length)
            count = min(end - address, self._memories[0].length - begin)
            yield self._memories[vault], begin, count
            address += count

    def read_memory(self, address: int, length: int) -> bytes:
        return b"".join(
            memory.read(begin, count) for memory, begin, count in self._parts(address, length)
        )

    def write_memory(self, address: int, content: bytes) -> None:
        done = 0
        for memory, begin, count in self._parts(address, len(content)):
            memory.write(begin, content[done : done + count])
            done += count

    def wait_interrupt(self, seconds: float) -> None:
        time.sleep(seconds)
