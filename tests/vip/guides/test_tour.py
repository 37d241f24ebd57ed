"""The tour of docs/tour.md, followed literally."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOUR = Path(__file__).parents[3] / "docs" / "tour.md"
BLOCKS = re.findall(
    r"```(asm|python|console)\n(.*?)```", TOUR.read_text(encoding="utf-8"), re.DOTALL
)
#: Any lines, and any text in a line.
REST = "..."


def is_shown(expected: list[str], shown: list[str]) -> bool:
    """Whether ``shown`` is as ``expected``, where a line of dots stands for any lines, and dots in
    a line for any text."""
    if not expected:
        return not shown
    if expected[0] == REST:
        return any(is_shown(expected[1:], shown[at:]) for at in range(len(shown) + 1))
    if not shown:
        return False
    pattern = ".*".join(map(re.escape, expected[0].split(REST)))
    return bool(re.fullmatch(pattern, shown[0])) and is_shown(expected[1:], shown[1:])


@pytest.mark.parametrize(
    ("expected", "shown", "same"),
    [
        (["a"], ["a"], True),
        (["a"], ["b"], False),
        (["..."], [], True),
        (["...", "b ... c"], ["a", "a", "b 3 c"], True),
        (["...", "b"], ["a", "b", "c"], False),
        (["a", "..."], ["a", "b"], True),
    ],
)
def test_dots(expected: list[str], shown: list[str], same: bool) -> None:
    assert is_shown(expected, shown) is same


@pytest.mark.slow
def test_every_block_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PYTHONPATH", str(TOUR.parents[1]))
    names: dict[str, object] = {}
    commands = 0
    for kind, text in BLOCKS:
        if kind == "asm":
            Path("sums.s").write_text(text)
        elif kind == "python":
            exec(compile(text, str(TOUR), "exec"), names)
        else:
            for part in re.split(r"^\$ vip ", text, flags=re.MULTILINE)[1:]:
                line, *expected = part.splitlines()
                done = subprocess.run(
                    [sys.executable, "-m", "vip", *line.split()], capture_output=True, text=True
                )
                assert done.returncode == 0, done.stderr
                shown = [each.rstrip() for each in done.stdout.splitlines()]
                assert is_shown(expected, shown), (line, shown)
                commands += 1
    assert commands == 9
    for made in ("depth.png", "bp.html", "trim.html", "sums.log", "build/trimmed"):
        assert Path(made).exists()
