"""Depth of a pair with its error, on the golden model and on a vault's Verilog."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from bench import stereo as experiments
from bench.stereo import stereo


def figures(**options: int | bool) -> dict[str, float]:
    return {item.name: item.value for item in stereo(**options)}


def test_a_vaults_verilog_finds_what_the_golden_model_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "_TILE", "vault-small")
    options = {"width": 16, "height": 12, "count": 8, "coarse": 1, "iterations": 1}
    verilog, golden = figures(**options, verilog=True), figures(**options)
    phases = [name for name in verilog if name not in golden]
    assert phases == [
        *(f"cycles_{phase}" for phase in ("construct", "coarse", "copy", "fine")),
        "cycles",
    ]
    assert verilog["cycles"] == sum(verilog[name] for name in phases[:-1])
    assert 0 < golden["16x12_1_1_wrong"] == verilog["16x12_1_1_wrong"] < 30
    assert golden["16x12_1_1_mean_error"] < 10


def test_the_command_writes_figures_and_a_picture(
    tmp_path: Path, vip: Callable[..., tuple[int, str, str]]
) -> None:
    arguments = ["bench", "stereo", "--width", "30", "--height", "20", "--labels", "8"]
    code, _, err = vip(*arguments, "--picture", "stereo.png", "--json", "stereo.json")
    assert code == 0, err
    report = json.loads((tmp_path / "stereo.json").read_text())
    results = report["experiments"]["stereo"]["results"]
    assert set(results) == {"30x20_5_1_wrong", "30x20_5_1_mean_error"}
    with Image.open(tmp_path / "stereo.png") as picture:
        assert picture.width > picture.height
