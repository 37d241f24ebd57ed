"""Figures of a result's JSON; those without data are left out."""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from pe.interface import PeCounter
from support.errors import clipped

from .charts import (
    COLOURS,
    Bar,
    figure,
    legend,
    number,
    polyline,
    roofline,
    stacked,
    table,
    treemap,
)

_Content = Mapping[str, Any]

#: Parts of a result that other figures draw, and configurations.
_ELSEWHERE = {
    "configuration",
    "configuration_full",
    "counters",
    "network_counters",
    "picture",
    "units",
}
#: The largest picture that a page contains.
_PICTURE_BYTES = 1 << 20
#: Rows of a table, and characters of a value in it.
_MOST_ROWS = 200
_MOST_CHARACTERS = 60
#: Engines whose cycles are shown over time.
_MOST_PLOTS = 8

#: Counters into exactly one of which each cycle falls -> their names for people.
CAUSES = {
    counter.name: counter.name.lower().replace("_", " ")
    for counter in PeCounter
    if counter.name.startswith(("ISSUED", "STALL"))
}
#: Issued instructions are blue; a wait for the vector unit has the colour of its work, since a
#: machine that waits for nothing else is busy; any other wait is warm or gray.
_CAUSE_COLOURS = dict(
    zip(
        CAUSES.values(),
        (
            "#2563eb", "#0f766e", "#7c3aed", "#0891b2", "#d97706", "#dc2626", "#be185d", "#ea580c",
            "#5eead4", "#a16207", "#64748b", "#94a3b8",
        ),
        strict=True,
    )
)  # fmt: skip
_IDLE_COLOUR = "#cbd5e1"
_DIRECTIONS = ("north", "east", "south", "west")
#: Measures of area, the first one that units have is drawn -> unit.
_MEASURES = {"area_um2": "µm²", "logic_ge": "gates", "luts": "LUTs"}


def picture(content: _Content) -> str:
    """The picture that the command wrote, if it still exists."""
    path = Path(str(content.get("picture") or ""))
    kind = {".png": "png", ".svg": "svg+xml"}.get(path.suffix)
    if kind is None or not path.is_file() or path.stat().st_size > _PICTURE_BYTES:
        return ""
    data = b64encode(path.read_bytes()).decode()
    image = f'<img alt="{escape(path.name)}" src="data:image/{kind};base64,{data}">'
    return figure("Picture", image, path.name)


def engines(content: _Content) -> list[Mapping[str, int]]:
    """Counters of each engine; empty if the result has none."""
    return _counted(content.get("counters"))


def _counted(counters: object) -> list[Mapping[str, int]]:
    """Those of ``counters``, of one unit or of a list, that have counted."""
    every = counters if isinstance(counters, list) else [counters]
    return [unit for unit in every if isinstance(unit, dict) and unit.get("CYCLES")]


def cycles(content: _Content) -> str:
    """Where the cycles of each engine went."""
    every = engines(content)
    if not every:
        return ""
    longest = max(counters["CYCLES"] for counters in every)
    rows = []
    for slot, counters in enumerate(every):
        values = {name: counters.get(counter, 0) for counter, name in CAUSES.items()}
        parts = {
            name: (value, f"{value:,} cycles, {value / counters['CYCLES']:.1%}")
            for name, value in values.items()
        }
        rows.append(Bar(f"engine {slot}", parts))
    total = sum(counters["CYCLES"] for counters in every)
    busy = sum(counters.get("VECTOR_BUSY", 0) for counters in every) / total
    units = "vector unit is" if len(every) == 1 else "vector units are"
    note = (
        f"The full width is {longest:,} cycles; each is counted once. The {units} busy in "
        f"{busy:.1%} of them; stall vector: an instruction waits until the unit is free."
    )
    return stacked("Where the cycles went", rows, _CAUSE_COLOURS, note, longest)


def _of_layers(content: _Content) -> list[Mapping[str, Any]]:
    """Layers of a model that has run (:class:`vip.models.layers.LayerFigures`)."""
    every = content.get("layers")
    every = every if isinstance(every, list) else []
    return [layer for layer in every if isinstance(layer, dict) and layer.get("causes")]


