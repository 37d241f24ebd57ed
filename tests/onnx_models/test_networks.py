"""Whole networks with seeded weights, and layers of large ones, on every machine."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import vip
from microkernels.data.models.__main__ import main
from microkernels.data.models.collection import inputs_of, make, names
from microkernels.data.models.small import SMALL

#: Largest error of the outputs, of their magnitude.
ERRORS = {
    "resnet8": 1e-3,
    "dscnn": 2e-3,
    "mobilenet_v1": 1e-3,
    "autoencoder": 3e-3,
    "mobilenet_v2": 3e-2,
}


@pytest.fixture(autouse=True)
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timing model waits on all processors that it may use."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.slow) if name == "mobilenet_v2" else name
        for name in SMALL
    ],
)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the network's name with the compiled network."""
    name = request.param
    folder = tmp_path_factory.mktemp("networks")
    made = make(name)
    onnx.save(made, folder / f"{name}.onnx")
    (held,) = inputs_of(name, made).values()
    few = held[:12] if held.ndim == 4 else held
    vip.compile_model(folder / f"{name}.onnx", {"x": few}, folder / name)
    return folder / name


def given(compiled: Path, images: int) -> dict[str, np.ndarray]:
    made = onnx.load(compiled.with_suffix(".onnx"))
    return {key: held[:images] for key, held in inputs_of(compiled.name, made, seed=9).items()}


def test_errors_are_small(compiled: Path) -> None:
    assert vip.check_model(compiled.with_suffix(".onnx")).supported
    found = vip.evaluate_model(compiled, given(compiled, 8))
    assert found.error <= ERRORS[compiled.name]


@pytest.mark.parametrize("on", ["iss", "model", pytest.param("rtl", marks=pytest.mark.slow)])
def test_machines_agree(compiled: Path, on: str) -> None:
    x = given(compiled, 1)
    ran = vip.run_model(compiled, x, on=on)  # type: ignore[arg-type]
    exact = vip.run_model(compiled, x, on="golden")
    np.testing.assert_array_equal(ran.outputs["y"], exact.outputs["y"])
    if on == "rtl":
        assert ran.launches == vip.run_model(compiled, x, on="model").launches


def test_models_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(tmp_path), "dscnn", "encoder"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "dscnn.npz",
        "dscnn.onnx",
        "encoder.npz",
        "encoder.onnx",
    ]
    assert np.load(tmp_path / "dscnn.npz")["x"].shape == (64, 1, 49, 10)
    assert {"resnet50", "vgg19", *SMALL} <= set(names())
    with pytest.raises(SystemExit):
        main([str(tmp_path), "alexnet"])
    assert "no model 'alexnet'; there are resnet8, " in capsys.readouterr().err
