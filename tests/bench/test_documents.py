"""Documents: links lead somewhere, and decisions have an index and the same sections."""

import re
from pathlib import Path

import pytest

from bench.record import ROOT

SOURCES = (".py", ".md", ".cpp", ".h", ".sv", ".toml")
DECISIONS = ROOT / "docs" / "decisions"
PAGES = sorted(path for path in DECISIONS.rglob("*.md") if path.parent != DECISIONS)
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
#: A link to another server.
FOREIGN = re.compile(r"[a-z]+:")
CITATION = re.compile(r"docs/decisions/[\w/]+\.md")


def anchors(document: Path) -> set[str]:
    """Anchors of the headings, made as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_documents_exist(document: Path) -> None:
    for link in LINK.findall(document.read_text(encoding="utf-8")):
        if FOREIGN.match(link):
            continue
        file, _, anchor = link.partition("#")
        target = (document.parent / file).resolve() if file else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_cited_decisions_exist() -> None:
    rooms = (
        path
        for path in ROOT.iterdir()
        if path.is_dir() and path.name[0] != "." and path.name != "build"
    )
    sources = [path for room in rooms for path in room.rglob("*") if path.suffix in SOURCES]
    cited = 0
    for source in sources:
        for path in CITATION.findall(source.read_text(encoding="utf-8")):
            assert (ROOT / path).exists(), f"{source}: {path}"
            cited += 1
    assert cited > 5


def test_index_lists_every_decision_by_its_title() -> None:
    index = (DECISIONS / "README.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^- \[(.*)\]\((.*)\)$", index, re.MULTILINE))
    titles = {
        page.read_text(encoding="utf-8").split("\n")[0].removeprefix("# "): page for page in PAGES
    }
    assert len(titles) == len(PAGES)
    assert listed == {title: str(page.relative_to(DECISIONS)) for title, page in titles.items()}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(DECISIONS)))
def test_decisions_have_their_sections(page: Path) -> None:
    sections = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert sections in (
        ["Context", "Decision", "Consequences"],
        ["Context", "Decision", "Consequences", "Alternatives"],
    )
