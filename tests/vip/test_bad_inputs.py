"""Bad inputs of every command, option and format: one line, exit code 2, and nothing else."""

import re
import sys
import time
from collections.abc import Iterator

import pytest

from tests.vip.bad_inputs import harness as running
from tests.vip.bad_inputs.cases import Case, case
from tests.vip.bad_inputs.commands import commands
from tests.vip.bad_inputs.harness import Answer, Harness, violations
from tests.vip.bad_inputs.items import Item
from vip.cli.app import Commands

SEED = 1
#: 5,000 in all; in parts, so that they spread over processors. The last parts are slow tests.
PARTS, QUICK_PARTS, OF_A_PART = 20, 10, 250


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    with Harness() as found:
        yield found


@pytest.mark.parametrize(
    "part",
    [
        *range(QUICK_PARTS),
        *(pytest.param(part, marks=pytest.mark.slow) for part in range(QUICK_PARTS, PARTS)),
    ],
)
def test_bad_inputs_are_refused(harness: Harness, part: int) -> None:
    wrong = []
    for number in range(part * OF_A_PART, (part + 1) * OF_A_PART):
        one = case(SEED, number)
        wrong += [(number, one.what, line) for line in violations(harness.run(one))]
    assert not wrong


@pytest.mark.parametrize("number", range(3, 400, 58))
def test_they_are_in_processes_with_little_memory(harness: Harness, number: int) -> None:
    one = case(SEED, number)
    assert not violations(harness.run_apart(one)), one


def test_every_command_and_parameter_is_called_with_something_wrong() -> None:
    names = {command.name for command in commands()}
    groups = {
        "cosim": "cosim bp",
        "bench": "bench vault",
        "board": "board list",
        "model": "model certify",
        "nn": "nn check",
        "mrf": "mrf stereo",
    }
    assert {groups.get(name, name) for name in Commands.entries} <= names
    assert {f"bench {name}" for name in ("generate", "vault", "random", "trim")} <= names
    spoiled = {
        (tuple(one.arguments[:2]), re.sub(r":.*", "", one.what))
        for one in (case(SEED, number) for number in range(PARTS * OF_A_PART))
    }
    for command in commands():
        for parameter in command.parameters:
            what = f"{parameter.kind} {parameter.flag or parameter.name}"
            words = command.words[:2]
            assert any(
                arguments[: len(words)] == words and what == w for arguments, w in spoiled
            ), (
                command.name,
                what,
            )


def test_every_configuration_is_a_file_that_is_read() -> None:
    parameters = [(one, command.name) for command in commands() for one in command.parameters]
    kinds = {name: one.detail for one, name in parameters if one.flag == "--config"}
    assert kinds.keys() >= {"run", "synth", "trim", "generate", "cosim program"}
    assert set(kinds.values()) == {"configuration"}


def test_a_case_depends_on_seed_and_number_alone() -> None:
    first = [case(7, number) for number in range(50)]
    assert first == [case(7, number) for number in range(50)]
    assert first != [case(8, number) for number in range(50)]


GOOD = Answer(code=2, err="vip: no\n", seconds=0.1, bytes=1, changed=[], left=[])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"code": None}, "does not end"),
        ({"code": 0}, "exit code 0"),
        ({"code": 1, "err": "Traceback (most recent call last):\nKeyError"}, "traceback"),
        ({"err": ""}, "no single line"),
        ({"err": "vip: a\nvip: b\n"}, "no single line"),
        ({"err": "vip: \x1b[31m\n"}, "no single line"),
        ({"err": "vip: " + "x" * 4000 + "\n"}, "no single line"),
        ({"err": "a warning\nvip: no\n"}, "no single line"),
        ({"seconds": 11.0}, "takes 11.0 s"),
        ({"bytes": 2 << 30}, "MB"),
        ({"changed": ["x"]}, "changes 'x'"),
        ({"left": ["tmp/x"]}, "leaves tmp/x"),
    ],
)
def test_what_is_wrong_is_found(change: dict[str, object], said: str) -> None:
    assert violations(GOOD) == []
    (line,) = {line for line in violations(Answer(**{**vars(GOOD), **change})) if said in line}
    assert said in line


def test_a_call_that_works_is_found(harness: Harness) -> None:
    works = Case(["asm", "k.s"], [Item("k.s", b"halt\n")], "nothing")
    for answer in (harness.run(works), harness.run_apart(works)):
        assert answer.changed == ["k.vip"]
        assert "exit code 0" in violations(answer)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone reports it")
def test_memory_is_measured(harness: Harness) -> None:
    one = Case(["asm", "k.s"], [Item("k.s", b"@")], "contents")
    assert 1 << 20 < harness.run(one).bytes < 1 << 30


def test_a_call_on_a_busy_machine_is_not_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one that blocks, or uses the processor for too long."""

    def working() -> None:
        until = time.process_time() + 0.3
        while time.process_time() < until:
            pass

    monkeypatch.setattr(running, "_GIVEN_UP_SECONDS", 0.1)
    monkeypatch.setattr(running, "_ALIVE_SECONDS", 1e-6)
    monkeypatch.setattr(running, "main", working)
    assert running._call([]) == (0, "")
    monkeypatch.setattr(running, "MOST_SECONDS", 0.1)
    assert running._call([])[0] is None
    monkeypatch.setattr(running, "_ALIVE_SECONDS", 0.005)
    monkeypatch.setattr(running, "main", lambda: time.sleep(5))
    assert running._call([])[0] is None
