"""Rows of what trimming saves, and their means.

Neither engine of a row has performance counters: no program needs them, so leaving them out does
not count as a saving.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from microkernels.suite import Application
from pe.config import PeConfig
from sim_tb.cosim.kernels import launches_key
from sim_tb.runner.cache import fingerprint, source_digest
from soc.generate.presets import configuration_as, configuration_json
from vip.output import provenance

from .runs import SLOWER

#: Target of the areas.
TARGET = "xc7"
#: Target and clock of the power.
CELLS, POWER_MHZ = "nangate45", 1000.0
#: Key in reports -> measure of :data:`synth.physical.area.MEASURES`.
SAVED = {"ff_saved": "ffs", "lut_saved": "luts", "dsp_saved": "dsps", "bram_saved": "brams"}
#: Packages whose sources the measurements depend on; kernels count by their programs and data.
_SOURCES = ("support", "isa", "hdl", "pe", "memory", "noc", "soc", "sim_tb", "synth", "vip")


@dataclass(frozen=True, kw_only=True)
class TrimRow:
    """What trimming saves for an application or for a union of some.

    Attributes:
        name: of the application or of the union.
        applications: names of those that each engine runs.
        full, trimmed: configurations of the full engine, and of the one whose sizes are proved for
            every input.
        area_full, area_trimmed: measure (:data:`synth.physical.area.MEASURES`) -> value.
        power_full, power_trimmed: ``mw``, and the parts of :class:`synth.power.power.PowerRow` in
            mW, over all cycles of the applications; empty if not measured.
        cycles_full, cycles_trimmed: of all launches together.
        demand: bytes per cycle that the full engine loads and stores.
        different: the differences between both engines after each launch (see
            :class:`sim_tb.cosim.trim_check.TrimCheck`).
        unfaulted: keys of removed instructions that do not fault on the trimmed engine.
        exact: whether the results of each launch on the trimmed engine equal the golden model's.

    Raises:
        ValueError: an engine with performance counters.
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

    def __post_init__(self) -> None:
        if self.full.counters or self.trimmed.counters:
            raise ValueError(f"{self.name}: an engine has performance counters")

    @property
    def match(self) -> bool:
        """Whether memory, scratchpad and registers are the same on both engines, the trimmed one
        takes at most the fraction :data:`vip.trimming.runs.SLOWER` more cycles, and each removed
        instruction faults."""
        extra = self.cycles_trimmed - self.cycles_full
        in_time = 0 <= extra <= SLOWER * self.cycles_full
        return in_time and not self.different and not self.unfaulted

    @property
    def slower(self) -> float:
        """Additional cycles of the trimmed engine, as a fraction."""
        return self.cycles_trimmed / self.cycles_full - 1

    def saved(self, measure: str) -> float:
        """Fraction of ``measure`` that trimming saves; 0 if the full engine has none."""
        was = self.area_full[measure]
        return round(1 - self.area_trimmed[measure] / was, 4) if was else 0.0

    @property
    def power_saved(self) -> float | None:
        """Fraction of the power that trimming saves; None: not measured."""
        power = self.power_trimmed
        return round(1 - power["mw"] / self.power_full["mw"], 4) if power else None

    def to_json(self) -> dict[str, Any]:
        """The row as plain JSON data: its attributes."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "TrimRow":
        """The reverse of :meth:`to_json`.

        Raises:
            KeyError, TypeError: ``content`` lacks something.
            hdl.config.ConfigurationError: a configuration in it can't be built.
            ValueError: an engine in it has performance counters.
        """
        engines = {name: configuration_as(PeConfig, content[name]) for name in ("full", "trimmed")}
        names = ("applications", "different", "unfaulted")
        return cls(**{**content, **engines, **{name: tuple(content[name]) for name in names}})


def _plain(value: Any) -> Any:
    if isinstance(value, PeConfig):
        return configuration_json(value)
    return dict(value) if isinstance(value, Mapping) else value


def made_from() -> str:
    """A digest of the sources and tools that measurements depend on."""
    return fingerprint(source_digest(_SOURCES), repr(provenance()["tools"]))


def launches_of(application: Application) -> list[str]:
    """Keys of the launches of an application, from programs, data and expected outputs."""
    return [fingerprint(launches_key(job), job.expected.tobytes()) for job in application.jobs]


def means(rows: Sequence[TrimRow]) -> dict[str, float]:
    """Mean savings over the rows of single applications (at least one); ``mean_power_saved`` only
    if power was measured for all."""
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
