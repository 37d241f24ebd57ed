"""Typical mistakes, with the whole message of each: the place, the mistake, the remedy."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
_SOURCES = {
    "unal.s": "mov r1, #3\nld.reg [64-bit] r9, r1\nhalt\n",
    "nohalt.s": "mov r1, #3\nadd r1, r1, r1\n",
    "loop.s": "again:\n    jmp again\n",
    "far.s": "li r1, #0x400000000\nld.reg [64-bit] r9, r1\nhalt\n",
    "loop2.s": "loop add r1, r1, r1\nhalt\n",
    "sp.s": "li r1, #4096\nmov r2, #8\nset.vl r2\nld.sram [16-bit] r1, r0, r2\nv.drain\nhalt\n",
    "sig.s": "mov r1, #8\nv.sigmoid [16-bit] r1, r1\nhalt\n",
    "offset.s": "ld.reg [64-bit] r1, 0(r2)\nhalt\n",
    "file": "x",
    "cut.json": '{"kind": "engine", ',
    "typo.json": '{"scratchpad_byte": 4096}',
    "typo.toml": '[sweep]\npreset = "pe"\n',
    "model.onnx": "not a model",
}
_IMAGES = {"left.png": (32, 24), "right.png": (30, 24)}

TEXT = (Path(__file__).parent / "mistakes.txt").read_text()
MISTAKES = dict(re.findall(r"^\$ vip (.*)\n((?:(?!\$ vip ).*\n)*)", TEXT, re.MULTILINE))


@pytest.fixture
def folder(vip, tmp_path: Path) -> set[str]:
    """Names of the files that a beginner has."""
    Image = pytest.importorskip("PIL.Image")
    for name, text in _SOURCES.items():
        (tmp_path / name).write_text(text)
    for name, size in _IMAGES.items():
        Image.new("L", size, 7).save(tmp_path / name)
    (tmp_path / "big.bin").write_bytes(bytes(17 << 20))
    np.save(tmp_path / "data.npy", np.zeros((2, 3, 4)))
    for name in ("sums.s", "sums.bin", "vaults.toml"):
        (tmp_path / name).write_bytes((ROOT / "examples" / name).read_bytes())
    return {path.name for path in tmp_path.iterdir()}


def test_each_is_tried_once() -> None:
    assert len(MISTAKES) == TEXT.count("$ vip ") > 100


@pytest.mark.parametrize("command", MISTAKES)
def test_the_message_helps(vip, tmp_path: Path, folder: set[str], command: str) -> None:
    code, _, err = vip(*shlex.split(command))
    assert err.rstrip("\n") == MISTAKES[command].rstrip("\n")
    assert code == 2
    assert {path.name for path in tmp_path.iterdir()} == folder, "nothing half-written is left"
