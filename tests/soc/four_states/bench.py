"""Runs inside Icarus Verilog: a host at the AXI ports of a chip, all of whose state was X."""

import json
import os
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles
from cocotbext.axi import AxiBus, AxiLiteBus, AxiLiteMaster, AxiMaster

from soc.host.driver import Host
from tests.soc.axi_transport import AxiTransport
from tests.soc.four_states.icarus import VARIABLE

_PERIOD_PS = 800
#: The run takes 1.5.
_MOST_US = 4


@cocotb.test(timeout_time=_MOST_US, timeout_unit="us")
async def a_program_runs(dut):
    given = json.loads(os.environ[VARIABLE])
    cocotb.start_soon(Clock(dut.clk, _PERIOD_PS, "ps").start())
    dut.rst.value = 1
    control = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "control_"), dut.clk, dut.rst)
    data = AxiMaster(AxiBus.from_prefix(dut, "data_"), dut.clk, dut.rst)
    await ClockCycles(dut.clk, 2)
    dut.rst.value = 0
    host = Host(AxiTransport(control, data, dut.host_interrupt))
    for address, content in given["memory"]:
        await host.write(address, bytes.fromhex(content))
    await host.load(given["program"])
    await host.launch(parameters={pe: page for pe, (page, _) in enumerate(given["memory"])})
    await host.wait(timeout=1e-4)
    assert await host.faults() == ()
    assert await host.halted() == tuple(range(len(given["memory"])))
    found = [(await host.read(place, size)).hex() for place, size in given["results"]]
    assert int(dut.wrong.value) == 0
    Path(given["found"]).write_text(json.dumps(found))
