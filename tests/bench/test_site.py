"""The documentation site builds without a warning, and has every page and every public name."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import vip
from bench.harness.record import ROOT
from tests.browser import Browser, needs_chromium

#: Pages that are looked at on two screens.
PAGES = ("docs/index", "docs/tour", "docs/python_api", "docs/isa", "docs/decisions/README")
API = (ROOT / "docs" / "python_api.md").read_text(encoding="utf-8")


def test_the_reference_is_that_of_the_list_of_names() -> None:
    assert API.count(".. automodule:: vip\n   :imported-members:") == 1
    assert not re.search(r"^\.\. auto(?:function|class):: vip\.(?!Dump$)\w+$", API, re.MULTILINE)


def test_the_index_lists_each_page() -> None:
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r"```{toctree}\n(.*?)```", text, re.DOTALL)
    listed = [line for tree in trees for line in tree.splitlines() if re.match(r"[\w./]+$", line)]
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert len(listed) == len(set(listed))
    assert set(listed) == pages | {
        "../README",
        "../examples/README",
        "../CHANGELOG",
        "../CONTRIBUTING",
        "decisions/README",
    }


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "-c", "docs/site", ".", folder],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.mark.slow
def test_the_reference_has_each_public_name(site: Path) -> None:
    text = (site / "docs" / "python_api.html").read_text(encoding="utf-8")
    assert set(vip.__all__) <= set(re.findall(r'id="vip\.(\w+)"', text))


@pytest.mark.slow
def test_every_document_is_a_page(site: Path) -> None:
    documents = {path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md")}
    assert documents
    for document in documents:
        assert (site / document).with_suffix(".html").exists(), document


@pytest.mark.slow
def test_links_between_pages_lead_somewhere(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    anchors = {path: set(re.findall(r'id="([^"]+)"', text)) for path, text in pages.items()}
    followed = 0
    for path, text in pages.items():
        for link in re.findall(r'href="([^"]+)"', text):
            if re.match(r"[a-z]+:", link) or link.startswith("data:"):
                continue
            file, _, anchor = link.split("?")[0].partition("#")
            target = (path.parent / file).resolve() if file else path
            assert target.exists(), (path, link)
            if anchor and target in anchors:
                assert anchor in anchors[target], (path, link)
            followed += 1
    assert followed > 4_000


@pytest.mark.slow
@pytest.mark.browser
@needs_chromium
@pytest.mark.parametrize("width", [1280, 390])
def test_pages_fit_a_desktop_and_a_phone(site: Path, width: int) -> None:
    with Browser() as browser:
        for name in PAGES:
            browser.open(site / f"{name}.html", width, 900)
            assert browser.value("document.documentElement.scrollWidth") <= width
            assert browser.value("document.querySelector('h1').textContent.length") > 2
        assert browser.errors == []
