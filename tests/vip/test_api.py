"""The verbs of ``import vip``, which the command line calls."""

import inspect
import os
import subprocess
import sys
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import SimpleNamespace, UnionType
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

import vip
import vip.proofs
from hdl.config import ConfigurationError
from isa.iss.simulator import SimulatorError
from isa.program import SourceLine
from microkernels.apps.array_job import array_job
from sim_tb.cosim.trim_check import TrimCheck
from soc.generate.presets import PRESETS, preset
from support.errors import VipError
from synth.errors import CoverageError, SynthesisError, TrimError
from tests.small_engine import TINY
from vip.programs import DumpError
from vip.reports import page

VERBS = [name for name in vip.__all__ if name.islower()]
#: Adds 1 to the number at the address of the parameter block.
COUNT = "ld.reg [64-bit] r9, r5\nadd r9, r9, #1\nst.reg [64-bit] r5, r9\nhalt\n"
#: Adds two vectors whose length stands in memory.
ADD = """
    ld.reg [64-bit] r6, r5
    mov r7, #100
    blt r7, r6, many
    set.vl r6
    v.v.add [16-bit] r0, r0, r0
many:
    halt
"""
SMALL = "pe-small"
#: What the programs here need of it, which is compiled in a third of the time.
FEW = replace(
    preset(SMALL),
    instructions=frozenset({"ld.reg[64]", "st.reg[64]", "add.imm", "mov.imm", "set.vl", "halt"}),
)
ROOT = Path(__file__).parents[2]


class Shown:
    """A progress that keeps what it is called with."""

    def __init__(self) -> None:
        self.stages: list[str] = []

    def __call__(
        self, stage: str, done: float = 0, total: float | None = None, part: str = ""
    ) -> None:
        assert total is None or done <= total or done == 0
        self.stages.append(stage)


@pytest.mark.parametrize("name", VERBS)
def test_a_verb_is_typed_documented_and_returns_a_frozen_dataclass(name: str) -> None:
    verb = getattr(vip, name)
    text = inspect.getdoc(verb) or ""
    parameters = inspect.signature(verb).parameters
    for word in ("Parameters:", "Raises:", *parameters):
        assert word in text, f"{name}: nothing on {word}"
    returned: Any = get_type_hints(verb)["return"]
    if returned is vip.Debugger:
        # A session, not a result.
        return
    for result in get_args(returned) if isinstance(returned, UnionType) else (returned,):
        assert is_dataclass(result)
        assert result.__dataclass_params__.frozen
        assert fields(result)


def test_importing_it_imports_no_room() -> None:
    script = "import sys, vip; print(sorted({'isa', 'rich', 'numpy', 'typer'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "[]\n", done.stderr


def test_names_are_listed_and_others_refused() -> None:
    assert set(vip.__all__) == set(dir(vip))
    with pytest.raises(AttributeError, match="no attribute 'asemble'"):
        vip.asemble  # noqa: B018


def test_assemble(tmp_path: Path) -> None:
    program = vip.assemble("mov r1, #N\nhalt", constants={"N": 3})
    assert len(program.words) == 2
    file = tmp_path / "n.s"
    file.write_text("halt\n" * 3)
    assert len(vip.assemble(file).words) == 3
    with pytest.raises(VipError, match="longer than 2 words"):
        vip.assemble(file, max_words=2)
    with pytest.raises(VipError, match="no instruction"):
        vip.assemble("; nothing")
    with pytest.raises(VipError, match=r"^'n.s' is not assembly; to read a file: Path\('n.s'\)$"):
        vip.assemble("n.s")


def test_one_program_or_unit_needs_no_list() -> None:
    with pytest.raises(VipError, match="no such file, and unknown application 'bpp'"):
        vip.prove("bpp")
    with pytest.raises(VipError, match="unknown unit 'decoder'"):
        vip.synth(SMALL, units="decoder")
    program = vip.assemble(COUNT)
    unmeasured: dict[str, Any] = {
        "check": False,
        "area": False,
        "sizes": vip.Sizes(basis="proved"),
    }
    one, several = (vip.trim(programs, SMALL, **unmeasured) for programs in (program, [program]))
    assert one.cut.trimmed == several.cut.trimmed


