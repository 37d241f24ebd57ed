"""The commit that results name is VIP's own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from vip_rooms import ROOMS

ROOT = Path(__file__).resolve().parent.parent.parent
FRAGMENT = "from vip.output import provenance; print(provenance()['commit'])"


@pytest.fixture
def git(monkeypatch):
    """``git(folder, *arguments)`` -> what it prints."""
    if shutil.which("git") is None:
        pytest.skip("git is not on the path")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)

    def run(folder: Path, *arguments: str) -> str:
        identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.com"]
        command = ["git", "-C", str(folder), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    return run


def _install(site: Path) -> None:
    """VIP's packages, as an installation has them."""
    for room in ROOMS:
        shutil.copytree(ROOT / room, site / room, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "vip_rooms.py", site)


def _named(site: Path, folder: Path, **environment: str) -> str:
    command = [sys.executable, "-c", FRAGMENT]
    changed = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1", **environment}
    done = subprocess.run(command, cwd=folder, env=changed, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("ignored", [False, True])
def test_a_repository_around_the_environment_is_not_named(git, tmp_path, ignored):
    site = tmp_path / ".venv" / "lib" / "site-packages"
    _install(site)
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text(".venv\n" if ignored else "")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "Another project")
    assert _named(site, tmp_path) == "None"
    # As a hook of that project runs.
    assert _named(site, tmp_path, GIT_DIR=str(tmp_path / ".git")) == "None"


def test_a_repository_of_site_packages_that_does_not_hold_vip_is_not_named(git, tmp_path):
    _install(tmp_path)
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Another project")
    assert _named(tmp_path, tmp_path) == "None"


def test_the_own_checkout_is_named_from_anywhere(git, tmp_path):
    own, other = tmp_path / "vip checkout", tmp_path / "other"
    _install(own)
    other.mkdir()
    for folder in (own, other):
        git(folder, "init", "-q")
        git(folder, "add", ".")
        git(folder, "commit", "-q", "--allow-empty", "-m", "All")
    commit = git(own, "rev-parse", "--short=12", "HEAD")
    assert git(other, "rev-parse", "--short=12", "HEAD") != commit
    assert _named(own, other) == commit
    assert _named(own, other, GIT_DIR=str(other / ".git")) == commit
    with (own / "vip" / "output.py").open("a") as file:
        file.write("\n")
    assert _named(own, other) == commit + "+"
