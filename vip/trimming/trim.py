"""Trimming of a design to its work, compared with the full one; ``trim`` does it for programs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from hdl.yosys import need_yosys
from isa.program import Program
from pe.config import PeConfig
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.trim_check import Measured, TrimCheck
from sim_tb.runner.build import need_simulator
from soc.generate.generate import Generated
from soc.generate.generate import generate as write_verilog
from soc.generate.presets import Design, configuration_json, configuration_text, engine
from soc.tile.config import VaultTileConfig
from support.errors import Shown
from synth.analysis.bounds import Sizes
from synth.analysis.contents import Subject
from synth.analysis.trim import TrimReport
from synth.errors import TrimError
from synth.formal.induction import Proof
from synth.formal.prove import prove as prove_trimmed
from synth.physical.area import AreaComparison, AreaReport, compare_area
from synth.physical.chip_area import design_area
from synth.physical.devices import Device, find_device
from synth.physical.targets import default_targets
from vip.models.compile import CompileReport
from vip.programs import LIMIT
from vip.progress import Progress, by_part, naming, silent

from .filling import CHIP_FILE, Filled, fit_both, fit_json
from .runs import EngineWork, load_subjects, provable_engine

#: Key in the JSON -> target and measure of the saving.
_SAVED = {
    "ff_saved": ("xc7", "ffs"),
    "lut_saved": ("xc7", "luts"),
    "dsp_saved": ("xc7", "dsps"),
    "ge_saved": ("generic", "logic_ge"),
}


@dataclass(frozen=True, kw_only=True)
class TrimResult(Shown):
    """A trimmed design, and its measurements and checks.

    Attributes:
        cut: the engine with the reason for each size; ``cut.trimmed`` is its configuration.
        vault: the vault with such engines; None: the design is one engine.
        checks: of all launches on both designs; empty: there were none.
        unfaulted: removed instructions that do not fault, sorted; must be empty.
        areas: target -> area of both engines; empty: not measured.
        vault_areas: target -> total area of both vaults with their engines; empty: not measured, or
            no vault.
        proof: that it is equivalent to the full engine; None: not requested, or a run differs.
        filled: a device filled with trimmed engines; None: not requested, or a failure before.
        slower: further cycles that each launch may take, as a fraction of the full design's.
        verilog: of the design; None: not requested, or a failure.
        compiled: the model that the design is for; None: it is not for one, or that was compiled
            before.
    """

    cut: TrimReport
    vault: VaultTileConfig | None = None
    checks: tuple[TrimCheck, ...] = ()
    unfaulted: tuple[str, ...] = ()
    areas: Mapping[str, AreaComparison] = field(default_factory=dict)
    vault_areas: Mapping[str, AreaComparison] = field(default_factory=dict)
    proof: Proof | None = None
    filled: Filled | None = None
    slower: float = 0.0
    verilog: Generated | None = None
    compiled: CompileReport | None = None

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
    def too_slow(self) -> bool:
        """Whether nothing differs but cycles, which waits for shared ports may add."""
        return self.different == ("cycles",) and self.cut.full.shared_ports

    @property
    def failure(self) -> str:
        """The reason why the design must not be used; "" if there is none."""
        if self.too_slow:
            more = max(one.cycles_trimmed / one.cycles_full - 1 for one in self.checks)
            return (
                f"the trimmed engine takes {more:.2%} more cycles than the full one, "
                f"{self.slower:.2%} allowed"
            )
        if self.different:
            return "the trimmed engine does not do what the full one does"
        if self.unfaulted:
            return "removed instructions do not fault"
        if self.proof is not None and not self.proof.holds:
            return "the trimmed engine is not proved to do what the full one does"
        if self.filled is not None and not self.filled.match:
            return "engines on the chips do not do what a single engine does"
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
                key: self.areas[target].saved(name)
                for key, (target, name) in _SAVED.items()
                if target in self.areas
            }
            report["areas"] = {target: area.to_json() for target, area in self.areas.items()}
        if self.vault_areas:
            report["vault_areas"] = {
                target: {"full": area.full.total.values, "trimmed": area.trimmed.total.values}
                for target, area in self.vault_areas.items()
            }
        if self.proof is not None:
            report["proof"] = self.proof.to_json()
        if self.filled is not None:
            report["fit"] = fit_json(self.filled)
        report |= {
            "configuration": configuration_json(self.vault or self.cut.trimmed),
            "configuration_full": configuration_json(self.cut.full),
        }
        return report if self.compiled is None else report | {"compiled": self.compiled.to_json()}


class Work(Protocol):
    """Work that the engines of a design are trimmed to."""

    @property
    def runs(self) -> Sequence[Measured]:
        """Its launches on the Verilog of a full engine with counters; empty if there were none."""

    @property
    def title(self) -> str:
        """What the design is trimmed to, in words."""

    def vault(self, engine: PeConfig) -> VaultTileConfig | None:
        """The vault that the work runs on, with such engines; None: it runs on one engine."""

    def cut(self, sizes: Sizes, *, hardware: bool, progress: Progress) -> TrimReport:
        """The engine that the work needs; without ``hardware`` nothing runs on Verilog."""

    def check(
        self, cut: TrimReport, slower: float, progress: Progress
    ) -> tuple[tuple[TrimCheck, ...], tuple[str, ...]]:
        """The launches on the Verilog of both designs, and the removed instructions that do not
        fault on the trimmed one."""


def trim(
    programs: Subject | Program | Path | str | Sequence[Subject | Program | Path | str],
    config: Design = "pe",
    *,
    output: Path | str | None = None,
    sizes: Sizes | None = None,
    parameters: int = 0,
    behaviour: MemoryBehaviour | None = None,
    max_cycles: int = LIMIT,
    check: bool = True,
    area: bool = True,
    prove: bool = False,
    fit: str | None = None,
    progress: Progress = silent,
) -> TrimResult:
    """Rebuild an engine with what programs need, and compare it with the full one.

    ``trim("kernel.s", output="build/trimmed")`` writes the Verilog of the engine that
    kernel.s needs, unless :attr:`TrimResult.failure` gives a reason.

    Parameters:
        programs: one or several that the engine must run; a string is the name of an application of
            the suite (:mod:`microkernels.suite`), which declares its constants, or of a file.
        config: of the full engine.
        output: directory for Verilog; with ``fit`` also a file with the chip of trimmed engines.
        sizes: parts and sizes that the engine keeps; None: sizes of the runs, else proved ones.
        parameters: DRAM address of the parameter block (r5), fixed with programs that name none.
        behaviour: of the memory in the runs; None: the default.
        max_cycles: a longer run is an error.
        check: run the programs on the Verilog of both engines: results must be the same, and so
            must cycles, unless ``sizes`` allows more, or shared ports fewer; each removed
            instruction must fault.
        area: synthesise both engines.
        prove: prove that the engine is equivalent to the full one, which takes minutes.
        fit: device (:func:`synth.physical.devices.find_device`) to fill with engines of either
            kind, on all of which the programs run; needs ``check``.
        progress: called with each stage.

    Raises:
        DeclarationError: the memory contradicts what is declared, or a program may overwrite that.
        CoverageError: runs do not cover all paths of a program, unless that is allowed.
        CosimError: a program faults on the full engine.
        VipError: a program, configuration, device or memory can't be used, or a run is endless.
        OSError: a file can't be read or written.
    """
    sizes = sizes or Sizes()
    device = None if fit is None else find_device(fit)
    if device is not None and not check:
        raise TrimError("fit runs the programs on all engines of a device, so it needs check")
    if sizes.slower and not check:
        raise TrimError("slower allows measured runs more cycles, so it needs check")
    need_tools(check=check, synthesis=area or prove or output is not None)
    full = provable_engine(config) if prove else engine(config)
    work = EngineWork(
        load_subjects(programs, full, parameters),
        full,
        behaviour=behaviour,
        max_cycles=max_cycles,
    )
    return trim_work(
        work,
        sizes,
        output=output,
        check=check,
        area=area,
        prove=prove,
        device=device,
        progress=progress,
    )


def trim_work(
    work: Work,
    sizes: Sizes,
    *,
    output: Path | str | None,
    check: bool,
    area: bool,
    prove: bool,
    device: Device | None = None,
    progress: Progress = silent,
) -> TrimResult:
    """Trim a design to its work; parameters and errors as for :func:`trim`.

    Parameters:
        device: device to fill, which needs runs on one engine.
    """
    cut = work.cut(sizes, hardware=check, progress=progress)
    checks, unfaulted = work.check(cut, sizes.slower, progress) if check else ((), ())
    vault = work.vault(cut.trimmed)
    # Counters that the trimmed engines lack are not a saving of trimming.
    before = work.vault(replace(cut.full, counters=cut.trimmed.counters))
    result = TrimResult(
        cut=cut,
        vault=vault,
        checks=checks,
        unfaulted=unfaulted,
        slower=sizes.slower,
        areas=_areas(cut.full, cut.trimmed, progress) if area else {},
        vault_areas=_vault_areas(before, vault, progress) if area and before and vault else {},
    )
    if prove and not result.failure:
        proof = prove_trimmed(cut.full, cut.trimmed, by_part(progress, "proof"))
        result = replace(result, proof=proof)
    if device is not None and not result.failure:
        step = naming(progress, f"filling {device.name}")
        result = replace(result, filled=fit_both(cut.full, cut.trimmed, device, work.runs, step))
    if output is None or result.failure:
        return result
    extra_files = {}
    if result.filled is not None:
        extra_files[CHIP_FILE] = configuration_text(result.filled.config)
    about = _about(work.title, result)
    design = vault or cut.trimmed
    return replace(
        result, verilog=write_verilog(design, output, extra_files=extra_files, about=about)
    )


def _about(title: str, result: TrimResult) -> str:
    """Sentences on a design that is trimmed to work with ``title``, for those who find it."""
    guarded = [bound for bound in result.cut.bounds if bound.guard.isupper()]
    sizes = ", ".join(
        f"{bound.name.replace('_', ' ')} {bound.size:,} ({bound.guard})" for bound in guarded
    )
    text = f"Trimmed to {title}. "
    text += f"A run that needs more faults: {sizes}." if sizes else "Its sizes hold for all data."
    if result.checks:
        text += f" Its runs gave the results of the full {'vault' if result.vault else 'engine'}."
    if result.proof is not None:
        text += " It is proved to do what the full engine does."
    return text


def need_tools(*, check: bool, synthesis: bool) -> None:
    """Check before the work that the tools that trimming runs are installed.

    Parameters:
        check: programs run on Verilog. synthesis: Verilog is written, measured or proved.

    Raises:
        MissingExtraError: one is missing; the message names it.
    """
    if check:
        need_simulator()
    elif synthesis:
        need_yosys()


def _areas(full: PeConfig, trimmed: PeConfig, progress: Progress) -> Mapping[str, AreaComparison]:
    """Area of both engines for every target of :func:`default_targets`.

    Raises:
        SynthesisError: a design that Yosys refuses.
    """
    return {
        target: compare_area(full, trimmed, target, by_part(progress, f"synthesis for {target}"))
        for target in default_targets(full)
    }


def _vault_areas(
    full: VaultTileConfig, trimmed: VaultTileConfig, progress: Progress
) -> Mapping[str, AreaComparison]:
    """Total area of both vaults for every target of :func:`default_targets`.

    Raises:
        SynthesisError: a design that Yosys refuses.
    """

    def total(vault: VaultTileConfig, target: str) -> AreaReport:
        part = by_part(progress, f"synthesis of the vault for {target}")
        area = design_area(vault, target, part)
        return AreaReport(target=target, rows=(), total=area)

    return {
        target: AreaComparison(total(full, target), total(trimmed, target))
        for target in default_targets(full.pe)
    }
