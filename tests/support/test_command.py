"""How commands end: width of the terminal, output that nobody reads, errors of files."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command import run_command, settle_columns

ROOT = Path(__file__).resolve().parent.parent.parent
#: Commands of each way to write: the console of results, and that of the help.
COMMANDS = (("presets",), ("--help",))


def vip(*arguments: str, stdout: int, **variables: str) -> tuple[int, str]:
    """Exit code and what was written to standard error."""
    # Buffered, as from a shell.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "", **variables}
    done = subprocess.run(
        [sys.executable, "-m", "vip", *arguments],
        env=environment,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", COMMANDS)
def test_nobody_reads_the_output(arguments: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    written = () if "--help" in arguments else ("--json", str(file))
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert vip(*arguments, *written, stdout=writing) == (130, "")
    finally:
        os.close(writing)
    assert file.exists() == bool(written)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize("arguments", COMMANDS)
def test_the_output_can_not_be_written(arguments: tuple[str, ...]) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        code, said = vip(*arguments, stdout=full)
    finally:
        os.close(full)
    assert (code, said) == (2, "vip: standard output: No space left on device\n")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("0", None),
        ("abc", None),
        ("-5", None),
        ("\u00b2", None),
        ("", None),
        ("9" * 5000, None),
        ("1", "40"),
        ("100", "100"),
        ("99999", "1000"),
    ],
)
def test_columns_that_nothing_fits_in(
    columns: str, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", _no_terminal)
    monkeypatch.setenv("COLUMNS", columns)
    settle_columns()
    assert os.environ.get("COLUMNS") == expected


def _no_terminal(handle: int) -> os.terminal_size:
    raise OSError(errno.ENOTTY, "no terminal")


@pytest.mark.parametrize(("width", "expected"), [(0, None), (1, "40"), (80, None)])
def test_a_narrow_terminal(
    width: int, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((width, 24)))
    # Restored afterwards.
    monkeypatch.setenv("COLUMNS", "0")
    settle_columns()
    assert os.environ.get("COLUMNS") == expected


@pytest.mark.parametrize("columns", ["0", "1"])
def test_results_are_printed_at_any_width(columns: str, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        assert vip("presets", stdout=out.fileno(), COLUMNS=columns) == (0, "")
    text = (tmp_path / "out").read_text(encoding="utf-8")
    assert "pe-small" in text
    assert len(text) > 1000


def ended_by(command: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as end:
        run_command(command)
    assert end.value.code == 2
    return capsys.readouterr().err


def test_the_current_folder_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    said = ended_by(lambda: print(Path("x").absolute()), capsys)
    assert said == "vip: the current folder: No such file or directory\n"
