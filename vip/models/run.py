"""The verb ``run`` of models."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import get_args

import numpy as np

from isa.run import Launch, RunResult
from microkernels.common.fixed_point import (
    NUMBERS,
    Elements,
    Reals,
    as_elements,
    real_of,
)
from microkernels.networks.jobs import NetworkJob, NetworkLayout, network_job
from microkernels.networks.network import INPUT
from microkernels.networks.plan import activations, plan_network
from microkernels.onnx_models.errors import ModelError
from microkernels.onnx_models.model import (
    carried_elements,
    harmless,
    logistic_operands,
    of_images,
    spread,
    zero_state,
)
from microkernels.runtime.job import KernelOutcome
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from sim_tb.cosim.machine import On, Place
from soc.generate.designs import Configuration
from soc.generate.presets import design
from support.errors import Shown, counted
from vip.energy import costs_of, work
from vip.progress import Progress, counting, naming, silent

from .compile import Images, input_arrays
from .folder import CompiledModel, load_folder
from .layers import LayerFigures, counted_layers, planned_layers

#: Images of the golden model at a time.
_AT_A_TIME = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelRun(Shown):
    """A model that has run; every output equals the golden model's.

    Attributes:
        on: which machine. preset: its name.
        outputs: real numbers by tensor: images x their shape in the ONNX model, or the shape of an
            output of one axis for a single image.
        launches: cycles of each; none of the golden model and of the simulator.
        loading: cycles in which the launches' programs are loaded, a word per cycle into all
            engines, besides those of the launches; a program that stays is not loaded again.
        instructions: of all engines; 0 unless the instruction set simulator ran.
        saturated: values limited on the way, by layer, or input; only those with some.
        beyond: arguments of functions outside the range that they had on the calibration data, by
            layer; only those with some. The function has its value at the end of the range there.
        layers: what each took, of all images; none on the golden model and the simulator.
        no_energy: why layers have no microjoules; empty if they have.
    """

    on: Place
    preset: str
    outputs: Mapping[str, Reals]
    launches: Mapping[str, int]
    loading: int
    instructions: int
    saturated: Mapping[str, int]
    beyond: Mapping[str, int]
    layers: tuple[LayerFigures, ...]
    no_energy: str

    @property
    def cycles(self) -> int:
        """Cycles of all launches."""
        return sum(self.launches.values())

    @property
    def costs(self) -> Mapping[str, float]:
        """Of all layers together."""
        total: Counter[str] = Counter()
        for layer in self.layers:
            total.update(layer.costs)
        return total

    def to_json(self) -> dict[str, object]:
        """Plain JSON data."""
        return {
            "on": self.on,
            "preset": self.preset,
            "outputs": {name: values.tolist() for name, values in self.outputs.items()},
            "launches": dict(self.launches),
            "loading": self.loading,
            "cycles": self.cycles,
            "instructions": self.instructions,
            "saturated": dict(self.saturated),
            "beyond": dict(self.beyond),
            "layers": [layer.to_json() for layer in self.layers],
            "costs": dict(self.costs),
            "no_energy": self.no_energy,
        }


def elements_of(compiled: CompiledModel, inputs: Mapping[str, Reals]) -> dict[str, Elements]:
    """Images of each input, by its layer, as elements with the model's fractions."""
    bits = compiled.network.bits
    return {
        name: as_elements(values, compiled.fractions[name], bits[name])
        for name, values in inputs.items()
    }


def golden_outputs(
    compiled: CompiledModel, inputs: Mapping[str, Reals], progress: Progress
) -> tuple[dict[str, Reals], dict[str, int], dict[str, int]]:
    """Outputs of the golden model, and saturated values and arguments beyond the range of a
    function, as of :class:`ModelRun`.

    Parameters:
        inputs: any number of images of each input, by its layer.
        progress: called with the images so far.
    """
    plan = plan_network(
        compiled.network, batch=compiled.batch, engines=ChipEngines.of(design(compiled.preset))
    )
    plan = NetworkLayout(plan, keep=compiled.keep).plan
    elements = elements_of(compiled, inputs)
    images = len(elements[INPUT])
    results: dict[str, list[Elements]] = {port.tensor: [] for port in compiled.outputs}
    saturated, beyond = Counter(_limited(compiled, inputs)), Counter[str]()
    operands = logistic_operands(compiled.network)
    wanted = {port.layer for port in compiled.outputs}
    state = zero_state(compiled, compiled.carry)
    step = 1 if compiled.carry else _AT_A_TIME
    for first in range(0, images, step):
        progress("golden model (images)", first, images)
        part = {name: values[first : first + step] for name, values in elements.items()}
        part |= state
        numbers = np.arange(first, first + len(part[INPUT]))
        part |= {name: of_images(values, numbers) for name, values in compiled.constants.items()}
        activated: dict[str, Elements] = {}
        for layer, result in activations(plan, compiled.weights, part):
            saturated[layer.name] += 0 if harmless(layer, operands) else result.saturated
            beyond[layer.name] += result.beyond
            if layer.name in wanted:
                activated[layer.name] = result.elements
        for port in compiled.outputs:
            results[port.tensor].append(activated[port.layer])
        state = carried_elements(
            compiled, compiled.carry, compiled.fractions, compiled.network.bits, activated
        )
    maps = {name: np.concatenate(parts) for name, parts in results.items()}
    return _reals(compiled, maps), dict(+saturated), dict(+beyond)


