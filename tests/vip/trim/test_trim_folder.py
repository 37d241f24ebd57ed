"""``vip trim`` of a folder of ``vip nn compile``: what it refuses."""

import pytest


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["model", "--rom"], "--rom is for programs, not for a compiled model"),
        (["model", "--latency", "30"], "--latency is for programs"),
        (["model", "--preset", "pe-small"], "a compiled model brings its preset"),
        (["model", "bp"], "a compiled model, is trimmed to alone"),
        (["bp", "--input", "x.npy"], "--input is for folders of vip nn compile"),
        (["model"], "manifest.json: no manifest"),
        (["empty"], "empty/manifest.json: can't be read"),
    ],
)
def test_bad_arguments_are_refused(vip, tmp_path, arguments, message) -> None:
    for folder in ("model", "empty"):
        (tmp_path / folder).mkdir()
    (tmp_path / "model" / "manifest.json").write_text("no JSON")
    (tmp_path / "x.npy").write_bytes(b"")
    code, _, error = vip("trim", *arguments, "-o", "out")
    assert code == 2
    assert message in " ".join(error.split())
    assert not (tmp_path / "out").exists()
