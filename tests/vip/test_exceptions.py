"""Which exceptions the command line shows as one line."""

import ast
from pathlib import Path

import pytest

from sim_tb.harness.memory import BehaviourError, MemoryBehaviour
from support.command import run_command
from support.errors import VipError
from vip.cli.errors import UserError
from vip_rooms import ROOMS

ROOT = Path(__file__).parents[2]


def test_every_exception_of_every_room_derives_from_the_common_one() -> None:
    bases = {}
    for room in ROOMS:
        for file in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
                    bases[node.name] = [ast.unparse(base) for base in node.bases]
    assert {"SimulatorError", "CosimError", "UserError"} < bases.keys()
    rogues = {
        name
        for name, above in bases.items()
        if name != "VipError" and not any(base == "VipError" or base in bases for base in above)
    }
    assert not rogues


def test_one_line_and_exit_code_two(capsys: pytest.CaptureFixture[str]) -> None:
    def refused() -> None:
        raise UserError("no")

    with pytest.raises(SystemExit) as end:
        run_command(refused)
    assert end.value.code == 2
    assert capsys.readouterr().err == "vip: no\n"


def test_a_bug_keeps_its_traceback() -> None:
    def bug() -> None:
        raise ValueError("not the user's")

    with pytest.raises(ValueError, match="not the user's"):
        run_command(bug)


def test_a_bad_memory_has_an_exception_of_its_own() -> None:
    with pytest.raises(BehaviourError, match="seed"):
        MemoryBehaviour(seed=1 << 64)
    assert issubclass(BehaviourError, VipError)
