"""``make structure``: measures of the source: how much of it a reader must hold in the head.

Source is what Git tracks in Python, C++ and SystemVerilog outside ``tests`` and ``docs``. Figures
are of the working tree.
"""

import ast
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table

ROOT = Path(__file__).resolve().parents[2]
#: Types whose ``isinstance`` checks and ``match`` cases are switches on the kind of a design.
DESIGNS = frozenset({"PeConfig", "VaultTileConfig", "ChipConfig"})
#: Names that say when a value came to be, or where it stands, and never what it is.
VAGUE = frozenset(
    (
        "found", "given", "made", "held", "kept", "each", "whole", "own", "bare", "now", "goes",
        "leaves", "wanted", "known", "most", "here", "there", "what", "shown", "taken", "others",
        "beside", "behind", "ahead", "more",
    )
)  # fmt: skip
#: Types whose ``isinstance`` checks and ``match`` cases are switches on the kind of a layer.
LAYERS = frozenset(
    (
        "Conv", "Dense", "Depthwise", "Pool", "ElementWise", "Normalize", "Product", "Rearrange",
        "Source",
    )
)  # fmt: skip

_SUFFIXES = (".py", ".cpp", ".h", ".sv")
_LONG, _VERY_LONG = 60, 100
#: Two dataclasses are twins if they share so many fields, and this part of the smaller one's.
_TWIN_FIELDS, _TWIN_SHARE = 5, 0.6


def tracked(root: Path = ROOT) -> list[str]:
    """The files that Git tracks."""
    listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, check=True)
    return [name for name in listed.stdout.decode().split("\n") if name]


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


@dataclass(frozen=True)
class Record:
    """A dataclass: the file, its name, the names of its fields."""

    file: str
    name: str
    fields: frozenset[str]

    def is_twin(self, other: "Record") -> bool:
        """Whether the two hold much the same."""
        shared = len(self.fields & other.fields)
        smaller = min(len(self.fields), len(other.fields))
        return shared >= _TWIN_FIELDS and shared >= _TWIN_SHARE * smaller


