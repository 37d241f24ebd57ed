"""Reads what placement needs of LEF files: sizes and pins of cells, and wires of routing layers.

Only statements of LEF 5.6 that say these are read; all others are skipped.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
_BLOCKS = ("VIA", "VIARULE", "NONDEFAULTRULE", "SITE")


@dataclass(frozen=True)
class LefCell:
    """A cell in nm: its size, pin -> centre of the pin's shapes, from the lower left, and its
    outputs."""

    width: int
    height: int
    pins: Mapping[str, tuple[int, int]]
    outputs: frozenset[str]


class Lef:
    """Cells and the wires of routing layers by name, layers from the lowest one.

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
        for path in paths:
            words = _Words(path)
            for word in words:
                if word == "MACRO":
                    self.cells.update([_cell(words)])
                elif word == "LAYER":
                    self.layers.update(_layer(words))
                elif word in _BLOCKS:
                    words.skip(words.next())
        if not self.cells:
            raise SynthesisError(f"{', '.join(map(str, paths))}: no cell (MACRO) in it")

    @property
    def row_nm(self) -> int:
        """Height of a row of cells, which is that of every cell.

        Raises:
            SynthesisError: cells differ in height, or there is none.
        """
        heights = {cell.height for cell in self.cells.values()}
        if len(heights) != 1:
            raise SynthesisError(f"LEF: cells have {len(heights)} heights; rows need one")
        return heights.pop()

    @property
    def site_nm(self) -> int:
        """Width of a site."""
        return gcd(*(cell.width for cell in self.cells.values()))

    @property
    def row(self) -> int:
        """Steps of a row: as many as make a step about as long as a site is wide, since the
        placer's time grows with the numbers of its lengths."""
        steps = max(1, round(self.row_nm / self.site_nm))
        while self.row_nm % steps:
            steps -= 1
        return steps

    @property
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
    for word in words.statements(name):
        if word == "SIZE":
            size = words.lengths()
        elif word == "PIN":
            pin, centre, direction = _pin(words)
            pins[pin] = centre
            if direction == "OUTPUT":
                outputs.add(pin)
        elif word == "OBS":
            for _ in words.statements(""):
                words.statement()
        else:
            words.statement()
    if len(size) != 2 or min(size) <= 0:
        raise words.error(f"cell {name} has no size")
    return name, LefCell(size[0], size[1], pins, frozenset(outputs))


def _pin(words: _Words) -> tuple[str, tuple[int, int], str]:
    """A pin: its name, the middle of the box around its shapes, and its direction."""
    name = words.next()
    xs: list[int] = []
    ys: list[int] = []
    direction = ""
    for word in words.statements(name):
        if word == "PORT":
            for shape in words.statements(""):
                if shape in ("RECT", "POLYGON"):
                    corners = words.lengths()
                    xs += corners[0::2]
                    ys += corners[1::2]
                else:
                    words.statement()
        else:
            rest = words.statement()
            direction = rest[0] if word == "DIRECTION" and rest else direction
    if not xs or len(xs) != len(ys):
        raise words.error(f"pin {name} has no shape")
    return name, ((min(xs) + max(xs)) // 2, (min(ys) + max(ys)) // 2), direction


def _layer(words: _Words) -> Iterator[tuple[str, Wires]]:
    name = words.next()
    values: dict[str, str] = {}
    for word in words.statements(name):
        rest = words.statement()
        values[" ".join([word, *rest[:-1]])] = rest[-1] if rest else ""
    if values.get("TYPE") != "ROUTING":
        return
    try:
        width = float(values["WIDTH"])
        plate = float(values["CAPACITANCE CPERSQDIST"])
        edge = float(values["EDGECAPACITANCE"])
        ohm = float(values["RESISTANCE RPERSQ"]) / width
    except (KeyError, ValueError, ZeroDivisionError):
        raise words.error(f"layer {name} lacks its width, resistance or capacitance") from None
    # In pF; a wire has an edge on each side.
    yield name, Wires(1000 * (plate * width + 2 * edge), ohm)
