"""The plot of a sweep: every configuration, and the Pareto front, as one interactive page."""

from collections.abc import Sequence
from pathlib import Path

from support.extras import need
from support.files import write_atomically

from .table import Summary

__all__ = ["write_page"]

#: Words for columns that a reader may not know by their names.
_LABELS = {
    "time_us": "time (us)",
    "luts": "LUTs",
    "ffs": "flip-flops",
    "dsps": "DSP blocks",
    "brams": "block RAMs",
    "logic_ge": "logic (gate equivalents)",
    "power_mw": "power (mW)",
    "energy_nj": "energy of a run (nJ)",
    "speed_logic_ge": "logic mapped for speed (gate equivalents)",
}
#: Of a page that a phone does not shrink, with a title.
_HEAD = '<head><title>{title}</title><meta name="viewport" content="width=device-width" />'


def _text(one: Summary) -> str:
    fields = [f"{name} = {value}" for name, value in one.choice.items()]
    values = [f"{name}: {value:,.6g}" for name, value in sorted(one.values.items())]
    return "<br>".join([f"<b>configuration {one.number}</b>", *fields, *values])


def write_page(
    points: Sequence[Summary], front: Sequence[Summary], objectives: Sequence[str], path: Path
) -> None:
    """Write a page that needs no other file: the first objective over the second, or over the
    number of the configuration where there is one objective. A point names its fields and values.

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
        xaxis={"title": across, "rangemode": "tozero"},
        yaxis={"title": down, "rangemode": "tozero"},
        template="plotly_white",
        legend={"orientation": "h", "yanchor": "bottom", "y": 1},
    )
    page = figure.to_html(include_plotlyjs=True, div_id="front")
    page = page.replace("<head>", _HEAD.format(title=title), 1)
    write_atomically(path, page.encode())
