"""Rows of a sweep, its Pareto front, and their files."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from typing import Any

from support.extras import need
from support.files import write_atomically

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A configuration.

    Attributes:
        number: of the configuration. choice: its fields that vary.
        values: column -> value; cycles and times are geometric means over the kernels.
        failed: why it has no values; "" if it has.
    """

    number: int
    choice: dict[str, Any]
    values: dict[str, float]
    failed: str = ""

    def objectives(self, names: Sequence[str]) -> tuple[float, ...] | None:
        """The values of columns; None: the configuration failed or lacks one."""
        if self.failed or any(name not in self.values for name in names):
            return None
        return tuple(self.values[name] for name in names)


def summaries(rows: Sequence[Row], fields: Sequence[str]) -> list[Summary]:
    """The configurations of ``rows``. One has failed if any of its kernels has.

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
    """The Pareto front, by the first objective: the configurations that no other one beats in one
    objective and at least equals in all others."""
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
    """The configuration with the smallest product of the objectives; None: all failed."""
    rated = [
        (sum(log(value) for value in values), one.number, one)
        for one in points
        if (values := one.objectives(objectives)) is not None
    ]
    return min(rated)[2] if rated else None


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """Write ``rows``, in order, with every column that any of them has.

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
        # A field that varies may have values of several types.
        kinds = {type(value) for value in values if value is not None}
        plain = kinds <= {int, float} or kinds in ({str}, {bool})
        data[name] = values if plain else [None if v is None else str(v) for v in values]
    stream = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(data), stream)
    write_atomically(path, stream.getvalue())


#: Titles for columns whose names a reader may not know.
_LABELS = {
    "time_us": "time (us)",
    "luts": "LUTs",
    "ffs": "flip-flops",
    "dsps": "DSP blocks",
    "brams": "block RAMs",
    "logic_ge": "logic (gate equivalents)",
    "power_mw": "power (mW)",
    "energy_nj": "energy of a run (nJ)",
    "cells_logic_ge": "logic of the netlist with this clock (gate equivalents)",
}
#: Head of a page that has a title and that a phone does not shrink.
_HEAD = '<head><title>{title}</title><meta name="viewport" content="width=device-width" />'


def _text(one: Summary) -> str:
    fields = [f"{name} = {value}" for name, value in one.choice.items()]
    values = [f"{name}: {value:,.6g}" for name, value in sorted(one.values.items())]
    return "<br>".join([f"<b>configuration {one.number}</b>", *fields, *values])


def write_page(
    points: Sequence[Summary], front: Sequence[Summary], objectives: Sequence[str], path: Path
) -> None:
    """Write a self-contained page: the first objective over the second or, if there is only one,
    over the configuration's number. A point shows its fields and values.

    Raises:
        MissingExtraError: Plotly is not installed.
        OSError: it can't be written.
    """
    need("plotly", "plots of sweeps")
    import plotly.graph_objects as plots  # type: ignore[import-untyped]

    across, down = (objectives[1] if len(objectives) > 1 else "configuration"), objectives[0]

    def point(one: Summary) -> tuple[float, float]:
        values = one.objectives(objectives) or ()
        return (values[1] if len(values) > 1 else one.number), values[0]

    usable = [one for one in points if one.objectives(objectives) is not None]
    figure = plots.Figure()
    for name, members, style in (
        ("configurations", usable, {"mode": "markers", "marker": {"color": "#9aa5b1", "size": 8}}),
        (
            "Pareto front",
            sorted(front, key=point),
            # Stairs: what lies between two points was not measured.
            {
                "mode": "markers+lines",
                "marker": {"color": "#c2410c", "size": 10},
                "line": {"shape": "hv"},
            },
        ),
    ):
        places = [point(one) for one in members]
        figure.add_scatter(
            name=name,
            x=[x for x, _ in places],
            y=[y for _, y in places],
            text=[_text(one) for one in members],
            hovertemplate="%{text}<extra></extra>",
            **style,
        )
    down, across = (_LABELS.get(name, name) for name in (down, across))
    title = f"{len(usable)} configurations, {len(front)} on the Pareto front"
    figure.update_layout(
        title=title,
        xaxis={"title": across},
        yaxis={"title": down},
        template="plotly_white",
        legend={"orientation": "h", "yanchor": "bottom", "y": 1},
    )
    page = figure.to_html(include_plotlyjs=True, div_id="front")
    page = page.replace("<head>", _HEAD.format(title=title), 1)
    write_atomically(path, page.encode())
