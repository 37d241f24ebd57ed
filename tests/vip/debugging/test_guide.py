"""The bugs of docs/debugging.md, in the program and in the hardware."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import sim_tb.dut.engine
import vip as api
from pe.config import PeConfig
from sim_tb.waves.cycles import read_cycles, signal_names
from sim_tb.waves.saved import save_file

GUIDE = Path(__file__).parents[3] / "docs" / "debugging.md"
TEXT = GUIDE.read_text(encoding="utf-8")
(SOURCE,) = re.findall(r"```asm\n(.*?)```", TEXT, re.DOTALL)
_, LOCATED = re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
DATA, PYTHON, LARGE = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sums.s").write_text(SOURCE)
    exec(compile(DATA, str(GUIDE), "exec"), {})


def sums(source: str) -> np.ndarray:
    result = api.run(api.assemble(source), memory=Path("sums.bin"), dump=api.Dump(0x200, 64))
    return np.frombuffer(result.dumped, "<i2")


def test_what_the_session_finds_is_the_bug() -> None:
    expected = np.arange(32) + 100 * np.arange(1, 33)
    assert sums(SOURCE)[4] == 908 != expected[4]
    fixed = SOURCE.replace("add r13, r13, #BLOCK", "add r13, r13, #BYTES")
    assert (sums(fixed) == expected).all()


def test_the_snippet(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(PYTHON, str(GUIDE), "exec"), {})
    assert capsys.readouterr().out == "24 block+5 b'\\x8c\\x03'\n19 {13: 520}\n"


@pytest.mark.slow
def test_a_bug_in_the_hardware_is_located_as_shown(vip, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy = sim_tb.dut.engine.configuration_verilog

    def spoilt(config: PeConfig) -> str:
        signs = r"(vector_saturate \w+ \(\s+\.negative\()(\w+)"
        text, number = re.subn(signs, r"\1~\2", healthy(config))
        assert number == 1
        return text

    monkeypatch.setattr(sim_tb.dut.engine, "configuration_verilog", spoilt)
    Path("sums.s").write_text(SOURCE.replace("add r13, r13, #BLOCK", "add r13, r13, #BYTES"))
    exec(compile(DATA + LARGE, str(GUIDE), "exec"), {})
    command, shown = LOCATED.split("\n", 1)
    code, out, err = vip(*shlex.split(command, comments=True)[2:])
    assert code == 1
    assert "the engine differs from the simulator: scratchpad at 0x20: " in err
    found = out[out.index("first difference") :]
    assert [line.rstrip() for line in found.splitlines()] == shown.splitlines()
    # The waveforms hold the cycles shown, and no others.
    pc = "vip_pe_top.pe.fetch.pc"
    words = [pc for (pc,) in read_cycles(Path("difference.vcd"), "vip_pe_top.clk", [pc])]
    assert len(words) < 100
    assert {17, 18, 9, 10, 11} <= set(words)
    assert "vip_pe_top.pe.issue.cause[2:0]\n" in Path("difference.gtkw").read_text()
    window = Path("difference.vcd")
    commands = save_file(window, {"issue": ()}, ".sucl").splitlines()
    assert commands[:4] == [
        "load_file difference.vcd",
        "variable_add vip_pe_top.clk",
        "divider_add instructions",
        "variable_add instructions.issue",
    ]
    names = signal_names(window)
    added = [line.split()[1] for line in commands if line.startswith("variable_add")]
    assert set(added) <= set(names)
    assert "vip_pe_top.pe.issue.cause" in added
    assert commands[-1] == "zoom_fit"
    assert "s11:\\x20v.v.add" in Path("difference.vcd").read_text()
