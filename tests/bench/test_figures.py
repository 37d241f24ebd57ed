"""README and guides: every figure in a table has a record, and is what the record says."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from bench.harness.experiment import BenchError, listed
from bench.harness.figures import Figures, documents, render
from bench.harness.record import ARCHIVED, FORMAT, RESULTS, ROOT, read_record

TABLE = """# A guide

| engine | cycles <!--{bp[@]:.0f}--> | thesis <!--given: the thesis's figures--> |
|---|---|---|
| first | 80.1<!--{bp[one]:.1f}--> | 90 |
| second <!--two--> | 7 | |
| third <!--given: a limit--> | 9 | |

An update takes 81.2<!--{bp[one]:.1f}--> of
the 90 cycles, -3<!--{-100 * bp[one] / bp[two] + 1:.0f}--> %.
"""


def figures(folder: Path, **results: float) -> Figures:
    recorded = {name: {"value": value, "unit": ""} for name, value in results.items()}
    (folder / "bp.json").write_text(json.dumps({"results": recorded}))
    return Figures(folder)


def has_commit(commit: str) -> bool:
    """Whether ``commit`` is the checked-out commit or one of its ancestors; true in a checkout
    without history."""
    git = ["git", "-C", str(ROOT)]
    if subprocess.check_output([*git, "rev-parse", "--is-shallow-repository"]) == b"true\n":
        return True
    return subprocess.run([*git, "merge-base", "--is-ancestor", commit, "HEAD"]).returncode == 0


@pytest.mark.parametrize("file", documents())
def test_documents_say_what_was_recorded(file: str) -> None:
    rendered = render(file, (ROOT / file).read_text(encoding="utf-8"), Figures())
    assert rendered.unknown == []
    assert rendered.changed == []
    if all(read_record(path.stem).format == FORMAT for path in RESULTS.glob("*.json")):
        assert rendered.missing == []


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_records_are_of_experiments_and_of_commits_that_exist(path: Path) -> None:
    assert path.stem in {*listed(), *ARCHIVED}
    # Older formats, which make bench names, have a shorter one at the same place.
    commit = json.loads(path.read_text())["provenance"]["commit"]
    if read_record(path.stem).format == FORMAT:
        assert len(commit) == 40
    assert re.fullmatch("[0-9a-f]{12,40}", commit)
    if (ROOT / ".git").exists():
        assert has_commit(commit)
        assert all(map(has_commit, ARCHIVED.values()))


def test_cells_columns_and_sentences_are_rendered(tmp_path: Path) -> None:
    found = figures(tmp_path, one=79.96, two=8)
    rendered = render("x", TABLE, found)
    assert "| first | 80.0<!--{bp[one]:.1f}--> | 90 |" in rendered.text
    assert "| second <!--two--> | 8 |  |" in rendered.text
    assert "| third <!--given: a limit--> | 9 | |" in rendered.text
    assert "takes 80.0<!--{bp[one]:.1f}--> of\nthe 90 cycles, -998<!--" in rendered.text
    assert len(rendered.changed) == 4
    assert not rendered.missing
    assert not rendered.unknown
    assert render("x", rendered.text, found).changed == []


def test_figures_without_a_record_are_found(tmp_path: Path) -> None:
    found = figures(tmp_path, one=80.1)
    bare = re.sub(" ?<!--.*?-->", "", TABLE)
    assert [line.split(": ")[0] for line in render("x", bare, found).unknown] == [
        *("x:5", "x:5", "x:6", "x:7"),
    ]
    rendered = render("x", TABLE, found)
    assert rendered.missing == [
        "x:6: second, cycles: {bp[two]:.0f} is not recorded",
        "x: {-100 * bp[one] / bp[two] + 1:.0f} is not recorded",
    ]
    given = bare.replace("| engine |", "| engine <!--given: all of it--> |")
    assert render("x", given, found).unknown == []


def test_expressions(tmp_path: Path) -> None:
    found = figures(tmp_path, a_gain=2, b_gain=4.0, other=10)
    assert found.value("bp[a_gain]") == "2"
    assert found.value("mean(bp[*_gain]):.2f") == "3.00"
    assert found.value("100 * (bp[other] - bp[b_gain]) / 8:,.1f") == "75.0"
    for source in ("bp[other].real", "__import__(1)", "bp[other] +", "bp[other]:q"):
        with pytest.raises(BenchError, match=re.escape(f"{{{source}}}: ")):
            found.value(source)
    for source in ("bp[none]", "bp[*_none]", "none[other]"):
        with pytest.raises(KeyError):
            found.value(source)
