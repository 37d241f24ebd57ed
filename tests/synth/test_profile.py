"""Profiles: observations of a run, stored in files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.program import Program
from pe.config import PeConfig
from synth.analysis.profile import Profile, profile_run
from synth.errors import TrimError

FULL = PeConfig()
PROGRAM = assemble(
    """
    ld.reg [16-bit] r6, r5
    set.vl r6
    blt r6, r0, never
    ld.sram [16-bit] r0, r5, r6
    sll r7, r6, #40
    v.s.add [16-bit] r6, r0, r0
    v.drain
    halt
never:
    sub r6, r6, r6
    halt
    """
)


def run(count: int, program: Program = PROGRAM, **options) -> Profile:
    with DramImage(1 << 16) as image:
        image.write(0x80, count.to_bytes(2, "little"))
        return profile_run(program, image, FULL, parameters=0x80, **options)


def test_a_run_word_by_word() -> None:
    facts = run(10).facts
    assert facts.executed == set(range(8))
    assert facts.taken == set()
    assert facts.passed == {2}
    assert facts.written == {0: (10, 10), 4: (10 << 40, 10 << 40)}
    assert facts.settings == {1: (10, 10)}
    # From byte 10 on a result of 20 bytes.
    assert facts.scratchpad == {3: 20, 5: 30}
    assert facts.dram == {0: 0x82, 3: 0x94}
    # A load to byte 0 from 0x80 on; a result at byte 10.
    assert facts.alignment == {3: 8, 5: 2}


def test_runs_join() -> None:
    both = run(10) | run(100)
    assert both.runs == 2
    assert both.facts.written[0] == (10, 100)
    assert both.facts.scratchpad[5] == 300
    assert both.in_flight is None
    one = Profile(digest="a", facts=both.facts, in_flight=(3, 8))
    other = Profile(digest="a", facts=both.facts, in_flight=(5, 2))
    assert (one | other).in_flight == (5, 8)
    slower = Profile(digest="a", facts=both.facts, in_flight=(1, 2), slower=0.01)
    assert ((one | slower).in_flight, (one | slower).slower) == ((3, 8), 0.01)


def test_files_keep_all(tmp_path: Path) -> None:
    profile = run(10)
    profile.save(tmp_path / "p.json")
    assert Profile.load(tmp_path / "p.json") == profile
    path = tmp_path / "m.json"
    for slower in (0.0, 0.01):
        measured = Profile(digest="a", facts=profile.facts, in_flight=(3, 8), slower=slower)
        measured.save(path)
        assert Profile.load(path) == measured
    # Files of before have two numbers.
    path.write_text(path.read_text().replace("[3, 8, 0.01]", "[3, 8]"))
    assert Profile.load(path) == replace(measured, slower=0.0)
    path.write_text(path.read_text().replace("[3, 8]", "[3, 8, 1.5]"))
    with pytest.raises(TrimError, match=r"1\.5 is not a fraction"):
        Profile.load(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-9], "not a profile"),
        (lambda text: "[1]", "not a profile"),
        (lambda text: text.replace("vip-profile", "other"), "not a profile"),
        (lambda text: text.replace('"isa": 1', '"isa": 9'), "version 9 .* this is 1"),
        (lambda text: text.replace('"runs"', '"walks"'), "damaged profile"),
        (lambda text: text.replace('"executed": [0', '"executed": ["x"'), "damaged profile"),
        (lambda text: text.replace('"executed": [0', '"executed": [0.5'), "not a whole number"),
        (
            lambda text: text.replace('"taken": [', '"taken": {"0": []}, "x": ['),
            "not a list of addr",
        ),
        (lambda text: text.replace('"runs": 1', '"runs": true'), "not a whole number"),
    ],
)
def test_files_that_are_no_profiles(tmp_path: Path, change, message: str) -> None:
    path = tmp_path / "p.json"
    run(10).save(path)
    text = path.read_text()
    assert json.loads(text)["format"] == "vip-profile"
    path.write_text(change(text))
    assert path.read_text() != text
    with pytest.raises(TrimError, match=message) as error:
        Profile.load(path)
    assert "\n" not in str(error.value)
    assert str(path) in str(error.value)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TrimError, match=r"none\.json: can't be read"):
        Profile.load(tmp_path / "none.json")


def test_runs_that_say_nothing_are_refused() -> None:
    with pytest.raises(TrimError, match=r"faults: .*:3: set.vl r6: 0"):
        run(0)
    with pytest.raises(TrimError, match="did not end within 1000 instructions"):
        run(0, assemble("top: jmp top\n"), limit=1000)
