"""Operations of a simulated chip's host, as exchanged with the simulator."""

import ctypes
import time
from collections.abc import Mapping
from ctypes import c_uint8, c_uint64
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache
from typing import Annotated, Any

from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.axi import Axi4, Axi4Lite
from memory.model.device_model import DeviceModel, DeviceSetup
from support.schema import C

from .models import IMAGE, PERIOD_PS, Library, Model


class Kind(IntEnum):
    """Kind of an operation."""

    RESET = 0
    RUN = 1
    READ_REGISTER = 2
    WRITE_REGISTERS = 3
    READ_MEMORY = 4
    WRITE_MEMORY = 5


class Misuse(IntEnum):
    """What a host does that AXI does not allow."""

    NONE = 0
    #: From now to the next reset it takes no response of the port that it accesses.
    NOT_READY = 1
    #: The second half of a write's data, or an only word, never comes.
    NO_DATA = 2
    #: The addresses of a write never come.
    NO_ADDRESS = 3
    #: ``wlast`` is inverted.
    WRONG_LAST = 4


class Outcome(IntEnum):
    """Outcome of an operation."""

    DONE = 0
    LATE = 1
    #: A rule of the DRAM was broken.
    VIOLATION = 2


@dataclass(frozen=True, kw_only=True)
class AxiMemory:
    """A memory on an AXI bus: ``size`` bytes of the image from ``base`` on, a minimum latency of
    ``latency`` cycles, and ``lanes`` 64-bit words per beat. Its addresses from the first of
    ``errors`` to below the second fail."""

    base: int
    size: int
    latency: int
    lanes: int
    errors: Annotated[tuple[int, int], C(c_uint64 * 2)] = (0, 0)


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation.

    Attributes:
        kind: of the operation.
        address: of the first byte.
        count: cycles of RESET and RUN; bytes of the others.
        data: bytes to write.
        stop: the interrupt ends RUN.
        limit: cycles after which an access is late; 0: never.
        misuse: how the host breaks the rules of its bus.
        outer: cocotbext-axi's managers make the access, not the C++ model.
        image: file of all DRAM, set by RESET; "": unchanged.
        devices: one per vault with DRAM. buses: one per vault with an AXI bus.
    """

    kind: Kind
    address: int = 0
    count: int = 0
    data: Annotated[bytes, C(c_uint8)] = b""
    stop: bool = False
    limit: int = 0
    misuse: Misuse = Misuse.NONE
    outer: bool = False
    image: str = ""
    devices: tuple[DeviceSetup, ...] = ()
    buses: tuple[AxiMemory, ...] = ()

    def start(self, library: Library) -> None:
        if self.image:
            if self.buses:
                library.open(self.image)
            library.devices = len(self.devices)
            for vault, setup in enumerate(self.devices):
                DeviceModel(library.library).open(vault, self.image, setup)
            for vault, bus in enumerate(self.buses):
                library.start("axi_memory", bus, vault)
        if not self.outer:
            # The same buffer takes the bytes read.
            room = 0 if self.kind in (Kind.RESET, Kind.RUN) else self.count
            library.start("chip", replace(self, data=self.data.ljust(room, b"\0")))

    def progress(self, library: Library) -> int:
        return library.result("chip", Result).cycles

    def result(self, library: Library, seconds: float) -> "Result":
        job: Any = library.given["chip", 0]
        return self._result(library, seconds, data=ctypes.string_at(job.data, job.data_count))

    def _result(self, library: Library, seconds: float, **fields: Any) -> "Result":
        return replace(
            library.result("chip", Result),
            violations=_violations(library),
            seconds=seconds,
            **fields,
        )

    async def drive(self, dut: Any, library: Library) -> "Result":
        """Perform the operation by cocotbext-axi's managers, whose clock runs only meanwhile."""
        # Exists only within a simulator.
        from cocotb.triggers import RisingEdge, SimTimeoutError, with_timeout

        started = time.perf_counter()
        await RisingEdge(dut.clk)
        dut.external.value = 1
        registers = self.kind in (Kind.READ_REGISTER, Kind.WRITE_REGISTERS)
        manager = _managers(dut)[0 if registers else 1]
        if self.kind in (Kind.READ_REGISTER, Kind.READ_MEMORY):
            access = manager.read(self.address, self.count)
        else:
            access = manager.write(self.address, self.data)
        outcome, response, content = Outcome.DONE, 0, b""
        try:
            limit = self.limit * PERIOD_PS
            answer = await (with_timeout(access, limit, "ps") if limit else access)
            response, content = int(answer.resp), bytes(getattr(answer, "data", b""))
        except SimTimeoutError:
            outcome = Outcome.LATE
        await RisingEdge(dut.clk)
        dut.external.value = 0
        seconds = time.perf_counter() - started
        return self._result(library, seconds, outcome=outcome, response=response, data=content)


@dataclass(frozen=True, kw_only=True)
class Result:
    """Result of an operation.

    Attributes:
        cycles: since the last reset.
        outcome: how it ended.
        response: the worst AXI response, an :class:`hdl.axi.AxiResponse`.
        interrupt: whether the interrupt is raised.
        data: bytes read.
        violations: vault -> the DRAM rule that its controller broke first.
        seconds: host time that the operation took.
    """

    cycles: int
    outcome: Outcome
    response: int
    interrupt: bool
    data: bytes = b""
    violations: Mapping[int, str] = field(default_factory=dict)
    seconds: float = 0.0


@cache
def _managers(dut: Any) -> tuple[Any, Any]:
    """cocotbext-axi's managers of the control and the data bus."""
    # Not needed, and perhaps not installed, if the C++ model is the host.
    from cocotbext.axi import (  # type: ignore[import-untyped]
        AxiBus,
        AxiLiteBus,
        AxiLiteMaster,
        AxiMaster,
    )

    clock = dut.external_clk
    return (
        AxiLiteMaster(AxiLiteBus.from_prefix(dut, "control"), clock),
        AxiMaster(AxiBus.from_prefix(dut, "data"), clock),
    )


CHIP = Model(
    name="chip",
    signature=wiring.Signature(
        {
            "control": Out(Axi4Lite(address_bits=32)),
            "data": Out(Axi4(address_bits=64, data_bits=64, id_bits=16)),
            "host_interrupt": In(1),
            "reset": Out(1),
            "idle": Out(1),
            #: A rule was broken outside the chip.
            "failed": In(1),
        }
    ),
    job=Operation,
    result=Result,
    sources=("chip_host.cpp",),
)
AXI_MEMORY = Model(
    name="axi_memory",
    signature=wiring.Signature(
        {
            **Axi4(address_bits=64, data_bits=256, id_bits=16).flip().members,
            "reset": In(1),
        }
    ),
    job=AxiMemory,
    sources=(*IMAGE, "axi_memory.cpp"),
)


def _violations(library: Library) -> dict[int, str]:
    """Vault -> the first rule that its controller broke."""
    if not library.devices:
        # A chip with AXI memories has no DRAM model.
        return {}
    model = DeviceModel(library.library)
    rules = {vault: model.violation(vault) for vault in range(library.devices)}
    return {vault: rule for vault, rule in rules.items() if rule}
