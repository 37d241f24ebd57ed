"""Commands in a copy of this process."""

import signal
import sys

import pytest

from tests.forked import forked
from vip.cli.console import console


def test_a_command_has_streams_and_a_terminal_of_its_own(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console, "width", 200)
    (tmp_path / "a.s").write_text("halt\n")
    done = forked(["vip", "run", "a.s"], seconds=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "halted, 1 instruction in" in done.stdout
    narrow, wide = (
        forked(["vip", "presets"], seconds=60, columns=columns).stdout for columns in (60, 200)
    )
    assert narrow.startswith("preset pe\n")  # a list, as the table does not fit
    assert not wide.startswith("preset pe\n")
    assert capfd.readouterr() == ("", "")


def test_an_error_is_its_code_and_its_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = forked(["vip", "run", "b.s"], seconds=60)
    assert done.returncode == 2
    assert done.stderr == "vip: b.s: can't be read: No such file or directory\n"
    assert not done.stdout


@pytest.mark.parametrize(
    ("text", "code", "printed", "complained"),
    [
        ("import sys; print(__name__, sys.argv)", 0, "__main__ ['a.py', '1']\n", ""),
        ("import b; print(b.x)", 0, "3\n", ""),
        ("print(1); 1 / 0", 1, "1\n", "ZeroDivisionError: division by zero\n"),
        ("import sys; sys.exit(7)", 7, "", ""),
        ("import time; time.sleep(60)", -signal.SIGALRM, "", ""),
    ],
)
def test_a_program_ends_as_in_a_process_of_its_own(
    text, code, printed, complained, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text(text)
    (tmp_path / "b.py").write_text("x = 3")
    done = forked(["python", "a.py", "1"], seconds=1)
    assert (done.returncode, done.stdout) == (code, printed)
    assert done.stderr.endswith(complained)
    assert bool(done.stderr) == bool(complained)
    assert "b" not in sys.modules
