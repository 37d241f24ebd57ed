"""``vip trim`` and ``vip run --profile`` as a user meets them."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

import vip.trimming.runs as verb
from sim_tb.cosim.trim_check import TrimCheck
from soc.generate.presets import preset, read_configuration, write_configuration
from synth.formal.induction import Proof

QUICK = ("--no-check", "--no-area", "-o", "out")
#: Loads as many elements as the memory says; more than 100 it does not.
PROGRAM = """
    ld.reg [64-bit] r6, r5
    mov r7, #100
    blt r7, r6, many
    set.vl r6
    ld.sram [16-bit] r0, r6, r6
    v.v.add [16-bit] r0, r0, r0
many:
    halt
"""
OTHER = "mov r6, #200\nset.vl r6\nv.v.max [8-bit] r0, r0, r0\nhalt\n"


@pytest.fixture(autouse=True)
def programs(vip, tmp_path):
    """a.vip and b.vip; memories few.bin and many.bin for a.vip."""
    for name, text in (("a", PROGRAM), ("b", OTHER)):
        (tmp_path / f"{name}.s").write_text(text)
        assert vip("asm", f"{name}.s")[0] == 0
    for name, count in (("few", 64), ("many", 101), ("none", 0)):
        (tmp_path / f"{name}.bin").write_bytes(count.to_bytes(8, "little"))


@pytest.fixture
def shared(tmp_path):
    """File of an engine whose scratchpad has 16 banks, which share their ports."""
    path = tmp_path / "shared.json"
    write_configuration(replace(preset("pe"), scratchpad_banks=16), path)
    return path


def refused(result, *words):
    code, _, err = result
    assert code == 2, err
    # The first test that runs an engine compiles its simulator, and a line says so.
    lines = [line for line in err.splitlines() if "compiling a simulator" not in line]
    assert len(lines) == 1, err
    assert lines[0].startswith("vip: ")
    for word in words:
        assert word in err


def bounds(path):
    return json.loads(path.read_text())["trim"]["bounds"]


def test_sizes_reasons_and_verilog(vip, tmp_path):
    runs = ("--memory", "few.bin", "--memory", "many.bin")
    extras = ("--why", "v.v.add[16]", "--picture", "types.png", "--json", "trim.json")
    code, out, err = vip("trim", "a.vip", *runs, *QUICK, *extras)
    assert (code, err) == (0, "")
    assert "v.v.add[16] is needed by one word, word 5 (a.s:7)" in out
    assert (tmp_path / "types.png").read_bytes().startswith(b"\x89PNG")
    found = bounds(tmp_path / "trim.json")
    assert (found["max_vl"]["size"], found["max_vl"]["basis"]) == (100, "proved")
    assert (found["register_width"]["size"], found["register_width"]["basis"]) == (20, "profiled")
    assert found["scratchpad_bytes"]["size"] == 256
    assert found["register_width"]["guard"] == "REGISTER_RANGE"
    assert (found["address_bits"]["size"], found["address_bits"]["basis"]) == (12, "proved")
    report = json.loads((tmp_path / "trim.json").read_text())
    assert report["trim"]["needs"]["places"]["set.vl"] == ["word 3 (a.s:5)"]
    assert read_configuration(tmp_path / "out" / "vip.json").max_vl == 100
    about = json.loads((tmp_path / "out" / "vip.json").read_text())["about"]
    assert about in (tmp_path / "out" / "README.md").read_text()
    assert about.startswith("Trimmed to a.vip (launched with parameters 0). A run that needs more")
    assert "register width 20 (REGISTER_RANGE)" in about
    assert vip("generate", "--config", "out/vip.json", "--memories", "fpga", "-o", "fpga")[0] == 0
    assert json.loads((tmp_path / "fpga" / "vip.json").read_text())["about"] == about
    assert about in (tmp_path / "fpga" / "README.md").read_text()


def test_proofs_alone(vip, tmp_path):
    assert vip("run", "a.vip", "--memory", "few.bin", "--profile", "few.json")[0] == 0
    for runs in (("--memory", "few.bin"), ("--profile", "few.json")):
        refused(vip("trim", "a.vip", *runs, *QUICK), "word 2 (a.s:4) is never taken", "--proved")
        refused(vip("trim", "a.vip", *runs, *QUICK, "--proved", "--tight"), "can't be combined")
    for arguments in (
        (),
        ("--memory", "few.bin", "--proved"),
        ("--profile", "few.json", "--proved"),
    ):
        assert vip("trim", "a.vip", *arguments, *QUICK, "--json", "trim.json")[0] == 0
        found = bounds(tmp_path / "trim.json")
        assert all(bound["basis"] != "profiled" for bound in found.values())
        assert found["register_width"]["size"] == 64
    code, out, _ = vip("trim", "a.vip", *QUICK)
    assert code == 0
    assert "memory is all zeros" in out
    remedy = "--constant 0x0:8 or --range 0x0:8 for r6, which word 0 (a.s:2) loads"
    assert f"register width may shrink with {remedy}" in " ".join(out.split())


def test_declared_memory_needs_no_runs_and_no_flag(vip, tmp_path):
    run = ("--memory", "few.bin")
    for declared, words, vl in (
        (("--constant", "0:8"), ["halt", "ld.reg[64]", "ld.sram[16]", "v.v.add[16]"], 64),
        (("--range", "0x0:8=1..90"), ["halt", "ld.reg[64]", "ld.sram[16]", "v.v.add[16]"], 90),
        (("--range", "0:2/16=1..90"), None, None),
        (("--constant", "8:8"), None, None),
    ):
        result = vip("trim", "a.vip", *run, *declared, *QUICK, "--json", "trim.json")
        if vl is None:
            # Another number than the program loads.
            refused(result, "word 2 (a.s:4) is never taken")
            continue
        assert result[0] == 0, result
        found = bounds(tmp_path / "trim.json")
        assert found["register_width"]["basis"] == found["max_vl"]["basis"] == "proved"
        assert (found["max_vl"]["size"], found["register_width"]["size"]) == (vl, 20)
        needs = json.loads((tmp_path / "trim.json").read_text())["trim"]["needs"]["uses"]
        assert needs.keys() >= set(words)


def test_declarations_that_can_not_be(vip):
    run = ("trim", "a.vip", *QUICK, "--memory", "few.bin")
    refused(vip("trim", "a.vip", *QUICK, "--constant", "0:8"), "0x0:8 is declared, but no memory")
    refused(vip(*run, "--constant", "0:"), "--constant 0:", "START:BYTES")
    refused(vip(*run, "--constant", "0:0"), "0x0:0", "at least 1 byte")
    refused(vip(*run, "--constant", f"{1 << 33}:8"), "the memory has 0x200000000 bytes")
    refused(vip(*run, "--constant", "b.vip=0:8"), "b.vip is not one of the programs")
    refused(vip(*run, "--constant", "0:8", "--range", "4:4/32=0..1"), "0x4:4 is declared twice")
    refused(vip(*run, "--range", "0:8=65..90"), "0x0:8=65..90", "has 64 at 0x0")
    refused(vip(*run, "--range", "0:8=9..1"), "bounds must ascend")
    refused(vip(*run, "--range", "4:8=0..9"), "multiples of 8")
    refused(
        vip(*run, "--memory", "many.bin", "--constant", "0:8"),
        "a.vip: 0x0:8 is declared as constant",
        "64 and 101 at 0x0",
    )
    refused(vip("trim", "a.vip", "b.vip", *QUICK, "--constant", "0:8"), "put PROGRAM= before it")
    refused(vip("trim", "bp", *QUICK, "--constant", "0:8"), "bp is an application")


def test_programs_of_a_union_have_their_own_constants(vip, tmp_path):
    """One program twice, with other constants: the engine has the larger size of both."""
    (tmp_path / "c.vip").write_bytes((tmp_path / "a.vip").read_bytes())
    (tmp_path / "less.bin").write_bytes((40).to_bytes(8, "little"))
    declared = ("--constant", "a.vip=0:8", "--constant", "c.vip=0:8")
    for first, second in (("few", "less"), ("less", "few")):
        memories = ("--memory", f"a.vip={first}.bin", "--memory", f"c.vip={second}.bin")
        run = ("a.vip", "c.vip", *memories, *declared)
        assert vip("trim", *run, *QUICK, "--json", "trim.json")[0] == 0
        found = bounds(tmp_path / "trim.json")
        assert (found["max_vl"]["size"], found["max_vl"]["basis"]) == (64, "proved")


def test_slots_bound_what_a_program_reads_of_them(vip, tmp_path):
    """Each slot has a count of its own, as the kernels' parameter blocks."""
    (tmp_path / "own.s").write_text(
        "sll r6, r3, #3\nadd r6, r6, r5\nld.reg [64-bit] r7, r6\nset.vl r7\n"
        "v.v.add [16-bit] r0, r0, r0\nhalt\n"
    )
    (tmp_path / "counts.bin").write_bytes(b"".join(n.to_bytes(8, "little") for n in (8, 40, 99)))
    run = ("trim", "own.s", "--memory", "counts.bin", *QUICK, "--proved", "--json", "trim.json")
    code, out, _ = vip(*run)
    assert code == 0
    assert "may shrink with --slots for r3, which the launch sets" in " ".join(out.split())
    for slots, most in (("2", 40), ("3", 99)):
        assert vip(*run, "--slots", slots, "--constant", "0:24")[0] == 0
        found = bounds(tmp_path / "trim.json")
        assert (found["max_vl"]["size"], found["register_width"]["size"]) == (most, 20)
    refused(vip("trim", "bp", *QUICK, "--slots", "2"), "bp is an application")