def _limited(compiled: CompiledModel, inputs: Mapping[str, Reals]) -> dict[str, int]:
    """Values of each input that its bits do not hold; only inputs with some, and none that
    functions take whose value does not change beyond."""
    counts = {}
    harmless_inputs = logistic_operands(compiled.network)
    for port in compiled.inputs:
        if port.layer in inputs and port.layer not in harmless_inputs:
            limits = np.iinfo(NUMBERS[compiled.network.bits[port.layer]])
            low, high = limits.min, limits.max
            ends = real_of(np.array([low, high]), compiled.fractions[port.layer])
            step = (ends[1] - ends[0]) / (high - low)
            values = inputs[port.layer]
            over = (values < ends[0] - step / 2) | (values >= ends[1] + step / 2)
            counts[port.tensor] = int(np.count_nonzero(over))
    return {name: count for name, count in counts.items() if count}


def _reals(compiled: CompiledModel, maps: Mapping[str, Elements]) -> dict[str, Reals]:
    """Maps of the outputs as real numbers in the shapes of the ONNX model."""
    outputs = {}
    for port in compiled.outputs:
        values = port.images(real_of(maps[port.tensor], compiled.fractions[port.layer]))
        alone = len(port.shape) == 1 and len(values) == 1
        outputs[port.tensor] = values.reshape(port.shape) if alone else values
    return outputs


def _words(launches: Sequence[Launch]) -> list[tuple[str, int, tuple[int, ...]]]:
    """What launches do: programs of the same words may have other comments."""
    return [(launch.name, launch.parameters, tuple(launch.program.words)) for launch in launches]


def compiled_job(
    compiled: CompiledModel,
    inputs: Mapping[str, Elements],
    *,
    again: bool = False,
) -> NetworkJob:
    """The job of one run, whose launches are those of the folder.

    Parameters:
        inputs: images of each input, by its layer.
        again: see :func:`microkernels.networks.jobs.network_job`.

    Raises:
        ModelError: this version of VIP would compile other programs, or another batch.
    """
    elements = dict(inputs)
    images = elements.pop(INPUT)
    if len(images) != compiled.batch:
        raise ModelError(
            f"the model was compiled for a batch of {counted(compiled.batch, 'image')}, "
            f"not {len(images)}; vip nn compile --batch {len(images)} takes these, "
            "the golden model any number"
        )
    job = network_job(
        compiled.network,
        compiled.weights,
        images,
        engines=ChipEngines.of(design(compiled.preset)),
        keep=compiled.keep,
        further={**elements, **compiled.constants},
        again=again,
    )
    if _words(job.launches) != _words(compiled.launches):
        raise ModelError(
            f"{compiled.folder}: its programs are of another version of VIP; compile "
            "the model again"
        )
    return job


def model_jobs(
    compiled: CompiledModel, inputs: Mapping[str, Elements], *, apart: bool = False
) -> Iterator[NetworkJob]:
    """The jobs of images, a batch each, to run in order on one memory.

    Parameters:
        inputs: images of each input, by its layer.
        apart: each job runs on a memory of its own.

    Raises:
        ModelError: as of :func:`compiled_job`.
    """
    state = zero_state(compiled, compiled.carry)
    for first in range(0, len(inputs[INPUT]), compiled.batch):
        batch = {name: values[first : first + compiled.batch] for name, values in inputs.items()}
        job = compiled_job(compiled, {**batch, **state}, again=first > 0 and not apart)
        yield job
        if state:
            state = carried_elements(
                compiled,
                compiled.carry,
                compiled.fractions,
                compiled.network.bits,
                job.of_layers(job.expected),
            )


