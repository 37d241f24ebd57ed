"""Programs that break timing rules: ``vip run`` reports, ``vip cosim program`` compares."""

import json
import re

import numpy as np
import pytest

from isa.manual_text import EARLY_STORE, FIRST

#: Scratchpad bytes 256 .. 288, stored to 256 .. 288 of memory.
HAZARD = (
    "st.sram[16] at word 7 (early.s:8) reads scratchpad byte 0x11f, which v.v.add[16] at word 6 "
    "(early.s:7) makes: distance -3 cycles, 12 needed; put a v.drain between them"
)


#: Options of ``vip run``: the simulator in Python, and the compiled one.
BOTH = pytest.mark.parametrize("kind", [(), ("--compiled",)], ids=["python", "compiled"])


def said(error):
    """Standard error without the line that a simulator is compiled, which the first run shows."""
    lines = error.splitlines(keepends=True)
    return "".join(line for line in lines if "compiling a simulator" not in line)


@pytest.fixture
def programs(tmp_path):
    """A folder with the manual's programs, and inputs for them."""
    (tmp_path / "early.s").write_text(EARLY_STORE)
    (tmp_path / "safe.s").write_text(FIRST)
    inputs = np.arange(1, 17, dtype="<i2") * 1000
    (tmp_path / "inputs.bin").write_bytes(inputs.tobytes())
    return inputs * 2


@BOTH
def test_the_simulator_reports_the_wrong_program(vip, programs, tmp_path, kind):
    arguments = ("--memory", "inputs.bin", "--dump", 256, 32, "out.bin", "--json", "r.json")
    code, _, error = vip("run", "early.s", *arguments, *kind)
    assert code == 1
    assert error == f"vip: hazard: {HAZARD}\n"
    # Its results are right all the same, which is why the check is needed.
    assert (np.fromfile(tmp_path / "out.bin", "<i2") == programs).all()
    (found,) = json.loads((tmp_path / "r.json").read_text())["hazards"]
    assert found == {
        "pc": 7,
        "key": "st.sram[16]",
        "what": "store",
        "address": 287,
        "other": 6,
        "other_key": "v.v.add[16]",
        "distance": -3,
        "needed": 12,
        "times": 1,
    }


@pytest.mark.parametrize("kind", [("--profile", "p.json"), ("--compiled",)])
def test_the_right_program_has_no_hazard(vip, programs, tmp_path, kind):
    code, _, error = vip("run", "safe.s", "--json", "r.json", *kind)
    assert (code, error) == (0, "")
    assert json.loads((tmp_path / "r.json").read_text())["hazards"] == []


def test_a_program_without_source_lines_gets_words(vip, programs):
    assert vip("asm", "early.s")[0] == 0
    assert vip("disasm", "early.vip", "-o", "plain.s")[0] == 0
    code, _, error = vip("run", "plain.s")
    assert code == 1
    assert "at word 7 (plain.s:" in error


@BOTH
def test_many_hazards_get_twenty_lines(vip, tmp_path, kind):
    pair = "v.v.add [64-bit] r12, r11, r11\nst.sram [64-bit] r5, r12, r10\n"
    source = "mov r10, #1\nset.vl r10\nmov r11, #8\nmov r12, #16\n" + 23 * pair + "halt\n"
    (tmp_path / "many.s").write_text(source)
    code, _, error = vip("run", "many.s", *kind)
    assert code == 1
    assert error.count("\n") == 21
    assert error.endswith("vip: hazard: 3 more\n")


def test_the_compiled_simulator_prints_the_same(vip, programs):
    """All but the time that it took, on both channels."""
    found = []
    for kind in ((), ("--compiled",)):
        code, out, error = vip("run", "early.s", "--memory", "inputs.bin", *kind)
        assert code == 1
        found.append((re.sub(r" in \d+\.\d+ s$", "", out, flags=re.MULTILINE), error))
    assert found[0] == found[1]


