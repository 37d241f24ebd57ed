"""What building a simulator takes from the environment."""

import os
import subprocess
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
