"""``vip bench networks``: the table, the JSON, and what it refuses."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.networks import NetworkRun, StepRun
from sim_tb.measure import networks as measured
from support.errors import VipError
from vip.cli.app import app

STEP = StepRun(
    name="conv inputs",
    layer="conv",
    moves=True,
    cycles=1000,
    tck_ns=0.8,
    host_cycles=250,
    vector_busy=0.0,
    waits=0.5,
    gbs=1.0,
    remote=0.25,
)
RUN = NetworkRun(
    name="little",
    batch=1,
    vaults=4,
    steps=(
        STEP,
        StepRun(**{**STEP.__dict__, "name": "conv", "moves": False, "cycles": 9750}),
    ),
    activations=1234,
    operations=9,
)


@pytest.fixture(autouse=True)
def no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(name: str, config: object, **_: object) -> NetworkRun:
        assert name == "little"
        return RUN

    from vip.cli.commands.bench import networks as bench_networks

    monkeypatch.setattr(bench_networks, "measure_network", measure)


def test_it_shows_moves_and_computation_of_each_layer(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    plot = tmp_path / "run.svg"
    arguments = ["bench", "networks", "--json", str(file), "--plot", str(plot)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "0.0010" in result.output
    assert "0.0080" in result.output
    assert "0.0090 together" in result.output
    assert "1,234 activations" in result.output
    content = json.loads(file.read_text())
    assert content["steps"][0]["layer"] == "conv"
    assert content["configuration"]
    assert "<svg" in plot.read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--name", "nosuch"], "--name nosuch: there are vgg16, little"),
        (["--preset", "pe"], "preset 'pe' is one engine; a chip is needed here"),
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
    with pytest.raises(KernelError, match="more than they have"):
        measured.network_of("vgg16", chip_preset("tiny"))