def test_results_show_themselves() -> None:
    source = Path(ROOT / "examples" / "sums.s")
    program = vip.assemble(source)
    memory = source.with_suffix(".bin").read_bytes()
    run = vip.run(program, memory=memory)
    ran = vip.cosim(program, memory=memory, on="model")
    job = array_job("none", program, {}, 0, lambda: np.zeros(1, "<i2"), 1)
    lines = [repr(one) for one in (program, run, ran, job, vip.presets(), ran.result.engine)]
    assert lines[0] == "Program 'sums.s': 20 words, 1 label, 5 constants"
    assert lines[1].startswith("ProgramRun 'sums.s': halted, pc 19, 50 instructions")
    assert lines[2].startswith("CosimRun 'sums.s': model, halted, pc 19, 356 cycles")
    assert lines[5].startswith("EngineEnd: halted, pc 19, memory error: no, 356 cycles")
    assert '>state</td><td style="text-align:left">halted<' in ran.result.engine._repr_html_()
    assert max(map(len, lines)) <= 100
    table = run._repr_html_()
    assert '>instructions</td><td style="text-align:right">50</td>' in table
    assert vip.presets()._repr_html_().count("<tr>") > len(PRESETS)
    unsafe = replace(program, source={0: SourceLine("<b>.s", 1, "")})
    assert "&lt;b&gt;.s" in unsafe._repr_html_()


def test_run(tmp_path: Path) -> None:
    program = vip.assemble(COUNT)
    found = vip.run(program, SMALL, memory=bytes([41]), dump=vip.Dump(0, 2), profile=True)
    assert (found.dumped, found.registers[9]) == (b"\x2a\0", 42)
    assert found.profile is not None
    assert found.to_json()["executed"] == dict.fromkeys(
        ("ld.reg[64]", "add.imm", "st.reg[64]", "halt"), 1
    )
    memory = tmp_path / "memory"
    memory.write_bytes(bytes([1]))
    out = tmp_path / "out"
    found = vip.run(program, SMALL, memory=memory, dump=vip.Dump(0, 8, out))
    assert (found.dumped, out.read_bytes()[0]) == (b"", 2)
    shown = Shown()
    found = vip.run(vip.assemble("here: jmp here"), limit=60_000, progress=shown)
    assert (found.outcome.state, found.outcome.executed) == ("running", 60_000)
    assert shown.stages
    end = preset(SMALL).address_bits
    with pytest.raises(DumpError, match=f"within 0 to {1 << end:#x}"):
        vip.run(program, SMALL, dump=vip.Dump((1 << end) - 4, 8))
    with pytest.raises(ConfigurationError, match="one engine is needed"):
        vip.run(program, "vault")


