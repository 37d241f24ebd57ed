"""Rows of a sweep, its Pareto front, and their files."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from typing import Any

from support.extras import need
from support.files import write_atomically

__all__ = ["Summary", "pareto", "summaries", "winner", "write_parquet"]

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A configuration.

    Attributes:
        number: of the configuration. choice: its fields that vary.
        values: column -> value; of cycles and times the geometric mean over the kernels.
        failed: why it has no values; "": it has.
    """

    number: int
    choice: dict[str, Any]
    values: dict[str, float]
    failed: str = ""

    def objectives(self, names: Sequence[str]) -> tuple[float, ...] | None:
        """The values of columns; None: it failed, or lacks one."""
        if self.failed or any(name not in self.values for name in names):
            return None
        return tuple(self.values[name] for name in names)


def summaries(rows: Sequence[Row], fields: Sequence[str]) -> list[Summary]:
    """The configurations of ``rows``. One is failed if any of its kernels is.

    Parameters:
        fields: that vary.
    """
    groups: dict[int, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["number"], []).append(row)
    return [_summary(number, group, fields) for number, group in sorted(groups.items())]


def _summary(number: int, rows: list[Row], fields: Sequence[str]) -> Summary:
    failed = next((row["message"] for row in rows if row["status"] != "ok"), "")
    values: dict[str, float] = {}
    skipped = {"number", "kernel", "on", "status", "message", *fields}
    for name in {name for row in rows for name in row} - skipped:
        numbers = [row[name] for row in rows if isinstance(row.get(name), (int, float))]
        if len(numbers) == len(rows) and min(numbers) > 0:
            values[name] = (
                exp(sum(map(log, numbers)) / len(numbers)) if len(set(numbers)) > 1 else numbers[0]
            )
    choice = {name: rows[0][name] for name in fields}
    return Summary(number=number, choice=choice, values=values, failed=failed)


def pareto(summaries: Sequence[Summary], objectives: Sequence[str]) -> list[Summary]:
    """Configurations than which no other is as small in all objectives and smaller in one, by the
    first objective."""
    rated = [(one.objectives(objectives), one) for one in summaries]
    points = [(values, one) for values, one in rated if values is not None]
    front = [
        (values, one)
        for values, one in points
        if not any(
            other != values and all(a <= b for a, b in zip(other, values, strict=True))
            for other, _ in points
        )
    ]
    return [one for _, one in sorted(front, key=lambda item: (item[0], item[1].number))]


def winner(points: Sequence[Summary], objectives: Sequence[str]) -> Summary | None:
    """The configuration with the least product of the objectives; None: all failed."""
    rated = [
        (sum(log(value) for value in values), one.number, one)
        for one in points
        if (values := one.objectives(objectives)) is not None
    ]
    return min(rated)[2] if rated else None


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """Write ``rows``, in their order, with all columns that any has.

    Raises:
        MissingExtraError: pyarrow is not installed.
        OSError: it can't be written.
    """
    need("pyarrow", "Parquet files")
    import pyarrow  # type: ignore[import-untyped]
    import pyarrow.parquet  # type: ignore[import-untyped]

    columns: dict[str, None] = {}
    for row in rows:
        columns |= dict.fromkeys(row)
    data = {}
    for name in columns:
        values = [row.get(name) for row in rows]
        # A field that varies may have values of several kinds.
        kinds = {type(value) for value in values if value is not None}
        plain = kinds <= {int, float} or kinds in ({str}, {bool})
        data[name] = values if plain else [None if v is None else str(v) for v in values]
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(data), stream)
    write_atomically(path, stream.getvalue())
