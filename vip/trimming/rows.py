"""Rows of the savings of trimming, and their means.

Neither engine of a row has performance counters: no program needs them, so that leaving them out
does not count as a saving of trimming.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pe.config import PeConfig
from sim_tb.runner.cache import fingerprint, source_digest
from soc.generate.configuration_file import configuration_as
from soc.generate.generate import configuration_json
from vip.output import provenance

from .runs import SLOWER

__all__ = [
    "CELLS",
    "POWER_MHZ",
    "SAVED",
    "TARGET",
    "TrimRow",
    "TrimmedEngine",
    "made_from",
    "means",
]

#: Target of the areas.
TARGET = "xc7"
#: Target and clock of the power.
CELLS, POWER_MHZ = "nangate45", 1000.0
#: Key in reports -> measure of :data:`synth.physical.area.MEASURES`.
SAVED = {"ff_saved": "ffs", "lut_saved": "luts", "dsp_saved": "dsps", "bram_saved": "brams"}
#: Packages whose sources the measurements depend on; kernels count by their programs and data.
_SOURCES = ("support", "isa", "hdl", "pe", "memory", "noc", "soc", "sim_tb", "synth", "vip")


@dataclass(frozen=True, kw_only=True)
class TrimmedEngine:
    """A trimmed engine, and its runs against those of the full one.

    Attributes:
        config: of the engine.
        area: measure (:data:`synth.physical.area.MEASURES`) -> value.
        power: ``mw``, and the parts of :class:`synth.power.power.PowerRow` in mW, while the
            applications run, all of their cycles; empty where that was not measured.
        cycles: of all launches together.
        different: the differences between both engines after each launch (see
            :class:`sim_tb.cosim.trim_check.TrimCheck`).
        unfaulted: keys of removed instructions that do not fault.
        exact: the results of each launch equal those of the golden model.
    """

    config: PeConfig
    area: Mapping[str, float]
    power: Mapping[str, float]
    cycles: int
    different: tuple[str, ...]
    unfaulted: tuple[str, ...]
    exact: bool

    def to_json(self) -> dict[str, Any]:
        """The engine as plain JSON data."""
        return {
            "area": dict(self.area),
            "power": dict(self.power),
            "cycles": self.cycles,
            "different": list(self.different),
            "removed_without_fault": list(self.unfaulted),
            "exact": self.exact,
            "configuration": configuration_json(self.config),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "TrimmedEngine":
        """The reverse of :meth:`to_json`; errors as of :meth:`TrimRow.from_json`."""
        return cls(
            config=configuration_as(PeConfig, content["configuration"]),
            area=content["area"],
            power=content["power"],
            cycles=content["cycles"],
            different=tuple(content["different"]),
            unfaulted=tuple(content["removed_without_fault"]),
            exact=content["exact"],
        )


@dataclass(frozen=True, kw_only=True)
class TrimRow:
    """Savings of trimming on an application, or on a union of some.

    Attributes:
        name: of the application or of the union.
        applications: names of those that each engine runs.
        full: configuration of the full engine.
        area_full, power_full, cycles_full: of the full engine; see :class:`TrimmedEngine`.
        demand: bytes a cycle that the full engine loads and stores.
        trimmed: the engine whose sizes are proved for every input.

    Raises:
        ValueError: an engine with performance counters.
    """

    name: str
    applications: tuple[str, ...]
    full: PeConfig
    area_full: Mapping[str, float]
    power_full: Mapping[str, float]
    cycles_full: int
    demand: float
    trimmed: TrimmedEngine

    def __post_init__(self) -> None:
        if self.full.counters or self.trimmed.config.counters:
            raise ValueError(f"{self.name}: an engine has performance counters")

    @property
    def match(self) -> bool:
        """Memory, scratchpad and registers are the same on both engines, the trimmed one takes at
        most the fraction :data:`vip.trimming.runs.SLOWER` more cycles, and each removed instruction
        faults."""
        engine = self.trimmed
        extra = engine.cycles - self.cycles_full
        in_time = 0 <= extra <= SLOWER * self.cycles_full
        return in_time and not engine.different and not engine.unfaulted

    @property
    def slower(self) -> float:
        """Fraction of the cycles that the trimmed engine takes more."""
        return self.trimmed.cycles / self.cycles_full - 1

    def saved(self, measure: str) -> float:
        """Fraction of ``measure`` that trimming saves; 0 if the full engine has none."""
        was = self.area_full[measure]
        return round(1 - self.trimmed.area[measure] / was, 4) if was else 0.0

    @property
    def power_saved(self) -> float | None:
        """Fraction of the power that trimming saves; None: not measured."""
        power = self.trimmed.power
        return round(1 - power["mw"] / self.power_full["mw"], 4) if power else None

    def to_json(self) -> dict[str, Any]:
        """The row as plain JSON data."""
        return {
            "name": self.name,
            "applications": list(self.applications),
            "match": self.match,
            "slower": round(self.slower, 5),
            "cycles_full": self.cycles_full,
            "bytes_per_cycle": self.demand,
            "area_full": dict(self.area_full),
            "power_full": dict(self.power_full),
            "configuration_full": configuration_json(self.full),
            **{key: self.saved(measure) for key, measure in SAVED.items()},
            "power_saved": self.power_saved,
            "trimmed": self.trimmed.to_json(),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "TrimRow":
        """The reverse of :meth:`to_json`.

        Raises:
            KeyError: ``content`` lacks something.
            hdl.config.ConfigurationError: a configuration in it can't be built.
            ValueError: an engine in it has performance counters.
        """
        return cls(
            name=content["name"],
            applications=tuple(content["applications"]),
            full=configuration_as(PeConfig, content["configuration_full"]),
            area_full=content["area_full"],
            power_full=content["power_full"],
            cycles_full=content["cycles_full"],
            demand=content["bytes_per_cycle"],
            trimmed=TrimmedEngine.from_json(content["trimmed"]),
        )


def made_from() -> str:
    """A digest of the sources and tools that measurements depend on."""
    return fingerprint(source_digest(_SOURCES), repr(provenance()["tools"]))


def means(rows: Sequence[TrimRow]) -> dict[str, float]:
    """Mean savings over the rows of single applications (at least one); ``mean_power_saved`` only
    where power was measured of all."""
    single = [row for row in rows if len(row.applications) == 1]
    savings = {
        f"mean_{key}": _mean([row.saved(measure) for row in single])
        for key, measure in SAVED.items()
    }
    power = [row.power_saved for row in single]
    measured = [saved for saved in power if saved is not None]
    return (
        {**savings, "mean_power_saved": _mean(measured)}
        if len(measured) == len(single)
        else savings
    )


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4)
