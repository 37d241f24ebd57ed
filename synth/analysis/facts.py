"""Facts about the words of a program: proved for all runs, or observed in some.

Both have the same form, so they can be compared word by word.
"""

from collections.abc import Mapping
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

    def include(self, other: "Facts") -> None:
        """Add the facts of ``other``."""
        self.executed |= other.executed
        self.taken |= other.taken
        self.passed |= other.passed
        for address, (low, high) in other.written.items():
            self.writes(address, low, high)
        for address, (low, high) in other.settings.items():
            self.sets(address, low, high)
        for address, end in other.scratchpad.items():
            self.touches(address, end)
        for address, end in other.dram.items():
            self.reaches(address, end)
        for address, step in other.alignment.items():
            self.lies(address, step)

    def to_json(self) -> dict[str, Any]:
        """The facts as plain JSON data."""
        return {
            "executed": sorted(self.executed),
            "taken": sorted(self.taken),
            "passed": sorted(self.passed),
            **{
                name: {str(address): table[address] for address in sorted(table)}
                for name, table in self._tables().items()
            },
        }

    def _tables(self) -> dict[str, Mapping[int, Any]]:
        return {
            "written": self.written,
            "settings": self.settings,
            "scratchpad": self.scratchpad,
            "dram": self.dram,
            "alignment": self.alignment,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "Facts":
        """The inverse of :meth:`to_json`.

        Raises:
            KeyError, TypeError, ValueError: ``content`` was not written by it.
        """
        facts = cls(
            executed=_addresses(content["executed"]),
            taken=_addresses(content["taken"]),
            passed=_addresses(content["passed"]),
        )
        for add, name in ((facts.writes, "written"), (facts.sets, "settings")):
            for address, (low, high) in content[name].items():
                add(int(address), whole(low), whole(high))
        for put, name in (
            (facts.touches, "scratchpad"),
            (facts.reaches, "dram"),
            (facts.lies, "alignment"),
        ):
            for address, value in content[name].items():
                put(int(address), whole(value))
        return facts


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
