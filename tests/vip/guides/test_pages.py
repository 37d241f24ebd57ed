"""The pages: their commands have options that there are, and all steps run in order."""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

import vip
from tests.browser import needs_pyodide
from tests.forked import forked
from tests.soc.four_states.icarus import icarus as find_icarus
from tests.vip.guides.pages import LANGUAGES, REST, ROOT, Step, pages, steps
from vip.cli.app import app

#: Seconds that a step without a time may take on a machine with other work, where it may have to
#: compile the timing model.
QUICK = 60
#: Bytes that a step may write without a warning.
LARGE = 100 * 10**6
#: Options that name an output.
OUTPUTS = {"-o", "--json", "--listing", "--picture", "--trace", "--pipeline", ">"}
#: Commands that need no shell but for their words.
FORKED = re.compile(r"(vip|python) (?!-c)[^|<>;&]*$")
_INDENTED = re.compile(r"^    (vip|python3?|make|printf) .*$", re.MULTILINE)


def commands(page: str) -> list[Step]:
    """All commands of a page."""
    return [step for step in steps(page) if step.language == "sh"]


@pytest.mark.parametrize("page", pages())
def test_every_block_says_what_it_is(page: str) -> None:
    assert {step.language for step in steps(page)} <= set(LANGUAGES)
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
    for step in commands(page):
        words = step.words
        for sign in (">", ">>"):
            words = words[: words.index(sign)] if sign in words else words
        if words[:1] == ["vip"]:
            try:
                parse(words[1:])
            except Exception as error:
                raise AssertionError(f"{step.place}: {step.text}: {error!r}") from error


def test_an_option_that_is_not_there_is_found() -> None:
    for text in ("run a.s --nothing", "cosim bp --on iron", "nothing", "asm a.s b.s c.s"):
        with pytest.raises(Exception, match=r"(?i)nothing|iron|c\.s|b\.s"):
            parse(shlex.split(text))


def test_no_command_writes_over_the_output_of_another() -> None:
    outputs = [
        word
        for step in commands("docs/commands.md")
        for option, word in pairwise(step.words)
        if option in OUTPUTS
    ]
    assert len(outputs) > 20
    assert len(set(outputs)) == len(outputs)


def test_every_verb_has_a_snippet() -> None:
    text = "".join(step.text for step in steps("docs/python_api.md"))
    for name in vip.__all__:
        if name.islower():
            assert f"vip.{name}(" in text


def is_shown(expected: list[str], printed: list[str]) -> bool:
    """Whether ``printed`` is as ``expected``, where a line of dots stands for any lines, and dots
    in a line for any text."""
    if not expected:
        return not printed
    if expected[0] == REST:
        return any(is_shown(expected[1:], printed[at:]) for at in range(len(printed) + 1))
    if not printed:
        return False
    pattern = ".*".join(map(re.escape, expected[0].split(REST)))
    return bool(re.fullmatch(pattern, printed[0])) and is_shown(expected[1:], printed[1:])


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        (["a"], ["a"], True),
        (["a"], ["b"], False),
        (["..."], [], True),
        (["...", "b ... c"], ["a", "a", "b 3 c"], True),
        (["...", "b"], ["a", "b", "c"], False),
        (["a", "..."], ["a", "b"], True),
    ],
)
def test_dots(expected: list[str], printed: list[str], same: bool) -> None:
    assert is_shown(expected, printed) is same


