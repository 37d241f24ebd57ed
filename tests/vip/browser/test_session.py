"""What the browser page answers, on this Python."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isa.image import ImageError
from support.errors import VipError
from vip.browser.build import SIZE, packed_scene
from vip.browser.session import BrowserSession
from vip.browser.workbench import PlainMemory, memory_of

SOURCE = """
    li r10, #4
    li r11, #0x100
    set.vl r10
    ld.sram [16-bit] r0, r11, r10
    v.v.add [16-bit] r0, r0, r0
    v.drain
loop:
    st.sram [16-bit] r11, r0, r10
    sub r10, r10, #1
    bne r10, r0, loop
    memfence
    halt
"""
DATA = "0x100 i16 1 -2 3 20000 ; saturates\n\n"
VIEW = {"space": "memory", "start": "0x100", "kind": "i16"}

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("scene") / "stereo.npz"
    file.write_bytes(packed_scene()[0])
    return file


@pytest.fixture
def ask(scene: Path) -> Ask:
    session = BrowserSession(str(scene))

    def asked(action: str, **details: object) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(session.ask(json.dumps({"action": action, **details})))
        return answer

    return asked


def _first(answer: dict[str, Any], count: int) -> list[str]:
    return list(answer["matrix"][0]["values"][:count])


def test_a_program_runs_forwards_and_back(ask: Ask) -> None:
    loaded = ask("assemble", source=SOURCE, data=DATA, view=VIEW)
    assert loaded["state"] == "stopped"
    assert _first(loaded, 4) == ["1", "-2", "3", "20000"]
    labelled = {name: word["address"] for word in loaded["listing"] for name in word["labels"]}
    ask("toggle", address=labelled["loop"])
    met = ask("forward", count=1000, view=VIEW)
    assert met["hit"]
    assert met["pc"] == labelled["loop"]
    ask("toggle", address=labelled["loop"])
    done = ask("forward", count=1000, view=VIEW)
    assert (done["state"], _first(done, 4)) == ("halted", ["2", "-4", "6", "32767"])
    assert {"number": 11, "hex": "0x100", "signed": "256", "changed": False} in done["registers"]
    before = ask("back", view=VIEW)
    assert (before["state"], before["time"]) == ("stopped", done["time"] - 1)
    while before["time"]:
        before = ask("back", view=VIEW)
    assert _first(before, 4) == ["1", "-2", "3", "20000"]
    pad = ask("show", view={"space": "scratchpad", "start": "0", "kind": "x8"})
    assert _first(pad, 1) == ["00"]


def test_broken_timing_rules_are_named(ask: Ask) -> None:
    ask("assemble", source=SOURCE, data=DATA, view=VIEW)
    assert ask("hazards")["hazards"] == []
    ask("assemble", source=SOURCE.replace("v.drain", ""), data=DATA, view=VIEW)
    (line,) = ask("hazards")["hazards"]
    assert "st.sram[16] at word 5 (program:9) reads scratchpad byte" in line


def test_belief_propagation_equals_the_golden_model(ask: Ask) -> None:
    assert "not been started" in ask("stereo_forward", count=1)["error"]
    ask("stereo", iterations=1)
    part = ask("stereo_forward", count=1000)
    assert (part["state"], part["instructions"]) == ("running", 1000)
    assert part["different"] > 0
    whole = ask("stereo_forward", count=10_000_000)
    assert (whole["state"], whole["different"]) == ("halted", 0)
    assert whole["messages"] == 4 * SIZE[0] * SIZE[1]
    assert (len(whole["labels"]), len(whole["labels"][0])) == SIZE[::-1]
    assert whole["wrong"] < 20
    assert "1 to 16" in ask("stereo", iterations=17)["error"]


def test_trimming_keeps_what_is_needed(ask: Ask) -> None:
    found = ask("trim", source=SOURCE)
    kept = {key for unit in found["units"] for key in unit["kept"]}
    assert {"v.v.add[16]", "ld.sram[16]", "bne", "halt"} <= kept
    assert found["after"] == len(kept) < found["before"]
    sizes = {size["name"]: (size["full"], size["size"]) for size in found["sizes"]}
    assert sizes["instruction_words"] == (1024, 16)
    assert sizes["max_vl"][1] < 256
    stereo = ask("trim_stereo")
    assert "m.v.add.min[16]" in {key for unit in stereo["units"] for key in unit["kept"]}


@pytest.mark.parametrize(
    ("source", "data", "message"),
    [
        ("add r1\n", "", "program:1"),
        ("", "", "no instruction"),
        ("halt", "0x0 i16", "data, line 1: an address, a type and numbers are needed"),
        ("halt", "\n0 i16 40000", "data, line 2: 40000 does not fit i16: -32768 to 32767"),
        ("halt", "0 u8 -1", "data, line 1: -1 does not fit u8: 0 to 255"),
        ("halt", "0 f16 1", "data, line 1: 'f16' is not an element type"),
        ("halt", "0 i16 x", "data, line 1: 'x' is not a whole number"),
        ("halt", "0x1ffffffff i16 1", "data, line 1: 2 bytes at address 0x1ffffffff are outside"),
    ],
)
def test_mistakes_are_named(ask: Ask, source: str, data: str, message: str) -> None:
    assert message in ask("assemble", source=source, data=data, view=VIEW)["error"]
    assert "nothing has been assembled" in ask("show", view=VIEW)["error"]


@pytest.mark.parametrize(
    "view", [{"start": "-1"}, {"start": "x"}, {"kind": "q"}, {"start": "0x200000000"}]
)
def test_views_outside_are_refused(ask: Ask, view: dict[str, str]) -> None:
    assert "error" not in ask("assemble", source="halt", data="", view=VIEW)
    assert ask("show", view={**VIEW, **view})["error"]


def test_the_memory_is_one_of_bytes() -> None:
    memory = PlainMemory(1 << 33)
    held = bytes(range(256)) * 300
    memory.write(0xFFF0, held)
    assert memory.read(0xFFE0, len(held) + 32) == bytes(16) + held + bytes(16)
    assert memory.read(5, 0) == b""
    for address, length in ((-1, 1), ((1 << 33) - 1, 2), (0, -1)):
        with pytest.raises(ImageError):
            memory.read(address, length)
    with pytest.raises(ImageError):
        memory.write((1 << 33) - 1, b"ab")


def test_data_may_be_hexadecimal() -> None:
    memory = memory_of("0x10 x32 0xdeadbeef 1\n  ; nothing\n32 u64 18446744073709551615")
    assert memory.read(0x10, 8).hex() == "efbeadde01000000"
    assert memory.read(32, 8) == b"\xff" * 8
    with pytest.raises(VipError):
        memory_of("0 x8 256")
