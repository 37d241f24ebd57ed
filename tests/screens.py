"""``python -m tests.screens``: screenshots of the site and of pages on results, for the guides."""

import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from bench.harness.experiment import BenchError
from bench.harness.record import ROOT
from support.command import run_command
from support.files import write_file
from vip import browser_page

from .browser import CHROMIUM, Browser, served

#: Placeholder in a command for a file to write.
_FILE = "{file}"
_TOUR = ROOT / "docs" / "tour.md"


@dataclass(frozen=True, kw_only=True)
class Shot:
    """A picture of a page.

    Attributes:
        name: of the page. command: arguments of ``vip`` that write the result that it shows, at the
            placeholder; empty: it is the first page of the documentation site.
        width, height: of the window in pixels; the picture has both, from its top on.
        start: heading above which the picture starts; "": the top of the page.
        presses: elements of the browser page, by id, that are pressed when Python is ready. until:
            text that then appears; "": it is another page.
    """

    name: str = ""
    command: tuple[str, ...] = ()
    width: int
    height: int
    start: str = ""
    presses: tuple[str, ...] = ()
    until: str = ""


_VAULT = (
    *("cosim", "bp", "--preset", "vault", "--on", "model"),
    *("--width", "12", "--height", "8", "--iterations", "1", "--json", _FILE),
)
_ENGINE = (
    *("cosim", "bp", "--width", "8", "--height", "6", "--iterations", "1", "--latency", "60"),
    *("--pipeline", "bp.log", "--json", _FILE),
)
_TRIM = ("trim", "sums.s", "--memory", "sums.bin", "-o", "trimmed", "--json", _FILE)
#: Picture -> what it shows.
SHOTS: Mapping[str, Shot] = {
    "report_desktop": Shot(name="bp_vault", command=_VAULT, width=1085, height=1400),
    "report_phone": Shot(name="bp_vault", command=_VAULT, width=390, height=1500),
    "report_time": Shot(
        name="bp", command=_ENGINE, width=985, height=560, start="Where the cycles went"
    ),
    "report_trim": Shot(name="sums", command=_TRIM, width=985, height=740, start="Area by unit"),
    "browser_desktop": Shot(
        width=1280, height=900, presses=("assemble", "run"), until="halted at word"
    ),
    "browser_phone": Shot(
        width=390, height=844, presses=("tab-stereo", "stereo-run"), until="messages equal"
    ),
    "site_desktop": Shot(width=1280, height=800),
    "site_phone": Shot(width=390, height=844),
}


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, stdout=subprocess.DEVNULL)
    if done.returncode:
        raise BenchError(f"not drawn: python -m {' '.join(command)} failed")


def _inputs(folder: Path) -> None:
    """The program of the tour and its data, which commands may name."""
    text = _TOUR.read_text(encoding="utf-8")
    blocks = dict(re.findall(r"```(asm|python)\n(.*?)```", text, re.DOTALL)[:2])
    write_file(folder / "sums.s", blocks["asm"])
    write_file(folder / "data.py", blocks["python"])
    _run(["data"], folder)


def _page(shot: Shot, folder: Path) -> Path:
    if not shot.command:
        site = ROOT / "build" / "site"
        _run(["sphinx", "-q", "-b", "html", "-c", "docs/site", ".", str(site)], ROOT)
        return site / "docs" / "index.html"
    if "sums.s" in shot.command:
        _inputs(folder)
    result, page = folder / f"{shot.name}.json", folder / f"{shot.name}.html"
    _run(["vip", *(str(result) if part == _FILE else part for part in shot.command)], folder)
    _run(["vip", "report", str(result), "-o", str(page)], folder)
    return page


def _shoot_browser_page(shot: Shot, target: Path) -> None:
    with TemporaryDirectory() as place, Browser() as browser:
        browser_page(place)
        with served(Path(place)) as address:
            browser.open(address, shot.width, shot.height)
            browser.wait_for("Python is ready")
            for element in shot.presses:
                browser.value(f"document.getElementById({element!r}).click()")
                # Answers come in the order of the questions.
                browser.value("new Promise(done => setTimeout(done, 500))")
            browser.wait_for(shot.until)
            browser.screenshot(target, (0, 0, shot.width, shot.height))


def shoot(name: str, target: Path) -> None:
    """Write the picture ``name`` of :data:`SHOTS` as PNG.

    Raises:
        BenchError: there is no Chromium, a command fails, or the page has no such heading.
    """
    if CHROMIUM is None:
        raise BenchError(f"{name}: not drawn: chromium is not installed")
    shot = SHOTS[name]
    if shot.until:
        _shoot_browser_page(shot, target)
        return
    with TemporaryDirectory() as place, Browser() as browser:
        browser.open(_page(shot, Path(place)), shot.width, shot.height)
        top = 0
        if shot.start:
            found = browser.value(
                "(() => { const all = [...document.querySelectorAll('h2')];"
                f" const one = all.find(each => each.textContent === {shot.start!r});"
                " return one ? one.getBoundingClientRect().top + window.scrollY : -1; })()"
            )
            if found < 0:
                raise BenchError(f"{name}: not drawn: the page has no heading {shot.start!r}")
            # With the space above a heading.
            top = max(0, int(found) - 16)
        browser.screenshot(target, (0, top, shot.width, shot.height))


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Of {', '.join(SHOTS)} (default: all).")
    ] = None,
) -> None:
    """Write screenshots into docs/images.

    Example: python -m tests.screens site_phone
    """
    for name in names or SHOTS:
        shoot(name, ROOT / "docs" / "images" / f"{name}.png")


if __name__ == "__main__":
    run_command(lambda: typer.run(main))
