"""The verb ``trim_model``: the vault that a compiled model needs, compared with the full one."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hdl.config import ConfigurationError
from isa.image import DramImage
from microkernels.common.fixed_point import ELEMENT, Elements
from microkernels.networks.jobs import NetworkJob
from microkernels.runtime.job import KernelJob
from pe.config import PeConfig
from pe.sequencer import overhead_cycles
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from sim_tb.cosim.trim_check import without_fault
from soc.generate.generate import GenerateReport, configuration_json
from soc.generate.generate import generate as write_verilog
from soc.tile.config import VaultTileConfig
from synth.analysis.contents import contents_of
from synth.analysis.trim import Known, TrimReport, report
from synth.analysis.values import Launch
from synth.errors import TrimError
from synth.formal.prove import Proof
from synth.formal.prove import prove as prove_trimmed
from synth.physical.chip_area import design_area
from synth.physical.comparison import AreaComparison, compare_area
from synth.physical.targets import DEFAULT_TARGETS

from .models.carry import zero_state
from .models.compile import input_arrays, spread
from .models.folder import CompiledModel, load_folder
from .models.machine import model_machine
from .models.run import compiled_job, elements_of
from .progress import Progress, by_part, counting, silent
from .trimming.runs import MOST_SLOWER
from .trimming.trim import need_tools

AreaT = TypeVar("AreaT")

__all__ = ["ModelTrim", "VaultArea", "trim_model"]

#: Runs beyond are not repeated to find the fewest transfers in flight.
_MOST_CYCLES_TO_REPEAT = 5_000_000
#: Fewest requests in flight that an engine can be built for.
_LEAST_REQUESTS = 2
#: Largest magnitude of the elements of an image that is made up.
_MADE_UP = 1 << 13


@dataclass(frozen=True)
class _OneVault(Known):
    """What is known of launches on a machine of one vault."""

    def launch(self, config: PeConfig) -> Launch:
        last = self.slots - 1
        found = super().launch(config)
        return replace(found, pe_index=(0, last), vault=(0, 0), pe_count=(self.slots, self.slots))


@dataclass(frozen=True, kw_only=True)
class VaultArea:
    """Area of a vault with its engines, both without performance counters, as that of the trimmed
    one.

    Attributes:
        full, trimmed: by measure (:data:`synth.physical.area.MEASURES`).
    """

    full: Mapping[str, float]
    trimmed: Mapping[str, float]

    def saved(self, measure: str) -> float:
        """Share of the full vault's that is saved."""
        before = self.full.get(measure, 0)
        return 1 - self.trimmed.get(measure, 0) / before if before else 0.0


@dataclass(frozen=True, kw_only=True)
class ModelTrim:
    """A vault trimmed to a compiled model, and its measurements and checks.

    Attributes:
        cut: its engines, with the reason of each size.
        config: of the vault.
        cycles: of each launch on the Verilog of the full vault and of the trimmed one, where every
            output equals the golden model's; empty: not run.
        unfaulted: removed instructions that do not fault; must be empty.
        engines: target -> area of an engine. vaults: target -> area of the vault; empty: not
            measured.
        proof: that an engine is equivalent to the full one; None: not asked for.
        verilog: of the vault; None: not asked for, or a failure.
    """

    cut: TrimReport
    config: VaultTileConfig
    cycles: Mapping[str, tuple[int, int]]
    unfaulted: tuple[str, ...]
    engines: Mapping[str, AreaComparison]
    vaults: Mapping[str, VaultArea]
    proof: Proof | None = None
    verilog: GenerateReport | None = None

    @property
    def cycles_full(self) -> int:
        """Cycles of all launches on the full vault."""
        return sum(full for full, _ in self.cycles.values())

    @property
    def cycles_trimmed(self) -> int:
        """Cycles of all launches on the trimmed vault."""
        return sum(trimmed for _, trimmed in self.cycles.values())

    @property
    def failure(self) -> str:
        """The reason why the vault must not be used; "" if there is none."""
        if self.unfaulted:
            return "instructions that were removed do not fault"
        if self.proof is not None and not self.proof.holds:
            return "the trimmed engine is not proved to do what the full one does"
        return ""

    def to_json(self) -> dict[str, object]:
        """The numbers as plain JSON data."""
        found: dict[str, object] = {
            "trim": self.cut.to_json(),
            "launches": {
                name: {"cycles_full": full, "cycles_trimmed": trimmed}
                for name, (full, trimmed) in self.cycles.items()
            },
            "cycles_full": self.cycles_full,
            "cycles_trimmed": self.cycles_trimmed,
            "removed_without_fault": list(self.unfaulted),
            "areas": {target: area.to_json() for target, area in self.engines.items()},
            "vault_areas": {target: asdict(area) for target, area in self.vaults.items()},
            "configuration": configuration_json(self.config),
        }
        if self.proof is not None:
            found["proof"] = self.proof.to_json()
        return found


