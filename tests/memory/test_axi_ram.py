"""The AXI back end's Verilog on cocotbext-axi's RAM under Verilator."""

import json
from pathlib import Path

import pytest

import memory
from hdl.emission import emit
from memory.axi.backend import AxiBackend
from memory.axi.layout import AxiConfig
from sim_tb.runner.build import Design, build
from sim_tb.runner.process import Runner

TOP = "axi_backend"
ROOT = Path(memory.__file__).parent.parent


@pytest.mark.parametrize(
    ("data_bits", "outstanding", "pause"), [(64, 16, 0.5), (128, 16, 0.3), (256, 32, 0.2)]
)
def test_random_accesses_under_back_pressure(tmp_path, data_bits, outstanding, pause):
    config = AxiConfig(address_bits=12, tag_bits=6, data_bits=data_bits, outstanding=outstanding)
    verilog = "".join(emit(AxiBackend(config), TOP).modules.values())
    folder = build(
        Design(
            top=TOP,
            verilog={"design.v": verilog},
            support=(),
            control=f'`verilator_config\npublic_flat_rw -module "{TOP}" -var "*"\n',
        )
    )
    case = {
        "address_bits": config.address_bits,
        "tag_bits": config.tag_bits,
        "accesses": 150,
        "pause": pause,
        "seed": data_bits,
        "report": str(tmp_path / "report.json"),
    }
    Runner().test(
        test_module="tests.memory.axi_ram_bench",
        hdl_toplevel=TOP,
        hdl_toplevel_lang="verilog",
        build_dir=folder,
        test_dir=tmp_path,
        results_xml=str(tmp_path / "results.xml"),
        extra_env={"VIP_AXI_BENCH": json.dumps(case), "PYTHONPATH": str(ROOT)},
        log_file=tmp_path / "log",
    )
    results = (tmp_path / "results.xml").read_text()
    assert "<failure" not in results, (tmp_path / "log").read_text()
    assert json.loads((tmp_path / "report.json").read_text())["finished"] == 150
