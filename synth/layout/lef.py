"""Reads what placement and routing need of LEF files: cells, and rules and wires of layers.

Only statements of LEF 5.6 that say these are read; all others are skipped.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import gcd
from pathlib import Path

from support.files import read_bytes
from synth.errors import SynthesisError
from synth.timing.cell_library import Wires

#: Most bytes of a LEF file.
_LEF_BYTES = 64 << 20
#: Lengths are kept in whole nanometres, so that widths of cells have a common divisor.
_NM = 1000
#: Blocks that contain statements named as those that are read; their own name follows.
_BLOCKS = ("VIARULE", "NONDEFAULTRULE", "SITE")


#: A box in nm: its left, lower, right and upper edge.
Rectangle = tuple[int, int, int, int]
#: A layer, and a box on it.
Shape = tuple[str, int, int, int, int]


@dataclass(frozen=True)
class LefCell:
    """A cell in nm: its size, pin -> centre of the pin's shapes, from the lower left, its outputs,
    and pin -> its shapes; ``""`` has those that no wire may touch."""

    width: int
    height: int
    pins: Mapping[str, tuple[int, int]]
    outputs: frozenset[str]
    shapes: Mapping[str, Sequence[Shape]]


class Lef:
    """Cells, and by name the wires of routing layers, from the lowest one, the rules of routing and
    cut layers in nm (``WIDTH``, ``SPACING``, ``PITCH``, of a cut ``RESISTANCE`` in milliohm and, 1
    for horizontal wires, ``DIRECTION``), and the shapes of vias.

    Placements are in whole units of its grid: a site, the width of which every cell has a whole
    number of, in x, and a step, of which a row has :attr:`row`, in y.

    Parameters:
        paths: LEF files, whose cells and layers it has together.

    Raises:
        SynthesisError: a file does not exist or is no LEF file; one line says where.
    """

    def __init__(self, *paths: Path) -> None:
        self.cells: dict[str, LefCell] = {}
        self.layers: dict[str, Wires] = {}
        self.rules: dict[str, Mapping[str, int]] = {}
        self.vias: dict[str, Sequence[Shape]] = {}
        for path in paths:
            words = _Words(path)
            for word in words:
                if word == "MACRO":
                    self.cells.update([_cell(words)])
                elif word == "LAYER":
                    name, rules, wires = _layer(words)
                    self.rules[name] = rules
                    if wires is not None:
                        self.layers[name] = wires
                elif word == "VIA":
                    name = words.next()
                    self.vias[name] = list(_shapes(words, name))
                elif word in _BLOCKS:
                    words.skip(words.next())
        if not self.cells:
            raise SynthesisError(f"{', '.join(map(str, paths))}: no cell (MACRO) in it")

    @cached_property
    def row_nm(self) -> int:
        """Height of a row of cells, which is that of every cell.

        Raises:
            SynthesisError: cells differ in height, or there is none.
        """
        heights = {cell.height for cell in self.cells.values()}
        if len(heights) != 1:
            raise SynthesisError(f"LEF: cells have {len(heights)} heights; rows need one")
        return heights.pop()

    @cached_property
    def site_nm(self) -> int:
        """Width of a site."""
        return gcd(*(cell.width for cell in self.cells.values()))

    @cached_property
    def row(self) -> int:
        """Steps of a row: as many as make a step about as long as a site is wide, since the
        placer's time grows with the numbers of its lengths."""
        steps = max(1, round(self.row_nm / self.site_nm))
        while self.row_nm % steps:
            steps -= 1
        return steps

    @cached_property
    def grid_nm(self) -> tuple[int, int]:
        """A site and a step in nm."""
        return self.site_nm, self.row_nm // self.row

    @cached_property
    def um(self) -> tuple[float, float]:
        """A site and a step."""
        return self.site_nm / _NM, self.row_nm / self.row / _NM


class _Words:
    """The words of a file without comments, and what an error names."""

    def __init__(self, path: Path) -> None:
        try:
            text = read_bytes(path, _LEF_BYTES).decode("utf-8", "replace")
        except OSError as error:
            raise SynthesisError(f"{path}: {error.strerror}") from None
        lines = (line.partition("#")[0].split() for line in text.splitlines())
        self._words = ((word, number) for number, line in enumerate(lines, 1) for word in line)
        self._path, self._line = path, 0

    def __iter__(self) -> Iterator[str]:
        for word, line in self._words:
            self._line = line
            yield word

    def next(self) -> str:
        for word in self:
            return word
        raise self.error("it ends too early")

    def error(self, what: str) -> SynthesisError:
        return SynthesisError(f"{self._path}:{self._line}: {what}")

    def statement(self) -> list[str]:
        """The words up to the next semicolon."""
        words = []
        while (word := self.next()) != ";":
            words.append(word)
        return words

    def statements(self, name: str) -> Iterator[str]:
        """The first word of each statement up to ``END name``; the caller takes the others."""
        while (word := self.next()) != "END":
            yield word
        if name and (end := self.next()) != name:
            raise self.error(f"END {end} instead of END {name}")

    def skip(self, name: str) -> None:
        """The words up to ``END name``."""
        while self.next() != "END" or self.next() != name:
            pass

    def lengths(self) -> list[int]:
        """The numbers of a statement in nm."""
        try:
            return [round(float(word) * _NM) for word in self.statement() if word != "BY"]
        except ValueError:
            raise self.error("a length is not a number") from None


