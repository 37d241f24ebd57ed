"""Environment variables that the build of a simulator uses."""

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import cocotb_tools.config
import pytest

from sim_tb.runner import build as build_module
from sim_tb.runner.build import (
    BuildError,
    Design,
    SharedObjects,
    build,
    simulator_environment,
)
from sim_tb.runner.process import Runner
from support.cache import build_folder

MAKEFILE = """CXX = wrong
LINK = wrong
show:
\t@printf '%s\\n' '$(CXX)' '$(LINK)'
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, "c++"), ("", "c++"), ("clang++", "clang++"), ("ccache g++ -O1", "ccache g++ -O1")],
)
def test_the_compiler_overrides_a_makefile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str | None, expected: str
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    if given is not None:
        monkeypatch.setenv("CXX", given)
    (tmp_path / "Makefile").write_text(MAKEFILE)
    command = ["make", "-s", "-C", tmp_path]
    with simulator_environment() as (environment, _):
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout.splitlines() == [expected, expected], done.stderr


def test_scripts_of_a_makefile_run_where_no_python_is_on_the_path(tmp_path: Path) -> None:
    # Verilator's own file names it so; Debian has python3 alone.
    makefile = "PYTHON3 = python\nall:\n\t@$(PYTHON3) -c 'print(6 * 7)'\n"
    (tmp_path / "Makefile").write_text(makefile)
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("make", "sh"):
        (tools / name).symlink_to(str(shutil.which(name)))
    with simulator_environment() as (environment, _):
        environment["PATH"] = str(tools)
        done = subprocess.run(
            ["make", "-s", "-C", tmp_path], capture_output=True, text=True, env=environment
        )
    assert done.stdout == "42\n", done.stderr


@pytest.mark.parametrize(
    ("given", "words"), [("nosuchcc -O1", "'nosuchcc'"), ("g++ '", "CXX can't be understood")]
)
def test_a_compiler_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str, words: str
) -> None:
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path))
    monkeypatch.setenv("CXX", given)
    # Set by make, when make runs the tests.
    monkeypatch.delenv("MAKEFLAGS", raising=False)
    with pytest.raises(BuildError, match=words):
        build(Design(top="nothing", verilog={}, support=()))
    assert "MAKEFLAGS" not in os.environ


BLOCKS = """
module block (input logic clk, output logic [7:0] count);
  initial count = '0;
  always_ff @(posedge clk) count <= count + 8'd1;
endmodule