def written(folder: Path) -> int:
    """The bytes that the files in a folder take on the disk."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


class Reader:
    """Someone who follows a page in the current folder.

    Parameters:
        apart: a process of its own for each command of VIP or Python, as a reader has, in place of
            a copy of this one, which is a second faster.
    """

    def __init__(self, *, apart: bool) -> None:
        self._apart = apart
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {
            **os.environ,
            "PATH": path,
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "80",
        }
        #: Variables of the shell, and names of Python.
        self._variables = ""
        self._names: dict[str, object] = {}

    def does(self, step: Step) -> None:
        """Do a step: its output must be as shown, and neither time nor bytes above the limits."""
        before, began = written(Path()), time.monotonic()
        if step.file:
            Path(step.file).write_text(step.text)
            return
        if assigned := re.match(r"(\w+)=", step.text):
            value = self._bash(f'{step.text}\nprintf %s "${assigned[1]}"').stdout
            self._variables += f"{assigned[1]}={shlex.quote(value)}\n"
            return
        printed, said = self._shell(step) if step.language == "sh" else self._python(step)
        took, size = time.monotonic() - began, written(Path()) - before
        where = f"{step.place}: {step.text} ({took:.1f} s, {size / 1e6:.1f} MB)"
        print(where.replace("\n", " ")[:150], flush=True)
        lines = [line.rstrip() for line in printed.splitlines()]
        assert is_shown(step.shown.splitlines(), lines), f"{where}\n{printed}"
        assert took < QUICK + 4 * step.seconds, where
        assert size < LARGE or "warning" in said, where

    def _bash(self, text: str, timeout: int = QUICK) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", self._variables + text],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def _shell(self, step: Step) -> tuple[str, str]:
        timeout = QUICK + 4 * step.seconds
        if self._apart or not FORKED.match(step.text):
            done = self._bash(step.text, timeout)
        else:
            words = self._bash(rf"printf '%s\0' {step.text}").stdout.split("\0")[:-1]
            done = forked(words, seconds=timeout)
        assert done.returncode == 0, f"{step.place}: {step.text}\n{done.stdout}{done.stderr}"
        return done.stdout, done.stderr

    def _python(self, step: Step) -> tuple[str, str]:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(step.text, step.place, "exec"), self._names)
        return printed.getvalue(), ""


def is_done(step: Step) -> bool:
    """Whether a test does a step."""
    return bool(step.file) or (step.is_run and step.language in ("sh", "python"))


def done(page: str, *, slow: bool) -> list[Step]:
    """The steps of a page that a test does: without ``slow`` not those with a time, nor those that
    read what they would write."""
    found: list[Step] = []
    known: set[str] = set()
    skipped: set[str] = set()
    for step in filter(is_done, steps(page)):
        words = {step.file, *(word for word in step.words if "." in word or "/" in word)}
        folders = {str(folder) for word in words for folder in Path(word).parents}
        if slow or not (step.seconds or (words | folders) & skipped):
            found.append(step)
            known |= words
        else:
            skipped |= {word for word in words - known if not word.startswith("examples/")}
    return found


def _needs_browser(step: Step) -> bool:
    return "browser_page(" in step.text or step.text.startswith("vip browser")


def cases() -> list[Any]:
    """Each page with steps: those that are quick, and all, as a slow test."""
    found = []
    for page in pages():
        quick, every = done(page, slow=False), done(page, slow=True)
        if any(not step.file for step in quick):
            found.append(pytest.param(page, False, id=f"{page}-quick"))
        if quick != every:
            browser = [needs_pyodide] if any(map(_needs_browser, every)) else []
            marks = [pytest.mark.slow, *browser]
            found.append(pytest.param(page, True, id=f"{page}-all", marks=marks))
    return found


def test_most_steps_are_done() -> None:
    """A rule that leaves out too much would leave every other test of the pages green."""
    run = {page: sum(step.is_run for step in done(page, slow=True)) for page in pages()}
    assert run["docs/commands.md"] > 38
    assert run["docs/tour.md"] > 12
    assert run["docs/python_api.md"] > 17
    assert sum(run.values()) > 130


@pytest.mark.parametrize(("page", "slow"), cases())
def test_steps_run_in_order(
    page: str, slow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "examples", "examples")
    reader = Reader(apart=slow)
    icarus = [step for step in done(page, slow=slow) if 'get_runner("icarus")' in step.text]
    for step in done(page, slow=slow):
        if step not in icarus or shutil.which("iverilog"):
            reader.does(step)
    if icarus:
        # Skips the test where it is not installed.
        find_icarus()
