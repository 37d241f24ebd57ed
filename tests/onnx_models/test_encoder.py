"""A transformer's encoder, compiled and run on every machine."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import vip
from microkernels.data.models.small import encoder, sequences


@pytest.fixture(autouse=True)
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timing model waits on all processors that it may use."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a compiled encoder."""
    folder = tmp_path_factory.mktemp("encoder")
    onnx.save(encoder(), folder / "encoder.onnx")
    vip.compile_model(folder / "encoder.onnx", {"x": sequences(100)}, folder / "compiled")
    return folder / "compiled"


def test_errors_are_small(compiled: Path) -> None:
    found = vip.evaluate_model(compiled, {"x": sequences(20, seed=6)})
    assert found.error <= 1e-3
    assert not found.saturated


@pytest.mark.parametrize("on", ["iss", "model", pytest.param("rtl", marks=pytest.mark.slow)])
def test_machines_agree(compiled: Path, on: str) -> None:
    x = {"x": sequences(1, seed=5)}
    ran = vip.run_model(compiled, x, on=on)  # type: ignore[arg-type]
    exact = vip.run_model(compiled, x, on="golden")
    np.testing.assert_array_equal(ran.outputs["y"], exact.outputs["y"])
    if on == "model":
        assert ran.cycles < 60_000
