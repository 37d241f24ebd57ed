"""The timing model's certificate: runs on the model and on the Verilog, compared by counter."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal, get_args

from memory.controller.counters import VaultCounter
from microkernels.data.stereo import motorcycle
from microkernels.runtime.job import KernelJob
from microkernels.suite import suite
from pe.config import PeConfig
from pe.interface import PeCounter
from sim_tb.cosim.engine import CosimError, MemoryBehaviour
from sim_tb.cosim.kernels import bp_job_on, run_on
from sim_tb.cosim.machine import MachineOptions, Timed
from sim_tb.runner.build import need_simulator
from sim_tb.runner.cache import fingerprint
from sim_tb.timed.library import sources
from sim_tb.workloads.tiles import (
    BELIEF,
    ESE,
    ITERATIONS,
    LAYERS,
    LSTM,
    declared_job,
    kernel_jobs,
    with_engines,
    with_history,
)
from sim_tb.workloads.traffic import TRAFFICS, VARIANTS, Variant, run_variant
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset, preset, tile_preset
from soc.tile.config import VaultTileConfig
from support.errors import Shown, VipError, unknown

Kind = Literal["memory", "engine", "vault", "chip"]

KINDS: tuple[Kind, ...] = get_args(Kind)

#: 32-byte accesses of each kind of traffic, and the seed.
_ACCESSES, _SEED = 20_000, 1

#: Counters of vaults and nodes that continue while the host reads them one after the other.
_LATE = ("CYCLES", "REFRESHES", "REFRESH_BLOCKED")

_TILE = "vault"

#: Latency of a single engine's memory, in cycles.
_LATENCY = 40

#: Presets of chips, with the size of their images in pixels.
_CHIPS = {"tiny": (24, 18), "small": (40, 24), "fpga": (24, 18)}

_CHIP_LABELS = 8

#: Those whose host also writes and reads the data through the AXI port.
_PORTS = ("tiny", "fpga")

#: For engines with a load history: entries and ways, layer, and engines of the vault.
_ENTRIES, _WAYS, _REUSED, _MANY = 32, 4, "conv5_1", 8

_LINES = 64

_COMMENT = re.compile(r"//[^\n]*")


@dataclass(frozen=True, kw_only=True)
class CertifiedRun:
    """A run for both machines.

    Attributes:
        kind: of the machine. name: of the run.
        config: of the machine; for a memory alone, its variant.
        jobs: run one after the other; none for a memory alone. phase: the launch that counts, "" if
            all do.
        traffic: for a memory alone, of :data:`sim_tb.workloads.traffic.TRAFFICS`.
        minutes: whether the Verilog needs more than one minute.
        port: for a chip, whether the host writes data and reads outputs through the AXI data port;
            then all cycles until the end of the last launch count.
    """

    kind: Kind
    name: str
    config: PeConfig | VaultTileConfig | ChipConfig | Variant
    jobs: tuple[KernelJob, ...] = ()
    traffic: str = ""
    phase: str = ""
    minutes: bool = False
    port: bool = False


@dataclass(frozen=True, kw_only=True)
class Certified:
    """A run on both machines.

    Attributes:
        kind, name: those of the run.
        model, verilog: cycles.
        differing: counter -> the model's sum over all units minus the Verilog's, if not 0. Counters
            of vaults and nodes have the unit before their name.
    """

    kind: Kind
    name: str
    model: int
    verilog: int
    differing: Mapping[str, int]

    @property
    def percent(self) -> float:
        """How many more cycles the model takes, in percent; negative if fewer."""
        return 100 * (self.model - self.verilog) / self.verilog


@dataclass(frozen=True, kw_only=True)
class ModelCertificate(Shown):
    """Runs of the timing model compared with the Verilog.

    Attributes:
        number: identifies the certificate: a digest of the files in :mod:`sim_tb.timed` and of all
            rows.
        rows: in the order of the runs.
    """

    number: str
    rows: tuple[Certified, ...]

    @property
    def equal(self) -> int:
        """Number of runs with equal cycles and equal sums of each counter."""
        return sum(row.model == row.verilog and not row.differing for row in self.rows)

    @property
    def errors(self) -> tuple[float, float]:
        """Median and maximum absolute difference of cycles, in percent."""
        errors = sorted(abs(row.percent) for row in self.rows)
        middle = len(errors) // 2
        return (errors[middle] + errors[~middle]) / 2, errors[-1]

    @property
    def holds(self) -> bool:
        """Whether every run is equal in every counter."""
        return self.equal == len(self.rows)

    def to_json(self) -> dict[str, object]:
        """The certificate as plain JSON data."""
        median, worst = self.errors
        return {
            "number": self.number,
            "runs": len(self.rows),
            "equal_runs": self.equal,
            "median_error_percent": median,
            "worst_error_percent": worst,
            "rows": [
                {
                    "kind": row.kind,
                    "name": row.name,
                    "model_cycles": row.model,
                    "verilog_cycles": row.verilog,
                    "error_percent": row.percent,
                    "differing_counters": dict(row.differing),
                }
                for row in self.rows
            ],
        }


def certified_runs(kinds: Sequence[Kind] = KINDS, *, layers: bool = True) -> Iterator[CertifiedRun]:
    """The runs of a certificate: traffic on variants of a vault's memory, the suite on one engine,
    kernels on a vault, belief propagation on chips, and a convolution with a load history on an
    engine and a vault.

    Parameters:
        kinds: of the machines. layers: whether to include the layers of VGG-16.
    """
    if "memory" in kinds:
        for variant in VARIANTS:
            for traffic in TRAFFICS:
                name = f"{variant.name} {traffic}"
                yield CertifiedRun(kind="memory", name=name, config=variant, traffic=traffic)
    if "engine" in kinds:
        for application in suite().values():
            yield CertifiedRun(
                kind="engine",
                name=application.name,
                config=preset(application.preset),
                jobs=application.jobs,
            )
        yield CertifiedRun(
            kind="engine",
            name=f"{_REUSED}_{_ENTRIES}_entries_{_WAYS}_ways",
            config=with_history(preset("pe"), _ENTRIES, _WAYS),
            jobs=(declared_job(_REUSED, 1),),
        )
    if "vault" in kinds:
        yield from (run for run in _vault_runs() if layers or not run.minutes)
    if "chip" in kinds:
        yield from _chip_runs()


def _vault_runs() -> Iterator[CertifiedRun]:
    """Kernels on the four engines of a vault, named as in :data:`sim_tb.workloads.tiles`, and on
    eight with a load history."""
    config = tile_preset(_TILE)
    for name in (*ITERATIONS, *LAYERS, LSTM):
        machine, jobs = kernel_jobs(name, config)
        yield CertifiedRun(
            kind="vault",
            name=f"{name}_batch_{ESE.batch if name == LSTM else 1}",
            config=machine,
            jobs=tuple(jobs),
            phase=BELIEF.get(name, ""),
            minutes=name in LAYERS,
        )
    # Named as in the record of the load history.
    engine = with_history(config.pe, _ENTRIES, _WAYS)
    for lines in (0, _LINES):
        yield CertifiedRun(
            kind="vault",
            name=f"{_REUSED}_{_MANY}_engines_{_ENTRIES}_entries_{lines}_lines",
            config=replace(with_engines(config, _MANY), pe=engine, line_buffer=lines),
            jobs=(declared_job(_REUSED, _MANY),),
        )


def _chip_runs() -> Iterator[CertifiedRun]:
    """Belief propagation, flat and hierarchical, on chips whose Verilog takes a minute for it."""
    for name, (width, height) in _CHIPS.items():
        config = chip_preset(name)
        problem = motorcycle(width, height, _CHIP_LABELS).problem
        levels = bp_job_on(problem, 1, config, coarse_iterations=1)
        for kernel, job in (("bp_m", bp_job_on(problem, 2, config)), ("levels", levels)):
            yield CertifiedRun(kind="chip", name=f"{name}_{kernel}", config=config, jobs=(job,))
        if name in _PORTS:
            jobs = (bp_job_on(problem, 1, config),)
            yield CertifiedRun(
                kind="chip", name=f"{name}_data_port", config=config, jobs=jobs, port=True
            )


def run_certified(run: CertifiedRun, on: Timed) -> tuple[int, dict[str, int]]:
    """Cycles of a run, and the sum of each counter over all its engines, vaults or nodes.

    Parameters:
        run: of :func:`certified_runs`. on: the Verilog or the timing model.

    Raises:
        CosimError: an engine faulted, or outputs differ from the golden model's.
        support.native.CompilerError: the timing model can't be built.
        sim_tb.harness.traffic_runs.TrafficError: a memory misbehaved.
        sim_tb.runner.build.BuildError: the simulator of the Verilog can't be built.
    """
    if isinstance(run.config, Variant):
        traffic = run_variant(
            run.config, accesses=_ACCESSES, seed=_SEED, traffics=(run.traffic,), on=on
        )
        result = traffic[run.traffic]
        counted = {item.name: result.counters[item] for item in VaultCounter}
        return result.cycles, _named("vault", counted)
    cycles, counters = 0, Counter({item.name: 0 for item in PeCounter})
    for job in run.jobs:
        options: MachineOptions = {"preload": not run.port}
        if run.config.kind == "engine":
            options["memory"] = MemoryBehaviour(latency=_LATENCY)
        outcome = run_on(job, run.config, on=on, **options)
        results = [
            result for name, result in outcome.results.items() if not run.phase or name == run.phase
        ]
        if run.port:
            cycles += max(ended.simulated_cycles for ended in results)
        else:
            cycles += sum(ended.cycles for ended in results)
        parts: list[Mapping[str, int]] = []
        for ended in results:
            parts += ended.counters
            parts += (_named("vault", vault) for vault in ended.vaults)
            parts += (_named("node", node) for node in ended.network)
        if not outcome.match:
            raise CosimError(f"{job.name}: outputs differ from the golden model's")
        for part in parts:
            counters.update(part)
    return cycles, dict(counters)


def _named(unit: str, counters: Mapping[str, int]) -> dict[str, int]:
    """Counters of a vault or a node, except those that may cover a few cycles more or less."""
    return {f"{unit} {name}": value for name, value in counters.items() if name not in _LATE}


def certify(
    kinds: Sequence[str] = KINDS,
    *,
    progress: Callable[[str, float, float | None, str], None] = lambda *_: None,
) -> ModelCertificate:
    """Run a fixed set of programs on the timing model and on the Verilog, and compare cycles and
    counters. ``certify(["engine"]).holds`` does so for the suite's applications.

    Parameters:
        kinds: of machines: "memory", "engine", "vault", "chip".
        progress: called with the name of each run (:class:`vip.progress.Progress`).

    Raises:
        VipError: an unknown kind, a run that differs from its golden model, or a model or simulator
            that can't be built.
    """
    if not kinds:
        raise VipError(f"no machine is named; there are: {', '.join(KINDS)}")
    for kind in kinds:
        if kind not in KINDS:
            raise VipError(unknown("machine", kind, KINDS))
    need_simulator()
    runs = list(certified_runs([kind for kind in KINDS if kind in kinds], layers=False))
    rows = []
    for number, run in enumerate(runs):
        progress("timing model and Verilog", number, len(runs), f"{run.kind} {run.name}")
        (model, ours), (verilog, theirs) = (run_certified(run, on) for on in ("model", "rtl"))
        differing = {name: ours[name] - theirs[name] for name in ours if ours[name] != theirs[name]}
        rows.append(
            Certified(
                kind=run.kind, name=run.name, model=model, verilog=verilog, differing=differing
            )
        )
    texts = (_COMMENT.sub("", path.read_text(encoding="utf-8")) for path in sources())
    digest = fingerprint(*(" ".join(text.split()) for text in texts), repr([*map(asdict, rows)]))
    return ModelCertificate(number=digest[:12], rows=tuple(rows))
