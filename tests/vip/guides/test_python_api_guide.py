"""The snippets of docs/python_api.md run."""

import re
from pathlib import Path

import pytest

import vip
from tests.browser import needs_pyodide

GUIDE = Path(__file__).parents[3] / "docs" / "python_api.md"
FIRST, *OTHERS = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
_SLOW = "# Takes minutes."


@pytest.mark.parametrize(
    "snippet",
    [
        pytest.param(
            text,
            id=re.findall(r"vip\.([a-z_]+)\(", text)[-1],
            marks=[
                *([pytest.mark.slow] if _SLOW in text else []),
                *([needs_pyodide] if "browser_page" in text else []),
            ],
        )
        for text in OTHERS
    ],
)
def test_snippet(snippet: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    # All others work on the program of the first.
    for text in (FIRST, snippet):
        exec(compile(text, str(GUIDE), "exec"), names)


def test_every_verb_has_a_snippet() -> None:
    text = FIRST + "".join(OTHERS)
    for name in vip.__all__:
        if name.islower():
            assert f"vip.{name}(" in text
