"""Statistics of wires in a Liberty file."""

from dataclasses import dataclass

from .liberty_reader import Group, LibertyError, number, numbers

__all__ = ["WireLoad", "read_wire_load"]


@dataclass(frozen=True)
class WireLoad:
    """Statistics of wires in blocks of some size: fF by the number of pins that a net drives.

    Attributes:
        loads: fF with 1, 2, ... pins. slope: fF for each pin beyond.
    """

    loads: tuple[float, ...] = ()
    slope: float = 0.0

    def load(self, pins: int) -> float:
        """Load in fF of a net that drives ``pins`` pins."""
        if not self.loads or not pins:
            return self.slope * pins
        return self.loads[min(pins, len(self.loads)) - 1] + self.slope * max(
            0, pins - len(self.loads)
        )


def read_wire_load(library: Group, load: float) -> WireLoad:
    """The default wire load of a library, empty without one; gaps between the numbers of pins
    given are filled by lines.

    Parameters:
        load: the library's unit of capacitance, fF.

    Raises:
        LibertyError: it can't be read.
    """
    name = library.values.get("default_wire_load")
    for group in library.of("wire_load"):
        if group.name != name:
            continue
        place = f"wire_load {name}"
        unit = load * number(group.values.get("capacitance", "0"), place)
        points = sorted(tuple(numbers(words, place)[:2]) for words in group.repeated)
        if not points or any(len(point) != 2 for point in points):
            raise LibertyError(f"{place}: no fanout_length(pins, length) in it")
        loads = []
        for pins in range(1, int(points[-1][0]) + 1):
            above = next(point for point in points if point[0] >= pins)
            below = next((point for point in reversed(points) if point[0] <= pins), above)
            share = (pins - below[0]) / (above[0] - below[0]) if above != below else 0.0
            loads.append(unit * (below[1] + share * (above[1] - below[1])))
        return WireLoad(tuple(loads), unit * number(group.values.get("slope", "0"), place))
    return WireLoad()
