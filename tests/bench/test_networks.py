"""``vip bench networks``: the table, the JSON, and what it refuses."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from bench import networks as measured
from bench.harness.runs import LaunchRun
from bench.networks import BatchRun
from pe.interface import PeCounter
from support.errors import VipError
from vip.cli.app import app

COUNTERS = dict.fromkeys(PeCounter.__members__, 100) | {"CYCLES": 1000}
MOVES = LaunchRun(
    cycles=1000,
    tck_ns=0.8,
    counters=COUNTERS,
    gbs=1.0,
    simulated=1500,
    seconds=1.0,
    processors=1,
    host_cycles=250,
    work={"read_bytes": 1 << 20, "written_bytes": 1 << 19, "products": 10**9, "flits": 0},
)
JOB: Any = SimpleNamespace(
    vaults=4,
    plan=SimpleNamespace(batch=1),
    expected=np.zeros(1234),
    step_of=lambda launch: ("conv", launch == "conv inputs"),
)
RUN = BatchRun(job=JOB, runs={"conv inputs": MOVES, "conv": replace(MOVES, cycles=9750)})


@pytest.fixture(autouse=True)
def no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(name: str, config: object, **_: object) -> BatchRun:
        assert name == "little"
        return RUN

    monkeypatch.setattr(measured, "measure_network", measure)


def test_it_has_moves_and_computation_of_each_layer(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    image = tmp_path / "run.svg"
    arguments = ["bench", "networks", "--only", "little", "--preset", "tiny"]
    arguments += ["--json", str(file), "--picture", str(image)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    results = json.loads(file.read_text())["experiments"]["networks"]["results"]
    assert results["little_conv_moves_ms"]["value"] == pytest.approx(0.001)
    assert results["little_conv_ms"]["value"] == pytest.approx(0.008)
    assert results["little_ms"]["value"] == pytest.approx(0.009)
    assert results["little_activations"]["value"] == 1234
    # Of both launches; engines of the preset have no power data, those of the thesis have.
    assert results["little_conv_read_mib"]["value"] == results["little_read_mib"]["value"] == 2
    assert results["little_written_mib"]["value"] == 1
    assert not any(name.endswith("_mj") for name in results)
    assert "no energy: power is recorded" in result.output
    arguments[5] = "thesis"
    result = CliRunner().invoke(app, arguments)
    results = json.loads(file.read_text())["experiments"]["networks"]["results"]
    assert results["little_dram_mj"]["value"] == pytest.approx(3 * 2**20 * 80e-9)
    assert results["little_engines_mj"]["value"] > 10
    assert "<svg" in image.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--preset", "tiny"], "--preset, --batch, --on and --picture go with --only"),
        (["--only", "nosuch"], "--only: unknown network 'nosuch'; there are: vgg16, vgg19, little"),
        (
            ["--only", "little", "--preset", "pe"],
            "preset 'pe' is one engine; a chip is needed here",
        ),
    ],
)
def test_it_refuses_what_it_does_not_know(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["bench", "networks", *arguments])
    assert isinstance(result.exception, VipError)
    assert message in str(result.exception)


def test_a_network_that_does_not_fit_is_refused_before_its_weights_are_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from microkernels.common.errors import KernelError
    from soc.generate.presets import chip_preset

    def none(*_: object) -> None:
        raise AssertionError("weights are drawn")

    monkeypatch.setattr(measured, "usual_network_weights", none)
    with pytest.raises(KernelError, match="more than it has"):
        measured.network_of("vgg16", chip_preset("tiny"))