def test_programs_and_memories_have_any_usual_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("count.s").write_text(COUNT)
    numbers = np.array([41], "<u8")
    numbers.tofile("numbers.bin")
    settings: dict[str, Any] = {"dump": (0, 2)}
    for memory in (numbers, numbers.tobytes(), "numbers.bin", Path("numbers.bin")):
        assert vip.run("count.s", SMALL, memory=memory, **settings).dumped == b"\x2a\0"
        ran = vip.cosim("count.s", SMALL, memory=memory, on="model", **settings)
        assert ran.dumped == b"\x2a\0"
        with vip.debug("count.s", SMALL, memory=memory) as debugger:
            debugger.resume()
            assert debugger.registers(9) == {9: 42}
    # Registers and scratchpad do not fill the screen.
    assert len(repr(ran.result)) < 2000
    with pytest.raises(VipError, match=r"vip\.assemble assembles text"):
        vip.run(COUNT)
    with pytest.raises(VipError, match="bytes, an array or a file, not of type list"):
        vip.run("count.s", memory=[1, 2])  # type: ignore[arg-type]
    memory = bytearray(numbers.tobytes())
    assert vip.run("count.s", SMALL, memory=memory, **settings).dumped == b"\x2a\0"
    for array, why in (
        (np.zeros(4), "the machine computes with integers"),
        (np.array([None]), "elements of object"),
        (np.zeros(4, ">i2"), r"little-endian: \.astype\('<i2'\)"),
    ):
        with pytest.raises(VipError, match=why):
            vip.run("count.s", memory=array)
    with pytest.raises(VipError, match=r"a\.npy: a memory image is bytes alone"):
        vip.run("count.s", memory="a.npy")
    with pytest.raises(VipError, match="text or a Path, not of type list"):
        vip.assemble([1, 2])  # type: ignore[arg-type]
    with pytest.raises(VipError, match="a Program or a file, not of type list"):
        vip.run([1, 2])  # type: ignore[arg-type]
    with pytest.raises(VipError, match="a photograph is a file, not of type ndarray"):
        vip.mrf_stereo(array, array)  # type: ignore[arg-type]
    with pytest.raises(VipError, match="on is iss, model, rtl, netlist, not 'sim'"):
        vip.cosim("count.s", on="sim")  # type: ignore[arg-type]


def test_a_compiled_run_is_the_same() -> None:
    program = vip.assemble(COUNT)
    found = vip.run(program, SMALL, memory=bytes([41]), dump=vip.Dump(0, 2))
    other = vip.run(program, SMALL, memory=bytes([41]), dump=vip.Dump(0, 2), compiled=True)
    assert (other.outcome, other.executed, other.registers, other.dumped) == (
        found.outcome,
        found.executed,
        found.registers,
        found.dumped,
    )
    assert (other.hazards, other.saturated) == (found.hazards, found.saturated)
    with pytest.raises(SimulatorError, match="a compiled run has no profile"):
        vip.run(program, SMALL, compiled=True, profile=True)


def test_cosim(tmp_path: Path) -> None:
    file = tmp_path / "count.s"
    file.write_text(COUNT)
    shown = Shown()
    found = vip.cosim(
        file,
        FEW,
        memory=bytes(256) + bytes([9]),
        parameters=256,
        dump=vip.Dump(256, 1),
        behaviour=vip.MemoryBehaviour(latency=60),
        progress=shown,
    )
    assert isinstance(found, vip.CosimRun)
    assert found.comparison is not None
    assert found.comparison.match
    assert found.dumped == b"\n"
    assert found.to_json()["match"] is True
    assert shown.stages
    with pytest.raises(DumpError):
        vip.cosim(file, FEW, dump=vip.Dump(1 << 40, 1))


def test_cosim_bp(tmp_path: Path) -> None:
    scene = vip.stereo_pair(width=8, height=6, labels=4)
    found = vip.cosim_bp("pe", scene, iterations=1)
    assert found.match
    assert found.labels.shape == (6, 8)
    report = found.to_json()
    assert (report["width"], report["height"], report["labels"]) == (8, 6, 4)
    with pytest.raises(VipError, match="known only for a vault"):
        found.plot(tmp_path / "bandwidth.png")


def test_generate(tmp_path: Path) -> None:
    found = vip.generate(TINY, tmp_path / "tiny", memories="macro")
    assert (tmp_path / "tiny" / "rtl" / "pe.v").is_file()
    again = vip.generate(tmp_path / "tiny" / "vip.json", tmp_path / "again")
    assert again.config == found.config == replace(TINY, sram="macro")
    assert again.files == found.files