def trim_model(
    folder: Path,
    output: Path | str | None = None,
    *,
    inputs: Path | Mapping[str, NDArray[Any]] | None = None,
    keep_counters: bool = False,
    proved: bool = False,
    slower: float = 0.0,
    check: bool = True,
    area: bool = True,
    prove: bool = False,
    progress: Progress = silent,
) -> ModelTrim:
    """Rebuild the vault of a compiled model with what its programs need.

    Parameter blocks and flags are fixed with the model; images, maps, weights and biases are data,
    so that the vault runs every model with the same layers. All sizes are proved for every data but
    those for transfers in flight: these are the fewest with which a run on the timing model takes
    no more cycles (or ``slower`` more), and other data may wait longer.

    Parameters:
        folder: of :func:`vip.models.compile.compile_model`, for a preset of a vault.
        output: directory of the vault's Verilog.
        inputs: images for the runs, as of :func:`vip.models.run.run_model`, of which the first
            batch is taken; None: random ones.
        keep_counters: performance counters stay.
        proved: keep the places for transfers in flight, too.
        slower: more cycles that the run on the timing model may take, as a fraction from 0 to
            :data:`vip.trimming.runs.MOST_SLOWER`.
        check: run the model on the Verilog of both vaults: every output must equal the golden
            model's, and each removed instruction must fault.
        area: synthesise both vaults.
        prove: prove that the engine is equivalent to the full one, which takes minutes.
        progress: called with each stage.

    Raises:
        CosimError: outputs that differ from the golden model's.
        VipError: no compiled model, one for another machine than a vault, or data that do not fit.
        OSError: a file that can't be read or written.
    """
    if not 0 <= slower <= MOST_SLOWER:
        raise TrimError(f"slower must be a fraction from 0 to {MOST_SLOWER}, not {slower}")
    need_tools(check=check, synthesis=area or prove or output is not None)
    compiled = load_folder(folder)
    machine = model_machine(compiled.preset)
    full = machine.config
    if not isinstance(full, VaultTileConfig):
        raise ConfigurationError(
            f"{folder}: the model was compiled for {compiled.preset}, a chip; compile it for a "
            "vault, such as vault or vault-logistic"
        )
    job = compiled_job(compiled, machine, _elements(compiled, inputs))
    progress("analysis")
    cut = _cut(job, full, keep_counters=keep_counters)
    if not proved:
        cut = _fewest(cut, job.job, full, slower, progress)
    config = replace(full, pe=cut.trimmed)
    cycles = _check(job.job, full, config, progress) if check else {}
    removed = sorted(cut.full.instructions - cut.trimmed.instructions)
    found = ModelTrim(
        cut=cut,
        config=config,
        cycles=cycles,
        unfaulted=without_fault(cut.trimmed, removed) if check else (),
        engines=_per_target(lambda t: compare_area(cut.full, cut.trimmed, t), progress, area),
        vaults=_per_target(lambda t: _vault_area(full, config, t), progress, area),
    )
    if prove and not found.failure:
        found = replace(
            found, proof=prove_trimmed(cut.full, cut.trimmed, by_part(progress, "proof"))
        )
    if output is None or found.failure:
        return found
    return replace(found, verilog=write_verilog(config, output))


def _elements(
    compiled: CompiledModel, inputs: Path | Mapping[str, NDArray[Any]] | None
) -> dict[str, Elements]:
    """Images of each input, by its layer."""
    if inputs is None:
        random = np.random.default_rng(1)
        return {
            port.layer: random.integers(
                -_MADE_UP,
                _MADE_UP,
                (compiled.batch, port.size.height, port.size.width, port.size.channels),
            ).astype(ELEMENT)
            for port in compiled.inputs
        }
    arrays = input_arrays(inputs) if isinstance(inputs, Path) else inputs
    what = str(inputs) if isinstance(inputs, Path) else "the inputs"
    given = spread(compiled, arrays, what, compiled.carry.values())
    elements = {
        name: values[: compiled.batch] for name, values in elements_of(compiled, given).items()
    }
    return elements | zero_state(compiled, compiled.carry)


