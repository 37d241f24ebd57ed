"""The sources that decide a benchmark's fingerprints."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from bench.benchmarks import BENCHMARKS
from bench.dependencies import dependencies, sources_of
from bench.record import ROOT

SHOW = """
import importlib, sys
importlib.import_module(sys.argv[1])
for name, module in list(sys.modules.items()):
    if name.partition(".")[0] in sys.argv[2:] and getattr(module, "__file__", None):
        print(module.__file__)
"""
ROOMS = [path.parent.name for path in ROOT.glob("*/__init__.py")]


@pytest.mark.parametrize("module", ["bench.mrf", "bench.two_clocks.rates", "bench.trimming"])
def test_they_are_at_least_those_that_it_loads(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOW, module, *ROOMS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {Path(line) for line in done.stdout.split("\n") if line}
    assert len(loaded) > 100
    assert loaded <= {ROOT / path for path in dependencies(module)}


def test_packages_whose_modules_are_gone_through_are_whole() -> None:
    inside = set((ROOT / "microkernels" / "bp").rglob("*.py"))
    assert "fingerprints.parts(microkernels.bp)" in (ROOT / "bench" / "chips.py").read_text()
    assert inside <= dependencies("bench.chips")


def test_no_benchmark_depends_on_the_command_line() -> None:
    for benchmark in BENCHMARKS.values():
        module = inspect.getmodule(benchmark.made_of)
        assert module is not None
        assert not {path for path in dependencies(module.__name__) if "cli" in path.parts}


PACKAGE = {
    "room/__init__.py": "",
    "room/a.py": "from .part import b\n",
    "room/other.py": "",
    "room/part/__init__.py": "",
    "room/part/b.py": "def run():\n    from room.part.inner import (\n        c,\n    )\n",
    "room/part/inner/__init__.py": "from ..d import x\n",
    "room/part/inner/c.py": "",
    "room/part/d.py": "import room.part.e\n",
    "room/part/e.py": "",
    "room/part/f.py": "",
    "bench/__init__.py": "",
    "bench/of_parts.py": "import room.part.e\nfound = parts(room.part)\n",
    "bench/of_a.py": "import room.a\n",
    "room/model.cpp": "int x;\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in PACKAGE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_imports_are_followed(tree: Path) -> None:
    def names(module: str) -> set[str]:
        return {path.relative_to(tree).as_posix() for path in dependencies(module, tree)}

    inner = {"room/part/b.py", "room/part/inner/c.py", "room/part/d.py", "room/part/e.py"}
    packages = {"room/__init__.py", "room/part/__init__.py", "room/part/inner/__init__.py"}
    packages.add("bench/__init__.py")
    assert names("bench.of_a") == {"bench/of_a.py", "room/a.py", *inner, *packages}
    assert names("bench.of_parts") == {"bench/of_parts.py", "room/part/f.py", *inner, *packages}


def test_the_name_differs_with_what_is_read_alone(tree: Path) -> None:
    module = type(sys)("bench.of_a")
    before = sources_of(module, tree)

    def after(name: str) -> str:
        text = (tree / name).read_text()
        (tree / name).write_text(f"{text}# More.\n")
        fresh = importlib.reload(importlib.import_module("bench.dependencies"))
        found = fresh.sources_of(module, tree)
        (tree / name).write_text(text)
        return str(found)

    assert after("room/other.py") == before
    assert after("room/part/e.py") != before
    assert after("room/model.cpp") != before
