"""Area of a processing engine, in total and by unit: alone, before and after trimming, and compared
with the thesis's (Table 7.4, 28 nm, after place and route)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hdl.emission import Emission
from hdl.sram_macro import SramGeometry
from pe.config import PeConfig
from soc.generate.generate import verilog
from support.errors import unknown
from synth.errors import SynthesisError
from synth.sram import GATE_UM2, sram_um2
from synth.timing.sta import Path, longest_path

from .mapping import (
    Progress,
    choose_recipes,
    each_unit,
    engine_netlist,
    map_module,
    unit_netlist,
)
from .targets import Target, find_target
from .units import EngineUnit, memories, units

#: Name of the row of totals.
TOTAL = "total"

#: Name of the row of the whole engine, synthesised flat.
FLAT = "flat"

#: Measure -> its description.
MEASURES = {
    "logic_ge": "gate equivalents of logic (two-input NAND gates)",
    "luts": "lookup tables, including those used as memory",
    "ffs": "flip-flops",
    "dsps": "DSP blocks",
    "brams": "block RAMs, of 36 Kbit (xc7) or 18 Kbit (ecp5, gowin)",
    "sram_bits": "bits of memory",
    "sram_um2": "area of memory macros at 28 nm in square micrometres",
    "area_um2": f"area at 28 nm in square micrometres, at {GATE_UM2} a gate equivalent;"
    " of standard cells, at their node",
    "fmax_mhz": "clock that the longest path allows in MHz, before layout",
}


@dataclass(frozen=True)
class AreaRow:
    """One unit, or the total.

    Attributes:
        unit: its name.
        values: measure (see :data:`MEASURES`) -> value, in the order of reports.
        srams: shape of memories (words, bits and ports) -> how many there are.
        path: longest path, if the target has delays: units and the ns spent in each.
    """

    unit: str
    values: dict[str, float]
    srams: dict[SramGeometry, int]
    path: tuple[tuple[str, float], ...] = ()

    def to_json(self) -> dict[str, object]:
        """The row as plain JSON data."""
        memories = {
            geometry.name.removeprefix("vip_sram_"): n for geometry, n in self.srams.items()
        }
        report: dict[str, object] = {"unit": self.unit, **self.values, "srams": memories}
        if self.path:
            report["critical_path"] = [{"unit": unit, "ns": ns} for unit, ns in self.path]
        return report


@dataclass(frozen=True)
class AreaReport:
    """Area of an engine by unit, or of a chip by part, with all copies of each together.

    Attributes:
        target: name of the target.
        rows: the requested units, including ``other``, which connects them; or the parts of a chip,
            which only wires connect.
        total: their sum.
        flat: the whole engine, optimised across units, if requested.
    """

    target: str
    rows: tuple[AreaRow, ...]
    total: AreaRow
    flat: AreaRow | None = None

    def row(self, unit: str) -> AreaRow | None:
        """The row of ``unit``, or None."""
        return next((row for row in self.rows if row.unit == unit), None)

    def to_json(self) -> dict[str, object]:
        """The report as plain JSON data: the measures of the total, and ``units``."""
        total = self.total.to_json()
        del total["unit"]
        report = {"target": self.target, **total, "units": [row.to_json() for row in self.rows]}
        return report if self.flat is None else {**report, "flat": self.flat.to_json()}


def synthesise(
    config: PeConfig,
    target: str,
    units: Sequence[str] | None = None,
    progress: Progress | None = None,
    jobs: int | None = None,
    *,
    flat: bool = False,
) -> AreaReport:
    """Synthesise a processing engine unit by unit.

    Each unit is synthesised separately and flat, so that rows add up to the total and show the cost
    of each; no logic is shared or simplified across units. Results are cached by content in
    :func:`synth.physical.yosys.cache_folder`, so only changed units take time, and an interrupted
    run resumes after its last result.

    Parameters:
        config: of the engine; the target selects ``sram``.
        target: see :data:`synth.physical.targets.TARGETS`.
        units: names of the requested units; all by default.
        progress: called after each unit.
        jobs: parallel runs of Yosys; one per processor by default.
        flat: also synthesise the whole engine flat, simplified across units. This row has no clock;
            that of the total follows from the units.

    Raises:
        SynthesisError: the target or a unit is unknown, or Yosys refuses the design.
    """
    chosen = find_target(target)
    emission = verilog(replace(config, sram=chosen.sram))
    requested = _choose(emission, units)
    shapes = verilog(replace(config, sram="macro" if chosen.sram == "fpga" else chosen.sram))
    several = len(chosen.recipes) > 1
    recipes = choose_recipes(requested, chosen, emission, progress, jobs)
    if flat:
        requested.append(EngineUnit(FLAT, ((emission.top, 1),)))

    def measured(unit: EngineUnit) -> AreaRow:
        return _measured(unit, chosen, emission, shapes, {} if unit.name == FLAT else recipes)

    rows = each_unit(requested, measured, None if several else progress, jobs)
    flat_row = rows[-1] if flat else None
    rows = rows[:-1] if flat else rows
    total = sum_rows(rows)
    if chosen.library is not None and chosen.library.timed and units is None:
        total = _timed(total, longest_path(engine_netlist(emission, chosen), chosen.library))
    return AreaReport(target=target, rows=rows, total=total, flat=flat_row)


def _timed(row: AreaRow, path: Path) -> AreaRow:
    return replace(row, values={**row.values, "fmax_mhz": path.fmax_mhz}, path=path.by_unit())


def _choose(emission: Emission, names: Sequence[str] | None) -> list[EngineUnit]:
    by_name = {unit.name: unit for unit in units(emission)}
    if names is None:
        return list(by_name.values())
    for name in names:
        if name not in by_name:
            raise SynthesisError(unknown("unit", name, by_name))
    return [by_name[name] for name in dict.fromkeys(names)]


def measure_unit(unit: EngineUnit, target: Target, emission: Emission, shapes: Emission) -> AreaRow:
    """Measures of a unit alone, for all its copies together.

    Parameters:
        emission: of the design with memories for the target.
        shapes: of the same design with memory macros, which show the shapes of the memories.

    Raises:
        SynthesisError: Yosys refuses the design.
    """
    recipes = choose_recipes([unit], target, emission)
    return _measured(unit, target, emission, shapes, recipes)


def _measured(
    unit: EngineUnit,
    target: Target,
    emission: Emission,
    shapes: Emission,
    recipes: Mapping[str, int],
) -> AreaRow:
    values = dict.fromkeys(target.measures, 0.0)
    path: Path | None = None
    for module, times in unit.modules:
        result = map_module(unit, module, target, emission, recipe=recipes.get(module, 0))
        inner = emission.instances[module] if unit.opened else {}
        boxes = frozenset(inner) | frozenset(emission.black_boxes)
        timed = target.library is not None and target.library.timed
        if target.library is not None and timed and not unit.opened and unit.name != FLAT:
            path = longest_path(unit_netlist(module, result), target.library)
        for measure, value in target.count(result, boxes).items():
            values[measure] += times * value
    srams = dict(memories(shapes, unit))
    values["sram_bits"] = sum(geometry.bits * number for geometry, number in srams.items())
    if target.area:
        gate, scale = GATE_UM2, 1.0
        if target.library is not None:
            gate = target.library.gate_um2
            scale = (target.library.node_nm / 28.0) ** 2
        values["sram_um2"] = scale * sum(sram_um2(geometry) * n for geometry, n in srams.items())
        values["area_um2"] = values["sram_um2"] + gate * values[target.area]
    row = AreaRow(unit.name, {name: _plain(value) for name, value in values.items()}, srams)
    return row if path is None else _timed(row, path)


def _plain(value: float) -> float:
    """``value`` for display: whole numbers as such, others to a tenth."""
    return int(value) if value == int(value) else round(value, 1)


def sum_rows(rows: Sequence[AreaRow]) -> AreaRow:
    """The row :data:`TOTAL` of ``rows``."""
    values: dict[str, float] = {}
    srams: dict[SramGeometry, int] = {}
    for row in rows:
        for measure, value in row.values.items():
            if measure == "fmax_mhz":
                continue
            values[measure] = values.get(measure, 0) + value
        for geometry, number in row.srams.items():
            srams[geometry] = srams.get(geometry, 0) + number
    rounded = {name: _plain(round(value, 1)) for name, value in values.items()}
    return AreaRow(TOTAL, rounded, dict(sorted(srams.items())))


@dataclass(frozen=True)
class AreaComparison:
    """Area before and after trimming, for one target."""

    full: AreaReport
    trimmed: AreaReport

    def saved(self, measure: str, unit: str | None = None) -> float:
        """Fraction of ``measure`` (see :data:`synth.physical.area.MEASURES`) that trimming saves.

        Of the total or of ``unit``; 0 without the unit, negative if the area grew.
        """
        before, after = self._rows(unit)
        was = before.values.get(measure, 0) if before else 0
        left = after.values.get(measure, 0) if after else 0
        return round(1 - left / was, 4) if was else 0.0

    def _rows(self, unit: str | None) -> tuple[AreaRow | None, AreaRow | None]:
        if unit is None:
            return self.full.total, self.trimmed.total
        return self.full.row(unit), self.trimmed.row(unit)

    def to_json(self) -> dict[str, object]:
        """The comparison as plain JSON data: ``lut_saved``, ``ff_saved`` and ``ge_saved`` if the
        target has them, both reports, and the savings by unit."""
        keys = {"lut_saved": "luts", "ff_saved": "ffs", "ge_saved": "logic_ge"}
        present = {key: name for key, name in keys.items() if name in self.full.total.values}
        rows = [row.unit for row in self.full.rows]
        return {
            "target": self.full.target,
            **{key: self.saved(name) for key, name in present.items()},
            "full": self.full.to_json(),
            "trimmed": self.trimmed.to_json(),
            "saved_by_unit": {
                unit: {key: self.saved(name, unit) for key, name in present.items()}
                for unit in rows
            },
        }


def compare_area(
    full: PeConfig,
    trimmed: PeConfig,
    target: str,
    progress: Progress | None = None,
) -> AreaComparison:
    """Area of two configurations for ``target``.

    Performance counters of ``full`` are left out if ``trimmed`` has none: no program needs them, so
    trimming gets no credit for their removal.

    Parameters:
        full, trimmed: before and after.
        target: see :data:`synth.physical.targets.TARGETS`.
        progress: called after each unit of either, with the number of units of both.

    Raises:
        SynthesisError: the target is unknown, or Yosys refuses a design.
    """

    before = replace(full, counters=full.counters and trimmed.counters)

    def half(which: int) -> Progress | None:
        if progress is None:
            return None
        return lambda unit, done, of: progress(unit, done + which * of, 2 * of)

    return AreaComparison(
        synthesise(before, target, progress=half(0)), synthesise(trimmed, target, progress=half(1))
    )


#: Component of the thesis -> um2, and the units of VIP that it has; all others are in "Other".
_COMPONENTS: Mapping[str, tuple[float, Sequence[str]]] = {
    "Fetch": (16892.0, ["fetch"]),
    "Decode": (990.0, ["decode"]),
    "Register File": (15944.0, ["register_file"]),
    "Issue": (2147.0, ["operands", "issue", "dispatch"]),
    "ARC": (5365.0, ["arc"]),
    "Scalar": (2547.0, ["scalar"]),
    "Vector-control": (554.0, ["vector_control"]),
    "Vector-vertical": (16355.0, ["vector_vertical"]),
    "Vector-horizontal": (5030.0, ["vector_horizontal", "vector_finish"]),
    "Scratchpad": (69661.0, ["scratchpad"]),
    "Load-store": (3274.0, ["load_store"]),
    "Other": (1832.0, []),
}
#: Component of the thesis -> um2.
TABLE_7_4: Mapping[str, float] = {name: um2 for name, (um2, _) in _COMPONENTS.items()}


def by_component(report: AreaReport) -> tuple[AreaRow, ...]:
    """``area_um2`` and ``sram_um2`` of the components of :data:`TABLE_7_4`, in its order.

    Parameters:
        report: of all units, for the target ``generic``, whose areas are at 28 nm.
    """
    rows = {name: AreaRow(name, {"area_um2": 0.0, "sram_um2": 0.0}, {}) for name in TABLE_7_4}
    component_of = {unit: name for name, (_, units) in _COMPONENTS.items() for unit in units}
    for unit in report.rows:
        component = rows[component_of.get(unit.unit, "Other")]
        for measure in component.values:
            component.values[measure] += unit.values[measure]
    return tuple(rows.values())