class Structure:
    """The source of a checkout.

    Parameters:
        root: of the checkout.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self._files = tracked(root)
        self.source = [
            name
            for name in self._files
            if name.endswith(_SUFFIXES) and not name.startswith(("tests/", "docs/"))
        ]

    def lines(self, name: str) -> int:
        """Lines of a file."""
        return (self.root / name).read_bytes().count(b"\n")

    @cached_property
    def trees(self) -> dict[str, ast.Module]:
        """Syntax trees of the source in Python, by file."""
        return {
            name: ast.parse((self.root / name).read_text(encoding="utf-8"))
            for name in self.source
            if name.endswith(".py")
        }

    @cached_property
    def _nodes(self) -> list[tuple[str, ast.AST]]:
        return [(name, node) for name, tree in self.trees.items() for node in ast.walk(tree)]

    @cached_property
    def records(self) -> list[Record]:
        """The dataclasses."""
        return [
            Record(
                name,
                node.name,
                frozenset(
                    item.target.id
                    for item in node.body
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
                ),
            )
            for name, node in self._nodes
            if isinstance(node, ast.ClassDef)
            and any("dataclass" in ast.unparse(mark) for mark in node.decorator_list)
        ]

    @cached_property
    def twins(self) -> list[tuple[Record, Record]]:
        """Pairs of dataclasses that hold much the same."""
        return [(one, other) for one, other in combinations(self.records, 2) if one.is_twin(other)]

    @cached_property
    def repeated_classes(self) -> list[str]:
        """Names of public classes that more than one class has."""
        names = Counter(
            node.name
            for _, node in self._nodes
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        )
        return sorted(name for name, count in names.items() if count > 1)

    @cached_property
    def ctypes_structures(self) -> list[str]:
        """Structures of C++ that are declared by hand in Python."""
        return [
            f"{name}:{node.name}"
            for name, node in self._nodes
            if isinstance(node, ast.ClassDef)
            and any(ast.unparse(base) == "ctypes.Structure" for base in node.bases)
        ]

    def switches(self, kinds: frozenset[str]) -> Counter[str]:
        """``isinstance`` checks for, and ``match`` cases of, these classes, by file."""
        count: Counter[str] = Counter()
        for name, node in self._nodes:
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                is_check = node.func.id == "isinstance" and len(node.args) == 2
                count[name] += is_check and bool(_names(node.args[1]) & kinds)
            elif isinstance(node, ast.match_case):
                count[name] += sum(
                    isinstance(part.cls, ast.Name) and part.cls.id in kinds
                    for part in ast.walk(node.pattern)
                    if isinstance(part, ast.MatchClass)
                )
        return +count

    @cached_property
    def functions(self) -> list[tuple[int, str]]:
        """Lines and place of each function."""
        return [
            (
                (node.end_lineno or node.lineno) - node.lineno + 1,
                f"{name}:{node.lineno}:{node.name}",
            )
            for name, node in self._nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ]

    @cached_property
    def names(self) -> Counter[str]:
        """How often each name is bound: variables and parameters."""
        return Counter(
            node.id if isinstance(node, ast.Name) else node.arg
            for _, node in self._nodes
            if isinstance(node, ast.arg) or (isinstance(node, ast.Name) and _stores(node))
        )

    @cached_property
    def vague(self) -> Counter[str]:
        """Bindings of vague names."""
        return Counter({name: count for name, count in self.names.items() if name in VAGUE})

    def vague_places(self) -> Iterator[str]:
        """File, line and name of each vague binding."""
        for name, node in self._nodes:
            if isinstance(node, ast.arg) and node.arg in VAGUE:
                yield f"{name}:{node.lineno}: {node.arg}"
            elif isinstance(node, ast.Name) and _stores(node) and node.id in VAGUE:
                yield f"{name}:{node.lineno}: {node.id}"

    @cached_property
    def prose(self) -> tuple[float, float]:
        """Shares of lines of Python that are docstrings, and comments, in percent."""
        lines = docstrings = comments = 0
        for name, tree in self.trees.items():
            lines += self.lines(name)
            docstrings += sum(_docstring_lines(node) for node in ast.walk(tree))
            with tokenize.open(self.root / name) as file:
                comments += sum(
                    token.type == tokenize.COMMENT and token.line.lstrip().startswith("#")
                    for token in tokenize.generate_tokens(file.readline)
                )
        return 100 * docstrings / lines, 100 * comments / lines

    @cached_property
    def extension_conditions(self) -> int:
        """Conditions of the engine on its optional units of the load-store unit."""
        asks = re.compile(r"config\.(workspace|load_history)")
        return sum(
            bool(asks.search(line))
            for name in self.trees
            if name.startswith("pe/")
            for line in (self.root / name).read_text(encoding="utf-8").split("\n")
        )

    def figures(self) -> dict[str, float]:
        """All measures by name."""
        rooms: Counter[str] = Counter()
        for name in self.source:
            rooms[name.split("/")[0] if "/" in name else "(root)"] += self.lines(name)
        pages = [name for name in self._files if name.startswith("docs/") and name.endswith(".md")]
        tests = [name for name in self._files if name.startswith("tests/")]
        docstrings, comments = self.prose
        designs, layers = self.switches(DESIGNS), self.switches(LAYERS)
        return {
            "lines": sum(rooms.values()),
            **{f"lines of {room}": count for room, count in sorted(rooms.items())},
            "files": len(self.source),
            "lines of tests": sum(self.lines(name) for name in tests if name.endswith(_SUFFIXES)),
            "docstrings, % of lines": round(docstrings, 1),
            "comments, % of lines": round(comments, 2),
            "dataclasses": len(self.records),
            "twins of dataclasses": len(self.twins),
            "names of public classes used twice": len(self.repeated_classes),
            "ctypes structures by hand": len(self.ctypes_structures),
            "switches on kinds of design": sum(designs.values()),
            "files with them": len(designs),
            "switches on kinds of layer": sum(layers.values()),
            "files with those": len(layers),
            "functions": len(self.functions),
            f"functions over {_LONG} lines": sum(n > _LONG for n, _ in self.functions),
            f"functions over {_VERY_LONG} lines": sum(n > _VERY_LONG for n, _ in self.functions),
            "vague names, % of bindings": round(100 * self.vague.total() / self.names.total(), 2),
            "conditions on extensions in pe": self.extension_conditions,
            "pages": len(pages),
            "lines of pages": sum(self.lines(name) for name in pages),
        }


def _stores(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _docstring_lines(node: ast.AST) -> int:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return 0
    if ast.get_docstring(node, clean=False) is None:
        return 0
    first = node.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1


def main() -> None:
    """Print the measures; ``--vague`` prints the places of vague names, ``--json`` JSON."""
    structure = Structure()
    if "--vague" in sys.argv:
        print(*structure.vague_places(), sep="\n")
        return
    figures = structure.figures()
    if "--json" in sys.argv:
        print(json.dumps(figures, indent=2))
        return
    table = Table(Column("measure"), Column("value", justify="right"))
    for name, value in figures.items():
        table.add_row(name, f"{value:,}")
    Console().print(table)


if __name__ == "__main__":
    main()