def test_constants_that_a_program_overwrites(vip, tmp_path):
    (tmp_path / "own.s").write_text(
        "mov.imm r6, #8\nld.reg [64-bit] r7, r0\nst.reg [32-bit] r6, r7\nhalt\n"
    )
    run = ("trim", "own.s", "--memory", "few.bin", *QUICK)
    assert vip(*run, "--constant", "0:8")[0] == 0
    assert vip(*run, "--constant", "12:4")[0] == 0
    for declared in (("--constant", "0:16"), ("--constant", "11:1"), ("--range", "8:8=0..1")):
        refused(vip(*run, *declared), "word 2 (own.s:3) may store to 0x8 to 0xb", "declared")
    (tmp_path / "flag.s").write_text("st.reg [64-bit] r5, r3\nld.reg [64-bit] r6, r5\nhalt\n")
    run = ("trim", "flag.s", "--memory", "few.bin", *QUICK)
    bounded = "to bound a number that the program stores: --range 0x0:8=LOW..HIGH"
    refused(vip(*run, "--constant", "0:8"), "word 0 (flag.s:1) may store to 0x0 to 0x7", bounded)
    assert vip(*run, "--range", "0:8=0..100")[0] == 0


def test_an_application_needs_no_flag(vip, tmp_path):
    assert vip("trim", "max-pooling", *QUICK, "--json", "trim.json")[0] == 0
    found = bounds(tmp_path / "trim.json")
    assert found["register_width"]["size"] == 20
    assert {bound["basis"] for bound in found.values()} == {"proved", "given"}


