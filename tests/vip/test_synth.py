"""Synthesis, power and reports from the command line: bad input, interruption, repetition."""

import json
import re
from dataclasses import replace

import pytest

import synth.physical.asic
import synth.physical.devices
import synth.physical.yosys
import vip.synthesis.power as synthesis_power
from support.errors import VipError


def _refused(result, *words):
    code, _, err = result
    assert code == 2, err
    assert re.fullmatch(r"vip: [^\n]+\n", err)
    for word in words:
        assert word in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("synth", "cache"), ("unknown unit 'cache'", "there are: ", "fetch")),
        (("synth", "--target", "stratix"), ("'stratix'", "generic", "ecp5")),
        (("synth", "--device", "ecp5-7k"), ("'ecp5-7k'", "ecp5-25k")),
        (("synth", "--target", "liberty:none.lib"), ("none.lib", "No such file")),
        (("synth", "--target", "liberty:bad.lib"), ("bad.lib: line 2:", "expected")),
        (("synth", "--json", "none/x.json"), ("none/x.json", "no folder")),
        (("timing", "--corner", "none.lib"), ("none.lib", "No such file")),
        (("timing", "--mhz", "0"), ("'--mhz'", "must be at least 1")),
        (("timing", "--target", "xc7"), ("'xc7'", "no standard cells", "nangate45")),
        (("layout", "--target", "liberty:bad.lib"), ("LEF files", "need each other")),
        (("layout", "--lef", "none.lef"), ("none.lef", "No such file")),
        (("layout", "--density", "2"), ("density", "at most 1, not 2")),
        (("layout", "--unit", "alu"), ("unknown unit", "alu")),
        (("layout", "--wire-ff", "nan"), ("--wire-ff", "at most 100")),
        (("layout", "--picture", "a.gif"), ("a.gif", ".png or .svg")),
        (("layout", "--beside", "none.json"), ("none.json", "No such file")),
        (("power", "none.s"), ("none.s", "No such file")),
        (("report", "-o", "there", "--device", "ecp5-7k"), ("'ecp5-7k'", "ecp5-25k")),
        (("report", "-o", "bad.lib"), ("bad.lib", "is not a folder")),
    ],
)
def test_bad_input_is_one_line(vip, tmp_path, arguments, words):
    (tmp_path / "bad.lib").write_text("library (a) {\n cell b { } }\n")
    command, *others = arguments
    _refused(vip(command, *others, "--preset", "pe-small"), *words)


def test_power_needs_cells_with_energies(vip, tmp_path):
    (tmp_path / "halt.s").write_text("halt\n")
    small = ("--preset", "pe-small", "halt.s")
    _refused(vip("power", *small, "--target", "generic"), "'generic'", "nangate45")


def test_a_design_that_does_not_fit_says_by_how_much(vip, tmp_path, monkeypatch):
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path / "build"))
    device = synth.physical.devices.DEVICES["ecp5-25k"]
    small = {
        **synth.physical.devices.DEVICES,
        device.name: replace(device, capacity={"ffs": 20, "brams": 0}),
    }
    monkeypatch.setattr(synth.physical.devices, "DEVICES", small)
    result = vip("synth", "fetch", "--preset", "pe-small", "--device", device.name)
    _refused(result, "fetch on ecp5-25k", "1 brams where there are 0 (1 too many)", "too many")


