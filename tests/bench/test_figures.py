"""README and guides: every figure in a table has a record, and is what the record says."""

import json
import re
from pathlib import Path

import pytest

from bench.experiment import listed
from bench.figures import Figures, Spec, documents, read_spec, render
from bench.record import ARCHIVED, FORMAT, RESULTS, ROOT, has_commit, read_record

TABLE = """# A guide

| engine | cycles | thesis |
|---|---|---|
| first | 80.1 | 90 |
| second | 7 | |

An update takes 80.1 of
the 90 cycles.
"""
HEADING = ("engine", "cycles", "thesis")


def figures(folder: Path, **results: float) -> Figures:
    found = {name: {"value": value, "unit": ""} for name, value in results.items()}
    (folder / "bp.json").write_text(json.dumps({"results": found}))
    return Figures(folder)


@pytest.mark.parametrize("file", documents())
def test_documents_say_what_was_recorded(file: str) -> None:
    rendered = render(file, (ROOT / file).read_text(encoding="utf-8"), read_spec(), Figures())
    assert rendered.unknown == ()
    assert rendered.changed == ()
    if all(read_record(path.stem).format == FORMAT for path in RESULTS.glob("*.json")):
        assert rendered.missing == ()


@pytest.mark.parametrize("path", sorted(RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_records_are_of_benchmarks_and_of_commits_that_exist(path: Path) -> None:
    assert path.stem in {*listed(), *ARCHIVED}
    # Older formats, which make bench names, have a shorter one at the same place.
    commit = json.loads(path.read_text())["provenance"]["commit"]
    if read_record(path.stem).format == FORMAT:
        assert len(commit) == 40
    assert re.fullmatch("[0-9a-f]{12,40}", commit)
    if (ROOT / ".git").exists():
        assert has_commit(commit)


def test_every_specification_is_of_a_document() -> None:
    for spec in read_spec():
        assert spec.file in documents()
        assert bool(spec.heading) != bool(spec.text)
        assert bool(spec.given) == bool(spec.because)


def test_columns_and_cells_are_rendered(tmp_path: Path) -> None:
    found = figures(tmp_path, one=79.96, two=8)
    spec = Spec(
        file="x",
        heading=HEADING,
        columns={"cycles": "{bp[@]:.0f}"},
        names={"second": "two"},
        cells={"first": {"cycles": "{bp[one]:.1f}"}},
        given=("thesis",),
    )
    text = Spec(file="x", text="takes {bp[one]:.1f} of the 90 cycles")
    rendered = render("x", TABLE, [spec, text], found)
    assert "| first | 80.0 | 90 |" in rendered.text
    assert "| second | 8 |  |" in rendered.text
    assert "takes 80.0 of\nthe 90" in rendered.text
    assert len(rendered.changed) == 3
    assert not rendered.missing
    assert not rendered.unknown
    assert render("x", rendered.text, [spec, text], found).changed == ()


def test_figures_without_a_record_are_found(tmp_path: Path) -> None:
    found = figures(tmp_path, one=80.1)
    rendered = render("x", TABLE, [], found)
    assert [line.split(": ")[0] for line in rendered.unknown] == ["x:5", "x:5", "x:6"]
    spec = Spec(file="x", heading=HEADING, columns={"cycles": "{bp[none]:.1f}"}, given=("thesis",))
    rendered = render("x", TABLE, [spec], found)
    assert len(rendered.missing) == 2
    assert rendered.text == TABLE


def test_what_a_specification_names_must_be_there(tmp_path: Path) -> None:
    found = figures(tmp_path, one=80.1)
    for spec in (
        Spec(file="x", heading=("other",)),
        Spec(file="x", text="no such {bp[one]:.1f} sentence"),
        Spec(file="x", heading=HEADING, cells={"third": {"cycles": "{bp[one]}"}}, given=("*",)),
    ):
        everything = Spec(file="x", heading=HEADING, given=("*",))
        assert len(render("x", TABLE, [spec, everything], found).unknown) == 1