def test_profiles_in_files(vip, tmp_path):
    for name in ("few", "many"):
        run = ("--memory", f"{name}.bin", "--profile", f"{name}.json")
        assert vip("run", "a.vip", *run)[0] == 0
    both = ("--profile", "few.json", "--profile", "many.json")
    assert vip("trim", "a.vip", *both, *QUICK, "--json", "trim.json")[0] == 0
    assert bounds(tmp_path / "trim.json")["register_width"]["basis"] == "profiled"
    refused(vip("trim", "b.vip", *both, *QUICK), "none of the programs")


def test_runs_that_do_not_go_everywhere(vip, tmp_path):
    run = ("--memory", "few.bin")
    refused(
        vip("trim", "a.vip", *run, *QUICK),
        "declare what is constant: --constant 0x0:8 or --range 0x0:8 for r6",
        "word 2 (a.s:4) is never taken",
        "--proved",
        "--allow-uncovered",
    )
    assert not (tmp_path / "out").exists()
    assert vip("trim", "a.vip", *run, *QUICK, "--allow-uncovered")[0] == 0


def test_several_programs(vip, tmp_path):
    few, many = "a.vip=few.bin", "a.vip=many.bin"
    runs = ("--memory", few, "--memory", many)
    arguments = ("a.vip", "b.vip", *runs, *QUICK, "--picture", "f.png", "--json", "trim.json")
    assert vip("trim", *arguments)[0] == 0
    found = bounds(tmp_path / "trim.json")
    assert found["max_vl"]["value"] == 200
    assert found["max_vl"]["why"] == "b.vip: word 1 (b.s:2)"
    refused(vip("trim", "a.vip", "b.vip", "--memory", "few.bin", *QUICK), "give PROGRAM=FILE")
    refused(vip("trim", "a.vip", "b.vip", "--memory", "c=few.bin", *QUICK), "c is not one of")
    refused(vip("trim", "a.vip", "a.vip", *QUICK), "given twice")
    refused(vip("trim", "a.vip", "b.vip", "--rom", *QUICK), "--rom bakes in one program")