def test_the_verilog_differs_for_the_wrong_program_alone(vip, programs, tmp_path):
    arguments = ("--memory", "inputs.bin", "--json", "r.json", "--dump", 256, 32, "out.bin")
    code, _, error = vip("cosim", "program", "early.s", *arguments)
    assert code == 1
    difference, hazard = said(error).splitlines()
    assert hazard == f"vip: hazard: {HAZARD}"
    assert difference.startswith(
        "vip: early.s: the engine differs from the simulator: memory at 0x1"
    )
    assert "bytes differ)" in difference
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["match"] is False
    assert len(report["differences"]) == 1
    assert (np.fromfile(tmp_path / "out.bin", "<i2") != programs).any()

    code, _, error = vip("cosim", "program", "early.s", "--no-compare", *arguments)
    assert (code, said(error)) == (0, "")
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["match"], report["differences"], report["hazards"]) == (None, None, None)

    code, out, error = vip("cosim", "program", "safe.s", *arguments)
    assert (code, said(error)) == (0, "")
    assert "equal to the simulator" in out
    report = json.loads((tmp_path / "r.json").read_text())
    assert (report["match"], report["differences"], report["hazards"]) == (True, [], [])
    assert (np.fromfile(tmp_path / "out.bin", "<i2") == programs).all()


def test_a_fault_is_compared_too(vip, tmp_path):
    (tmp_path / "fault.s").write_text("mov r1, #7\nst.reg [64-bit] r1, r1\nhalt\n")
    code, _, error = vip("cosim", "program", "fault.s", "--json", "r.json")
    assert code == 2
    assert "fault.s:2: st.reg [64-bit] r1, r1: address 0x7 (r1) is not a multiple of 8" in error
    assert json.loads((tmp_path / "r.json").read_text())["match"] is True


def test_a_chip_is_not_compared(vip, tmp_path):
    (tmp_path / "s.s").write_text("halt\n")
    code, _, error = vip("cosim", "program", "s.s", "--preset", "tiny", "--compare")
    assert code == 2
    assert "--compare can't be used: preset 'tiny' is a chip" in error


SATURATING = FIRST.replace("v.v.add", "v.v.mul")


def test_saturation_gets_a_line(vip, programs, tmp_path):
    (tmp_path / "large.s").write_text(SATURATING)
    arguments = ("large.s", "--memory", "inputs.bin", "--json", "r.json")
    line = (
        "vip: saturation: 16 values saturated to the width of the element, 16 at "
        "word 6 (large.s:7)\n"
    )
    code, _, error = vip("run", *arguments)
    assert (code, said(error)) == (0, line)
    assert json.loads((tmp_path / "r.json").read_text())["saturated"] == 16
    code, _, error = vip("cosim", "program", *arguments)
    assert (code, said(error)) == (0, line)
    assert json.loads((tmp_path / "r.json").read_text())["saturated"] == 16


def test_belief_propagation_says_that_nothing_saturates(vip, tmp_path):
    code, _, error = vip(
        *("cosim", "bp", "--width", 8, "--height", 6, "--iterations", 1, "--json", "r.json")
    )
    assert (code, said(error)) == (0, "")
    assert json.loads((tmp_path / "r.json").read_text())["saturated"] == 0


def test_the_timing_model_does_not_vouch_for_the_wrong_program(vip, programs):
    arguments = ("--memory", "inputs.bin", "--on", "model")
    code, shown, error = vip("cosim", "program", "early.s", *arguments)
    assert code == 1
    assert re.search(r"equal to the simulator\W+not known", shown)
    assert "early.s: has hazards, so only the Verilog (--on rtl) shows what" in error
    code, shown, _ = vip("cosim", "program", "safe.s", *arguments)
    assert code == 0
    assert re.search(r"equal to the simulator\W+yes", shown)


def test_vectors_without_their_length_are_noted(vip, tmp_path):
    vector = "v.v.add [16-bit] r1, r1, r1\nhalt\n"
    (tmp_path / "unset.s").write_text(vector)
    (tmp_path / "set.s").write_text(f"mov r2, #8\nset.vl r2\n{vector}")
    (tmp_path / "script").write_text("continue\nback 1\ncontinue\n")
    note = "vip: vectors ran with VL 1: no set.vl was executed\n"
    for name, line in (("unset.s", note), ("set.s", "")):
        assert vip("run", name)[2] == line
        assert vip("debug", name, "--script", "script")[2] == 2 * line