def layers(content: _Content) -> str:
    """Cycles of each layer by cause, beside the fewest."""
    every = _of_layers(content)
    if not every:
        return ""
    names = {**CAUSES, "IDLE": "idle"}
    colours = {**_CAUSE_COLOURS, "idle": _IDLE_COLOUR}
    rows = []
    for layer in every:
        engine_cycles = sum(layer["causes"].values())
        shares = {
            name: layer["causes"].get(cause, 0) / engine_cycles for cause, name in names.items()
        }
        parts = {name: (layer["taken"] * share, f"{share:.1%}") for name, share in shares.items()}
        fewest = f"at least {layer['bound']:,.0f} cycles"
        title = f"{layer['name']} {layer['kind']} {layer['taken']:,} ({layer['use']:.0%})"
        rows.append(Bar(layer["name"], parts, title, (layer["bound"], fewest)))
    cycles = sum(layer["taken"] for layer in every)
    use = sum(layer["computing"] for layer in every) / cycles
    longest = max(max(layer["taken"], layer["bound"]) for layer in every)
    note = (
        f"Cycles of each layer with the moves before it, {cycles:,} in all, and in brackets the "
        f"share of the lanes' cycles that multiply and add usefully, {use:.0%} in all. The black "
        "mark is the bound: the fewest cycles by lanes and memory."
    )
    return stacked("Layers beside their bounds", rows, colours, note, longest)


def energy(content: _Content) -> str:
    """Energy of each layer by part of the machine."""
    every = [layer for layer in _of_layers(content) if layer.get("costs")]
    kinds = [kind for kind in (every[0]["costs"] if every else ()) if kind.endswith("_uj")]
    if not kinds:
        return ""
    names = {kind: kind.removesuffix("_uj").replace("_", " ") for kind in kinds}
    colours = dict(zip(names.values(), (COLOURS[1], COLOURS[4], *COLOURS[6:]), strict=False))
    sums = [sum(layer["costs"][kind] for kind in kinds) for layer in every]
    scale, unit = (1000, "mJ") if sum(sums) >= 1000 else (1, "µJ")
    rows = []
    for layer, total in zip(every, sums, strict=True):
        parts = {
            name: (layer["costs"][kind], f"{layer['costs'][kind] / scale:.4g} {unit}")
            for kind, name in names.items()
        }
        rows.append(Bar(layer["name"], parts, f"{layer['name']} {total / scale:.3g} {unit}"))
    note = f"{sum(sums) / scale:.4g} {unit} in all, at 28 nm and 0.9 V."
    return stacked("Energy by layer", rows, colours, note)


def over_time(content: _Content) -> str:
    """The activity of each engine over time, for runs recorded cycle by cycle."""
    activity = content.get("activity")
    if not isinstance(activity, dict):
        return ""
    interval, every = activity["interval_cycles"], activity["engines"]
    plots = []
    for name, kinds in list(every.items())[:_MOST_PLOTS]:
        series = {cause: kinds[cause] for cause in CAUSES.values() if cause in kinds}
        shares = {
            cause: ([100 * value / interval for value in values], _CAUSE_COLOURS[cause])
            for cause, values in series.items()
        }
        windows = range(len(next(iter(series.values()))))
        across = [float(interval * at) for at in windows]
        labels = (f"0 to {number(across[-1] + interval)} cycles", f"{name}, % of the cycles")
        plots.append(polyline(shares, across, 100.0, labels))
    note = f"Each point is the share of {interval} cycles."
    if len(every) > _MOST_PLOTS:
        note += f" Of {len(every)} engines, {_MOST_PLOTS} are shown."
    body = legend(_CAUSE_COLOURS) + "".join(plots)
    return figure("Cycles over time", body, note) if plots else ""