def test_an_interrupted_run_keeps_what_was_finished(vip, tmp_path, monkeypatch):
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path / "build"))
    done: list[str] = []
    original = synth.physical.yosys.run_yosys

    def interrupted(commands, *, purpose, **options):
        if len(done) == 1:
            raise KeyboardInterrupt
        done.append(purpose)
        return original(commands, purpose=purpose, **options)

    arguments = ("synth", "fetch", "decode", "--preset", "pe-small", "--target", "generic")
    arguments += ("--jobs", "1", "--json", "area.json")
    monkeypatch.setattr(synth.physical.yosys, "run_yosys", interrupted)
    assert vip(*arguments)[0] == 130
    assert not (tmp_path / "area.json").exists()
    assert len(done) == 1
    monkeypatch.setattr(
        synth.physical.yosys,
        "run_yosys",
        lambda *a, purpose, **o: (done.append(purpose), original(*a, purpose=purpose, **o))[1],
    )
    assert vip(*arguments)[0] == 0
    assert sorted(done) == [f"synthesis of {unit} for generic" for unit in ("decode", "fetch")]
    report = json.loads((tmp_path / "area.json").read_text())
    always = ("logic_ge", "area_um2", "luts", "ffs", "dsps", "brams", "fmax_mhz")
    assert report["table_7_4_um2"]["Fetch"]["ours"] == report["units"]["fetch"]["area_um2"]
    for values in (report, report["units"]["fetch"]):
        assert [name for name in always if name not in values] == []
        assert values["logic_ge"] > 0
        assert values["luts"] is None


def _measured(vip, tmp_path, monkeypatch, folder, *arguments):
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path / folder))
    code, _, err = vip(*arguments, "--json", f"{folder}.json")
    assert code == 0, err
    report = json.loads((tmp_path / f"{folder}.json").read_text())
    del report["provenance"]
    return report


def test_two_runs_give_the_same_numbers(vip, tmp_path, monkeypatch):
    recipes = synth.physical.asic._RECIPES[:1]
    monkeypatch.setattr(synth.physical.asic, "_RECIPES", recipes)
    arguments = ("synth", "decode", "vector_control", "--preset", "pe-small")
    arguments += ("--target", "generic", "--target", "nangate45")
    first, second = (
        _measured(vip, tmp_path, monkeypatch, name, *arguments) for name in ("one", "two")
    )
    assert first == second
    assert first["units"]["vector_control"]["fmax_mhz"] > 100


def test_power_of_a_program_with_its_memory(vip, tmp_path, monkeypatch):
    """The engine starts with the bytes of the file; kernels by name have their own."""
    contents = bytes(range(1, 200))
    (tmp_path / "image.bin").write_bytes(contents)
    (tmp_path / "own.s").write_text("halt\n")
    started = []

    def stop(program, memory, config, max_cycles, *, parameters):
        started.append((memory.read(0, 201), parameters))
        raise VipError("seen")

    monkeypatch.setattr(synthesis_power, "record_program", stop)
    options = ("--preset", "pe-small", "--memory", "image.bin")
    assert vip("power", "own.s", *options, "--parameters", "0x40")[2] == "vip: seen\n"
    assert vip("power", "own.s", *options[:2])[2] == "vip: seen\n"
    assert started == [(contents + bytes(2), 64), (bytes(201), 0)]
    for more in (options[2:], ("--parameters", "64")):
        _refused(vip("power", "bp", *more), "bp has its own memory", "for programs")


@pytest.mark.slow
def test_power_of_a_program_and_again(vip, tmp_path, monkeypatch):
    lines = ["mov r1, #64", "set.vl r1", "mov r2, #512", "mov r3, #0", "mov r4, #200", "again:"]
    lines += ["v.v.add [16-bit] r2, r3, r3", "sub r4, r4, #1", "bne r4, r0, again", "halt"]
    (tmp_path / "adds.s").write_text("\n".join(lines) + "\n")
    arguments = ("power", "adds.s", "--preset", "pe-small")
    first, second = (
        _measured(vip, tmp_path, monkeypatch, name, *arguments) for name in ("one", "two")
    )
    assert first == second
    units = {row["unit"]: row for row in first["units"]}
    assert first["mw"] == pytest.approx(sum(row["mw"] for row in units.values()), abs=0.01)
    # Three accesses of eight banks in most cycles.
    assert max(units, key=lambda unit: units[unit]["memories_mw"]) == "scratchpad"