def _cut(job: NetworkJob, full: VaultTileConfig, *, keep_counters: bool) -> TrimReport:
    """The engines, with proved sizes alone."""
    declared = job.layout.declared
    size = 1 << full.pe.address_bits
    with DramImage(job.job.end) as image:
        job.job.prepare(image)
        memory = image.read(0, job.job.end)
    launches = job.job.launches
    return report(
        [launch.program for launch in launches],
        full.pe,
        names=[launch.name for launch in launches],
        known=[
            _OneVault(
                contents=contents_of(declared[launch.name], memory, size),
                parameters=launch.parameters,
                slots=declared[launch.name].slots,
            )
            for launch in launches
        ],
        keep_counters=keep_counters,
        # Engines share the whole vault: with fewer bits each would have a part of its own.
        address_bits=full.pe.address_bits,
    )


def _fewest(
    cut: TrimReport, job: KernelJob, full: VaultTileConfig, slower: float, progress: Progress
) -> TrimReport:
    """The fewest places for transfers in flight with which a run takes no more cycles."""

    def cycles(entries: int, requests: int) -> int:
        progress(f"timing model, {entries} ARC entries, {requests} requests in flight")
        pe = replace(full.pe, arc_entries=entries, load_store_queue=requests)
        return run_on(job, replace(full, pe=pe), on="model").cycles

    entries, requests = cut.trimmed.arc_entries, cut.trimmed.load_store_queue
    taken = cycles(entries, requests)
    if taken > _MOST_CYCLES_TO_REPEAT:
        return cut
    most = int(taken * (1 + slower))
    while requests > _LEAST_REQUESTS and cycles(entries, requests // 2) <= most:
        requests //= 2
    low, high = 1, entries
    while low < high:
        middle = (low + high) // 2
        if cycles(middle, requests) <= most:
            high = middle
        else:
            low = middle + 1
    found = {"arc_entries": high, "load_store_queue": requests}
    bounds = tuple(
        replace(
            bound,
            value=found[bound.name],
            size=found[bound.name],
            basis="profiled",
            why="the fewest with which a run on the vault takes "
            + (f"at most {slower:.2%} more cycles" if slower else "no more cycles"),
            guard="waits",
            profiled=tuple(launch.name for launch in job.launches),
        )
        if bound.name in found
        else bound
        for bound in cut.bounds
    )
    trimmed = replace(cut.trimmed, arc_entries=high, load_store_queue=requests)
    return replace(cut, trimmed=trimmed, bounds=bounds)


def _check(
    job: KernelJob, full: VaultTileConfig, trimmed: VaultTileConfig, progress: Progress
) -> dict[str, tuple[int, int]]:
    """Cycles of each launch on the Verilog of both vaults.

    Raises:
        CosimError: outputs differ from the golden model's, or an engine faulted.
    """
    both = []
    for name, config in (("full", full), ("trimmed", trimmed)):
        shown = counting(progress, f"the {name} vault (cycles of a launch)")
        run = run_on(job, config, on="rtl", progress=shown)
        if not run.match:
            raise CosimError(
                f"{run.differing:,} outputs of the {name} vault differ from the golden model's"
            )
        over = overhead_cycles(config.pe)
        both.append({launch: result.cycles - over for launch, result in run.results.items()})
    return {launch: (both[0][launch], both[1][launch]) for launch in both[0]}


def _per_target(
    measure: Callable[[str], AreaT], progress: Progress, wanted: bool
) -> dict[str, AreaT]:
    """A measure for every target of :data:`DEFAULT_TARGETS`, if it is wanted."""
    found = {}
    for target in DEFAULT_TARGETS if wanted else ():
        progress(f"synthesis for {target}")
        found[target] = measure(target)
    return found


def _vault_area(full: VaultTileConfig, trimmed: VaultTileConfig, target: str) -> VaultArea:
    before = replace(full, pe=replace(full.pe, counters=trimmed.pe.counters))
    one, other = (design_area(each, target) for each in (before, trimmed))
    return VaultArea(full=one.values, trimmed=other.values)
