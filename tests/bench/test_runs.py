"""Results are kept until what they rest on changes, and outputs that differ are no result."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.harness.runs import exact
from sim_tb.cosim.engine import CosimError
from sim_tb.runner.cache import fingerprint
from support.cache import ResultCache


def test_results_are_kept_until_what_they_rest_on_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path / "build"))
    made: list[int] = []

    def make() -> Any:
        made.append(1)
        return {"cycles": len(made)}

    key = fingerprint("program", b"data")
    assert ResultCache("rows").get(key, make) == {"cycles": 1}
    assert ResultCache("rows").get(key, make) == {"cycles": 1}
    assert ResultCache("rows").get(fingerprint("program", b"datum"), make) == {"cycles": 2}
    # A key that is no file's name.
    assert ResultCache("rows").get("a/b " + key, make) == {"cycles": 3}
    assert ResultCache("rows").known("a/b " + key) == {"cycles": 3}
    assert fingerprint("ab", "c") != fingerprint("a", "bc")
    (tmp_path / "build" / "rows" / f"{key}.json").write_text("{broken")
    assert ResultCache("rows").get(key, make) == {"cycles": 4}


def test_outputs_must_be_the_golden_models() -> None:
    right = SimpleNamespace(match=True)
    assert exact(right, "it") is right
    with pytest.raises(CosimError, match=r"^it: outputs differ from the golden model's$"):
        exact(SimpleNamespace(match=False), "it")
