"""The result of trimming an engine: the engine, its runs, areas, proof, and chips of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from sim_tb.cosim.trim_check import TrimCheck
from soc.generate.generate import GenerateReport, configuration_json
from synth.analysis.trim import TrimReport
from synth.formal.prove import Proof
from synth.physical.comparison import AreaComparison

from .filling import Fitting, fit_json

__all__ = ["Checked", "TrimResult"]

#: Key in the JSON -> target and measure of the saving.
_SAVED = {
    "ff_saved": ("xc7", "ffs"),
    "lut_saved": ("xc7", "luts"),
    "dsp_saved": ("xc7", "dsps"),
    "ge_saved": ("generic", "logic_ge"),
}


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A run on both engines.

    Attributes:
        name: of the program. check: the comparison.
        zero_memory: whether the memory held nothing but zeros.
    """

    name: str
    check: TrimCheck
    zero_memory: bool

    def to_json(self) -> dict[str, object]:
        """The run as plain JSON data."""
        check = self.check
        faulted = check.full.state == "faulted"
        return {
            "program": self.name,
            "match": check.match,
            "different": list(check.different),
            "state": check.full.state,
            "cause": check.full.cause.name,
            "pc": check.full.pc if faulted else None,
            "zero_memory": self.zero_memory,
            "cycles_full": check.cycles_full,
            "cycles_trimmed": check.cycles_trimmed,
        }


@dataclass(frozen=True, kw_only=True)
class TrimResult:
    """A trimmed engine, and its measurements and checks.

    Attributes:
        cut: the engine with the reason of each size; ``cut.trimmed`` is its configuration.
        checks: of all runs on both engines; empty: there was none.
        areas: target -> area of both engines; empty: not measured.
        proof: that it is equivalent to the full engine; None: not asked for, or a run differs.
        fitting: a device filled with either engine; None: not asked for, or a failure before.
        verilog: of the engine; None: not asked for, or a failure.
    """

    cut: TrimReport
    checks: tuple[Checked, ...] = ()
    areas: Mapping[str, AreaComparison]
    proof: Proof | None = None
    fitting: Fitting | None = None
    verilog: GenerateReport | None = None

    @property
    def different(self) -> tuple[str, ...]:
        """The differences between the engines in any run, each once."""
        return tuple(dict.fromkeys(name for one in self.checks for name in one.check.different))

    @property
    def unfaulted(self) -> tuple[str, ...]:
        """Removed instructions that do not fault, sorted."""
        return tuple(sorted({key for one in self.checks for key in one.check.unfaulted}))

    @property
    def failure(self) -> str:
        """The reason why the engine must not be used; "" if there is none."""
        if self.unfaulted or not all(one.check.match for one in self.checks):
            return "the trimmed engine does not do what the full one does"
        if self.proof is not None and not self.proof.holds:
            return "the trimmed engine is not proved to do what the full one does"
        if self.fitting is not None and not self.fitting.match:
            return "engines of the chips do not do what one alone does"
        return ""

    def to_json(self) -> dict[str, object]:
        """The numbers as plain JSON data; savings are fractions of the full engine."""
        report: dict[str, object] = {"trim": self.cut.to_json()}
        if self.checks:
            runs = [one.check for one in self.checks]
            report |= {
                "match": not self.unfaulted and all(run.match for run in runs),
                "different": list(self.different),
                "cycles_full": sum(run.cycles_full for run in runs),
                "cycles_trimmed": sum(run.cycles_trimmed for run in runs),
                "removed_instructions": runs[0].removed,
                "removed_without_fault": list(self.unfaulted),
                "runs": [one.to_json() for one in self.checks],
            }
        if self.areas:
            report |= {
                key: self.areas[target].saved(name) for key, (target, name) in _SAVED.items()
            }
            report["areas"] = {target: area.to_json() for target, area in self.areas.items()}
        if self.proof is not None:
            report["proof"] = self.proof.to_json()
        if self.fitting is not None:
            report["fit"] = fit_json(self.fitting)
        return report | {
            "configuration": configuration_json(self.cut.trimmed),
            "configuration_full": configuration_json(self.cut.full),
        }
