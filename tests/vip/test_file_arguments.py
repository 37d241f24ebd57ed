"""Inputs and outputs of commands are checked together, and before any work."""

import inspect
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
import typer

from bench.harness.command import Experiments as Benches
from vip.cli.app import Commands
from vip.cli.errors import UserError
from vip.cli.file_arguments import FileArguments


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileArguments]:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(name).write_text(name)
    Path("folder").mkdir()
    Path("link").symlink_to("a")
    os.link("a", "hard")
    found = FileArguments()
    yield found
    found.close()


@pytest.mark.parametrize("name", ["a", "./a", "folder/../a", "link", "hard"])
def test_an_output_is_no_input_by_any_name(files: FileArguments, name: str) -> None:
    files.reads(Path("a"), "SOURCE")
    with pytest.raises(UserError, match="--json would overwrite the input SOURCE"):
        files.writes(Path(name), "--json")
    other = FileArguments()
    other.writes(Path(name), "--json")
    with pytest.raises(UserError, match="--json would overwrite the input SOURCE"):
        other.reads(Path("a"), "SOURCE")


@pytest.mark.parametrize("name", ["new", "./new", "folder/../new", "pointer"])
def test_an_output_is_no_other_output_by_any_name(files: FileArguments, name: str) -> None:
    Path("pointer").symlink_to("new")
    files.writes(Path("new"), "--output")
    with pytest.raises(UserError, match="--output and --json name the same file"):
        files.writes(Path(name), "--json")


def test_a_missing_program_may_be_another_files_name_and_a_missing_image_not(
    files: FileArguments,
) -> None:
    Path("sums.s").write_text("halt")
    with pytest.raises(UserError, match=r"did you mean sums\.s\?$"):
        files.reads(Path("sums"), "PROGRAM")
    with pytest.raises(UserError, match=r"No such file or directory$"):
        files.reads(Path("sums"), "--memory")


def test_different_files_go_together(files: FileArguments) -> None:
    files.reads(Path("a"), "SOURCE")
    files.reads(Path("link"), "--memory")
    files.writes(Path("b"), "--json")
    files.writes(Path("folder/a"), "--output")
    files.fills(Path("made/inside"), "--output")
    # A device takes any number of outputs.
    files.writes(Path(os.devnull), "--listing")
    files.writes(Path(os.devnull), "--dump")
    assert not Path("made").exists()


def test_outputs_that_can_not_be_written(files: FileArguments) -> None:
    os.mkfifo("pipe")
    for name, reason in {
        "folder": "it is a folder",
        "": "it is a folder",
        "none/x": "no folder none",
        "a/x": "Not a directory",
        "pipe": "a pipe that nobody reads",
        "n" * 256: "too long",
    }.items():
        with pytest.raises(UserError, match=f"can't be written: {reason}|{reason}"):
            files.writes(Path(name), "--json")
    for name in ("a", "a/x", "a/x/y"):
        with pytest.raises(UserError, match="a is not a folder"):
            files.fills(Path(name), "--output")
    with pytest.raises(UserError, match=r"--picture must end in \.png or \.svg"):
        files.writes(Path("x.foo"), "--picture", (".png", ".svg"))
    files.writes(Path("x.PNG"), "--picture", (".png", ".svg"))


@pytest.mark.parametrize("name", ["none", "folder", "", "pipe", "/dev/zero", "a/x"])
def test_inputs_that_can_not_be_read(files: FileArguments, name: str) -> None:
    os.mkfifo("pipe")
    with pytest.raises(UserError, match="can't be read"):
        files.reads(Path(name), "SOURCE")


def test_a_pipe_stays_open_until_the_call_ends(files: FileArguments) -> None:
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    files.writes(Path("pipe"), "--json")
    with pytest.raises(BlockingIOError):
        os.read(reader, 1)
    files.close()
    assert os.read(reader, 1) == b""
    os.close(reader)


def test_a_folder_that_is_replaced_holds_nothing_else(files: FileArguments) -> None:
    Path("folder/source").touch()
    files.reads(Path("folder/source"), "SOURCE")
    with pytest.raises(UserError, match="--output would replace SOURCE"):
        files.fills(Path("folder"), "--output", replaced=True)
    other = FileArguments()
    other.fills(Path("folder"), "--output", replaced=True)
    with pytest.raises(UserError, match="--json is in the folder that --output replaces"):
        other.writes(Path("folder/x"), "--json")
    with pytest.raises(UserError, match="SOURCE is in the folder that --output replaces"):
        other.reads(Path("folder/source"), "SOURCE")


def test_files_in_a_folder_are_outputs(files: FileArguments) -> None:
    files.reads(Path("a"), "SOURCE")
    with pytest.raises(UserError, match="would overwrite the input SOURCE"):
        files.fills(Path("."), "--output", files=("a",))
    with pytest.raises(UserError, match="it is a folder"):
        files.fills(Path("."), "--output", files=("folder",))


def _functions() -> Iterator[tuple[str, Any]]:
    """Every command: its name and function."""
    for group in (Commands, Benches):
        for name in group.entries:
            found = group(name="vip").function(name)
            if not isinstance(found, typer.Typer):
                yield name, found
            for command in getattr(found, "registered_commands", ()):
                yield f"{name} {command.name or command.callback.__name__}", command.callback


def test_every_parameter_that_names_a_file_declares_it() -> None:
    checked = 0
    for command, function in _functions():
        hints = get_type_hints(function, include_extras=True)
        for name in inspect.signature(function).parameters:
            kind, *information = get_args(hints[name]) or (hints[name],)
            if "Path" not in str(kind):
                continue
            (option,) = (item for item in information if hasattr(item, "callback"))
            callback = option.callback
            assert callback is not None, f"vip {command}: {name} declares nothing"
            assert callback.__module__ == "vip.cli.commands.options"
            checked += 1
    assert checked > 30


@pytest.mark.parametrize(
    "arguments",
    [
        ("asm", "k.s", "-o", "k.s"),
        ("asm", "k.s", "--json", "k.s"),
        ("asm", "k.s", "--listing", "k.vip"),
        ("asm", "k.s", "-o", "out", "--json", "./out"),
        ("run", "k.s", "--dump", 0, 4, "k.s"),
        ("run", "k.s", "--memory", "m", "--json", "m"),
        ("run", "k.s", "--profile", "p", "--json", "p"),
        ("disasm", "k.s", "-o", "k.s"),
        ("generate", "-o", "k.s/x"),
        ("generate", "-o", "new", "--config", "new/../m", "--json", "m"),
        ("cosim", "bp", "--picture", "x.foo"),
        ("cosim", "bp", "--trace", "x.foo"),
        ("cosim", "program", "k.s", "--json", "k.s"),
        ("cosim", "program", "k.s", "--window", "x.foo"),
        ("cosim", "program", "k.s", "--save", "x.gtkw"),
        ("trim", "k.s", "-o", "new", "--memory", "m", "--json", "m"),
        ("trim", "k.s", "-o", "."),
        ("bench", "kernels", "--picture", "x.foo"),
    ],
)
def test_refused_before_the_work(vip: Any, tmp_path: Path, arguments: tuple[object, ...]) -> None:
    (tmp_path / "k.s").write_text("halt\n")
    (tmp_path / "m").write_bytes(b"1234")
    code, out, err = vip(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("vip: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k.s", "m"]
    assert (tmp_path / "k.s").read_text() == "halt\n"
    assert (tmp_path / "m").read_bytes() == b"1234"
