"""The files of examples/ do what they say, each from an empty folder, as a user runs them."""

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import nbformat
import pytest
from nbclient import NotebookClient
from PIL import Image
from pyosys import libyosys

import vip
from tests.soc.four_states.icarus import icarus

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
#: Example -> what the last lines of its output say.
OUTPUTS = {
    "moving_average": r"1024 averages, equal to NumPy's: True, 2099 cycles",
    "histogram": r"equal to NumPy's: True, 71080 cycles for 4096 pixels",
    "cnn": r"accuracy 98.4%; onnxruntime's 98.4%\na digit takes 6,711 cycles: it is a 2",
    "stereo": r"every message equals the golden model's: True, 4,700,079 cycles",
}


def run(folder: Path, *words: str) -> str:
    """Output of a Python program in ``folder``, which must succeed."""
    done = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_is_listed_and_tested():
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    tests = Path(__file__).parent.glob("*.py")
    text = "".join([*OUTPUTS, *(path.read_text("utf-8") for path in tests)])
    for path in EXAMPLES.iterdir():
        if path.name not in ("README.md", "__pycache__"):
            assert f"]({path.name})" in listed
            assert path.stem in text


@pytest.mark.parametrize("name", OUTPUTS)
def test_program(name, tmp_path):
    assert re.search(rf"{OUTPUTS[name]}\n\Z", run(tmp_path, str(EXAMPLES / f"{name}.py")))
    if name == "stereo":
        with Image.open(tmp_path / "build" / "depth.png") as depth:
            assert depth.size == (93, 62)
            assert depth.getextrema()[1] > 200


@pytest.mark.parametrize("simulator", ["icarus", pytest.param("verilator", marks=pytest.mark.slow)])
def test_engine_cocotb(simulator, tmp_path):
    if simulator == "icarus":
        icarus()
    shown = run(tmp_path, str(EXAMPLES / "engine_cocotb.py"), simulator)
    assert re.search(r"TESTS=1 PASS=1 FAIL=0", shown)


def test_readme_is_short():
    readme = re.sub("<!--.*?-->", "", (ROOT / "README.md").read_text("utf-8"))
    assert len(readme.split()) <= 700
    assert "examples/product.s" in readme  # which tests/vip/guides runs
    rows = [line for line in readme.splitlines() if line.startswith("|")]
    assert len(rows) <= 2 + 8


def test_sums_are_those_of_the_tour():
    tour = (ROOT / "docs" / "tour.md").read_text("utf-8")
    (program,) = re.findall(r"```asm\n(.*?)```", tour, re.DOTALL)
    assert (EXAMPLES / "sums.s").read_text() == program
    # The wheel has no examples, so the page in the browser has a copy.
    page = (ROOT / "vip" / "browser" / "page" / "index.html").read_text("utf-8")
    assert f">{program}</textarea>" in page
    ran = vip.run(EXAMPLES / "sums.s", memory=EXAMPLES / "sums.bin", dump=vip.Dump(0x200, 64))
    sums = memoryview(ran.dumped).cast("h").tolist()
    assert sums == [n + 100 * (n + 1) for n in range(32)]
    assert not ran.hazards


def test_the_guide_shows_a_loop_of_an_example():
    guide = (ROOT / "docs" / "writing_kernels.md").read_text("utf-8")
    (loop,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    assert indent(loop, "    ") in (EXAMPLES / "moving_average.py").read_text()


def test_vaults(tmp_path):
    shown = run(tmp_path, "-m", "vip", "sweep", str(EXAMPLES / "vaults.toml"), "-o", "vaults")
    assert "4 configurations, 8 points; 0 configurations without a result" in shown
    assert (tmp_path / "vaults" / "winner.json").exists()


def test_synth(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    vip.generate("pe-small", "build/pe-small")
    libyosys.run_pass(f"script {EXAMPLES / 'synth.ys'}", libyosys.Design())
    assert re.search(r"^ +\d+ +cells$", capfd.readouterr().out, re.MULTILINE)


def test_algorithms(tmp_path):
    """The notebook runs, and its cells print what it shows."""
    stored = nbformat.read(EXAMPLES / "algorithms.ipynb", as_version=4)
    again = nbformat.from_dict(stored)
    resources = {"metadata": {"path": str(EXAMPLES)}}
    NotebookClient(again, timeout=300, resources=resources).execute()

    def printed(notebook):
        cells = [cell.get("outputs", []) for cell in notebook.cells]
        return [[out.get("text") for out in outputs] for outputs in cells]

    assert printed(again) == printed(stored)
    assert sum("image/png" in str(cell) for cell in again.cells) >= 2
    for notebook in (stored, again):
        last = [cell.outputs[-1] for cell in notebook.cells if cell.get("outputs")]
        assert sum("<table>" in out.get("data", {}).get("text/html", "") for out in last) >= 2
