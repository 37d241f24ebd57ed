"""The pictures of the documents: each has a command that exists, and that draws both kinds."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from bench.harness import pictures
from bench.harness.command import Experiments
from bench.harness.experiment import BenchError
from tests.browser import needs_chromium
from tests.screens import SHOTS, Shot, shoot
from vip.cli.app import Commands

ROOT = Path(__file__).parent.parent.parent


#: Drawn by an experiment that is gone (bench.harness.record.ARCHIVED).
ARCHIVED = {"agents"}
#: Drawn by hand.
DRAWN = {"machine"}


def test_every_picture_of_the_documents_can_be_drawn_again():
    shown = set()
    for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        shown |= set(re.findall(r"images/(\w+)\.(?:png|svg)", path.read_text()))
    assert shown - ARCHIVED - DRAWN == {*pictures.COMMANDS, *pictures.REPORTED, *SHOTS}


@pytest.mark.parametrize("name", pictures.COMMANDS)
def test_options_of_the_commands_exist(name):
    arguments = pictures.COMMANDS[name]
    assert arguments.count(pictures.FILE) == 1
    bench = arguments[0] == "bench"
    group, loader = (Experiments, arguments[1:]) if bench else (Commands, arguments)
    command = group(name="vip").load(loader[0])
    rest = loader[1:]
    if hasattr(command, "commands") and command.commands:
        command, rest = command.commands[rest[0]], rest[1:]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {part for part in rest if part.startswith("--")} <= options


def test_both_kinds_are_drawn_by_a_command(tmp_path, monkeypatch):
    small = ("bench", "bp_energies", "--width", "12", "--height", "9", "--picture", pictures.FILE)
    monkeypatch.setitem(pictures.COMMANDS, "bp_energies", small)
    pictures.draw("bp_energies", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "bp_energies.png",
        "bp_energies.svg",
    ]
    with Image.open(tmp_path / "bp_energies.png") as image:
        assert image.width > 500
    monkeypatch.setitem(pictures.COMMANDS, "bp_energies", (*small[:-1], "x.foo"))
    with pytest.raises(BenchError, match="bp_energies: not drawn"):
        pictures.draw("bp_energies", tmp_path)


@needs_chromium
@pytest.mark.browser
@pytest.mark.slow
def test_a_page_is_shown_from_a_heading_on(tmp_path, monkeypatch):
    command = ("run", "sums.s", "--memory", "sums.bin", "--json", "{file}")
    shot = Shot(name="sums", command=command, width=700, height=300, start="Numbers")
    monkeypatch.setitem(SHOTS, "sums", shot)
    shoot("sums", tmp_path / "sums.png")
    with Image.open(tmp_path / "sums.png") as image:
        assert image.size == (700, 300)
        # Text on white, not an empty page.
        assert 2 < len(image.convert("L").getcolors()) < 257
    monkeypatch.setitem(SHOTS, "sums", replace(shot, start="Nowhere"))
    with pytest.raises(BenchError, match="no heading 'Nowhere'"):
        shoot("sums", tmp_path / "other.png")