module blocks;
  logic clk = 1'b0;
  logic [7:0] counts[3];
  always #5 clk = ~clk;
  for (genvar i = 0; i < 3; i++) begin : each
    block part (.clk, .count(counts[i]));
  end
  always_ff @(posedge clk) if (counts[0] == 8'd9) begin
    $display("counted %0d", counts[0] + counts[1] + counts[2]);
    $finish;
  end
endmodule
"""


#: Characters that make or a shell would take for something else, as in the names of some homes.
ODD = "o'b $x (1) #:;&"


@pytest.fixture
def empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    cache = tmp_path / f"cache {ODD}"
    cache.mkdir()
    monkeypatch.setenv("VIP_BUILD_DIR", str(cache))
    monkeypatch.delenv("MAKEFLAGS", raising=False)
    return cache


@pytest.fixture
def cache(request: pytest.FixtureRequest) -> Path:
    """A folder for builds without a simulator, but with the runtime library, which takes long."""
    runtime = build_folder() / "runtime"
    runtime.mkdir(parents=True, exist_ok=True)
    folder: Path = request.getfixturevalue("empty_cache")
    (folder / "runtime").symlink_to(runtime.absolute())
    return folder


# cocotb finds no design of which it sees nothing.
PLAIN = Design(
    top="blocks",
    verilog={"blocks.sv": BLOCKS},
    support=(),
    control='`verilator_config\npublic_flat_rd -module "blocks" -var "clk"\n',
)


@pytest.fixture
def plain(cache: Path) -> Design:
    return PLAIN


def test_a_block_is_compiled_once_for_all_its_instances(plain: Design) -> None:
    design = replace(plain, blocks=("block",))
    assert design.key != plain.key
    folder = build(design)
    log = (folder / "build.log").read_text()
    calls = re.findall(r"^(\S+) -f \S*/(\w+)__hierMkArgs\.f", log, re.MULTILINE)
    assert sorted(name for _, name in calls) == ["Vblock", "Vtop"]
    # Not the script beside it, which needs Perl.
    assert all("site-packages" not in path for path, _ in calls)
    done = subprocess.run([folder / "blocks"], capture_output=True, text=True)
    assert "counted 27" in done.stdout


#: A test that runs in the simulator of BLOCKS.
BENCH = """
import cocotb
from cocotb.triggers import Timer

@cocotb.test()
async def starts(dut):
    await Timer(10, "ps")
"""


#: A comment that makes a design one of many units.
LONG = "//" + " " * 1_100_000 + "\n"


def compiles(design: Design) -> bool:
    """Whether building ``design`` compiles the runtime library."""
    return "verilated_vpi.cpp" in (build(design) / "build.log").read_text()


@pytest.mark.slow
def test_the_runtime_library_is_compiled_once(plain: Design) -> None:
    # Here, or for an earlier test.
    build(plain)
    # In one unit or in many.
    large = replace(plain, verilog={"blocks.sv": BLOCKS + LONG})
    assert large.parallel
    assert not plain.parallel
    assert not compiles(large)


@pytest.mark.slow
def test_the_runtime_library_is_compiled_once_for_designs_with_blocks(plain: Design) -> None:
    blocks = replace(plain, blocks=("block",))
    build(blocks)
    assert not compiles(replace(blocks, verilog={"blocks.sv": BLOCKS + LONG}))


def test_objects_of_models_are_shared_by_designs_with_equal_headers(
    empty_cache: Path, tmp_path: Path
) -> None:
    source = tmp_path / "model.cpp"
    source.write_text('#include "near.h"\n#include "ports.h"\n')
    (tmp_path / "near.h").write_text('#include "other/tools.h"\n#if VM_TRACE\n#endif\n')

    def lent(number: int, header: str, *, built: str = "", definition: int = 1) -> str:
        """What make would find as the object of ``source``, before it writes ``built``."""
        work = tmp_path / str(number)
        work.mkdir()
        definitions = f"VM_TIMING = {number}\nVM_TRACE = {definition}\n"
        (work / "Vtop_classes.mk").write_text(definitions)
        (work / "ports.h").write_bytes(header.encode() + b"  // Any byte: \x93\n")
        shared = SharedObjects(work, [source], ["true"], ["-O1"])
        shared.lend()
        item = work / "model.o"
        found = item.read_text() if item.is_file() else ""
        if built:
            item.write_text(built)
            shared.keep()
        return found

    assert lent(1, "int a;", built="of a") == ""
    assert lent(2, "int a;") == "of a"
    assert lent(3, "int b;", built="of b") == ""
    assert lent(4, "int a;", definition=0) == ""
    assert lent(5, "int b;") == "of b"
    (tmp_path / "near.h").write_text("int near;\n")
    assert lent(6, "int a;") == ""


def test_files_of_verilator_may_have_any_bytes(tmp_path: Path) -> None:
    (tmp_path / "Vtop__Slow.cpp").write_bytes(b"// \x93\n")
    build_module._mark_slow(tmp_path)
    text = (tmp_path / "Vtop__Slow.cpp").read_bytes()
    assert text == b'#pragma GCC optimize ("O0")\n// \x93\n'


#: A design without delays, another way to use the library.
CLOCKED = replace(
    PLAIN, verilog={"blocks.sv": BLOCKS.replace("  always #5 clk = ~clk;\n", "")}, trace="vcd"
)


@pytest.mark.slow
def test_the_runtime_library_is_compiled_in_an_empty_cache(empty_cache: Path) -> None:
    assert compiles(PLAIN)
    assert not compiles(CLOCKED)
    # Those that are linked, and that of cocotb for each.
    assert len(list((empty_cache / "runtime").glob("*.o"))) == 6 + 2
    assert not list((empty_cache / "runtime").glob(".*"))


def test_definitions_of_designs_change_nothing_in_the_runtime_library() -> None:
    library = build_module._verilator() / "include"
    texts = {
        path.name: path.read_text(errors="replace")
        for path in library.glob("verilated*")
        if path.suffix in (".h", ".cpp")
    }
    used = {name for text in texts.values() for name in re.findall(r"\bVM_[A-Z_]+\b", text)}
    # No design is in SystemC, and one is the library's own.
    assert used == {"VM_SC", "VM_SOLVER_DEFAULT", "VM_TRACE"}
    assert [name for name, text in texts.items() if "VM_TRACE" in text] == ["verilated.h"]

    def compiled(trace: int) -> str:
        command = ["c++", "-std=c++20", "-E", "-P", f"-DVM_TRACE={trace}", f"-I{library}"]
        command += [f"-I{library / 'vltstd'}", str(library / "verilated.h")]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "class VerilatedContext" in compiled(0)
    assert compiled(0) == compiled(1)


def test_an_environment_elsewhere_uses_the_same_simulator(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, plain: Design
) -> None:
    odd = tmp_path / ODD
    odd.mkdir()
    elsewhere, support = odd / "elsewhere", odd / "room"
    elsewhere.symlink_to(build_module._verilator())
    (odd / "python").symlink_to(sys.executable)
    shutil.copytree(build_module._MODELS, support)
    full = replace(plain, support=("pe_host.cpp",))
    keys = plain.key, full.key
    with monkeypatch.context() as other:
        other.setattr(build_module, "_verilator", lambda: elsewhere)
        other.setattr(build_module, "_MODELS", support)
        assert (plain.key, full.key) == keys
        libraries = odd / "libraries"
        libraries.symlink_to(cocotb_tools.config.libs_dir)
        other.setattr(cocotb_tools.config, "libs_dir", libraries)
        other.setattr(tempfile, "tempdir", str(odd))
        other.setattr(sys, "executable", str(odd / "python"))
        folder = build(plain)
    # That environment is removed.
    libraries.unlink()
    with monkeypatch.context() as own:
        own.setenv("PATH", "")
        assert build(plain) == folder
    (tmp_path / "bench_of_blocks.py").write_text(BENCH)
    monkeypatch.syspath_prepend(tmp_path)
    Runner().test(
        test_module="bench_of_blocks",
        hdl_toplevel="blocks",
        hdl_toplevel_lang="verilog",
        build_dir=folder,
        test_dir=tmp_path,
        results_xml=str(tmp_path / "results.xml"),
        log_file=tmp_path / "log",
    )
    assert "PASS=1" in (tmp_path / "log").read_text()


def test_a_line_says_that_a_simulator_is_compiled_and_how_long_that_takes(
    caplog: pytest.LogCaptureFixture, plain: Design
) -> None:
    caplog.set_level(logging.INFO, "sim_tb")
    folder = build(plain)
    first = "compiling a simulator, once: about 5 s on two processors"
    assert caplog.messages == [first]
    record = json.loads((folder / "build.json").read_text())
    assert record["top"] == "blocks"
    assert 0 < record["seconds"] < 600
    # Nothing is compiled, so nothing is said.
    assert build(plain) == folder
    assert caplog.messages == [first]
    (folder / "build.json").write_text(json.dumps({**record, "seconds": 300}))
    build(replace(plain, verilog={"blocks.sv": BLOCKS + "// More.\n"}))
    assert caplog.messages[1:] == [
        "compiling a simulator, once: about 5 minutes, from an earlier one"
    ]


def test_a_full_disk_is_reported(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIP_BUILD_DIR", str(small))
    # Of its 1 MiB.
    (small / "other").write_bytes(bytes(1_020_000))
    with pytest.raises(BuildError, match=rf"^building blocks failed: no space is left in {small}"):
        build(PLAIN)


@pytest.mark.parametrize(
    "record", ["", "[]", '{"top": "blocks"}', '{"top": "blocks", "bytes": 0, "seconds": "x"}']
)
def test_a_damaged_record_of_an_earlier_build_does_not_matter(
    caplog: pytest.LogCaptureFixture, cache: Path, plain: Design, record: str
) -> None:
    caplog.set_level(logging.INFO, "sim_tb")
    earlier = cache / "simulators" / "earlier"
    earlier.mkdir(parents=True)
    (earlier / "build.json").write_text(record)
    # The line comes before Verilator refuses the source.
    with pytest.raises(BuildError):
        build(replace(plain, verilog={"blocks.sv": "module\n"}))
    assert caplog.messages == ["compiling a simulator, once: about 5 s on two processors"]
