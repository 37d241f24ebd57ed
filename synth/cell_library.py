"""Standard cells as a Liberty file describes them: areas, pins, delays and constraints."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from .errors import SynthesisError
from .timing_table import TimingTable

__all__ = ["Arc", "Cell", "CellLibrary", "LibertyError", "Pin", "parse_library", "read_library"]


class LibertyError(SynthesisError):
    """A Liberty file that can't be used; one line says where and why."""


@dataclass(frozen=True)
class Arc:
    """Delay from an input to an output, or a constraint between two inputs.

    Attributes:
        related: the input that it starts from (or the clock of the constraint).
        kind: Liberty's ``timing_type``; ``combinational`` where the file says nothing.
        sense: ``positive_unate``, ``negative_unate`` or ``non_unate``.
        tables: by Liberty's names, e.g. ``cell_rise``, ``fall_transition``, ``rise_constraint``;
            times in ns over slews in ns and loads in fF.
    """

    related: str
    kind: str
    sense: str
    tables: Mapping[str, TimingTable]


@dataclass(frozen=True)
class Pin:
    """A pin: its direction, its load in fF, its function (an output's), and the arcs to it."""

    direction: str
    capacitance: float
    function: str
    clock: bool
    arcs: tuple[Arc, ...]


@dataclass(frozen=True)
class Cell:
    """A cell: its area in um2, its pins, and whether it holds state."""

    name: str
    area: float
    pins: Mapping[str, Pin]
    sequential: bool


@dataclass(frozen=True)
class CellLibrary:
    """A library.

    Attributes:
        name: as the file gives it. cells: by name.
    """

    name: str
    cells: Mapping[str, Cell]

    @property
    def timed(self) -> bool:
        """Whether any gate has a delay table."""
        return any(
            "cell_rise" in arc.tables
            for cell in self.cells.values()
            for pin in cell.pins.values()
            for arc in pin.arcs
        )

    @property
    def gate_um2(self) -> float:
        """Area of the gate equivalent, the smallest NAND gate with two inputs.

        Raises:
            LibertyError: the library has none.
        """
        areas = [cell.area for cell in self.cells.values() if _is_nand2(cell) and cell.area > 0]
        if not areas:
            raise LibertyError(f"library {self.name} has no NAND gate with two inputs")
        return min(areas)

    def flip_flops(self) -> frozenset[str]:
        """Names of the cells that hold state."""
        return frozenset(name for name, cell in self.cells.items() if cell.sequential)


def _sides(cell: Cell) -> tuple[list[str], list[str]]:
    inputs = [name for name, pin in cell.pins.items() if pin.direction == "input"]
    outputs = [pin.function for pin in cell.pins.values() if pin.direction == "output"]
    return inputs, outputs


def _is_nand2(cell: Cell) -> bool:
    inputs, outputs = _sides(cell)
    if cell.sequential or len(inputs) != 2 or len(outputs) != 1:
        return False
    a, b = sorted(inputs)
    both = (f"{a}&{b}", f"{a}*{b}", f"{b}&{a}", f"{b}*{a}")
    forms = {f"!({x})" for x in both} | {f"({x})'" for x in both}
    forms |= {f"!{x}{op}!{y}" for x, y in ((a, b), (b, a)) for op in "|+"}
    text = outputs[0]
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    return text in forms or outputs[0] in forms


# Comments and continued lines are blanks. A word may be a number, a name or a string.
_BLANK = re.compile(r"(?:\s|\\\r?\n|/\*.*?\*/|//[^\n]*)+", re.DOTALL)
_WORD = re.compile(r'"([^"]*)"|([^\s(){};:,"]+)|([(){};:,])')


@dataclass
class _Group:
    kind: str
    name: str
    values: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    groups: list["_Group"] = field(default_factory=list)

    def of(self, *kinds: str) -> Iterator["_Group"]:
        return (group for group in self.groups if group.kind in kinds)