def test_synth() -> None:
    shown = Shown()
    found = vip.synth(SMALL, target="generic", units=["decode"], progress=shown)
    area = found.areas["generic"].total.values["logic_ge"]
    assert area > 100
    assert found.to_json()["logic_ge"] == area
    assert set(shown.stages) == {"synthesis for generic"}
    with pytest.raises(SynthesisError, match="unknown target or device 'stratix'"):
        vip.synth(SMALL, ["stratix"])
    with pytest.raises(SynthesisError, match="'xc7a35t' can't be placed and routed, only ecp5-25k"):
        vip.synth(SMALL, "xc7a35t")
    with pytest.raises(SynthesisError, match="unknown unit 'cache'"):
        vip.synth(SMALL, units=["cache"])


def test_trim(tmp_path: Path) -> None:
    quick = {"check": False, "area": False}
    runs = [(count).to_bytes(8, "little") for count in (64, 101)]
    subject = vip.subject(vip.assemble(ADD), runs, name="add")
    found = vip.trim([subject], SMALL, output=tmp_path / "out", **quick)
    sizes = {bound.name: bound for bound in found.cut.bounds}
    assert (sizes["max_vl"].size, sizes["max_vl"].basis) == (100, "proved")
    assert sizes["register_width"].basis == "profiled"
    assert found.failure == ""
    assert found.verilog is not None
    assert (tmp_path / "out" / "rtl" / "pe.v").is_file()
    proved = vip.trim([subject], SMALL, sizes=vip.Sizes(basis="proved"), **quick)
    assert all(bound.basis != "profiled" for bound in proved.cut.bounds)
    assert proved.verilog is None
    with pytest.raises(CoverageError, match="never taken"):
        vip.trim([replace(subject, memories=tuple(runs[:1]))], SMALL, **quick)
    with pytest.raises(TrimError, match="so it needs check"):
        vip.trim([subject], SMALL, fit="xc7vx690t", **quick)


def test_trim_runs_both_engines() -> None:
    found = vip.trim([vip.assemble(COUNT)], FEW, area=False)
    assert found.failure == ""
    (checked,) = found.checks
    assert checked.zero_memory
    assert checked.cycles_full == checked.cycles_trimmed
    assert found.to_json()["match"] is True
    with pytest.raises(TrimError, match=r":2: set\.vl r0: 0"):
        vip.trim([vip.assemble("mov r1, #3\nset.vl r0\nhalt")], FEW, area=False)


def test_failure_names_the_first_reason() -> None:
    found = vip.trim([vip.assemble("halt")], SMALL, check=False, area=False)

    class Refuted:
        holds = False

    assert "not proved" in replace(found, proof=Refuted()).failure
    shared = replace(found.cut, full=replace(found.cut.full, scratchpad_banks=16))
    late = TrimCheck(name="a", cycles_full=80, cycles_trimmed=82, different=("cycles",))
    waits = replace(found, cut=shared, checks=(late,), slower=0.01)
    assert waits.failure == (
        "the trimmed engine takes 2.50% more cycles than the full one, 1.00% allowed"
    )
    assert "does not do" in replace(waits, cut=found.cut).failure


def test_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}

    def collect(target: Path, name: str, config: object, **options: Any) -> object:
        options["step"]("area")
        asked.update(name=name, config=config, devices=options["devices"])
        return SimpleNamespace(page=target)

    def draw(found: SimpleNamespace, path: Path) -> None:
        assert found.page.name == "index.html"
        path.write_bytes(path.name.encode())

    monkeypatch.setattr(page, "collect", collect)
    monkeypatch.setattr(page, "FIGURES", {"area": draw})
    monkeypatch.setattr(page, "page", lambda found, figures: repr(figures))
    shown = Shown()
    written = vip.report(SMALL, tmp_path / "page", progress=shown)
    assert written.page.read_text() == repr({"area": b"area.png"})
    assert (tmp_path / "page" / "area.svg").is_file()
    assert asked == {"name": SMALL, "config": preset(SMALL), "devices": ()}
    assert "report" in shown.stages
    with pytest.raises(SynthesisError, match="ecp5-7k"):
        vip.report(SMALL, tmp_path / "page", devices=["ecp5-7k"])


