"""Depth of a pair with its error, on the golden model and on a vault's Verilog."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from bench.stereo import measure_stereo
from microkernels.data.stereo import StereoError, motorcycle
from soc.generate.presets import tile_preset
from vip.cli.app import main

SMALL = tile_preset("vault-small")


def test_a_vaults_verilog_finds_what_the_golden_model_does() -> None:
    scene = motorcycle(16, 12, 8)
    figures, chosen = measure_stereo(scene, SMALL, coarse_iterations=1, iterations=1, verilog=True)
    golden, expected = measure_stereo(
        scene, SMALL, coarse_iterations=1, iterations=1, verilog=False
    )
    assert figures.match
    assert (chosen == expected).all()
    assert list(figures.cycles) == ["construct", "coarse", "copy", "fine"]
    assert replace(figures, cycles={}) == golden
    assert 0 < golden.percent_wrong < 30
    assert golden.mean_error < 10


def test_more_iterations_lower_the_energy_and_without_truth_there_is_no_error() -> None:
    scene = motorcycle(40, 30, 16)
    energies = [
        measure_stereo(scene, SMALL, coarse_iterations=count, iterations=count, verilog=False)[
            0
        ].energy
        for count in (0, 1, 3)
    ]
    assert energies[0] > energies[1] > energies[2]
    with pytest.raises(StereoError, match="true disparity of no pixel is known"):
        measure_stereo(
            replace(scene, truth=None), SMALL, coarse_iterations=0, iterations=0, verilog=False
        )


def test_the_command_writes_figures_and_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, report = tmp_path / "stereo.png", tmp_path / "stereo.json"
    arguments = ["bench", "stereo", "--width", "30", "--height", "20", "--labels", "8"]
    arguments += ["--image", str(image), "--json", str(report)]
    monkeypatch.setattr("sys.argv", ["vip", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    content = json.loads(report.read_text())
    assert (content["width"], content["cycles"]) == (30, {})
    with Image.open(image) as picture:
        assert picture.width > picture.height
