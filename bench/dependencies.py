"""The sources on which a module depends: what it imports, and what that imports."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

from .checkout import ROOT

__all__ = ["dependencies", "sources_of"]

#: Imports wherever they stand, also within functions; in a text they do no harm.
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]*))",
    re.MULTILINE,
)
#: A call of :func:`bench.fingerprints.parts`.
_PARTS = re.compile(r"\bparts\(([a-z][\w.]*)\)")
_NAME = re.compile(r"[A-Za-z_]\w*")
#: Other sources, of which no import tells who reads them.
_OTHERS = (".cpp", ".h", ".sv", ".lark")


@cache
def _files(root: Path) -> Mapping[str, Path]:
    """Module or package -> its file; for those in the packages of ``root``."""
    found = {}
    for package in root.glob("*/__init__.py"):
        for path in package.parent.rglob("*.py"):
            place = path.relative_to(root).with_suffix("")
            parts = place.parts[:-1] if place.name == "__init__" else place.parts
            found[".".join(parts)] = path
    return found


def _imported(module: str, path: Path, text: str) -> Iterator[str]:
    """Names that ``text`` may import: modules, packages, and names within them."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for source, names, plain in _IMPORT.findall(text):
        if plain:
            yield from (part.split()[0] for part in plain.split(",") if part.split())
            continue
        base = source
        if source.startswith("."):
            dots = len(source) - len(source.lstrip("."))
            above = package.split(".")[: len(package.split(".")) - dots + 1]
            base = ".".join([*above, *filter(None, [source.lstrip(".")])])
        yield base
        yield from (f"{base}.{name}" for name in _NAME.findall(names))


@cache
def _edges(root: Path) -> Mapping[str, frozenset[str]]:
    """Module -> the modules that it imports itself, and those of packages that it goes through."""
    files = _files(root)
    found = {}
    for module, path in files.items():
        text = path.read_text(encoding="utf-8")
        edges = set(_above(module))
        for name in _imported(module, path, text):
            if name in files:
                edges |= {name, *_above(name)}
        for package in _PARTS.findall(text):
            edges |= {inner for inner in files if f"{inner}.".startswith(f"{package}.")}
        found[module] = frozenset(edges)
    return found


def _above(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


@cache
def dependencies(module: str, root: Path = ROOT) -> frozenset[Path]:
    """The files of ``module`` and of all that it imports, directly or not.

    Parameters:
        module: its full name. root: folder of its package.
    """
    files, edges = _files(root), _edges(root)
    waiting, known = [module], set()
    while waiting:
        name = waiting.pop()
        if name in known:
            continue
        known.add(name)
        waiting += edges[name]
    return frozenset(files[name] for name in known)


@cache
def _content(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def sources_of(module: ModuleType | None, root: Path = ROOT) -> str:
    """A name, 20 characters, that differs where any source does on which ``module`` depends, or any
    in another language than Python."""
    assert module is not None
    found = set(dependencies(module.__name__, root))
    for package in root.glob("*/__init__.py"):
        found |= {path for path in package.parent.rglob("*") if path.suffix in _OTHERS}
    digest = hashlib.sha256()
    for path in sorted(found):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + _content(path))
    return digest.hexdigest()[:20]
