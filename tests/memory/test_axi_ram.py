"""The AXI back end's Verilog on cocotbext-axi's RAM under Verilator."""

import json

import pytest

from hdl.emission import emit
from memory.axi.backend import AxiBackend
from memory.axi.layout import AxiConfig
from tests.verilog_bench import build_open, check_bench

TOP = "axi_backend"


@pytest.mark.parametrize(
    ("data_bits", "outstanding", "pause"), [(64, 16, 0.5), (128, 16, 0.3), (256, 32, 0.2)]
)
def test_random_accesses_under_back_pressure(tmp_path, data_bits, outstanding, pause):
    config = AxiConfig(address_bits=12, tag_bits=6, data_bits=data_bits, outstanding=outstanding)
    verilog = "".join(emit(AxiBackend(config), TOP).modules.values())
    folder = build_open(TOP, verilog)
    case = {
        "address_bits": config.address_bits,
        "tag_bits": config.tag_bits,
        "accesses": 150,
        "pause": pause,
        "seed": data_bits,
        "report": str(tmp_path / "report.json"),
    }
    environment = {"VIP_AXI_BENCH": json.dumps(case)}
    check_bench(folder, TOP, "tests.memory.axi_ram_bench", tmp_path, **environment)
    assert json.loads((tmp_path / "report.json").read_text())["finished"] == 150
