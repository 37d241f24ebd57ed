"""The commands of the pages: each has options that there are, and those of docs/commands.md run."""

import os
import re
import shlex
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.vip.guides.pages import LANGUAGES, ROOT, Line, blocks, lines, pages
from vip.cli.app import app

#: Seconds that a command without a time in its comment may take, on a machine with other work.
QUICK = 30
#: Bytes above which a file needs a warning.
LARGE = 100 * 10**6
#: Options that name an output.
OUTPUTS = {"-o", "--json", "--listing", "--picture", "--trace", "--pipeline", ">"}
_INDENTED = re.compile(r"^    (vip|python3?|make|printf) .*$", re.MULTILINE)


def commands(page: str) -> list[Line]:
    """All commands of a page."""
    chosen = [block for block in blocks(page) if block.language in ("sh", "console")]
    return [line for block in chosen for line in lines(block)]


@pytest.mark.parametrize("page", pages())
def test_every_block_says_what_it_is(page: str) -> None:
    assert {block.language for block in blocks(page)} <= set(LANGUAGES)
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text("utf-8"), flags=re.DOTALL | re.M)
    found = [match[0] for match in _INDENTED.finditer(text)]
    assert not found, "commands stand in a block of the language sh"


def parse(words: list[str]) -> None:
    """Parse arguments of ``vip`` and convert them, without the callbacks that look at files.

    Raises:
        Exception: a command, option or choice that there is not.
    """
    command: Any = typer.main.get_command(app)
    name = "vip"
    while hasattr(command, "commands"):
        name, *words = words
        if name in {"--help", *(option for one in command.params for option in one.opts)}:
            return
        assert name in command.commands, f"no command {name}"
        # `vip bench` takes several experiments.
        while words and command.name == "bench" and words[0] in command.commands:
            name, *words = words
        command = getattr(command, "load", command.commands.get)(name)
    callbacks = [parameter.callback for parameter in command.params]
    try:
        for parameter in command.params:
            parameter.callback = None
        command.make_context(name, list(words))
    finally:
        for parameter, callback in zip(command.params, callbacks, strict=True):
            parameter.callback = callback


@pytest.mark.parametrize("page", pages())
def test_every_option_is_there(page: str) -> None:
    for line in commands(page):
        words = line.words
        for sign in (">", ">>"):
            words = words[: words.index(sign)] if sign in words else words
        if words[:1] == ["vip"]:
            try:
                parse(words[1:])
            except Exception as error:
                raise AssertionError(f"{line.place}: {line.command}: {error!r}") from error


def test_an_option_that_is_not_there_is_found() -> None:
    for text in ("run a.s --nothing", "cosim bp --on iron", "nothing", "asm a.s b.s c.s"):
        with pytest.raises(Exception, match=r"(?i)nothing|iron|c\.s|b\.s"):
            parse(shlex.split(text))


def test_no_command_writes_over_the_output_of_another() -> None:
    outputs = [
        word
        for line in commands("docs/commands.md")
        for option, word in pairwise(line.words)
        if option in OUTPUTS
    ]
    assert len(outputs) > 20
    assert len(set(outputs)) == len(outputs)


def written(folder: Path) -> dict[Path, int]:
    """The files in a folder, with the bytes that each takes on the disk."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path: path.stat().st_blocks * 512 for path in files}


def run_in_order(found: list[Line], folder: Path, *, slow: bool) -> int:
    """Run commands in a folder, and count them. Without ``slow`` those whose comment has a time are
    skipped, and those that read what these would write."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    variables, skipped, count = "", set(), 0
    for line in found:
        if not line.is_run:
            continue
        if re.match(r"\w+=", line.command):
            variables += f"{line.command}\n"
            continue
        missing = {word for word in line.words if not (folder / word).exists()} & skipped
        if not slow and (line.seconds or missing):
            skipped |= {word for word in line.words if "." in word or "/" in word}
            continue
        before = written(folder)
        began = time.monotonic()
        done = subprocess.run(
            ["bash", "-c", variables + line.command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=QUICK + 4 * line.seconds,
        )
        took = time.monotonic() - began
        where = f"{line.place}: {line.command} ({took:.1f} s)"
        assert done.returncode == 0, f"{where}\n{done.stdout}{done.stderr}"
        large = [
            str(path)
            for path, size in written(folder).items()
            if size > LARGE and before.get(path) != size
        ]
        assert not large or "warning" in done.stderr, where
        count += 1
    return count


def test_quick_commands_run_in_order(tmp_path: Path) -> None:
    assert run_in_order(commands("docs/commands.md"), tmp_path, slow=False) > 12


@pytest.mark.slow
def test_all_commands_run_in_order(tmp_path: Path) -> None:
    assert run_in_order(commands("docs/commands.md"), tmp_path, slow=True) > 38
