"""Answers of the data port of a whole chip (docs/host.md), by cocotbext-axi."""

import json
import random

import pytest

from isa.image import DramImage
from memory.model.device_model import DeviceSetup, device_setup
from sim_tb.dut.chip import TOP, chip_design
from sim_tb.runner.build import build
from soc.generate.presets import chip_preset
from tests.verilog_bench import check_bench


def test_the_data_port_answers_as_documented(tmp_path):
    pytest.importorskip("cocotbext.axi")
    config = chip_preset("tiny")
    folder = build(chip_design(config))
    vault = 1 << config.network.address_bits
    content = random.Random(5).randbytes(config.memory_bytes)
    (tmp_path / "content").write_bytes(content)
    setups = [
        device_setup(config.tile.vault, base=number * vault, noise=number + 1)
        for number in range(config.vaults)
    ]
    with DramImage(config.memory_bytes, tmp_path / "image") as image:
        image.write(0, content)
    fields = [name for name, *_ in DeviceSetup._fields_]
    given = {
        "path": str(tmp_path / "image"),
        "setups": [{name: getattr(setup, name) for name in fields} for setup in setups],
        "content": str(tmp_path / "content"),
        "size": config.memory_bytes,
        "vault": vault,
    }
    check_bench(folder, TOP, "tests.soc.chip_axi_bench", tmp_path, VIP_CHIP_AXI=json.dumps(given))
