"""The host port's Verilog with engines and a memory, driven by cocotbext-axi under Verilator."""

from hdl.emission import emit
from tests.soc.host_dut import HostDut, small
from tests.verilog_bench import build_open, check_bench

TOP = "host_dut"


def test_the_driver_and_the_masters_on_a_small_chip(tmp_path):
    simulator = build_open(TOP, "".join(emit(HostDut(small()), TOP).modules.values()), "pe")
    bench = "tests.soc.host_bench"
    check_bench(simulator, TOP, bench, tmp_path, COCOTB_MAX_FAILURES="1")
