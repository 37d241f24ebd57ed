"""Rows of what trimming saves, and their means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hdl.config import PeConfig
from sim_tb.engine import source_digest
from sim_tb.kept import fingerprint
from soc.configuration_file import configuration_of
from soc.generate import configuration_json

from .output import provenance

__all__ = ["CELLS", "POWER_MHZ", "SAVED", "TARGET", "TrimRow", "made_from", "means"]

#: What areas are told for.
TARGET = "xc7"
#: What power is told for, at this clock.
CELLS, POWER_MHZ = "nangate45", 1000.0
#: Key in reports -> measure of :data:`synth.area.MEASURES`.
SAVED = {"ff_saved": "ffs", "lut_saved": "luts", "dsp_saved": "dsps", "bram_saved": "brams"}
#: Rooms whose sources decide what is measured; those of ``kernels`` do by their programs and data.
_SOURCES = ("isa", "hdl", "pe", "memory", "noc", "soc", "sim_tb", "synth", "vip")


@dataclass(frozen=True, kw_only=True)
class TrimRow:
    """One trimmed engine.

    Attributes:
        name: of the application or of the union.
        applications: names of those that the engine runs.
        full, trimmed: configurations.
        area_full, area_trimmed: measure (:data:`synth.area.MEASURES`) -> value.
        power_full, power_trimmed: ``mw``, and the parts of :class:`synth.power.PowerRow` in mW,
            while the applications run, all of their cycles; empty where that was not measured.
        cycles_full, cycles_trimmed: of all launches together.
        demand: bytes a cycle that the full engine loads and stores.
        different: what is not the same on both engines after each launch (see
            :class:`sim_tb.trim_check.TrimCheck`).
        unfaulted: keys of removed instructions that do not fault.
        exact: each launch leaves what the golden model demands.
        profiled: sizes that are those of the runs; all others are proved for every run.
        uncovered: branches of which the runs take one side alone, where there are profiled sizes;
            "" if there are none. A run that needs more than the profiled sizes faults.
    """

    name: str
    applications: tuple[str, ...]
    full: PeConfig
    trimmed: PeConfig
    area_full: Mapping[str, float]
    area_trimmed: Mapping[str, float]
    power_full: Mapping[str, float]
    power_trimmed: Mapping[str, float]
    cycles_full: int
    cycles_trimmed: int
    demand: float
    different: tuple[str, ...]
    unfaulted: tuple[str, ...]
    exact: bool
    profiled: tuple[str, ...]
    uncovered: str

    @property
    def match(self) -> bool:
        """Memory, scratchpad, registers and cycles are the same on both engines, and each removed
        instruction faults."""
        same = self.cycles_full == self.cycles_trimmed
        return same and not self.different and not self.unfaulted

    def saved(self, measure: str) -> float:
        """Fraction of ``measure`` that trimming saves; 0 where there was nothing."""
        was = self.area_full[measure]
        return round(1 - self.area_trimmed[measure] / was, 4) if was else 0.0

    @property
    def power_saved(self) -> float | None:
        """Fraction of the power, and so of the energy, that trimming saves; None: not measured."""
        if not self.power_full:
            return None
        return round(1 - self.power_trimmed["mw"] / self.power_full["mw"], 4)

    def to_json(self) -> dict[str, Any]:
        """The row as plain JSON data."""
        return {
            "name": self.name,
            "applications": list(self.applications),
            **{key: self.saved(measure) for key, measure in SAVED.items()},
            "power_saved": self.power_saved,
            "cycles_full": self.cycles_full,
            "cycles_trimmed": self.cycles_trimmed,
            "bytes_per_cycle": self.demand,
            "match": self.match,
            "different": list(self.different),
            "removed_without_fault": list(self.unfaulted),
            "exact": self.exact,
            "profiled": list(self.profiled),
            "uncovered": self.uncovered,
            "area_full": dict(self.area_full),
            "area_trimmed": dict(self.area_trimmed),
            "power_full": dict(self.power_full),
            "power_trimmed": dict(self.power_trimmed),
            "configuration": configuration_json(self.trimmed),
            "configuration_full": configuration_json(self.full),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "TrimRow":
        """The reverse of :meth:`to_json`.

        Raises:
            KeyError: ``content`` lacks something.
            hdl.config.ConfigurationError: a configuration in it can't be built.
        """
        return cls(
            name=content["name"],
            applications=tuple(content["applications"]),
            full=_engine(content["configuration_full"]),
            trimmed=_engine(content["configuration"]),
            area_full=content["area_full"],
            area_trimmed=content["area_trimmed"],
            power_full=content["power_full"],
            power_trimmed=content["power_trimmed"],
            cycles_full=content["cycles_full"],
            cycles_trimmed=content["cycles_trimmed"],
            demand=content["bytes_per_cycle"],
            different=tuple(content["different"]),
            unfaulted=tuple(content["removed_without_fault"]),
            exact=content["exact"],
            profiled=tuple(content["profiled"]),
            uncovered=content["uncovered"],
        )


def _engine(content: object) -> PeConfig:
    config = configuration_of(content)
    assert isinstance(config, PeConfig)
    return config


def made_from() -> str:
    """A short name of the sources and tools that measurements rest on."""
    return fingerprint(source_digest(_SOURCES), repr(provenance()["tools"]))


def means(rows: Sequence[TrimRow]) -> dict[str, float]:
    """What the rows of single applications, of which there is one at least, save in the mean;
    ``mean_power_saved`` only where power was measured."""
    single = [row for row in rows if len(row.applications) == 1]
    found = {
        f"mean_{key}": _mean([row.saved(measure) for row in single])
        for key, measure in SAVED.items()
    }
    power = [row.power_saved for row in single if row.power_saved is not None]
    return {**found, "mean_power_saved": _mean(power)} if power else found


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4)
