"""The host port's Verilog with engines and a memory, driven by cocotbext-axi under Verilator."""

import xml.etree.ElementTree as ElementTree
from contextlib import suppress
from pathlib import Path

import pytest

import soc
from hdl.emission import emit
from sim_tb.runner.build import Design, build
from sim_tb.runner.process import Runner
from tests.soc.host_dut import HostDut, small

TOP = "host_dut"
ROOT = Path(soc.__file__).parent.parent


@pytest.fixture(scope="module")
def simulator():
    verilog = "".join(emit(HostDut(small()), TOP).modules.values())
    return build(
        Design(
            top=TOP,
            verilog={"design.v": verilog},
            support=(),
            control=f'`verilator_config\npublic_flat_rw -module "{TOP}" -var "*"\n',
            blocks=("pe",),
        )
    )


def test_the_driver_and_the_masters_on_a_small_chip(simulator, tmp_path):
    # The runner exits when a test fails; the assertion below reports which one.
    with suppress(SystemExit):
        Runner().test(
            test_module="tests.soc.host_bench",
            hdl_toplevel=TOP,
            hdl_toplevel_lang="verilog",
            build_dir=simulator,
            test_dir=tmp_path,
            results_xml=str(tmp_path / "results.xml"),
            extra_env={"PYTHONPATH": str(ROOT), "COCOTB_MAX_FAILURES": "1"},
            log_file=tmp_path / "log",
        )
    log = (tmp_path / "log").read_text()
    cases = list(ElementTree.parse(tmp_path / "results.xml").getroot().iter("testcase"))
    failed = [case.get("name") for case in cases if case.find("failure") is not None]
    assert cases, log
    assert not failed, log
