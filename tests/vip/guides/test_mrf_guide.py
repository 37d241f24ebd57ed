"""The example of docs/mrf.md runs."""

import os
import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "mrf.md"


def test_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    (text,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(text, str(GUIDE), "exec"), names)
    solved, disc = names["solved"], names["disc"]
    # The noise alone would misjudge a fifth of the pixels.
    assert (solved.labels != disc).mean() < 0.02
    assert solved.energies[-1] < solved.energies[0]