def test_a_profile_of_another_program_is_refused_before_anything_runs(vip, monkeypatch):
    assert vip("run", "b.vip", "--profile", "b.profile")[0] == 0
    monkeypatch.setattr(verb, "profile_run", None)
    wrong = vip("trim", "a.vip", "--profile", "b.profile", "--no-area", "-o", "out")
    refused(wrong, "a profile belongs to none of the programs")


def test_bad_input(vip, tmp_path):
    text = (tmp_path / "a.vip").read_text()
    (tmp_path / "old.vip").write_text(text.replace("isa=1", "isa=9"))
    refused(vip("trim", "old.vip", *QUICK), "old.vip", "version 9", "this is 1")
    refused(vip("trim", "a.vip", "old.vip", *QUICK), "old.vip", "version 9")
    refused(vip("trim", "nothing.vip", *QUICK), "nothing.vip")
    refused(vip("trim", "a.vip", "--memory", "nothing.bin", *QUICK), "nothing.bin")
    refused(vip("trim", "a.vip", "--profile", "few.bin", *QUICK), "few.bin", "not a profile")
    refused(vip("trim", "a.vip", "--memory", "none.bin", *QUICK), "a.s:5: set.vl r6: 0")
    refused(vip("trim", "a.vip", "--address-bits", "40", *QUICK), "--address-bits 40", "has 33")
    code, _, error = vip("trim", "a.vip", "--address-bits", "5", *QUICK)
    assert code == 2
    assert "--address-bits" in error
    refused(vip("trim", "a.vip", "--why", "fly", *QUICK), "no instruction or unit 'fly'")
    (tmp_path / "high.s").write_text("mov r40, #1\nhalt\n")
    refused(
        vip("trim", "a.vip", "high.s", "--preset", "pe-small", *QUICK), "high.s: ", "r40", "r31"
    )
    assert not (tmp_path / "out").exists()