def roofs(content: _Content) -> str:
    """Operations per cycle against operations per byte."""
    every = engines(content)
    configuration = content.get("configuration", {})
    tile = configuration.get("tile", configuration)
    return roofline(every, tile.get("pes", 1)) if every else ""


def bandwidth(content: _Content) -> str:
    """Bandwidth of a vault over time."""
    series = content.get("bandwidth")
    if not isinstance(series, dict) or not series.get("read_gbs"):
        return ""
    read, written = series["read_gbs"], series["written_gbs"]
    step = series["interval_us"]
    across = [step * at for at in range(len(read))]
    colours = {"read": COLOURS[0], "written": COLOURS[4]}
    peak = max(one + other for one, other in zip(read, written, strict=True))
    high = max(10.0, peak)
    body = legend(colours) + polyline(
        {"read": (read, colours["read"]), "written": (written, colours["written"])},
        across,
        high,
        (f"0 to {across[-1]:.4g} µs", f"GB/s, up to {high:g}"),
    )
    rate = content.get("bandwidth_gbs")
    note = f"Mean {rate} GB/s; a vault has 10 at most." if rate is not None else ""
    return figure("DRAM bandwidth over time", body, note)


def vaults(content: _Content) -> str:
    """Requests of each vault by how they found their row, and the share of busy cycles."""
    every = _counted(content.get("vault_counters"))
    if not every:
        return ""
    kinds = {"ROW_HITS": "row hit", "ROW_MISSES": "closed row", "ROW_CONFLICTS": "other row open"}
    colours = dict(zip(kinds.values(), (COLOURS[1], COLOURS[4], COLOURS[5]), strict=True))
    rows = []
    for place, vault in enumerate(every):
        requests = {name: vault.get(kind, 0) for kind, name in kinds.items()}
        parts = {name: (count, f"{count:,} requests") for name, count in requests.items()}
        rows.append(Bar(f"vault {place}", parts))
    busy = [vault.get("BUS_BUSY", 0) / vault["CYCLES"] for vault in every]
    note = (
        f"The data bus is busy in {min(busy):.1%} of the cycles."
        if len(busy) == 1
        else f"The data buses are busy in {min(busy):.1%} to {max(busy):.1%} of the cycles."
    )
    return stacked("Rows of the DRAM", rows, colours, note)


def links(content: _Content) -> str:
    """Flits of each link of the network, as a map of the torus."""
    counters = content.get("network_counters")
    network = content.get("configuration", {}).get("network")
    if not isinstance(counters, list) or not isinstance(network, dict):
        return ""
    columns, rows = network["columns"], network["rows"]
    if len(counters) != columns * rows or not counters[0].get("CYCLES"):
        return ""
    names = {direction: f"{direction.upper()}_FLITS" for direction in _DIRECTIONS}
    largest = max(node.get(name, 0) for node in counters for name in names.values())
    cells = []
    for place, node in enumerate(counters):
        arrows = []
        for direction, name in names.items():
            flits = node.get(name, 0)
            share = flits / node["CYCLES"]
            tip = f"vault {place} to the {direction}: {flits:,} flits, {share:.2%} of the cycles"
            dark = flits / largest if largest else 0.0
            arrows.append(
                f'<b class="{direction}" tabindex="0" data-tip="{escape(tip)}" '
                f'style="background:rgba(220,38,38,{0.06 + 0.94 * dark:.3f})"></b>'
            )
        cells.append(f"<div><span>{place}</span>{''.join(arrows)}</div>")
    grid = f'<div class="torus" style="--columns:{columns}">{"".join(cells)}</div>'
    note = f"The darkest link has {largest:,} flits; the sides of a vault are its outgoing links."
    return figure("Links of the torus", grid, note)


def _sizes(area: _Content) -> tuple[dict[str, float], str]:
    """Size of each unit, and the measure's unit."""
    units = area.get("units")
    rows = (
        [{"unit": name, **values} for name, values in units.items()]
        if isinstance(units, dict)
        else units or []
    )
    for measure, unit in _MEASURES.items():
        sizes = {
            row["unit"]: row[measure] for row in rows if isinstance(row.get(measure), int | float)
        }
        if sizes:
            return sizes, unit
    return {}, ""


