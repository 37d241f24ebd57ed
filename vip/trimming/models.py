"""The verb ``trim_model``: trims the engines of a vault to the programs of a model."""

from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from hdl.config import ConfigurationError
from isa.image import DramImage
from microkernels.common.fixed_point import ELEMENT, Elements
from microkernels.networks.jobs import NetworkJob
from microkernels.runtime.job import KernelJob
from pe.config import PeConfig
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from sim_tb.cosim.trim_check import Measured, TrimCheck, without_fault
from soc.tile.config import VaultTileConfig
from support.errors import counted
from synth.analysis.contents import contents_of
from synth.analysis.trim import Known, TrimReport
from synth.errors import TrimError
from vip.models.carry import zero_state
from vip.models.compile import Images, input_arrays, spread
from vip.models.folder import CompiledModel, load_folder
from vip.models.machine import model_machine
from vip.models.run import compiled_job, elements_of
from vip.progress import Progress, counting, silent

from .runs import Loaded, Sizes, cut_to
from .trim import TrimResult, need_tools, trim_work

#: Longer runs are not repeated to find the fewest transfers in flight.
_MOST_CYCLES_TO_REPEAT = 5_000_000
#: Fewest requests in flight that an engine can be built for.
_LEAST_REQUESTS = 2
#: Largest magnitude of the elements of a random image.
_MADE_UP = 1 << 13
#: Fields of :class:`Sizes` that apply to a model.
_OF_MODELS = frozenset({"basis", "keep_counters", "slower"})


def trim_model(
    folder: Path | str,
    output: Path | str | None = None,
    *,
    inputs: Images | None = None,
    sizes: Sizes | None = None,
    check: bool = True,
    area: bool = True,
    prove: bool = False,
    progress: Progress = silent,
) -> TrimResult:
    """Rebuild the vault of a compiled model with what its programs need.

    Parameter blocks and flags are fixed with the model; images, maps, weights and biases are data,
    so the vault runs every model with the same layers. All sizes are proved for any data, except
    those for transfers in flight. These are the fewest with which a run on the timing model takes
    no more cycles (or ``slower`` more), and other data may wait longer.

    Parameters:
        folder: of :func:`vip.models.compile.compile_model`, for a preset of a vault.
        output: directory for the vault's Verilog.
        inputs: images for the runs, as for :func:`vip.models.run.run_model`, whose first batch is
            used; None: random ones.
        sizes: of the engines; with ``proved`` the places for transfers in flight stay, too, and
            ``slower`` applies to the run on the timing model. Programs of a model have neither
            profiles nor a ROM, and its engines share the whole vault. None: the defaults.
        check: run the model on the Verilog of both vaults: every output must equal the golden
            model's, and each removed instruction must fault.
        area: synthesise both vaults.
        prove: prove that the engine is equivalent to the full one, which takes minutes.
        progress: called with each stage.

    Raises:
        CosimError: outputs differ from the golden model's.
        VipError: not a compiled model, one for a machine other than a vault, data that does not
            fit, or sizes that do not apply to a model.
        OSError: a file can't be read or written.
    """
    sizes = sizes or Sizes()
    for field in fields(Sizes):
        if field.name not in _OF_MODELS and getattr(sizes, field.name):
            raise TrimError(f"{field.name} is for programs, not for a model")
    if sizes.basis == "tight":
        raise TrimError("basis 'tight' is for programs, not for a model")
    need_tools(check=check, synthesis=area or prove or output is not None)
    compiled = load_folder(Path(folder))
    machine = model_machine(compiled.preset)
    if not isinstance(machine.config, VaultTileConfig):
        raise ConfigurationError(
            f"{folder}: the model was compiled for {compiled.preset}, a chip; compile it for a "
            "vault, such as vault or vault-logistic"
        )
    work = _ModelWork(compiled_job(compiled, machine, _elements(compiled, inputs)), machine.config)
    return trim_work(
        work, sizes, output=output, check=check, area=area, prove=prove, progress=progress
    )


