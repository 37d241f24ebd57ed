"""A user's module with the name of one of VIP's packages gets an error that says so."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from vip_rooms import ROOMS

ROOT = Path(__file__).parent.parent.parent
#: What a script of a user may begin with.
SCRIPT = "from soc.generate.presets import preset\nprint(preset('pe').registers)\n"


def python(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Python in ``folder``, which finds VIP last, as an installed package."""
    (folder / "site").mkdir(exist_ok=True)
    for name in (*ROOMS, "vip_rooms.py"):
        link = folder / "site" / name
        if not link.is_symlink():
            link.symlink_to(ROOT / name)
    start = f"import sys; sys.path.append({str(folder / 'site')!r}); import runpy; "
    own = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-c", start + arguments[0], *arguments[1:]],
        cwd=folder,
        env=own,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("name", [room for room in ROOMS if room != "soc"])
@pytest.mark.parametrize("kind", ["module", "folder"])
def test_a_script_beside_a_module_of_the_same_name(name, kind, tmp_path):
    hidden = tmp_path / (f"{name}.py" if kind == "module" else f"{name}/__init__.py")
    hidden.parent.mkdir(exist_ok=True)
    hidden.write_text("")
    result = python(tmp_path, SCRIPT.replace("\n", "; "))
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert last.startswith("vip_rooms.HiddenRoomError: ")
    assert f"hides VIP's package {name!r}" in last
    assert hidden.name in last


@pytest.mark.parametrize("name", ["isa", "memory"])
def test_the_module_says_it_in_one_line(name, tmp_path):
    (tmp_path / f"{name}.py").write_text("")
    result = python(tmp_path, "runpy.run_module('vip', run_name='__main__')", "--version")
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert f"{name}.py hides VIP's package {name!r}" in line


@pytest.mark.parametrize("name", ROOMS)
def test_the_command_says_it_in_one_line(name, tmp_path):
    (tmp_path / f"{name}.py").write_text("")
    result = python(tmp_path, "import vip_rooms; vip_rooms.main()", "--version")
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert line.startswith("vip: ")
    assert f"{name}.py hides VIP's package {name!r}: rename it" in line


def test_without_such_a_module_all_is_well(tmp_path):
    (tmp_path / "memories.py").write_text("")
    assert python(tmp_path, SCRIPT.replace("\n", "; ")).stdout == "64\n"
    result = python(tmp_path, "import vip_rooms; vip_rooms.main()", "--version")
    assert result.stdout.startswith("vip ")


def test_every_package_checks_and_is_installed():
    # Importing vip itself must not fail: python -m vip does so before it can say anything.
    for room in set(ROOMS) - {"vip"}:
        assert "\ncheck_rooms()\n" in (ROOT / room / "__init__.py").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert included == [*ROOMS, "vip_rooms.py"]
    assert project["project"]["scripts"]["vip"] == "vip_rooms:main"
