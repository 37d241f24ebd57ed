"""The host driver's connection to a chip, over a bus, a cable or a simulator.

A transport of plain functions, over PCIe or a serial line, needs no event loop:
``run(Host(Blocking(transport)).launch())``.
"""

from collections.abc import Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from support.errors import VipError

_Result = TypeVar("_Result")


class HostError(VipError):
    """A request of the host that the chip can't serve; the message gives the reason."""


class BusError(HostError):
    """The bus answered an access with an error.

    Parameters:
        access: the access, as "read of" or "write to" and so on.
        address: byte address.
        response: name of the answer, as ``SLVERR``.
    """

    def __init__(self, access: str, address: int, response: str) -> None:
        self.address = address
        self.response = response
        super().__init__(f"{access} {address:#x} was answered with {response}")


class Transport(Protocol):
    """Access to the chip's two ports. Each method raises :class:`BusError` on an error answer."""

    async def read32(self, address: int) -> int:
        """The register at byte address ``address`` of the control port."""

    async def write32(self, address: int, value: int) -> None:
        """Write a register of the control port."""

    async def write_block(self, address: int, words: Sequence[int]) -> None:
        """Write consecutive registers of the control port, as quickly as the transport can."""

    async def read_memory(self, address: int, length: int) -> bytes:
        """``length`` bytes of the DRAM from byte ``address`` on, any alignment."""

    async def write_memory(self, address: int, content: bytes) -> None:
        """Write ``content`` to the DRAM at byte ``address``, any alignment."""

    async def wait_interrupt(self, seconds: float) -> None:
        """Return when the interrupt line is 1, but after at most ``seconds`` of the chip's time. A
        transport without the line just waits."""


class BlockingTransport(Protocol):
    """As :class:`Transport`, with plain functions."""

    def read32(self, address: int) -> int:
        """See :meth:`Transport.read32`."""

    def write32(self, address: int, value: int) -> None:
        """See :meth:`Transport.write32`."""

    def write_block(self, address: int, words: Sequence[int]) -> None:
        """See :meth:`Transport.write_block`."""

    def read_memory(self, address: int, length: int) -> bytes:
        """See :meth:`Transport.read_memory`."""

    def write_memory(self, address: int, content: bytes) -> None:
        """See :meth:`Transport.write_memory`."""

    def wait_interrupt(self, seconds: float) -> None:
        """See :meth:`Transport.wait_interrupt`."""


class Blocking:
    """A :class:`Transport` made of a :class:`BlockingTransport`, for :func:`run`."""

    def __init__(self, transport: BlockingTransport) -> None:
        self._transport = transport

    async def read32(self, address: int) -> int:
        return self._transport.read32(address)

    async def write32(self, address: int, value: int) -> None:
        self._transport.write32(address, value)

    async def write_block(self, address: int, words: Sequence[int]) -> None:
        self._transport.write_block(address, words)

    async def read_memory(self, address: int, length: int) -> bytes:
        return self._transport.read_memory(address, length)

    async def write_memory(self, address: int, content: bytes) -> None:
        self._transport.write_memory(address, content)

    async def wait_interrupt(self, seconds: float) -> None:
        self._transport.wait_interrupt(seconds)


def run(coroutine: Coroutine[Any, Any, _Result]) -> _Result:
    """The result of a method of :class:`soc.host.driver.Host` over a :class:`Blocking` transport.

    Raises:
        HostError: the transport wants an event loop; or what the method raises.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: _Result = end.value
        return result
    coroutine.close()
    raise HostError("the transport wants an event loop; run() is for Blocking transports")
