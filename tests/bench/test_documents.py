"""Documents: links lead somewhere; decisions have an index and short sections."""

import re
from pathlib import Path

import pytest

from bench.harness.record import ROOT

SOURCES = (".py", ".md", ".cpp", ".h", ".sv", ".toml")
DECISIONS = ROOT / "docs" / "decisions"
PAGES = sorted(path for path in DECISIONS.glob("*.md") if path.name != "README.md")
#: Lines of a decision at most.
SCREEN = 25
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
#: Those of this version: the changelog names files of earlier ones.
CURRENT = [path for path in DOCUMENTS if path.name != "CHANGELOG.md"]
LINK = re.compile(r"\]\(([^)\s]+)\)")
#: A link to another server.
FOREIGN = re.compile(r"[a-z]+:")
#: A file or folder of the checkout, as text names it.
NAMED_FILE = re.compile(r"`(\w+/[\w./]*)`")
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


@pytest.mark.parametrize("document", CURRENT, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_documents_name_exist(document: Path) -> None:
    for path in NAMED_FILE.findall(document.read_text(encoding="utf-8")):
        room = path.split("/")[0]
        # What commands write there is not in a fresh checkout.
        if room == "build":
            continue
        assert not (ROOT / room).is_dir() or (ROOT / path).exists(), path


def test_index_lists_every_page_of_decisions() -> None:
    index = (DECISIONS / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[.*?\]\((\w+\.md)\)", index, re.MULTILINE)
    assert sorted(listed) == [page.name for page in PAGES]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_pages_of_decisions_have_short_sections(page: Path) -> None:
    _, *sections = page.read_text(encoding="utf-8").split("\n## ")
    assert sections
    for section in sections:
        assert len(section.splitlines()) <= SCREEN, section.split("\n")[0]
