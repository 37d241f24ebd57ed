"""Icarus Verilog for tests: a chip among models of its DRAM, all of whose state begins as X."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from memory.config import VaultConfig
from soc.chip.config import ChipConfig
from soc.generate.designs import component
from soc.generate.generate import verilog
from soc.generate.port_table import PortRow, ports_of, verilog_names

#: Top module of :func:`four_state_sources`.
TOP = "among_models"
#: What the simulation prints where a control output is X: module instance, and port.
UNKNOWN = "unknown:"
#: Environment variable with what a test hands over to a bench, as JSON.
VARIABLE = "VIP_FOUR_STATES"

_HERE = Path(__file__).parent
_START_VALUE = re.compile(r"^  initial (?:\\\S+ |\w+) = \d+'\w+;\n", re.MULTILINE)
_MEMORY = re.compile(
    r"^  integer (\w+_word);\n  initial\n    for \(\1 = 0; .*\n      .* = \d+'\w+;\n", re.MULTILINE
)
_MODULE = re.compile(r"(?<=^endmodule\n)", re.MULTILINE)
_CONTROL = re.compile(r"^  output (\w*(?:valid|ready|enable|interrupt));\n", re.MULTILINE)


def icarus(name: str = "iverilog") -> str:
    """Path of a program of Icarus Verilog; skips the test where there is none, but not in CI."""
    path = shutil.which(name)
    if path is None:
        reason = f"there is no {name}: install Icarus Verilog (apt-get install iverilog)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


def without_start_values(modules: Mapping[str, str]) -> dict[str, str]:
    """``modules`` in which every register, and every memory that is written, is X at power-up."""
    return {name: _MEMORY.sub("", _START_VALUE.sub("", text)) for name, text in modules.items()}


def four_state_sources(config: ChipConfig, folder: Path) -> list[Path]:
    """Write a chip without start values, a DRAM at each of its vaults, and :data:`TOP` around them.

    Ports of :data:`TOP` are those of the chip but for its DRAM, and ``wrong``: what the models of
    the DRAM found wrong. In each cycle without reset, every module prints those of its control
    outputs that are X (:data:`UNKNOWN`).
    """
    vault = config.tile.vault
    assert isinstance(vault, VaultConfig)
    modules = {
        name: "".join(_checked(part) for part in _MODULE.split(text))
        for name, text in without_start_values(verilog(config).modules).items()
    }
    modules[TOP] = _top(ports_of(component(config)), vault)
    paths = []
    for name, text in modules.items():
        path = folder / f"{name}.v"
        path.write_text(text)
        paths.append(path)
    return [*paths, _HERE / "dram.v"]


def _checked(module: str) -> str:
    outputs = _CONTROL.findall(module)
    if not outputs or "  input clk;\n" not in module:
        return module
    checks = "".join(
        f'      if ({name} === 1\'bx) $display("{UNKNOWN} %m {name}");\n' for name in outputs
    )
    check = f"  always @(posedge clk)\n    if (!{TOP}.rst) begin\n{checks}    end\n"
    return module.replace("endmodule\n", f"{check}endmodule\n")


def _top(ports: tuple[PortRow, ...], vault: VaultConfig) -> str:
    outer, inner, drams = ["clk", "rst", "wrong"], [], []
    lines = ["  input clk;", "  input rst;", "  output [31:0] wrong;"]
    for port in ports:
        for name in verilog_names(port):
            of_dram = name.startswith("dram__")
            kind = "wire" if of_dram else "input" if port.is_input else "output"
            lines.append(f"  {kind} [{port.bits - 1}:0] {name};")
            inner.append(f".{name}({name})")
            if not of_dram:
                outer.append(name)
            elif port.is_input:
                drams.append(name.removesuffix("__read_data"))
    sizes = {
        "BANK_BITS": vault.bank_bits,
        "ROW_BITS": vault.row_bits,
        "COLUMN_BITS": vault.column_bits,
        "TCL": vault.timing.tcl,
        "TCWL": vault.timing.tcwl,
    }
    given = ", ".join(f".{name}({value})" for name, value in sizes.items())
    members = ("valid", "kind", "bank", "row", "column", "write_data", "write_strobe", "read_data")
    for dram in drams:
        joined = ", ".join(f".{name}({dram}__{name})" for name in members)
        lines += [
            f"  wire [31:0] {dram}_wrong;",
            f"  dram #({given}) {dram}_model (.clk(clk), .rst(rst), .wrong({dram}_wrong),"
            f" {joined});",
        ]
    return (
        f"`timescale 1ps/1ps\nmodule {TOP}({', '.join(outer)});\n"
        + "\n".join(lines)
        + f"\n  assign wrong = {' + '.join(f'{dram}_wrong' for dram in drams)};\n"
        + f"  chip dut (.clk(clk), .rst(rst), {', '.join(inner)});\nendmodule\n"
    )