def _cell(words: _Words) -> tuple[str, LefCell]:
    name = words.next()
    size: Sequence[int] = ()
    pins: dict[str, tuple[int, int]] = {}
    outputs = set()
    shapes: dict[str, Sequence[Shape]] = {"": ()}
    for word in words.statements(name):
        if word == "SIZE":
            size = words.lengths()
        elif word == "PIN":
            pin, direction, shapes_of = _pin(words)
            shapes[pin] = shapes_of
            _, lefts, lows, rights, tops = zip(*shapes_of, strict=True)
            pins[pin] = (min(lefts) + max(rights)) // 2, (min(lows) + max(tops)) // 2
            if direction == "OUTPUT":
                outputs.add(pin)
        elif word == "OBS":
            shapes[""] = [*shapes[""], *_shapes(words, "")]
        else:
            words.statement()
    if len(size) != 2 or min(size) <= 0:
        raise words.error(f"cell {name} has no size")
    return name, LefCell(size[0], size[1], pins, frozenset(outputs), shapes)


def _pin(words: _Words) -> tuple[str, str, Sequence[Shape]]:
    """A pin: its name, its direction, and its shapes."""
    name = words.next()
    shapes: list[Shape] = []
    direction = ""
    for word in words.statements(name):
        if word == "PORT":
            shapes += _shapes(words, "")
        else:
            rest = words.statement()
            direction = rest[0] if word == "DIRECTION" and rest else direction
    if not shapes:
        raise words.error(f"pin {name} has no shape")
    return name, direction, shapes


def _shapes(words: _Words, end: str) -> Iterator[Shape]:
    """The shapes of the statements up to ``END end``, each of its last ``LAYER``."""
    layer = ""
    for word in words.statements(end):
        if word == "LAYER":
            layer = (words.statement() or [""])[0]
        elif word == "RECT":
            corners = words.lengths()
            if len(corners) != 4:
                raise words.error("a rectangle has no four lengths")
            xs, ys = sorted(corners[0::2]), sorted(corners[1::2])
            yield layer, xs[0], ys[0], xs[1], ys[1]
        elif word == "POLYGON":
            corners = words.lengths()
            if len(corners) % 2:
                raise words.error("a polygon has an odd number of lengths")
            for box in _rectangles(list(zip(corners[0::2], corners[1::2], strict=True))):
                yield layer, *box
        elif word not in ("DEFAULT", ";"):
            words.statement()


def _rectangles(corners: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, int, int]]:
    """A polygon with horizontal and vertical edges as rectangles, slab by slab; the box around
    another one."""
    sides = list(pairwise([*corners, corners[0]]))
    if any(x != to_x and y != to_y for (x, y), (to_x, to_y) in sides):
        xs, ys = zip(*corners, strict=True)
        yield min(xs), min(ys), max(xs), max(ys)
        return
    edges = [(x, min(low, top), max(low, top)) for (x, low), (_, top) in sides if low != top]
    for low, top in pairwise(sorted({y for _, y in corners})):
        across = sorted(x for x, start, end in edges if start <= low and top <= end)
        for left, right in zip(across[0::2], across[1::2], strict=False):
            yield left, low, right, top


def _layer(words: _Words) -> tuple[str, Mapping[str, int], Wires | None]:
    """A layer: its name, its rules, and the wires of a routing layer."""
    name = words.next()
    values: dict[str, str] = {}
    rules: dict[str, int] = {}
    for word in words.statements(name):
        rest = words.statement()
        values[" ".join([word, *rest[:-1]])] = rest[-1] if rest else ""
        if word == "SPACINGTABLE":
            # The first row is of the narrowest wires, its first number of the shortest ones.
            rest = rest[rest.index("WIDTH") + 2 :] if "WIDTH" in rest else rest
        if word in ("WIDTH", "SPACING", "SPACINGTABLE", "PITCH", "RESISTANCE") and rest:
            with suppress(ValueError):
                rules.setdefault(word.removesuffix("TABLE"), round(float(rest[0]) * _NM))
    rules["DIRECTION"] = int(values.get("DIRECTION") == "HORIZONTAL")
    if values.get("TYPE") != "ROUTING":
        return name, rules, None
    try:
        width = float(values["WIDTH"])
        plate = float(values["CAPACITANCE CPERSQDIST"])
        edge = float(values["EDGECAPACITANCE"])
        ohm = float(values["RESISTANCE RPERSQ"]) / width
    except (KeyError, ValueError, ZeroDivisionError):
        raise words.error(f"layer {name} lacks its width, resistance or capacitance") from None
    # In pF; a wire has an edge on each side.
    return name, rules, Wires(1000 * (plate * width + 2 * edge), ohm)
