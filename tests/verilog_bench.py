"""Cocotb tests of Verilog that Verilator compiled."""

import xml.etree.ElementTree as ElementTree
from contextlib import suppress
from pathlib import Path

from sim_tb.runner.build import Design, build
from sim_tb.runner.process import Runner

ROOT = Path(__file__).parents[1]


def build_open(top: str, verilog: str, *blocks: str) -> Path:
    """Folder of a simulator of ``verilog`` in which tests can reach every signal."""
    return build(
        Design(
            top=top,
            verilog={"design.v": verilog},
            support=(),
            control=f'`verilator_config\npublic_flat_rw -module "{top}" -var "*"\n',
            blocks=blocks,
        )
    )


def check_bench(simulator: Path, top: str, module: str, folder: Path, **environment: str) -> None:
    """Assert that the tests in ``module`` pass on ``simulator``; they work in ``folder``."""
    # The runner exits when a test fails; which one is reported below.
    with suppress(SystemExit):
        Runner().test(
            test_module=module,
            hdl_toplevel=top,
            hdl_toplevel_lang="verilog",
            build_dir=simulator,
            test_dir=folder,
            results_xml=str(folder / "results.xml"),
            extra_env={"PYTHONPATH": str(ROOT), **environment},
            log_file=folder / "log",
        )
    log = (folder / "log").read_text()
    cases = list(ElementTree.parse(folder / "results.xml").getroot().iter("testcase"))
    failed = [case.get("name") for case in cases if case.find("failure") is not None]
    assert cases, log
    assert not failed, log
