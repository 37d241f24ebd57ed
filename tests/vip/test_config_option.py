"""``--config`` of the commands that run a program: here an engine that no preset has."""

import json
from dataclasses import replace

import pytest

from isa.workspace import Workspace
from soc.generate.presets import configuration_json, preset, write_configuration

#: Two pixels of four bytes, each of which is loaded for its own position.
WORKSPACE = Workspace(
    image=64, window=4096, width=2, height=1, pixel_bytes=4, output_width=2, output_height=1,
    kernel=1,
)  # fmt: skip
PROGRAM = """
    li r9, #0
    set.ws r9
    li r10, #4096
    li r11, #0
    li r12, #4
    ld.sram [16-bit] r11, r10, r12
    memfence
    halt
"""


@pytest.fixture
def files(tmp_path):
    plain = preset("pe-small")
    with_workspace = replace(plain, instructions=plain.instructions | {"set.ws"})
    (tmp_path / "engine.json").write_text(json.dumps(configuration_json(with_workspace)))
    (tmp_path / "kernel.s").write_text(PROGRAM)
    (tmp_path / "image.bin").write_bytes(WORKSPACE.pack().ljust(64, b"\0") + bytes(range(1, 9)))


@pytest.mark.parametrize(
    "command", [("run",), ("cosim", "program", "--on", "model"), ("debug", "--script", "go")]
)
def test_an_engine_from_a_file_runs_a_program(vip, files, tmp_path, command):
    (tmp_path / "go").write_text("continue\n")
    arguments = (*command, "kernel.s", "--memory", "image.bin")
    code, output, error = vip(*arguments, "--config", "engine.json", "--json", "run.json")
    assert (code, error) == (0, "")
    assert "halted" in output.lower()
    assert json.loads((tmp_path / "run.json").read_text())
    code, output, error = vip(*arguments, "--preset", "pe-small")
    assert "kernel.s:" in error
    assert "this engine is built without" in error


@pytest.mark.parametrize("command", [("run",), ("cosim", "program"), ("debug",)])
def test_config_and_preset_exclude_each_other(vip, files, command):
    code, _, error = vip(*command, "kernel.s", "--config", "engine.json", "--preset", "pe")
    assert (code, error) == (2, "vip: --config and --preset can't be combined\n")


def test_options_for_another_kind_of_configuration_name_the_file(vip, files):
    code, _, error = vip(
        "cosim", "program", "kernel.s", "--config", "engine.json", "--cocotbext-axi"
    )
    assert (code, error) == (2, "vip: --cocotbext-axi can't be used: engine.json is one engine\n")


@pytest.mark.parametrize(
    "command",
    [
        ("generate", "-o", "out", "--memories", "fpga"),
        ("synth", "decode", "--target", "xc7"),
        ("synth", "decode", "--device", "ecp5-45k"),
    ],
)
def test_a_refused_variant_of_a_configuration_names_the_file(vip, tmp_path, command):
    write_configuration(replace(preset("pe"), scratchpad_banks=16), tmp_path / "shared.json")
    code, _, error = vip(*command, "--config", "shared.json")
    assert (code, error.count("\n")) == (2, 1)
    assert error.startswith("vip: shared.json: scratchpad_banks must be 8 in an FPGA")
    assert not (tmp_path / "out").exists()
