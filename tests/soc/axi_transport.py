"""The host driver's transport to a chip in a simulator: cocotbext-axi's managers."""

from collections.abc import Sequence
from typing import Any

from cocotb.triggers import First, RisingEdge, Timer

from soc.host.register_types import WORD_BYTES
from soc.host.transport import BusError

_NANOSECONDS = 1e9


class AxiTransport:
    """A :class:`soc.host.transport.Transport` for use within a cocotb test.

    Parameters:
        control: ``cocotbext.axi.AxiLiteMaster`` at the control port.
        data: ``cocotbext.axi.AxiMaster`` at the data port.
        interrupt: signal of the interrupt line.
    """

    def __init__(self, control: Any, data: Any, interrupt: Any) -> None:
        self._control = control
        self._data = data
        self._interrupt = interrupt

    async def read32(self, address: int) -> int:
        answer = await self._control.read(address, WORD_BYTES)
        _check("read of the control port at", address, answer)
        return int.from_bytes(answer.data, "little")

    async def write32(self, address: int, value: int) -> None:
        await self.write_block(address, [value])

    async def write_block(self, address: int, words: Sequence[int]) -> None:
        content = b"".join(word.to_bytes(WORD_BYTES, "little") for word in words)
        answer = await self._control.write(address, content)
        _check("write to the control port at", address, answer)

    async def read_memory(self, address: int, length: int) -> bytes:
        answer = await self._data.read(address, length)
        _check("read of the DRAM at", address, answer)
        return bytes(answer.data)

    async def write_memory(self, address: int, content: bytes) -> None:
        _check("write to the DRAM at", address, await self._data.write(address, content))

    async def wait_interrupt(self, seconds: float) -> None:
        if not self._interrupt.value:
            time = max(1, round(seconds * _NANOSECONDS))
            await First(RisingEdge(self._interrupt), Timer(time, "ns"))


def _check(access: str, address: int, answer: Any) -> None:
    if answer.resp:
        raise BusError(access, address, answer.resp.name)
