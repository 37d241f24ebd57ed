"""Area of an engine before and after trimming."""

from dataclasses import dataclass, replace

from pe.config import PeConfig

from .area import AreaReport, AreaRow, synthesise
from .mapping import Progress

__all__ = ["AreaComparison", "compare_area"]


@dataclass(frozen=True)
class AreaComparison:
    """Area before and after trimming, for one target."""

    full: AreaReport
    trimmed: AreaReport

    def saved(self, measure: str, unit: str | None = None) -> float:
        """Fraction of ``measure`` (see :data:`synth.physical.area.MEASURES`) that trimming saves.

        It is that of the total or of ``unit``; 0 without the unit, and negative where it grew.
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
        """The comparison as plain JSON data: ``lut_saved``, ``ff_saved``, ``ge_saved`` where the
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
    their removal is no merit of trimming.

    Parameters:
        full, trimmed: before and after.
        target: see :data:`synth.physical.targets.TARGETS`.
        progress: called after each unit of either, with the number of units of both.

    Raises:
        SynthesisError: an unknown target, or a design that Yosys refuses.
    """

    before = replace(full, counters=full.counters and trimmed.counters)

    def half(which: int) -> Progress | None:
        if progress is None:
            return None
        return lambda unit, done, of: progress(unit, done + which * of, 2 * of)

    return AreaComparison(
        synthesise(before, target, progress=half(0)), synthesise(trimmed, target, progress=half(1))
    )