def run_model(
    folder: Path | str,
    inputs: Images,
    *,
    on: Place = "golden",
    progress: Progress = silent,
) -> ModelRun:
    """Run a compiled model on a batch of images.

    Parameters:
        folder: of :func:`vip.models.compile.compile_model`.
        inputs: images of each input by its name, those of a single input, or a file: ``.npz`` or
            ``.npy``; as many as the batch, on the golden model any number.
        on: ``golden``, ``iss`` (the instruction set simulator), ``model`` (the timing model) or
            ``rtl`` (Verilog).
        progress: called with launches, cycles or images so far.

    Raises:
        VipError: no compiled model, data that do not fit it, a simulator that can't be built, or
            outputs that differ from the golden model's.
        OSError: a file can't be read.
    """
    if on not in get_args(Place):
        raise ModelError(f"on must be one of {', '.join(get_args(Place))}, not {on!r}")
    compiled = load_folder(Path(folder))
    images = spread(compiled, *input_arrays(inputs, "the inputs"), compiled.carry.values())
    elements = elements_of(compiled, images)
    if on != "golden":
        # Refused before the golden model, which may take long.
        first = {name: values[: 1 if compiled.carry else None] for name, values in elements.items()}
        compiled_job(compiled, {**first, **zero_state(compiled, compiled.carry)})
    outputs, saturated, beyond = golden_outputs(compiled, images, progress)
    golden = ModelRun(
        on=on,
        preset=compiled.preset,
        outputs=outputs,
        launches={},
        loading=0,
        instructions=0,
        saturated=saturated,
        beyond=beyond,
        layers=(),
        no_energy="",
    )
    return golden if on == "golden" else _simulated(golden, compiled, elements, progress)


def _simulated(
    golden: ModelRun,
    compiled: CompiledModel,
    elements: Mapping[str, Elements],
    progress: Progress,
) -> ModelRun:
    """A run of all images on the machine that ``golden`` names.

    Raises:
        CosimError: outputs of a batch differ from the golden model's.
    """
    config = design(compiled.preset)
    maps: dict[str, list[Elements]] = {port.tensor: [] for port in compiled.outputs}
    launches: Counter[str] = Counter()
    done: dict[str, Counter[str]] = {}
    ran: list[tuple[str, bool, RunResult]] = []
    instructions = loading = runs = 0
    for job in model_jobs(compiled, elements, apart=True):
        runs += 1
        assert golden.on != "golden"
        outcome = _run(job, config, golden.on, progress)
        if job.differing(outcome.outputs):
            raise CosimError(f"{compiled.folder}: outputs differ from the golden model's")
        layers = job.of_layers(outcome.outputs)
        for port in compiled.outputs:
            maps[port.tensor].append(layers[port.layer])
        for launch, words in _loading(job.launches).items():
            loading += words
            result = outcome.results[launch]
            if golden.on == "iss":
                instructions += sum(end.executed for end in result.engines)
                continue
            launches[launch] += result.cycles
            layer, moves = job.step_of(launch)
            ran.append((layer, moves, result))
            did = work(config, result, loading=words)
            done.setdefault(layer, Counter()).update(did)
    costs, no_energy = costs_of(config, done)
    nodes = {report.layer: report.node for report in compiled.maps}
    planned = planned_layers(job.layout, nodes, runs=runs)
    return replace(
        golden,
        outputs=_reals(compiled, {name: np.concatenate(parts) for name, parts in maps.items()}),
        launches=dict(launches),
        loading=loading,
        instructions=instructions,
        layers=counted_layers(planned, ran, config.engines, costs) if ran else (),
        no_energy=no_energy,
    )


def _loading(launches: Sequence[Launch]) -> dict[str, int]:
    """Cycles in which the program of each launch is loaded, as of :class:`ModelRun`."""
    programs = [(), *(launch.program.words for launch in launches)]
    return {
        launch.name: len(words) if words != before else 0
        for launch, (before, words) in zip(launches, pairwise(programs), strict=True)
    }


def _run(job: NetworkJob, config: Configuration, on: On, progress: Progress) -> KernelOutcome:
    unit = "instructions" if on == "iss" else "cycles"
    several = config.vaults > 1
    return run_on(
        job,
        config,
        on=on,
        preload=on == "model",
        begins=naming(progress, "launches") if several else None,
        progress=None if several else counting(progress, f"a launch ({unit})"),
    )
