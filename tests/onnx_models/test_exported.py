"""Models as exporters write them compile, equal the golden model, and take about the predicted
cycles."""

from pathlib import Path

import pytest

from tests.onnx_models.exported import RECIPES, measured, summary
from vip.models.layers import MOST_OFF

#: Small ones, of every exporter.
_QUICK = ("flowers", "scaled_classifier", "linear_regressor", "perceptron_classifier")
#: Largest error of an output, of its magnitude.
_ERROR = 4e-3


def _check(name: str, folder: Path) -> None:
    run, error = measured(name, folder)
    assert error < _ERROR
    assert run.cycles
    for layer in run.layers:
        if layer.known and layer.cycles + layer.moves:
            assert abs(layer.off) <= MOST_OFF, summary([layer])


@pytest.mark.parametrize("name", _QUICK)
def test_small_models(tmp_path: Path, name: str) -> None:
    _check(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in RECIPES if name not in _QUICK])
def test_models(tmp_path: Path, name: str) -> None:
    _check(name, tmp_path)


def test_there_are_more_than_20() -> None:
    assert len(RECIPES) >= 24