def area(content: _Content) -> str:
    """Area by unit; of a trimmed engine before and after."""
    compared, targets = content.get("areas"), content.get("targets")
    maps = []
    if isinstance(compared, dict):
        for target, both in compared.items():
            full, unit = (
                _sizes(both["full"]) if isinstance(both, dict) and "full" in both else ({}, "")
            )
            if full:
                maps.append((f"{target}: full, ", full, unit, full))
                maps.append((f"{target}: trimmed, ", _sizes(both["trimmed"])[0], unit, full))
    elif isinstance(targets, dict):
        for target, areas in targets.items():
            sizes, unit = _sizes(areas)
            if sizes:
                maps.append((f"{target}: ", sizes, unit, sizes))
    drawn = [
        f"<h3>{escape(title)}{number(round(sum(sizes.values())))} {unit}</h3>"
        + treemap(sizes, unit, sum(whole.values()))
        for title, sizes, unit, whole in maps
    ]
    return figure("Area by unit", "".join(drawn)) if drawn else ""


def power(content: _Content) -> str:
    """Power by unit and part."""
    units = content.get("units")
    parts = ("memories", "clock", "cells", "nets", "leakage")
    if not isinstance(units, list) or not all(
        isinstance(row, dict) and set(_milliwatts(row, parts)) == set(parts) for row in units
    ):
        return ""
    rows = []
    for row in units:
        shares = _milliwatts(row, parts)
        milliwatts = {part: (value, f"{value:.3g} mW") for part, value in shares.items()}
        rows.append(Bar(str(row["unit"]), milliwatts))
    note = f"At {content.get('mhz')} MHz." if content.get("mhz") else ""
    return stacked("Power by unit", rows, dict(zip(parts, COLOURS, strict=False)), note)


def _milliwatts(row: _Content, parts: Sequence[str]) -> dict[str, float]:
    """The parts of a row that it has, by whatever suffix their unit is named."""
    return {
        part: float(value)
        for part in parts
        for name, value in row.items()
        if name.removesuffix("_mw") == part and isinstance(value, int | float)
    }


def _plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _shown(value: object) -> str:
    """A plain value as a person reads it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return number(value)
    return clipped(str(value), _MOST_CHARACTERS)


def rows(content: _Content) -> str:
    """Lists of rows of plain values, and groups of them, as tables."""
    parts = []
    for name, value in content.items():
        if name in _ELSEWHERE:
            continue
        title = f"<h3>{escape(str(name).replace('_', ' '))}</h3>"
        if isinstance(value, dict) and value and all(map(_plain, value.values())):
            pairs = [(str(key), _shown(entry)) for key, entry in value.items()]
            parts.append(title + table(("", ""), pairs))
        elif isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
            columns = list(dict.fromkeys(key for entry in value for key in entry))
            plain = [key for key in columns if all(_plain(entry.get(key)) for entry in value)]
            lines = [[_shown(entry.get(key)) for key in plain] for entry in value[:_MOST_ROWS]]
            if plain:
                parts.append(title + table([key.replace("_", " ") for key in plain], lines))
                if len(value) > _MOST_ROWS:
                    parts.append(f'<p class="note">{len(value) - _MOST_ROWS} rows more</p>')
    return figure("Tables", "".join(parts)) if parts else ""


def numbers(content: _Content) -> str:
    """The plain values of the result."""
    lines = [
        (name.replace("_", " "), _shown(value))
        for name, value in content.items()
        if _plain(value) and value not in (None, "") and name not in _ELSEWHERE
    ]
    return figure("Numbers", table(("", ""), lines)) if lines else ""


#: All figures, in the order of the page.
FIGURES: Sequence[Callable[[_Content], str]] = (
    picture,
    layers,
    energy,
    cycles,
    over_time,
    roofs,
    bandwidth,
    vaults,
    links,
    area,
    power,
    rows,
    numbers,
)
