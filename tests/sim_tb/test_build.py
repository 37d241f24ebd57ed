"""What building a simulator takes from the environment."""

import os
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from sim_tb.build import BuildError, Design, build, simulator_environment

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
    with simulator_environment():
        done = subprocess.run(["make", "-s", "-C", tmp_path], capture_output=True, text=True)
    assert done.stdout.splitlines() == [expected, expected], done.stderr


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


def test_a_block_is_compiled_once_for_all_its_instances(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path))
    monkeypatch.delenv("MAKEFLAGS", raising=False)
    plain = Design(top="blocks", verilog={"blocks.sv": BLOCKS}, support=())
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