def test_engine_that_does_something_else_is_not_written(vip, tmp_path, monkeypatch):
    check = TrimCheck(name="a.vip", cycles_full=10, cycles_trimmed=10, different=("memory",))
    monkeypatch.setattr(verb, "check_trimmed", lambda *_, **__: check)
    options = ("--preset", "pe-small", "--memory", "few.bin", "--no-area", "-o", "out")
    refused(
        vip("trim", "a.vip", "--proved", *options, "--json", "trim.json"),
        "does not do what the full one does",
    )
    assert json.loads((tmp_path / "trim.json").read_text())["different"] == ["memory"]
    assert not (tmp_path / "out").exists()


def test_fewer_cycles_are_told(vip, monkeypatch):
    check = TrimCheck(name="a.vip", cycles_full=10, cycles_trimmed=9)
    monkeypatch.setattr(
        verb, "measure", lambda launch, *_, **__: SimpleNamespace(launch=launch, in_flight=None)
    )
    monkeypatch.setattr(verb, "check_trimmed", lambda *_, **__: check)
    written = SimpleNamespace(modules=())
    monkeypatch.setattr("vip.trimming.trim.write_verilog", lambda *_, **__: written)
    code, out, _ = vip("trim", "b.vip", "--preset", "pe-small", "--no-area", "-o", "out")
    assert code == 0
    assert "the trimmed one takes 10.00% fewer cycles" in " ".join(out.split())


def test_engine_with_shared_ports_is_not_proved(vip, shared, monkeypatch):
    # Refused before the work.
    monkeypatch.setattr("vip.trimming.trim.EngineWork", None)
    words = ("--config", shared)
    refused(vip("trim", "a.vip", *words, "--prove", "-o", "out"), str(shared), "banks must be 8")
    refused(vip("prove", "a.vip", *words), str(shared), "banks must be 8")


@pytest.mark.slow
def test_engine_with_shared_ports_is_trimmed_in_other_cycles(vip, shared, tmp_path):
    words = ("trim", "matrix-transposition", "--config", shared, "-o", "out")
    refused(vip(*words), "more cycles than the full one, 0.00% allowed; --slower PERCENT allows")
    assert vip(*words, "--slower", "5", "--json", "trim.json")[0] == 0
    trimmed = read_configuration(tmp_path / "out" / "vip.json")
    assert (trimmed.scratchpad_banks, trimmed.shared_ports) == (16, True)
    assert json.loads((tmp_path / "trim.json").read_text())["areas"].keys() == {"generic"}
    refused(vip(*words, "--preset", "pe"), "--config and --preset can't be combined")


@pytest.mark.slow
def test_engine_with_shared_ports_is_generated_for_no_fpga(vip, shared, tmp_path):
    words = ("generate", "--config", shared, "-o", "out", "--memories")
    assert vip(*words, "macro")[0] == 0
    assert (tmp_path / "out" / "rtl" / "sram_256x8_2rw.v").exists()
    refused(vip(*words, "fpga"), "scratchpad_banks must be 8 in an FPGA")
    refused(vip("synth", "--config", shared, "--target", "xc7"), "must be 8 in an FPGA")


@pytest.mark.parametrize("holds", [True, False])
def test_engine_that_is_not_proved_is_not_written(vip, tmp_path, monkeypatch, holds):
    failures = () if holds else ((("engine: registers",), ("issue.held",)),)
    proof = Proof(
        goals=3, failures=failures, assumptions=(), unpaired=(), left_out=("counters",), seconds=1.0
    )
    asked = []
    monkeypatch.setattr(
        "vip.trimming.trim.prove_trimmed", lambda *engines: asked.append(engines[:2]) or proof
    )
    result = vip("trim", "a.vip", *QUICK, "--prove", "--json", "trim.json")
    report = json.loads((tmp_path / "trim.json").read_text())
    assert report["proof"]["left_out"] == ["counters"]
    assert [len(full.instructions) > len(trimmed.instructions) for full, trimmed in asked] == [True]
    if holds:
        assert result[0] == 0, result
    else:
        refused(result, "is not proved")
    assert (tmp_path / "out").exists() == holds
