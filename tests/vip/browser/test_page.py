"""The browser page: what it is made of, and that it works in Chromium."""

import time
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest

import vip
from support.errors import VipError
from tests.browser import Browser, needs_chromium, needs_pyodide, served
from vip.browser.build import PAGE_FILES
from vip.browser.runtime import FILES, RELEASE, runtime_files


@needs_pyodide
def test_files_of_another_release_are_refused(tmp_path: Path) -> None:
    for name, content in runtime_files(None).items():
        (tmp_path / name).write_bytes(content)
    assert vip.browser_page(tmp_path / "page", pyodide=tmp_path).files == len(PAGE_FILES)
    other = tmp_path / "pyodide.js"
    other.write_bytes(other.read_bytes() + b"\n")
    with pytest.raises(VipError, match=rf"pyodide\.js is not that of Pyodide {RELEASE}"):
        vip.browser_page(tmp_path / "other", pyodide=tmp_path)
    assert not (tmp_path / "other").exists()


def test_a_folder_without_pyodide_is_refused(vip, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    code, _, err = vip("browser", "-o", "page", "--pyodide", "empty")
    assert code == 2
    assert f"empty/{next(iter(FILES))}: can't be read: No such file" in err
    assert not (tmp_path / "page").exists()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    assert vip.browser_page(folder).path == folder / "index.html"
    return folder


@pytest.fixture(scope="module")
def address(page: Path) -> Iterator[str]:
    with served(page) as found:
        yield found


@needs_pyodide
def test_the_page_is_whole_and_the_same_again(page: Path, tmp_path: Path) -> None:
    assert {file.name for file in page.iterdir()} == set(PAGE_FILES)
    vip.browser_page(tmp_path)
    for name in PAGE_FILES:
        assert (tmp_path / name).read_bytes() == (page / name).read_bytes(), name
    with ZipFile(page / "vip.zip") as archive:
        names = archive.namelist()
    assert {"vip_rooms.py", "isa/assembly/assembly.lark", "lark/lark.py"} <= set(names)
    text = (page / "index.html").read_text()
    assert sum(file.stat().st_size for file in page.iterdir()) == pytest.approx(18.9e6, rel=0.01)
    assert "{{" not in text
    assert "http" not in text


@needs_pyodide
@needs_chromium
@pytest.mark.browser
def test_belief_propagation_runs_in_thirty_seconds(address: str) -> None:
    """From the first byte of the page on, with every message compared."""
    with Browser() as browser:
        started = time.monotonic()
        browser.open(address, 1280, 900)
        browser.wait_for("Python is ready")
        browser.press("Tab")
        browser.press("ArrowRight")
        assert browser.value("document.activeElement.id") == "tab-stereo"
        browser.press("Tab")
        assert browser.value("document.activeElement.id") == "iterations"
        browser.press("Tab")
        browser.press("Enter")
        browser.wait_for("all 3,072 messages equal the golden model's")
        assert time.monotonic() - started < 30
        # As docs/browser.md says.
        assert "137,475 instructions" in browser.value("document.body.innerText")
        assert browser.errors == []


@needs_pyodide
@needs_chromium
@pytest.mark.browser
@pytest.mark.slow
def test_programs_and_trimming_on_a_phone(address: str) -> None:
    def press(element: str) -> None:
        browser.value(f"document.getElementById({element!r}).click()")

    with Browser() as browser:
        browser.open(address, 390, 844)
        browser.wait_for("Python is ready")
        press("assemble")
        browser.wait_for("stopped at word 0, 0 instructions")
        press("step")
        browser.wait_for("stopped at word 1, 1 instructions")
        press("run")
        browser.wait_for("halted at word 19, 50 instructions")
        browser.wait_for("0x200\t100\t201\t302")
        press("check")
        browser.wait_for("No timing rule is broken")
        browser.value("document.getElementById('source').value = 'add r1'")
        press("assemble")
        browser.wait_for("program:1")
        press("tab-trimming")
        press("trim-stereo")
        browser.wait_for("21 of 157 instructions stay")
        for name in ("program", "stereo", "trimming", "manual"):
            press(f"tab-{name}")
            assert browser.value("document.documentElement.scrollWidth") <= 390, name
        assert browser.errors == []
