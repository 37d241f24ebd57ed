"""``vip generate --config``: a configuration from a file."""

import json
import subprocess
import sys
from dataclasses import replace

from soc.generate.presets import preset, write_configuration


def test_a_file_makes_what_it_says(vip, tmp_path):
    config = replace(preset("pe-small"), instructions=frozenset({"halt"}))
    write_configuration(config, tmp_path / "engine.json")
    code, _, _ = vip("generate", "--config", "engine.json", "-o", "out", "--json", "out.json")
    assert code == 0
    made = json.loads((tmp_path / "out.json").read_text())["configuration"]
    assert made == json.loads((tmp_path / "engine.json").read_text())
    assert vip("generate", "--config", "out/vip.json", "-o", "again")[0] == 0
    first, second = (tmp_path / name / "rtl" / "pe.v" for name in ("out", "again"))
    assert first.read_bytes() == second.read_bytes()


def test_what_can_not_be_used(vip, tmp_path):
    (tmp_path / "bad.json").write_text('{"registers": 9}')
    for arguments, text in (
        (("--config", "bad.json"), "bad.json: registers must be a power of two from 8 to 64"),
        (("--config", "none.json"), "none.json: can't be read: No such file"),
        (("--config", "bad.json", "--preset", "pe"), "--config and --preset can't be combined"),
        (("--preset", "none"), "unknown preset 'none'"),
    ):
        code, _, error = vip("generate", *arguments, "-o", "out")
        assert code == 2
        assert error.startswith("vip: ")
        assert text in error
        assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_nothing_but_the_result_is_shown(tmp_path):
    command = [sys.executable, "-m", "vip", "generate", "--preset", "tiny", "-o", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "top module chip" in done.stdout
