"""Tables of a Liberty file: a time over two quantities."""

from bisect import bisect_right
from dataclasses import dataclass

__all__ = ["TimingTable"]


@dataclass(frozen=True)
class TimingTable:
    """A table of times.

    Attributes:
        rows, columns: ascending values of the two quantities; one value: the quantity is ignored.
        values: the times, a row after the other.
    """

    rows: tuple[float, ...]
    columns: tuple[float, ...]
    values: tuple[float, ...]

    def at(self, row: float, column: float) -> float:
        """The time at ``row`` and ``column``, linear between the table's points and beyond."""
        rows, columns, values = self.rows, self.columns, self.values
        wide = len(columns)
        across = 0.0
        j = 0
        if wide > 1:
            j = min(max(bisect_right(columns, column) - 1, 0), wide - 2)
            across = (column - columns[j]) / (columns[j + 1] - columns[j])
        if len(rows) == 1:
            low = values[j]
            return low + across * (values[j + 1] - low) if wide > 1 else low
        i = min(max(bisect_right(rows, row) - 1, 0), len(rows) - 2)
        along = (row - rows[i]) / (rows[i + 1] - rows[i])
        at = i * wide + j
        low, high = values[at], values[at + wide]
        if wide > 1:
            low += across * (values[at + 1] - low)
            high += across * (values[at + wide + 1] - high)
        return low + along * (high - low)