class _Reader:
    """Groups, attributes and lists of a Liberty text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.token = ""
        self.quoted = False
        self.advance()

    def fail(self, what: str) -> LibertyError:
        line = self.text.count("\n", 0, self.at) + 1
        return LibertyError(f"line {line}: {what}")

    def advance(self) -> None:
        blank = _BLANK.match(self.text, self.at)
        if blank is not None:
            self.at = blank.end()
        match = _WORD.match(self.text, self.at)
        if match is None:
            if self.at < len(self.text):
                raise self.fail(f"unexpected {self.text[self.at]!r}")
            self.token, self.quoted = "", False
            return
        self.at = match.end()
        self.quoted = match[1] is not None
        self.token = match[1] if self.quoted else match[0]

    def take(self, wanted: str) -> None:
        if self.quoted or self.token != wanted:
            found = repr(self.token) if self.token else "the end of the file"
            raise self.fail(f"{wanted!r} expected, not {found}")
        self.advance()

    def is_sign(self, sign: str) -> bool:
        return not self.quoted and self.token == sign

    def word(self) -> str:
        if not self.quoted and (not self.token or self.token in "(){};:,"):
            found = repr(self.token) if self.token else "the end of the file"
            raise self.fail(f"a name or a value expected, not {found}")
        word = self.token
        self.advance()
        return word

    def statement(self, into: _Group) -> None:
        name = self.word()
        if self.is_sign(":"):
            self.advance()
            words = [self.word()]
            while self.quoted or self.token not in ("", ";", "}"):
                if "\n" in self.text[self.at - len(self.token) - 2 : self.at - len(self.token)]:
                    break
                words.append(self.word() if self.token not in "():," else self._sign())
            into.values[name] = " ".join(words)
            if self.is_sign(";"):
                self.advance()
            return
        self.take("(")
        arguments = []
        while not self.is_sign(")"):
            arguments.append(self.word())
            if self.is_sign(","):
                self.advance()
        self.take(")")
        if self.is_sign("{"):
            self.advance()
            group = _Group(name, arguments[0] if arguments else "")
            while not self.is_sign("}"):
                if self.is_sign(";"):
                    self.advance()
                else:
                    self.statement(group)
            self.advance()
            into.groups.append(group)
        else:
            into.lists[name] = arguments
            if self.is_sign(";"):
                self.advance()

    def _sign(self) -> str:
        sign = self.token
        self.advance()
        return sign


def parse_library(text: str) -> CellLibrary:
    """Read a Liberty text.

    Raises:
        LibertyError: it is no Liberty, or holds no cells; the message names the line.
    """
    reader = _Reader(text)
    root = _Group("", "")
    while reader.token or reader.quoted:
        reader.statement(root)
    library = next(root.of("library"), None)
    if library is None:
        raise LibertyError("line 1: no library(...) { } in it")
    scale = _Scale.of(library)
    cells = {group.name: _cell(group, scale) for group in library.of("cell")}
    if not cells:
        raise LibertyError(f"library {library.name} holds no cells")
    return CellLibrary(library.name, cells)


@lru_cache(maxsize=2)
def read_library(path: Path) -> CellLibrary:
    """The library in the Liberty file ``path``.

    Raises:
        LibertyError: the file can't be read or used; one line names it and says why.
    """
    try:
        return parse_library(path.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise LibertyError(f"can't read {path}: {error.strerror or error}") from error
    except LibertyError as error:
        raise LibertyError(f"{path}: {error}") from error


@dataclass(frozen=True)
class _Scale:
    """What the file's units are in ns and fF."""

    time: float
    load: float

    @classmethod
    def of(cls, library: _Group) -> "_Scale":
        units = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0, "ps": 1e-3}
        text = library.values.get("time_unit", "1ns")
        match = re.fullmatch(r"([\d.]+)\s*([a-z]+)", text)
        if match is None or match[2] not in units:
            raise LibertyError(f"time_unit {text!r} is none of 1ns, 1ps, ...")
        loads = {"ff": 1.0, "pf": 1000.0}
        number, unit = (library.lists.get("capacitive_load_unit") or ["1", "pf"])[:2]
        if unit.lower() not in loads:
            raise LibertyError(f"capacitive_load_unit {unit!r} is neither ff nor pf")
        return cls(
            float(match[1]) * units[match[2]], _number(number, "load unit") * loads[unit.lower()]
        )


def _number(text: str, what: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise LibertyError(f"{what}: {text!r} is no number") from None


def _numbers(words: list[str], what: str) -> list[float]:
    return [_number(word, what) for word in re.split(r"[\s,]+", " ".join(words)) if word]


def _cell(group: _Group, scale: _Scale) -> Cell:
    pins = {}
    for pin in group.of("pin"):
        what = f"cell {group.name}, pin {pin.name}"
        pins[pin.name] = Pin(
            direction=pin.values.get("direction", "input"),
            capacitance=scale.load * _number(pin.values.get("capacitance", "0"), what),
            function=pin.values.get("function", "").replace(" ", ""),
            clock=pin.values.get("clock", "false").lower() == "true",
            arcs=tuple(_arc(timing, scale, what) for timing in pin.of("timing")),
        )
    area = _number(group.values.get("area", "0"), f"area of cell {group.name}")
    return Cell(group.name, area, pins, any(True for _ in group.of("ff", "latch")))


def _arc(timing: _Group, scale: _Scale, what: str) -> Arc:
    kind = timing.values.get("timing_type", "combinational")
    tables = {}
    for table in timing.groups:
        constraint = table.kind.endswith("_constraint")
        if not constraint and not table.kind.startswith(("cell_", "rise_", "fall_")):
            continue
        values = [scale.time * x for x in _numbers(table.lists.get("values", []), what)]
        axes = [_numbers(table.lists.get(f"index_{axis}", []), what) for axis in (1, 2)]
        # A gate's tables are over input slew and load, a constraint's over two slews.
        rows = [scale.time * x for x in axes[0]] or [0.0]
        columns = [(scale.time if constraint else scale.load) * x for x in axes[1]] or [0.0]
        if len(values) != len(rows) * len(columns):
            raise LibertyError(
                f"{what}: table {table.kind} has {len(values)} values"
                f" for {len(rows)} x {len(columns)} places"
            )
        tables[table.kind] = TimingTable(tuple(rows), tuple(columns), tuple(values))
    return Arc(
        timing.values.get("related_pin", ""),
        kind,
        timing.values.get("timing_sense", "non_unate"),
        tables,
    )
