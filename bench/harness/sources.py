"""The sources that an experiment's figures depend on: all that its module imports, directly or not.

A fingerprint depends on content, not on a file's location within its room: comments, imports and
file names do not count. So a record stays valid when definitions move, and becomes stale when a
definition that the experiment can reach changes.
"""

import ast
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from .record import ROOT

#: Imports anywhere, also within functions; matches in strings do no harm.
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]*))",
    re.MULTILINE,
)
_NAME = re.compile(r"[A-Za-z_]\w*")
#: Sources that nothing imports; those beside a module count with it.
_OTHERS = (".cpp", ".h", ".sv", ".v", ".lark", ".npz")
#: Comments of Verilog, SystemVerilog and C++, and includes of C++.
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|^#include[^\n]*", re.DOTALL | re.MULTILINE)
#: Modules that only parse and print, and don't affect figures.
_SHOWING = ("vip.cli", "bench.harness.command")


@cache
def _files(root: Path) -> Mapping[str, Path]:
    """Module or package -> its file, for all packages in ``root``."""
    files = {}
    for package in root.glob("*/__init__.py"):
        for path in package.parent.rglob("*.py"):
            place = path.relative_to(root).with_suffix("")
            parts = place.parts[:-1] if place.name == "__init__" else place.parts
            files[".".join(parts)] = path
    return files


def _imported(module: str, path: Path, text: str) -> Iterator[str]:
    """Names that ``text`` may import: modules, packages and names within them."""
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


def _above(name: str) -> Iterator[str]:
    while "." in name:
        name = name.rpartition(".")[0]
        yield name


@cache
def _edges(module: str, root: Path) -> frozenset[str]:
    """The modules that ``module`` imports directly, and their packages."""
    files = _files(root)
    path = files[module]
    edges = set(_above(module))
    for name in _imported(module, path, path.read_text(encoding="utf-8")):
        if name in files and not name.startswith(_SHOWING):
            edges |= {name, *_above(name)}
    return frozenset(edges)


@cache
def dependencies(module: str, root: Path = ROOT) -> frozenset[Path]:
    """The files of ``module`` and of everything that it imports, directly or not.

    Parameters:
        module: full name. root: folder of its package.
    """
    waiting, reached = [module], set()
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += _edges(name, root)
    return frozenset(_files(root)[name] for name in reached)


def fingerprints(module: str, root: Path = ROOT) -> dict[str, str]:
    """Room -> hash, in 16 hexadecimal digits, of the definitions in its modules on which ``module``
    depends, and of the sources in other languages beside them. What all experiments share
    (:mod:`bench.harness.experiment`) does not count.

    Parameters:
        module: full name. root: folder of its package.
    """
    shared = "bench.harness.experiment"
    files = dependencies(module, root)
    if shared in _files(root):
        files -= dependencies(shared, root)
    rooms = defaultdict(list)
    for path in files:
        rooms[path.relative_to(root).parts[0]].append(path)
    return {room: _digest(rooms[room]) for room in sorted(rooms)}


def _digest(paths: list[Path]) -> str:
    folders = {path.parent for path in paths}
    foreign = [path for folder in folders for path in folder.iterdir() if path.suffix in _OTHERS]
    parts = [part for path in paths for part in _definitions(path)]
    digest = hashlib.sha256()
    for part in sorted([*parts, *map(_content, foreign)]):
        digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest()[:16]


@cache
def _content(path: Path) -> bytes:
    if path.suffix == ".npz":
        return path.read_bytes()
    return " ".join(_COMMENT.sub(" ", path.read_text(encoding="utf-8")).split()).encode()


@cache
def _definitions(path: Path) -> list[bytes]:
    """What a module defines, without imports, docstrings and comments."""
    parts = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_text(node) or _is_all(node):
            continue
        for part in ast.walk(node):
            if isinstance(part, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                part.body = [line for line in part.body if not _is_text(line)] or [ast.Pass()]
        parts.append(hashlib.sha256(ast.dump(node).encode()).digest())
    return parts


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_all(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign) and any(
        isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
    )
