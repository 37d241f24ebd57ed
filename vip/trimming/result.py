"""The result of trimming a design: its engine, runs, areas, proof, and chips of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sim_tb.cosim.trim_check import TrimCheck
from soc.generate.generate import GenerateReport, configuration_json
from soc.tile.config import VaultTileConfig
from synth.analysis.trim import TrimReport
from synth.formal.prove import Proof
from synth.physical.area import AreaComparison

from .filling import Fitting, fit_json

__all__ = ["TrimResult"]

#: Key in the JSON -> target and measure of the saving.
_SAVED = {
    "ff_saved": ("xc7", "ffs"),
    "lut_saved": ("xc7", "luts"),
    "dsp_saved": ("xc7", "dsps"),
    "ge_saved": ("generic", "logic_ge"),
}


@dataclass(frozen=True, kw_only=True)
class TrimResult:
    """A trimmed design, and its measurements and checks.

    Attributes:
        cut: the engine with the reason of each size; ``cut.trimmed`` is its configuration.
        vault: with such engines; None: one engine is the design.
        checks: of all launches on both designs; empty: there was none.
        unfaulted: removed instructions that do not fault, sorted; must be empty.
        areas: target -> area of both engines; empty: not measured.
        vault_areas: target -> area of both vaults with their engines, in total; empty: not
            measured, or no vault.
        proof: that it is equivalent to the full engine; None: not asked for, or a run differs.
        fitting: a device filled with either engine; None: not asked for, or a failure before.
        verilog: of the design; None: not asked for, or a failure.
    """

    cut: TrimReport
    vault: VaultTileConfig | None = None
    checks: tuple[TrimCheck, ...] = ()
    unfaulted: tuple[str, ...] = ()
    areas: Mapping[str, AreaComparison] = field(default_factory=dict)
    vault_areas: Mapping[str, AreaComparison] = field(default_factory=dict)
    proof: Proof | None = None
    fitting: Fitting | None = None
    verilog: GenerateReport | None = None

    @property
    def different(self) -> tuple[str, ...]:
        """The differences between the designs in any launch, each once."""
        return tuple(dict.fromkeys(name for launch in self.checks for name in launch.different))

    @property
    def cycles_full(self) -> int:
        """Cycles of all launches on the full design."""
        return sum(launch.cycles_full for launch in self.checks)

    @property
    def cycles_trimmed(self) -> int:
        """Cycles of all launches on the trimmed design."""
        return sum(launch.cycles_trimmed for launch in self.checks)

    @property
    def removed(self) -> int:
        """Number of instructions that the trimmed engine does not have."""
        return len(self.cut.full.instructions - self.cut.trimmed.instructions)

    @property
    def failure(self) -> str:
        """The reason why the design must not be used; "" if there is none."""
        if self.different:
            return "the trimmed engine does not do what the full one does"
        if self.unfaulted:
            return "instructions that were removed do not fault"
        if self.proof is not None and not self.proof.holds:
            return "the trimmed engine is not proved to do what the full one does"
        if self.fitting is not None and not self.fitting.match:
            return "engines of the chips do not do what one alone does"
        return ""

    def to_json(self) -> dict[str, object]:
        """The numbers as plain JSON data; savings are fractions of the full engine."""
        report: dict[str, object] = {"trim": self.cut.to_json()}
        if self.checks:
            report |= {
                "match": not self.unfaulted and not self.different,
                "different": list(self.different),
                "cycles_full": self.cycles_full,
                "cycles_trimmed": self.cycles_trimmed,
                "removed_instructions": self.removed,
                "removed_without_fault": list(self.unfaulted),
                "runs": [launch.to_json() for launch in self.checks],
            }
        if self.areas:
            report |= {
                key: self.areas[target].saved(name) for key, (target, name) in _SAVED.items()
            }
            report["areas"] = {target: area.to_json() for target, area in self.areas.items()}
        if self.vault_areas:
            report["vault_areas"] = {
                target: {"full": area.full.total.values, "trimmed": area.trimmed.total.values}
                for target, area in self.vault_areas.items()
            }
        if self.proof is not None:
            report["proof"] = self.proof.to_json()
        if self.fitting is not None:
            report["fit"] = fit_json(self.fitting)
        return report | {
            "configuration": configuration_json(self.vault or self.cut.trimmed),
            "configuration_full": configuration_json(self.cut.full),
        }
