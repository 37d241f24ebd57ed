"""Mutants of the hardware's Python: one changed place in the source of a component."""

import ast
import math
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .units import UNITS

_ROOMS = ("hdl", "pe", "memory", "noc", "soc")
#: Parts of the rooms that are no hardware.
_SOFTWARE = ("memory/model", "soc/generate")
_COMPARED = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
}
_COMBINED = {ast.BitAnd: "|", ast.BitOr: "&", ast.BitXor: "&", ast.Add: "-", ast.Sub: "+"}
#: Probability that a test kills a mutant: one of the file named after the changed one, one that
#: imports it or has the name of its package, a simulation of its room, another of the room.
_NAMED, _NEAR, _SIMULATING, _OTHER = 0.5, 0.2, 0.8, 0.002
#: What no unit simulates.
_CHIP = "tests/sim_tb/cosim/test_chip_cosim.py"


@dataclass(frozen=True)
class SourceMutant:
    """A change of a file: ``before`` to ``after`` at ``line``.

    Attributes:
        path: of the file, from the checkout. text: of the changed file.
    """

    path: str
    line: int
    before: str
    after: str
    text: str

    @property
    def name(self) -> str:
        """Place and change."""
        return f"{self.path}:{self.line} {self.before} -> {self.after or 'nothing'}"


def source_mutants(root: Path, *, count: int, seed: int) -> list[SourceMutant]:
    """``count`` mutants of the components in ``root``, drawn evenly over files and then places.

    What is drawn from a file hardly depends on the others.
    """
    drawn = []
    for room in _ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            if name.startswith(_SOFTWARE):
                continue
            places = list(_places(path.read_text()))
            alike = Counter[str]()
            for node, after in places:
                change = f"{ast.unparse(node)} {after}"
                alike[change] += 1
                number = random.Random(f"{seed} {name} {change} {alike[change]}").random()
                # The least of n times 1 of these is as probable as that of 1 times n.
                drawn.append((-math.log(number) * len(places), name, node, after))
    drawn.sort(key=lambda one: one[0])
    return [_changed(root, *one[1:]) for one in drawn[:count]]


def _changed(root: Path, name: str, node: ast.AST, after: str) -> SourceMutant:
    text = (root / name).read_text()
    lines = text.splitlines(keepends=True)
    place = [
        sum(len(line.encode()) for line in lines[: line - 1]) + column
        for line, column in (
            (node.lineno, node.col_offset),  # type: ignore[attr-defined]
            (node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )
    ]
    content = text.encode()
    before = content[place[0] : place[1]].decode()
    changed = (content[: place[0]] + after.encode() + content[place[1] :]).decode()
    short = [" ".join(part.split()) for part in (before, after)]
    return SourceMutant(name, node.lineno, *short, changed)  # type: ignore[attr-defined]


def _places(text: str) -> Iterator[tuple[ast.AST, str]]:
    """Nodes of the components in ``text``, and what to write instead of each."""
    for kind in ast.walk(ast.parse(text)):
        if not isinstance(kind, ast.ClassDef):
            continue
        methods = [each for each in kind.body if isinstance(each, ast.FunctionDef)]
        if not any(method.name == "elaborate" for method in methods):
            continue
        for method in methods:
            if method.name == "__init__":
                continue
            types = {id(node) for part in _types(method) for node in ast.walk(part)}
            for statement in method.body:
                for node in ast.walk(statement):
                    if id(node) not in types:
                        yield from _changes(node)


def _types(method: ast.FunctionDef) -> Iterator[ast.expr]:
    """Annotations in ``method``."""
    for node in ast.walk(method):
        for name in ("annotation", "returns"):
            if (part := getattr(node, name, None)) is not None:
                yield part


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    match node:
        case ast.Compare(left=left, ops=[operator], comparators=[right]):
            if (other := _COMPARED.get(type(operator))) is not None:
                yield node, f"({ast.unparse(left)} {other} {ast.unparse(right)})"
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _COMBINED:
            other = _COMBINED[type(operator)]
            yield node, f"({ast.unparse(left)} {other} ({ast.unparse(right)}))"
            for part in (left, right):
                if isinstance(part, ast.Constant) and type(part.value) is int:
                    yield part, str(part.value + 1)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            yield node, f"({ast.unparse(operand)})"
        case ast.Call(func=ast.Name(id="Mux"), args=[chosen, first, second]):
            swapped = (ast.unparse(part) for part in (chosen, second, first))
            yield node, f"Mux({', '.join(swapped)})"
        case ast.Call(func=ast.Attribute(attr="If", value=ast.Name(id="m")), args=[condition]):
            yield condition, f"({ast.unparse(condition)}) == 0"
        case ast.AugAssign(value=ast.Call(func=ast.Attribute(attr="eq"))):
            yield node.value, "[]"
        case ast.List(elts=elements):
            for element in elements:
                match element:
                    case ast.Call(func=ast.Attribute(attr="eq")):
                        yield element, "[]"


def tests_of(root: Path, path: str) -> dict[str, float]:
    """Tests that may notice a change of the module at ``path``, each with the probability that it
    does, the likeliest first: those of its room, those of ``hdl`` and ``sim_tb`` that import it or
    have the name of its package, and simulations of its room. Digests of Verilog, which differ
    after any change, are in ``tests/structure``, which is no room.
    """
    module = path.removesuffix(".py").replace("/", ".")
    room, *_ = path.split("/")
    *_, package, name = module.split(".")
    chances = {_CHIP: _SIMULATING} if room == "soc" else {}
    for unit in UNITS.values():
        if room in (unit.room, "hdl"):
            chances |= dict.fromkeys(unit.tests, _SIMULATING)
    for place in {room, "hdl", "sim_tb"}:
        for test in (root / "tests" / place).rglob("test_*.py"):
            file = test.relative_to(root).as_posix()
            if test.stem.removeprefix("test_").endswith(name):
                chances[file] = _NAMED
            elif module in test.read_text() or (
                package != room and package in (test.parent.name, *test.stem.split("_"))
            ):
                chances[file] = _NEAR
            elif place == room:
                chances[file] = _OTHER
    return dict(sorted(chances.items(), key=lambda one: (-one[1], one[0])))
