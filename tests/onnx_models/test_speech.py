"""The detector of speech of the package ``silero-vad``, at 16 kHz."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import vip
from tests.onnx_models.speech import frames

_SPEC = find_spec("silero_vad")
assert _SPEC is not None
assert _SPEC.submodule_search_locations is not None
MODEL = Path(_SPEC.submodule_search_locations[0]) / "data" / "silero_vad_openvino_16k.onnx"


@pytest.fixture(autouse=True)
def one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timing model waits on all processors that it may use."""
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0})


@pytest.fixture(scope="module")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the compiled detector."""
    folder = tmp_path_factory.mktemp("speech") / "detector"
    vip.compile_model(
        MODEL,
        {"input": frames(100, seed=1)},
        folder,
        preset="vault-logistic",
        carry={"stateN": "state"},
    )
    return folder


def test_probabilities_are_within_two_percent(detector: Path) -> None:
    """The state goes from frame to frame on both sides."""
    found = vip.evaluate_model(detector, {"input": frames(200, seed=2)})
    assert found.images == 200
    assert found.largest <= 0.02
    ran = vip.run_model(detector, {"input": frames(200, seed=2)}, on="golden")
    heard = ran.outputs["output"].ravel()
    # Speech and none.
    assert (heard < 0.1).sum() > 10
    assert (heard > 0.9).sum() > 100


@pytest.mark.parametrize(
    ("on", "count"),
    [("iss", 2), ("model", 1), pytest.param("rtl", 1, marks=pytest.mark.slow)],
)
def test_machines_agree_on_frames(detector: Path, on: str, count: int) -> None:
    x = frames(count, seed=2)
    ran = vip.run_model(detector, {"input": x}, on=on)  # type: ignore[arg-type]
    exact = vip.run_model(detector, {"input": x}, on="golden")
    for name in ("output", "stateN"):
        np.testing.assert_array_equal(ran.outputs[name], exact.outputs[name])
    assert ran.outputs["stateN"].shape == (count, 2, 1, 128)
    if on == "model":
        assert ran.cycles < 250_000