class _ModelWork:
    """The launches of a compiled model on a vault."""

    runs: tuple[Measured, ...] = ()

    def __init__(self, job: NetworkJob, full: VaultTileConfig) -> None:
        self._job = job
        self._full = full
        declared = job.layout.declared
        size = 1 << full.pe.address_bits
        with DramImage(job.end) as image:
            job.prepare(image)
            memory = image.read(0, job.end)
        self._programs = [
            Loaded(
                name=launch.name,
                program=launch.program,
                memories=(memory,),
                known=Known(
                    contents=contents_of(declared[launch.name], memory, size),
                    parameters=launch.parameters,
                    slots=declared[launch.name].slots,
                    one_vault=True,
                ),
            )
            for launch in job.launches
        ]

    @property
    def title(self) -> str:
        """How many programs there are."""
        return f"a compiled model of {counted(len(self._programs), 'program')}"

    def vault(self, engine: PeConfig) -> VaultTileConfig:
        """The vault with such engines."""
        return replace(self._full, pe=engine)

    def cut(self, sizes: Sizes, *, hardware: bool, progress: Progress) -> TrimReport:
        """The engine with proved sizes, and with the fewest transfers in flight by a run."""
        progress("analysis")
        # Engines share the whole vault: with fewer bits each would have a part of its own.
        bits = self._full.pe.address_bits
        cut = cut_to(self._programs, self._full.pe, replace(sizes, address_bits=bits))
        if sizes.basis == "proved":
            return cut
        return _fewest(cut, self._job, self._full, sizes.slower, progress)

    def check(
        self, cut: TrimReport, slower: float, progress: Progress
    ) -> tuple[tuple[TrimCheck, ...], tuple[str, ...]]:
        """Every output of both vaults must equal the golden model's.

        Raises:
            CosimError: one does not, or an engine faulted.
        """
        both = []
        for name, engine in (("full", cut.full), ("trimmed", cut.trimmed)):
            cycles = counting(progress, f"the {name} vault (cycles of a launch)")
            run = run_on(self._job, self.vault(engine), on="rtl", progress=cycles)
            if not run.match:
                raise CosimError(
                    f"{run.differing:,} outputs of the {name} vault differ from the golden model's"
                )
            both.append({launch: result.cycles for launch, result in run.results.items()})
        full, trimmed = both
        checks = tuple(
            TrimCheck(name=name, cycles_full=cycles, cycles_trimmed=trimmed[name])
            for name, cycles in full.items()
        )
        removed = sorted(cut.full.instructions - cut.trimmed.instructions)
        return checks, without_fault(cut.trimmed, removed)


def _elements(compiled: CompiledModel, inputs: Images | None) -> dict[str, Elements]:
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
    images = spread(compiled, *input_arrays(inputs, "the inputs"), compiled.carry.values())
    elements = {
        name: values[: compiled.batch] for name, values in elements_of(compiled, images).items()
    }
    return elements | zero_state(compiled, compiled.carry)


def _fewest(
    cut: TrimReport, job: KernelJob, full: VaultTileConfig, slower: float, progress: Progress
) -> TrimReport:
    """The fewest places for transfers in flight with which a run takes no more cycles."""

    def cycles(entries: int, requests: int) -> int:
        progress(f"timing model, {entries} ARC entries, {requests} requests in flight")
        pe = replace(full.pe, arc_entries=entries, load_store_queue=requests)
        return run_on(job, replace(full, pe=pe), on="model").cycles

    entries, requests = cut.trimmed.arc_entries, cut.trimmed.load_store_queue
    measured = cycles(entries, requests)
    if measured > _MOST_CYCLES_TO_REPEAT:
        return cut
    limit = int(measured * (1 + slower))
    while requests > _LEAST_REQUESTS and cycles(entries, requests // 2) <= limit:
        requests //= 2
    low, high = 1, entries
    while low < high:
        middle = (low + high) // 2
        if cycles(middle, requests) <= limit:
            high = middle
        else:
            low = middle + 1
    fewest = {"arc_entries": high, "load_store_queue": requests}
    bounds = tuple(
        replace(
            bound,
            value=fewest[bound.name],
            size=fewest[bound.name],
            basis="profiled",
            why="the fewest with which a run on the vault takes "
            + (f"at most {slower:.2%} more cycles" if slower else "no more cycles"),
            guard="waits",
            profiled=tuple(launch.name for launch in job.launches),
        )
        if bound.name in fewest
        else bound
        for bound in cut.bounds
    )
    trimmed = replace(cut.trimmed, arc_entries=high, load_store_queue=requests)
    return replace(cut, trimmed=trimmed, bounds=bounds)
