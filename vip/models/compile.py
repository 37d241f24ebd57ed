"""The verb ``compile`` of models: programs, memory, launches and a manifest.

Within an error budget, all maps that can be bytes are bytes at first. Then those where rounding
adds most to the error, for the cycles that bytes save, keep 16 bits. The golden model decides how
many: it is run with half of those in question, again and again.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from math import inf
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile, is_zipfile

import numpy as np
from numpy.typing import NDArray

from microkernels.common.fixed_point import Reals, real_of
from microkernels.networks.jobs import NetworkLayout
from microkernels.networks.maps import BYTE_BITS
from microkernels.networks.network import Network
from microkernels.networks.plan import NetworkPlan, plan_network
from microkernels.onnx_models.calibrate import Calibration, MapReport
from microkernels.onnx_models.errors import ModelError, one_line
from microkernels.onnx_models.model import (
    MappedModel,
    carried_inputs,
    check_carry,
    images_of,
    spread,
)
from microkernels.onnx_models.read import part_of
from microkernels.onnx_models.rewrite import for_engines, requantised
from microkernels.runtime.ring import ChipEngines
from pe.config import PAIRS
from soc.generate.presets import design
from support.errors import Shown
from support.files import read_bytes
from vip.progress import Progress, silent

from .folder import CompiledModel, check_new, save_folder
from .layers import LayerFigures, planned_layers
from .reference import (
    OnnxModel,
    OutputDeviation,
    check_mapping,
    onnx_outputs,
    output_error,
    read_model,
)

#: Images of each input by its name, those of a single input, or a file of either.
Images = Mapping[str, NDArray[Any]] | NDArray[Any] | Path | str

_MOST_BYTES = 1 << 32


@dataclass(frozen=True, kw_only=True)
class CompileReport(Shown):
    """A model that was compiled.

    Attributes:
        model: as the folder holds it. vault_bytes: of each vault's memory.
        layers: what each is predicted to take.
        outputs: beside onnxruntime's, on at most 16 images of the calibration data.
        requantised: what of a model's own bytes is rounded again, a line each.
        widened: maps that keep 16 bits for the budget. error_in_bytes: without this, of the worst
            output in percent of its magnitude.
    """

    model: CompiledModel
    vault_bytes: int
    layers: tuple[LayerFigures, ...]
    outputs: tuple[OutputDeviation, ...]
    requantised: tuple[str, ...]
    widened: tuple[str, ...]
    error_in_bytes: float

    @property
    def programs(self) -> int:
        """Number of programs that differ."""
        return len({launch.program.words for launch in self.model.launches})

    @property
    def predicted_cycles(self) -> float:
        """Of a run."""
        return sum(layer.taken for layer in self.layers)

    @property
    def saturated(self) -> tuple[MapReport, ...]:
        """Maps with saturated values."""
        return tuple(report for report in self.model.maps if report.saturated)

    @property
    def beyond(self) -> tuple[MapReport, ...]:
        """Maps of functions with arguments beyond their range."""
        return tuple(report for report in self.model.maps if report.beyond)

    def to_json(self) -> dict[str, object]:
        """Plain JSON data."""
        model = self.model
        return {
            "preset": model.preset,
            "batch": model.batch,
            "maps": [asdict(one) for one in model.maps],
            "folder": str(model.folder),
            "launches": len(model.launches),
            "programs": self.programs,
            "vault_bytes": self.vault_bytes,
            "predicted_cycles": self.predicted_cycles,
            "layers": [layer.to_json() for layer in self.layers],
            "outputs": [asdict(one) for one in self.outputs],
            "requantised": list(self.requantised),
            "widened": list(self.widened),
            "error_in_bytes": self.error_in_bytes,
        }


def input_arrays(images: Images, label: str) -> tuple[Mapping[str, NDArray[Any]], str]:
    """Arrays by name, "" for one alone, and what messages call them: ``label``, or the file.

    Raises:
        ModelError: something else, or no such file.
        OSError: it can't be read.
    """
    if isinstance(images, Path | str):
        return _arrays_in(Path(images)), str(images)
    if isinstance(images, np.ndarray):
        return {"": images}, label
    if not isinstance(images, Mapping):
        raise ModelError(
            f"{label}: an array, arrays by name, or a file of them, not {type(images).__name__}"
        )
    return images, label


def _arrays_in(path: Path) -> dict[str, NDArray[Any]]:
    content = BytesIO(read_bytes(path, _MOST_BYTES))
    if not content.getbuffer()[:6].tobytes().startswith((b"\x93NUMPY", b"PK")):
        # NumPy would take it for a pickle, and advise to trust it.
        raise ModelError(f"{path}: not a .npy or .npz file of NumPy")
    try:
        if is_zipfile(content):
            # A small file may claim to hold very large arrays.
            with ZipFile(content) as parts:
                if sum(part.file_size for part in parts.infolist()) > _MOST_BYTES:
                    raise ModelError(f"{path}: its arrays have more than {_MOST_BYTES:,} bytes")
        content.seek(0)
        arrays = np.load(content, allow_pickle=False)
        if isinstance(arrays, np.ndarray):
            return {"": arrays}
        return {name: arrays[name] for name in arrays.files}
    except ModelError:
        raise
    except Exception as error:  # NumPy has no exception of its own for broken files.
        raise ModelError(f"{path}: not a file of NumPy arrays: {one_line(error)}") from error


class Trial(NamedTuple):
    """A model that is planned and calibrated.

    Attributes:
        plan: of its network. keep: every map keeps its memory.
        calibrated: on the data. outputs: beside onnxruntime's.
    """

    plan: NetworkPlan
    keep: bool
    calibrated: Calibration
    outputs: tuple[OutputDeviation, ...]

    @property
    def error(self) -> float:
        """Of the worst output, in percent of its magnitude."""
        return 100 * max(output.error for output in self.outputs)


def check_budget(preset: str, budget: float | None) -> None:
    """Refuse a budget that makes no sense.

    Raises:
        ModelError: it is not above 0, or the engines do not multiply bytes.
    """
    if budget is None:
        return
    if not 0 < budget < inf:
        raise ModelError(f"a budget is a percentage above 0, not {budget:g}")
    if PAIRS not in design(preset).pe.instructions:
        raise ModelError(
            f"a budget is for engines that multiply bytes, but those of {preset} do not: "
            "vault-int8 and thesis-int8 do"
        )


def _added(trial: Trial) -> dict[str, float]:
    """Squared error that each layer adds to those of its sources."""
    errors = {report.layer: report.error**2 for report in trial.calibrated.maps}
    sources = trial.calibrated.model.network.sources
    return {
        name: max(
            0.0, error - max((errors.get(source, 0.0) for source in sources[name]), default=0)
        )
        for name, error in errors.items()
    }


def _noisy(trial: Trial, wide: Trial) -> list[set[str]]:
    """Sets of maps of bytes that have the same bits, those with the largest error per cycle that
    they save first: of layers that write them, and of those that multiply them by weights of bytes.

    Parameters:
        trial: with bytes. wide: with 16 bits.
    """
    network = trial.calibrated.model.network
    added, sets = _added(trial), network.equal_bits
    noise: dict[str, float] = {}
    saved: dict[str, float] = {}
    for name, error in added.items():
        cycles = wide.plan.layers[name].cycles - trial.plan.layers[name].cycles
        for group in {sets[name], *(sets[source] for source in network.sources[name])}:
            noise[group] = noise.get(group, 0.0) + error
            saved[group] = saved.get(group, 0.0) + cycles
    members: dict[str, set[str]] = {}
    for name, group in sets.items():
        if network.bits[name] == BYTE_BITS:
            members.setdefault(group, set()).add(name)
    rate = {group: noise.get(group, 0.0) / max(saved.get(group, 0.0), 1.0) for group in members}
    return [members[group] for group in sorted(members, key=rate.__getitem__, reverse=True)]


def within_budget(budget: float, bytes_: Trial, trial: Callable[[Collection[str]], Trial]) -> Trial:
    """A model with an error of at most ``budget`` percent, with 16 bits in few maps.

    Parameters:
        bytes_: the model with bytes wherever layers have them.
        trial: plans and calibrates the model with 16 bits in these maps.

    Raises:
        ModelError: 16 bits everywhere do not suffice; the message names the worst layer.
    """
    if bytes_.error <= budget:
        return bytes_
    best = trial(bytes_.calibrated.model.network.sizes)
    if best.error > budget:
        added = _added(best)
        worst = max(added, key=added.__getitem__)
        raise ModelError(
            f"a budget of {budget:g} % is too small: the error is {best.error:.2f} % with 16 bits, "
            f"{bytes_.error:.2f} % with bytes; layer {worst} adds most, "
            f"{100 * added[worst] ** 0.5:.2f} % of its map; give a larger budget, or calibration "
            "data of the range in use"
        )
    sets = _noisy(bytes_, best)
    too_few, enough = 0, len(sets)
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        tried = trial(set().union(*sets[:middle]))
        if tried.error <= budget:
            enough, best = middle, tried
        else:
            too_few = middle
    return best


def compile_model(
    model: Path | str,
    calibration: Images,
    folder: Path | str,
    *,
    preset: str = "vault",
    batch: int | None = None,
    carry: Mapping[str, str] | None = None,
    outputs: Sequence[str] = (),
    shapes: Mapping[str, Sequence[int]] | None = None,
    budget: float | None = None,
    progress: Progress = silent,
) -> CompileReport:
    """Compile a model for a vault or a chip.

    Parameters:
        model: ONNX file.
        calibration: images of each input by its name, those of a single input, or a file: ``.npz``
            or ``.npy``. Fraction bits are chosen so that they do not saturate.
        folder: to write; it must not exist.
        preset: of a vault or chip. With engines that multiply bytes (``vault-int8``,
            ``thesis-int8``) maps and weights are bytes wherever layers have them.
        batch: images of a run, the first size of the inputs, where the model may leave it open;
            None: 1 there, and what the operators show elsewhere.
        carry: output -> input: the output of an image is that input of the next one, such as the
            state of a recurrent network; zeros for the first.
        outputs: tensors to compute, in this order; none: the model's outputs.
        shapes: of inputs that leave sizes open, by name.
        budget: error of the outputs on the calibration data, in percent of their magnitude, for
            engines that multiply bytes: maps whose bytes exceed it keep 16 bits. None: any.
        progress: called with the stage of the work.

    Raises:
        VipError: a model with nodes that are not supported (the message names the first), data that
            do not fit it, a machine that it does not fit, a budget that it can't keep, or a folder
            that exists.
        OSError: a file can't be read or written.
    """
    # Refused before the folder.
    design(preset)
    folder = Path(folder)
    check_new(folder)
    check_budget(preset, budget)
    progress("reading the model")
    part = part_of(Path(model), outputs, shapes or {})
    data, label = input_arrays(calibration, "the calibration data")
    compiler = _Compiler(preset, part, batch, data, label, carry or {}, progress)
    in_bytes = compiler.trial(())
    chosen = in_bytes if budget is None else within_budget(budget, in_bytes, compiler.trial)
    progress("writing")
    return compiler.write(folder, chosen, in_bytes.error)


class _Compiler:
    """A model that is being compiled for a machine.

    Raises:
        VipError: as of :func:`compile_model`.
    """

    def __init__(
        self,
        preset: str,
        model: Path | bytes,
        batch: int | None,
        data: Mapping[str, NDArray[Any]],
        label: str,
        carry: Mapping[str, str],
        progress: Progress,
    ) -> None:
        self.preset = preset
        config = design(preset)
        self.engines, self.instructions = ChipEngines.of(config), config.pe.instructions
        self.content = model if isinstance(model, bytes) else read_bytes(model, _MOST_BYTES)
        self.read, self.session = _supported(model, batch)
        self.mapped = for_engines(self.read, self.instructions)
        self.label, self.carry, self.progress = label, carry, progress
        check_carry(self.mapped, carry)
        self.arrays = images_of(self.mapped, data, label, carry.values())
        progress("comparing with onnxruntime")
        check_mapping(model, self.session, self.mapped, self._inputs(self.mapped))

    def _inputs(self, model: MappedModel) -> dict[str, Reals]:
        """Images of all inputs, by layer."""
        images = spread(model, self.arrays, self.label, self.carry.values())
        return images | carried_inputs(model, images, self.carry)

    def trial(self, wide: Collection[str]) -> Trial:
        """The model with 16 bits in the maps ``wide``."""
        # The model's own steps count where its maps are bytes.
        model = for_engines(self.read, self.instructions, wide)
        images = self._inputs(model)
        self.progress("planning")
        plan = plan_network(model.network, batch=model.batch, engines=self.engines)
        keep = any(model.network.users(port.layer) for port in model.outputs)
        layout = NetworkLayout(plan, keep=keep)
        if why := layout.long_program(self.preset):
            raise ModelError(why)
        self.progress("calibrating")
        calibrated = Calibration(model, layout, images)
        compared = _compared(self.session, calibrated, self.arrays, images)
        return Trial(plan, keep, calibrated, compared)

    def write(self, folder: Path, chosen: Trial, error_in_bytes: float) -> CompileReport:
        """Write the folder of a trial."""
        _, keep, calibrated, compared = chosen
        model = calibrated.model
        plan = plan_network(calibrated.network, batch=model.batch, engines=self.engines)
        layout = NetworkLayout(plan, keep=keep)
        compiled = CompiledModel(
            folder=folder,
            preset=self.preset,
            batch=model.batch,
            network=calibrated.network,
            weights=calibrated.weights,
            constants=calibrated.constants,
            fractions={name: one.output for name, one in calibrated.formats.items()},
            inputs=model.inputs,
            outputs=model.outputs,
            maps=calibrated.maps,
            keep=keep,
            carry=self.carry,
            launches=layout.launches,
        )
        save_folder(compiled, self.content, layout)
        return CompileReport(
            model=compiled,
            vault_bytes=layout.end,
            layers=planned_layers(layout, model.origins),
            outputs=compared,
            requantised=requantised(self.read, model, calibrated.formats),
            widened=_widened(self.mapped.network, calibrated.network),
            error_in_bytes=error_in_bytes,
        )


def _widened(before: Network, after: Network) -> tuple[str, ...]:
    """Maps of bytes before that are not bytes any more."""
    return tuple(name for name, bits in before.bits.items() if bits < after.bits[name])


def _supported(model: Path | bytes, batch: int | None) -> tuple[MappedModel, OnnxModel]:
    """The mapped model, and the model in onnxruntime.

    Raises:
        ModelError: there are nodes that are not supported; the message names the first.
    """
    importer, session = read_model(model, batch)
    if importer.model is None or session is None:
        first, further = importer.refused[0], len(importer.refused) - 1
        also = f" (and {further} more: vip nn check lists them)" if further else ""
        raise ModelError(f"{first}{also}")
    return importer.model, session


def _compared(
    session: OnnxModel,
    calibrated: Calibration,
    arrays: Mapping[str, NDArray[Any]],
    inputs: Mapping[str, Reals],
) -> tuple[OutputDeviation, ...]:
    """The outputs on the images of the calibration beside onnxruntime's.

    Parameters:
        session: of the model.
        arrays: images of the inputs that are not carried, by tensor. inputs: of all, by layer.
    """
    model = calibrated.model
    chosen = list(calibrated.images)
    feeds = {
        port.tensor: arrays[port.tensor][chosen]
        if port.tensor in arrays
        else port.images(inputs[port.layer][chosen])
        for port in model.inputs
    }
    exact = onnx_outputs(
        session, feeds, inputs=model.inputs, outputs=model.outputs, batch=model.batch
    )
    return tuple(
        output_error(
            port.tensor,
            port.images(
                real_of(calibrated.outputs[port.layer], calibrated.formats[port.layer].output)
            ).reshape(len(chosen), -1),
            exact[port.tensor],
        )
        for port in model.outputs
    )
