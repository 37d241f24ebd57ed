"""The command line as a user meets it: results, and what it says to bad input."""

import json

import numpy as np
import pytest
from skimage.io import imsave

import vip as api
from microkernels.data.stereo import stereo_scene
from support.errors import VipError

PROGRAM = """
.equ COUNT, 4
    mov r1, #COUNT
loop:
    sub r1, r1, #1
    bne r1, r0, loop
    mov r2, #4096
    st.reg [64-bit] r2, r5
    halt
"""


def _refused(result, *words):
    """Exit code 2 and one clear line; with a mistake in assembly, its line and a caret too."""
    code, _, err = result
    assert code == 2, err
    lines = err.splitlines()
    assert lines[0].startswith("vip: ")
    assert len(lines) == (3 if lines[-1].strip() == "^" else 1), err
    for word in words:
        assert word in err
    return err


def test_assemble_disassemble_run(vip, tmp_path):
    (tmp_path / "a.s").write_text(PROGRAM)
    assert vip("asm", "a.s", "--listing", "a.lst")[0] == 0
    assert "bne r1, r0, loop" in (tmp_path / "a.lst").read_text()
    code, text, _ = vip("disasm", "a.vip")
    assert code == 0
    (tmp_path / "b.s").write_text(text)
    assert vip("asm", "b.s", "-o", "b.vip", "--json", "b.json")[0] == 0
    assert json.loads((tmp_path / "b.json").read_text())["words"] == 6
    result = vip(
        "run", "b.vip", "--parameters", "77", "--dump", "4096", "8", "out.bin", "--json", "r.json"
    )
    assert result[0] == 0
    assert int.from_bytes((tmp_path / "out.bin").read_bytes(), "little") == 77
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["state"] == "halted"
    assert report["executed"]["bne"] == 4
    assert report["provenance"]["tools"]["numpy"]


def test_constants_from_the_command_line(vip, tmp_path):
    (tmp_path / "a.s").write_text("mov r1, #N\nhalt\n")
    assert vip("asm", "a.s", "-D", "N=0x10")[0] == 0
    code, text, _ = vip("disasm", "a.vip")
    assert code == 0
    assert "#16" in text
    _refused(vip("asm", "a.s", "-D", "N"), "--define N", "NAME=NUMBER")


def test_assembly_error_points_at_the_place(vip, tmp_path):
    (tmp_path / "bad.s").write_text("    halt\n    addd r1, r2, r3\n")
    err = _refused(vip("asm", "bad.s"), "bad.s:2:5", "addd", "^")
    assert "    addd r1, r2, r3" in err
    assert not (tmp_path / "bad.vip").exists()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[: len(text) // 2], ("a.vip",)),
        (lambda text: text.replace("isa=1", "isa=9"), ("a.vip", "9")),
        (lambda text: "not a program", ("a.vip",)),
    ],
)
def test_damaged_program_file(vip, tmp_path, damage, words):
    (tmp_path / "a.s").write_text(PROGRAM)
    vip("asm", "a.s")
    text = (tmp_path / "a.vip").read_text()
    damaged = damage(text)
    assert damaged != text
    (tmp_path / "a.vip").write_text(damaged)
    _refused(vip("run", "a.vip"), *words)
    _refused(vip("disasm", "a.vip", "-o", "a2.s"), *words)
    assert not (tmp_path / "a2.s").exists()


def test_missing_files(vip):
    _refused(vip("asm", "none.s"), "none.s")
    _refused(vip("run", "none.vip"), "none.vip")


def test_fault_and_limit_are_reported(vip, tmp_path):
    (tmp_path / "fault.s").write_text("mov r1, #4096\nld.sram [64-bit] r1, r0, r1\nhalt\n")
    _refused(vip("run", "fault.s"), "fault.s:2: ld.sram", "r1 is 4,096")
    (tmp_path / "loop.s").write_text("here: jmp here\n")
    _refused(
        vip("run", "loop.s", "--limit", "1000"),
        "loop.s:1: jmp here",
        "still running after 1,000",
        "a higher limit",
    )


def test_images_of_different_sizes(tmp_path):
    for name, width in (("left.png", 40), ("right.png", 41)):
        imsave(tmp_path / name, np.zeros((30, width, 3), np.uint8), check_contrast=False)
    with pytest.raises(VipError, match=r"equal size.*40 x 30.*41 x 30"):
        api.mrf_stereo(tmp_path / "left.png", tmp_path / "right.png")


def test_a_grid_may_be_larger_than_the_photographs():
    noise = np.random.default_rng(1).integers(0, 256, (8, 12, 3)).astype(np.uint8)
    scene = stereo_scene(noise, noise, disparities=(0, 5), width=20, height=15, labels=4)
    run = api.cosim_bp("pe", scene, iterations=1, on="model")
    assert (run.to_json()["width"], run.to_json()["height"], run.match) == (20, 15, True)


def test_more_labels_than_fit(vip, tmp_path):
    # The disparities allow more than the scratchpad does.
    _refused(vip("cosim", "bp", "--labels", "53", "--json", "out.json"), "53", "scratchpad")
    assert not (tmp_path / "out.json").exists()


def test_unknown_preset(vip, tmp_path):
    for arguments in (("cosim", "bp"), ("generate", "-o", "out"), ("synth",)):
        _refused(vip(*arguments, "--preset", "nope"), "nope", "pe")
    assert not (tmp_path / "out").exists()


def test_missing_compiler(vip, monkeypatch, tmp_path):
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path / "build"))
    monkeypatch.setenv("PATH", str(tmp_path))
    _refused(vip("cosim", "bp", "--width", "4", "--height", "4"), "compiler")


def test_generate_refuses_a_folder_with_other_things(vip, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    _refused(vip("generate", "-o", "mine"), "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    "command", ["asm", "disasm", "run", "cosim bp", "cosim program", "generate", "synth", "trim"]
)
def test_help_shows_an_example(vip, command):
    code, out, _ = vip(*command.split(), "--help")
    assert code == 0
    assert f"Example: vip {command}" in out


def test_unknown_unit_and_target(vip, tmp_path):
    _refused(vip("synth", "nosuch", "--target", "generic", "--json", "out.json"), "nosuch", "arc")
    _refused(vip("synth", "--target", "nosuch", "--json", "out.json"), "nosuch", "xc7")
    assert not (tmp_path / "out.json").exists()


def test_a_dump_is_shown_as_wide_as_the_stores(vip, tmp_path):
    (tmp_path / "s.s").write_text("mov r1, #-2\nst.reg [16-bit] r0, r1\nmemfence\nhalt\n")
    code, out, _ = vip("run", "s.s", "--dump", 0, 200, "out.bin")
    assert code == 0
    lines = out[out.index("out.bin: 200 bytes, as 16-bit numbers:") :].splitlines()
    assert lines[1].split() == ["0x0", "-2", *["0"] * 7]
    assert [line.split()[0] for line in lines[1:9]] == [f"{at:#x}" for at in range(0, 128, 16)]
    assert lines[9].split() == ["...", "72", "more", "bytes", "in", "the", "file"]
