"""Work by its name or file: applications, programs, compiled models and ONNX files; and the verb
``trim_model``, which trims the engines of a vault to the programs of a model."""

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hdl.config import ConfigurationError
from isa.run import Launch
from microkernels.common.builder import WORD_BYTES
from microkernels.common.feature_map import round_up
from microkernels.common.fixed_point import ELEMENT, Elements
from microkernels.common.memory import Readable
from microkernels.networks.jobs import NetworkJob
from microkernels.onnx_models.errors import ModelError
from microkernels.onnx_models.model import spread, zero_state
from microkernels.runtime.job import Golden, KernelJob, simulate
from microkernels.suite import Application, ApplicationError, suite
from pe.config import PeConfig
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from sim_tb.cosim.trim_check import (
    LEAST_REQUESTS,
    MOST_CYCLES_TO_REPEAT,
    Measured,
    TrimCheck,
    without_fault,
)
from soc.generate.presets import design
from soc.tile.config import VaultTileConfig
from support.errors import counted, unknown
from support.files import read_bytes
from support.scratch import scratch_folder
from synth.analysis.bounds import Sizes
from synth.analysis.trim import TrimReport, report
from synth.errors import TrimError
from vip.models.compile import Images, compile_model, input_arrays
from vip.models.folder import CompiledModel, load_folder, manifest_of
from vip.models.run import compiled_job, elements_of, model_jobs
from vip.programs import load_program
from vip.progress import Progress, counting, silent

from .runs import launches_alone
from .trim import TrimResult, need_tools, trim_work

#: Largest magnitude of the elements of a random image.
_MADE_UP = 1 << 13
#: Largest memory of a program, in bytes.
_MOST_MEMORY = 1 << 24
#: Fields of :class:`Sizes` that apply to a model.
_OF_MODELS = frozenset({"basis", "keep_counters", "slower"})


def is_onnx(path: Path) -> bool:
    """Whether it is an ONNX file."""
    return path.suffix == ".onnx"


def is_model(name: str) -> bool:
    """Whether it is a folder of ``vip nn compile``, its manifest, or an ONNX file."""
    path = Path(name)
    return is_onnx(path) or manifest_of(path) != path or path.name == manifest_of(Path()).name


def work_files(names: Sequence[str] | None) -> list[Path]:
    """The files of work: ``names`` without applications; of a compiled model, its manifest.

    Raises:
        ApplicationError: one looks like the name of an application and is none.
    """
    files = []
    for name in names or ():
        path = Path(name)
        if name in suite():
            continue
        if not (path.suffix or path.parent.name or path.exists()):
            raise ApplicationError(f"no such file, and {unknown('application', name, suite())}")
        files.append(manifest_of(path))
    return files


def find_work(
    name: str,
    *,
    calibration: Images | None = None,
    inputs: Images | None = None,
    progress: Progress = silent,
    **compiling: Any,
) -> Application:
    """Work of one engine that has its memory alone.

    Parameters:
        name: of an application of the suite, or a file: a program or assembly, with the memory in
            the file beside it that ends in ``.memory``, if there is one, whose result the
            instruction set simulator knows; a folder of :func:`vip.models.compile.compile_model`
            for a preset of one engine; an ONNX file, which is compiled for ``pe``.
        calibration: images for an ONNX file.
        inputs: of a model, for as many runs as they are batches; None: a batch of the calibration,
            or a random one.
        progress: called with each stage.
        compiling: further parameters of ``compile_model``.

    Raises:
        VipError: there is no such work, or a model does not fit its images.
        OSError: a file can't be read.
    """
    path = Path(name)
    work_files([name])
    if is_onnx(path):
        if calibration is None:
            raise ModelError(
                f"{path}: --calibrate DATA is needed: images that choose fraction bits"
            )
        with scratch_folder("model") as scratch:
            folder = scratch / "model"
            compile_model(path, calibration, folder, preset="pe", progress=progress, **compiling)
            compiled = load_folder(folder)
        arrays = calibration if inputs is None else inputs
        return _model_application(path.stem, compiled, arrays, all_of=inputs is not None)
    if is_model(name):
        compiled = load_folder(path)
        return _model_application(manifest_of(path).parent.name, compiled, inputs, all_of=True)
    if name in suite():
        return suite()[name]
    return Application(
        name=path.stem, summary=f"the program {path}", make=partial(_program_jobs, path)
    )


def _model_application(
    name: str, compiled: CompiledModel, inputs: Images | None, *, all_of: bool
) -> Application:
    """A compiled model with its images, or the first batch of them."""
    config = design(compiled.preset)
    if config.engines > 1:
        raise ConfigurationError(
            f"{compiled.folder}: the model was compiled for {compiled.preset}, a "
            f"{config.title}; compile it for one engine, such as pe or pe-logistic"
        )
    elements = _elements(compiled, inputs, all_of=all_of)
    return Application(
        name=name,
        summary="a compiled model",
        preset=compiled.preset,
        make=lambda: tuple(model_jobs(compiled, elements)),
    )


def _program_jobs(path: Path) -> tuple[KernelJob, ...]:
    """A program that works on the memory beside it, all of which is its output."""
    program = load_program(path)
    file = path.with_suffix(".memory")
    content = read_bytes(file, _MOST_MEMORY) if file.is_file() else bytes(WORD_BYTES)
    end = round_up(len(content), WORD_BYTES)

    def outputs(memory: Readable) -> Elements:
        return np.frombuffer(memory.read(0, end), ELEMENT)

    job = KernelJob(
        name=path.stem,
        launches=(Launch(program=program),),
        prepare=lambda memory: memory.write(0, content.ljust(end, b"\0")),
        outputs=outputs,
        golden=Golden(lambda: simulate(job)[0], lazy=True),
        end=end,
    )
    return (job,)


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
    full = design(compiled.preset)
    if not isinstance(full, VaultTileConfig):
        raise ConfigurationError(
            f"{folder}: the model was compiled for {compiled.preset}, not a vault; compile it for "
            "a vault, such as vault or vault-logistic"
        )
    work = _ModelWork(compiled_job(compiled, _elements(compiled, inputs)), full)
    return trim_work(
        work, sizes, output=output, check=check, area=area, prove=prove, progress=progress
    )


class _ModelWork:
    """The launches of a compiled model on a vault."""

    runs: tuple[Measured, ...] = ()

    def __init__(self, job: NetworkJob, full: VaultTileConfig) -> None:
        self._job = job
        self._full = full
        self._programs = launches_alone([job], full.pe, full.pes)

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
        cut = report(self._programs, self._full.pe, sizes=replace(sizes, address_bits=bits))
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


def _elements(
    compiled: CompiledModel, inputs: Images | None, *, all_of: bool = False
) -> dict[str, Elements]:
    """Images of each input, by its layer; a batch, or all of ``inputs``."""
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
    count = None if all_of else compiled.batch
    elements = {name: values[:count] for name, values in elements_of(compiled, images).items()}
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
    if measured > MOST_CYCLES_TO_REPEAT:
        return cut
    limit = int(measured * (1 + slower))
    while requests > LEAST_REQUESTS and cycles(entries, requests // 2) <= limit:
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
