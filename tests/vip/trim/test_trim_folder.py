"""``vip trim`` of a folder of ``vip nn compile``: what it refuses."""

import pytest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model", "--rom"], "--rom is for programs, not for a model"),
        (["model", "--latency", "30"], "--latency is for programs"),
        (["model", "--preset", "pe-small"], "a compiled model already has its preset"),
        (["model", "bp"], "model is a model: it can't be combined with other programs"),
        (["bp", "--input", "x.npy"], "--input is for models, not for programs"),
        (["bp", "--batch", "2"], "--batch is for models, not for programs"),
        (["model", "--calibrate", "x.npy"], "--calibrate is for MODEL.onnx, not for a compiled"),
        (["bp", "--budget", "5"], "--budget is for models, not for programs"),
        (["model", "--outputs", "y"], "--outputs is for MODEL.onnx, not for a compiled model"),
        (["x.onnx", "--calibrate", "x.npy", "--shape", "x=0"], "--shape x=0: sizes must be from"),
        (["x.onnx", "--calibrate", "x.npy", "--budget", "5"], "x.npy: not a .npy or .npz file"),
        (["x.onnx"], "x.onnx: --calibrate DATA is needed: images that choose fraction bits"),
        (["x.onnx", "--calibrate", "x.npy", "--rom"], "--rom is for programs, not for a model"),
        (["x.onnx", "--calibrate", "x.npy"], "x.npy: not a .npy or .npz file of NumPy"),
        (["model"], "manifest.json: no manifest"),
        (["empty"], "empty/manifest.json: can't be read"),
    ],
)
def test_bad_arguments_are_refused(vip, tmp_path, arguments, message) -> None:
    for folder in ("model", "empty"):
        (tmp_path / folder).mkdir()
    (tmp_path / "model" / "manifest.json").write_text("no JSON")
    (tmp_path / "x.npy").write_bytes(b"")
    (tmp_path / "x.onnx").write_bytes(b"")
    code, _, error = vip("trim", *arguments, "-o", "out")
    assert code == 2
    assert message in " ".join(error.split())
    assert not (tmp_path / "out").exists()
