"""The cocotb test that serves operations of the host within the simulator of a chip.

The session's first message describes the DRAM; each other is an operation. Python wakes once in a
block of cycles, unless cocotbext-axi's managers make the accesses.
"""

import ctypes
import json
import os
import time
from dataclasses import replace
from multiprocessing.connection import Client, Connection
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, First, RisingEdge, SimTimeoutError, Timer, with_timeout

from memory.model.device_model import DeviceModel, DeviceSetup

from .axi_memory import AxiMemoryModel
from .chip_models import ChipHostModel, Kind, Operation, Outcome, Result
from .engine_serve import ADDRESS_VARIABLE, BLOCK_CYCLES, PERIOD_PS, REPORT_SECONDS, receive

__all__ = ["serve"]


@cocotb.test()
async def serve(dut: Any) -> None:
    """Do operations until the session closes the connection."""
    library = ctypes.CDLL(None)
    await Timer(PERIOD_PS, "ps")
    with Client(os.environ[ADDRESS_VARIABLE]) as session:
        session.send_bytes(b'{"process": %d}' % os.getpid())
        bench = _Bench(dut, library, session)
        bench.open(json.loads(receive(session)))
        session.send_bytes(b'{"result": {}}')
        while text := receive(session):
            result = await bench.do(Operation.from_json(text))
            session.send_bytes(result.to_json())


class _Bench:
    """The chip with its surroundings."""

    def __init__(self, dut: Any, library: ctypes.CDLL, session: Connection) -> None:
        self.dut = dut
        self.session = session
        self.library = library
        self.devices = DeviceModel(library)
        self.host = ChipHostModel(library)
        self.managers: tuple[Any, Any] | None = None
        #: Those with a DRAM device.
        self.vaults = 0
        self.reported = time.perf_counter()

    def open(self, memory: dict[str, Any]) -> None:
        """Make the DRAM devices, or the memories on AXI buses, each a part of one image."""
        for vault, where in enumerate(memory.get("memories", ())):
            AxiMemoryModel(self.library).open(vault, memory["path"], **where)
        self.vaults = len(memory.get("setups", ()))
        for vault, setup in enumerate(memory.get("setups", ())):
            self.devices.open(vault, memory["path"], DeviceSetup(**setup))

    async def do(self, operation: Operation) -> Result:
        """Do one operation."""
        started = time.perf_counter()
        outer = operation.outer and operation.kind not in (Kind.RESET, Kind.RUN)
        found = await (self._outer(operation) if outer else self._inner(operation))
        rules = {vault: self.devices.violation(vault) for vault in range(self.vaults)}
        return replace(
            found,
            violations={str(vault): rule for vault, rule in rules.items() if rule},
            seconds=time.perf_counter() - started,
        )

    async def _inner(self, operation: Operation) -> Result:
        """By the model in C++."""
        self.host.start(operation)
        await FallingEdge(self.dut.idle)
        while not self.dut.idle.value:
            await First(RisingEdge(self.dut.idle), Timer(BLOCK_CYCLES * PERIOD_PS, "ps"))
            now = time.perf_counter()
            if now - self.reported > REPORT_SECONDS:
                self.reported = now
                self.session.send_bytes(b'{"cycles": %d}' % self.host.result().cycles)
        return self.host.result()

    async def _outer(self, operation: Operation) -> Result:
        """By cocotbext-axi's managers, whose clock runs only as long as that takes."""
        await RisingEdge(self.dut.clk)
        self.dut.external.value = 1
        if self.managers is None:
            self.managers = _managers(self.dut)
        registers = operation.kind in (Kind.READ_REGISTER, Kind.WRITE_REGISTERS)
        manager = self.managers[0 if registers else 1]
        outcome, response, content = Outcome.DONE, 0, b""
        if operation.kind in (Kind.READ_REGISTER, Kind.READ_MEMORY):
            access = manager.read(operation.address, operation.count)
        else:
            access = manager.write(operation.address, operation.data)
        try:
            limit = operation.limit * PERIOD_PS
            answer = await (with_timeout(access, limit, "ps") if limit else access)
            response, content = int(answer.resp), bytes(getattr(answer, "data", b""))
        except SimTimeoutError:
            outcome = Outcome.LATE
        await RisingEdge(self.dut.clk)
        self.dut.external.value = 0
        now = self.host.result()
        return Result(
            cycles=now.cycles,
            outcome=outcome,
            response=response,
            interrupt=now.interrupt,
            data=content,
        )


def _managers(dut: Any) -> tuple[Any, Any]:
    """cocotbext-axi's managers of the control and the data bus."""
    # Not needed, and perhaps not installed, where the model in C++ is the host.
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
