"""Help: complete, like that of the commands themselves, and fast."""

import inspect
import re
import resource
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from bench.harness.command import Experiments as Benches
from vip.cli.app import Commands, app

#: Seconds of processor time that help may take; wall-clock time depends on what else runs.
_LIMIT = 0.4


@pytest.mark.parametrize("group", [Commands, Benches])
def test_listed_summaries_are_those_of_the_commands(group):
    loader = group(name="vip")
    for name, summary in group.entries.items():
        command = loader.load(name)
        assert command.name == name
        assert " ".join(command.help.split("\n\n")[0].split()) == summary


def test_every_command_is_listed_by_name(vip):
    code, text, _ = vip("--help")
    assert code == 0
    assert all(f"│ {name} " in text for name in Commands.entries)
    code, text, _ = vip("bench", "--help")
    assert code == 0
    assert all(f"│ {name} " in text for name in Benches.entries)


def test_every_command_has_one_heading(vip):
    below = [name for names in Commands.panels.values() for name in names]
    assert below == list(Commands.entries)
    _, text, _ = vip("--help")
    assert re.findall(r"╭─ (.*?) ─", text) == ["Options", *Commands.panels]
    first = next(iter(Commands.panels.values()))
    assert [text.index(f"│ {name} ") for name in below[:4]] == sorted(
        text.index(f"│ {name} ") for name in first
    )


def test_no_type_of_python_is_in_the_help(vip):
    for words, _ in every_command():
        _, text, _ = vip(*words, "--help")
        assert not re.findall(r"<[a-z, \[\]|]+>", text), words


def every_command() -> Iterator[tuple[tuple[str, ...], Any]]:
    """Words that call each command and group, and itself."""
    waiting: list[tuple[tuple[str, ...], Any]] = [((), typer.main.get_command(app))]
    while waiting:
        words, command = waiting.pop()
        yield words, command
        load = getattr(command, "load", getattr(command, "commands", {}).get)
        waiting += [((*words, name), load(name)) for name in getattr(command, "commands", {})]


def test_every_command_has_an_example_and_writes_json():
    for words, command in every_command():
        if words and not hasattr(command, "commands"):
            assert "Example: vip " in command.help, words
            assert any("--json" in one.opts for one in command.params), words


def test_help_shows_every_word(vip, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    count = 0
    for words, command in every_command():
        code, text, _ = vip(*words, "--help")
        assert code == 0
        shown = re.sub("[│╭╮╰╯─]", " ", text).split()
        texts = [(command.callback and inspect.getdoc(command.callback)) or command.help]
        texts += [one.help for one in command.params if getattr(one, "help", None)]
        for written in texts:
            # As it was written, not as it is given to the library.
            expected = written.replace("\\[", "[").split()
            # The option's name stands between the lines of its text.
            left = iter(shown)
            missing = [word for word in expected if word not in left]
            assert not missing, (words, written)
            count += 1
    assert count > 300


def test_a_misspelt_command_gets_a_suggestion(vip):
    code, _, err = vip("assm", "a.s")
    assert code == 2
    assert "did you mean asm" in err


def test_groups_complete_their_commands():
    command = typer.main.get_command(app)
    with command.make_context("vip", ["cosim"], resilient_parsing=True) as context:
        _, group, _ = command.resolve_command(context, ["cosim"])
        assert set(group.list_commands(context)) == {"bp", "program"}


def test_help_takes_little_time():
    best = float("inf")
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [sys.executable, "-c", "from vip.cli.app import main; main()", "--help"],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert best <= _LIMIT