@pytest.mark.slow
def test_timing() -> None:
    found = vip.timing(TINY)
    assert found.corners[0].pins.fmax_mhz > 100
    assert found.to_json()["logic_ge"] == found.logic_ge


@pytest.mark.slow
def test_power() -> None:
    found = vip.power(vip.assemble(COUNT), SMALL, mhz=500)
    assert found.milliwatts > 0
    assert found.to_json()["mw"] == pytest.approx(found.milliwatts, abs=0.01)


@pytest.mark.slow
def test_prove(tmp_path: Path) -> None:
    file = tmp_path / "count.s"
    file.write_text(COUNT)
    found = vip.prove([file], SMALL)
    assert list(found.proofs) == [str(file)]
    assert found.holds
    with pytest.raises(VipError, match="no such file, and unknown application"):
        vip.prove(["sort"])


def test_prove_takes_several_and_their_optional_instructions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vip.proofs, "prove_trimmed", lambda full, trimmed, _: (full, trimmed))
    names = ["max-pooling", "lstm"]
    found: dict[str, Any] = dict(vip.prove(names).proofs)
    assert list(found) == names
    for name, special in zip(names, (False, True), strict=True):
        for engine in found[name]:
            assert ("v.sigmoid[16]" in engine.instructions) == special


def test_no_verb_has_the_name_of_its_module() -> None:
    """The module would hide the verb once it is imported."""
    assert not [
        name for module, names in vip._MODULES.items() for name in names if module == f"vip.{name}"
    ]


def test_presets_have_names_and_data() -> None:
    listed = vip.presets()
    assert listed.cells(SMALL)["machine"] == "engine"
    assert set(listed.areas) == set(PRESETS)


def test_a_job_is_saved_for_the_debugger_and_for_trimming(tmp_path: Path) -> None:
    job = array_job(
        "count",
        vip.assemble(COUNT),
        {0: np.array([41, 0, 0, 0], "<i2")},
        0,
        lambda: np.array([42], "<i2"),
        1,
    )
    folder = tmp_path / "job"
    job.save(folder)
    memory = str(folder / "memory.bin")
    text = (folder / "program.s").read_text()
    assert text.startswith("; count: --memory memory.bin --parameters 0x0\n")
    assert vip.assemble(text).words == job.program.words
    for name in ("program.vip", "program.s"):
        words = [sys.executable, "-m", "vip", "debug", name, "--preset", SMALL]
        done = subprocess.run(
            [*words, "--memory", "memory.bin", "--parameters", "0x0"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            input="continue\nregisters r9\n",
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert "42" in done.stdout
    for contents in (memory, np.fromfile(memory, np.uint8)):
        subject = vip.subject(str(folder / "program.vip"), [contents])
        trimmed = vip.trim([subject], SMALL, check=False, area=False)
        assert "add.imm" in trimmed.cut.trimmed.instructions


def test_a_job_without_memory_is_saved_and_no_name_leaves_the_folder(tmp_path: Path) -> None:
    halt = vip.assemble("halt")
    job = array_job("none", halt, {}, 0, lambda: np.zeros(1, "<i2"), 1)
    (launch,) = job.launches
    job = replace(job, launches=(replace(launch, name="/conv1/Conv"),))
    job.save(tmp_path / "job")
    assert {path.name for path in tmp_path.rglob("*")} == {
        *("job", "memory.bin", "_conv1_Conv.vip", "_conv1_Conv.s")
    }


def test_a_job_that_fills_a_chip_is_not_saved(tmp_path: Path) -> None:
    job = array_job(
        "large",
        vip.assemble("halt"),
        {1 << 30: np.zeros(4, "<i2")},
        0,
        lambda: np.zeros(1, "<i2"),
        1,
    )
    with pytest.raises(VipError, match=r"large: the job uses .* at most 268,435,456"):
        job.save(tmp_path / "job")
    assert not (tmp_path / "job").exists()
