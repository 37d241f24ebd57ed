"""The sources that decide an experiment's figures, and their fingerprints."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from bench.harness import sources
from bench.harness.experiment import listed
from bench.harness.record import ROOT
from bench.harness.sources import dependencies, fingerprints

SHOW = """
import importlib, sys
importlib.import_module(sys.argv[1])
for name, module in list(sys.modules.items()):
    if name.partition(".")[0] in sys.argv[2:] and getattr(module, "__file__", None):
        print(module.__file__)
"""
ROOMS = [path.parent.name for path in ROOT.glob("*/__init__.py")]
#: What parses and shows.
SHOWING = (
    ROOT / "vip" / "cli",
    ROOT / "vip" / "__init__.py",
    ROOT / "bench" / "harness" / "options.py",
)


@pytest.mark.parametrize("module", ["bench.mrf", "bench.clocks", "bench.trim"])
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
    counted = {path for path in loaded if not any(map(path.is_relative_to, SHOWING))}
    assert counted <= dependencies(module)


def test_no_experiment_depends_on_the_command_line() -> None:
    for module in {one.module for one in listed().values()}:
        assert not {path for path in dependencies(module) if "cli" in path.parts}
        assert ROOT / "bench" / "harness" / "command.py" not in dependencies(module)


PACKAGE = {
    "room/__init__.py": "",
    "room/a.py": "from .part import b\n",
    "room/other.py": "",
    "room/part/__init__.py": "",
    "room/part/b.py": "def run():\n    from room.part.inner import (\n        c,\n    )\n",
    "room/part/inner/__init__.py": "from ..d import x\n",
    "room/part/inner/c.py": "",
    "room/part/d.py": "import room.part.e\n",
    "room/part/e.py": '"""What it is."""\n\nLIMIT = 3\n\n\ndef one():\n    return LIMIT + 1\n',
    "room/part/f.py": "",
    "bench/__init__.py": "",
    "bench/of_a.py": "import room.a\n",
    "room/part/model.cpp": "int x; // text\n",
    "other/__init__.py": "",
    "other/model.cpp": "int y;\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in PACKAGE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_imports_are_followed(tree: Path) -> None:
    names = {path.relative_to(tree).as_posix() for path in dependencies("bench.of_a", tree)}
    inner = {"room/part/b.py", "room/part/inner/c.py", "room/part/d.py", "room/part/e.py"}
    packages = {"room/__init__.py", "room/part/__init__.py", "room/part/inner/__init__.py"}
    assert names == {"bench/of_a.py", "room/a.py", "bench/__init__.py", *inner, *packages}


def read_again(tree: Path) -> dict[str, str]:
    fresh = importlib.reload(sources)
    return dict(fresh.fingerprints("bench.of_a", tree))


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("room/other.py", "", "x = 1\n"),
        ("room/part/e.py", "What it is", "What it does"),
        ("room/part/e.py", "LIMIT = 3", "# A limit.\nLIMIT = 3"),
        ("room/part/e.py", '"""\n', '"""\nimport os\n'),
        ("room/part/model.cpp", "text", "other text"),
        ("other/model.cpp", "y", "z"),
    ],
)
def test_what_it_cannot_reach_and_text_do_not_count(
    tree: Path, name: str, old: str, new: str
) -> None:
    before = read_again(tree)
    assert set(before) == {"bench", "room"}
    path = tree / name
    path.write_text(path.read_text().replace(old, new, 1))
    assert read_again(tree) == before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("room/part/e.py", "LIMIT = 3", "LIMIT = 4"),
        ("room/part/e.py", "LIMIT + 1", "LIMIT - 1"),
        ("room/part/model.cpp", "x", "y"),
    ],
)
def test_what_it_reaches_counts(tree: Path, name: str, old: str, new: str) -> None:
    before = read_again(tree)
    path = tree / name
    path.write_text(path.read_text().replace(old, new, 1))
    after = read_again(tree)
    assert after["room"] != before["room"]
    assert after["bench"] == before["bench"]


def test_definitions_may_move_within_their_room(tree: Path) -> None:
    before = read_again(tree)
    source, target = tree / "room/part/e.py", tree / "room/part/d.py"
    limit, one = source.read_text().split("\n\n\n")
    source.write_text(f"{limit}\n")
    target.write_text(f"{target.read_text()}\n\n{one}")
    assert read_again(tree) == before


def test_fingerprints_are_by_room() -> None:
    found = fingerprints("bench.networks")
    assert {"bench", "microkernels", "sim_tb", "soc"} <= set(found) <= set(ROOMS)
    assert all(len(value) == 16 for value in found.values())
