"""Facts about the words of a program: proved for all runs, or observed in some.

Both have the same form, so they can be compared word by word.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Range = tuple[int, int]


def _add_range(ranges: dict[int, Range], address: int, low: int, high: int) -> None:
    before = ranges.get(address)
    if before is None:
        ranges[address] = low, high
    elif low < before[0] or high > before[1]:
        ranges[address] = min(low, before[0]), max(high, before[1])


@dataclass
class Facts:
    """Facts by word address.

    Attributes:
        executed: words that are, or may be, executed without fault.
        taken, passed: branches that are, or may be, taken and not taken.
        written: lowest and highest signed number written to a register.
        settings: lowest and highest number written to VL, MR or FX.
        scratchpad: end (last + 1) of the scratchpad bytes accessed; 0: none.
        dram: end of the memory bytes accessed.
        alignment: 1, 2, 4 or 8, which divides all scratchpad addresses and the memory addresses of
            scratchpad transfers.
    """

    executed: set[int] = field(default_factory=set)
    taken: set[int] = field(default_factory=set)
    passed: set[int] = field(default_factory=set)
    written: dict[int, Range] = field(default_factory=dict)
    settings: dict[int, Range] = field(default_factory=dict)
    scratchpad: dict[int, int] = field(default_factory=dict)
    dram: dict[int, int] = field(default_factory=dict)
    alignment: dict[int, int] = field(default_factory=dict)

    def writes(self, address: int, low: int, high: int) -> None:
        """Record that a register is set to a number from ``low`` to ``high``."""
        _add_range(self.written, address, low, high)

    def sets(self, address: int, low: int, high: int) -> None:
        """Record that VL, MR or FX is set to a number from ``low`` to ``high``."""
        _add_range(self.settings, address, low, high)

    def touches(self, address: int, end: int) -> None:
        """Record an access to scratchpad bytes below ``end``."""
        self.scratchpad[address] = max(end, self.scratchpad.get(address, 0))

    def reaches(self, address: int, end: int) -> None:
        """Record an access to memory bytes below ``end``."""
        self.dram[address] = max(end, self.dram.get(address, 0))

    def lies(self, address: int, step: int) -> None:
        """Record that addresses are multiples of ``step``."""
        self.alignment[address] = min(step, self.alignment.get(address, step))

    def _adders(self) -> Mapping[str, Callable[..., None]]:
        """Table -> the method that adds a word's number, or both of its numbers."""
        return {
            "written": self.writes,
            "settings": self.sets,
            "scratchpad": self.touches,
            "dram": self.reaches,
            "alignment": self.lies,
        }

    def include(self, other: "Facts") -> None:
        """Add the facts of ``other``."""
        for name in _SETS:
            getattr(self, name).update(getattr(other, name))
        for name, add in self._adders().items():
            for address, value in getattr(other, name).items():
                add(address, *(value if isinstance(value, tuple) else (value,)))

    def clear(self) -> None:
        """Forget all facts."""
        for name in (*_SETS, *self._adders()):
            getattr(self, name).clear()

    def to_json(self) -> dict[str, Any]:
        """The facts as plain JSON data."""
        tables = {name: getattr(self, name) for name in self._adders()}
        return {
            **{name: sorted(getattr(self, name)) for name in _SETS},
            **{
                name: {str(address): table[address] for address in sorted(table)}
                for name, table in tables.items()
            },
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Facts":
        """The inverse of :meth:`to_json`.

        Raises:
            KeyError, TypeError, ValueError: ``content`` was not written by it.
        """
        words: dict[str, Any] = {name: _addresses(content[name]) for name in _SETS}
        facts = cls(**words)
        for name, add in facts._adders().items():
            for address, value in content[name].items():
                add(int(address), *map(whole, value if isinstance(value, list) else [value]))
        return facts


#: Attributes of :class:`Facts` that are sets of words.
_SETS = ("executed", "taken", "passed")


def whole(value: Any) -> int:
    """``value`` from JSON data, if it is a whole number.

    Raises:
        ValueError: it is not.
    """
    if type(value) is not int:
        raise ValueError(f"{value!r} is not a whole number")
    return value


def _addresses(value: Any) -> set[int]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} is not a list of addresses")
    return {whole(address) for address in value}
