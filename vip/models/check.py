"""The verb ``check`` of models: what is supported, and predicted cycles and memory."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from microkernels.common.feature_map import COLUMN_BYTES
from microkernels.networks.elements import LOGISTIC
from microkernels.networks.jobs import NetworkLayout
from microkernels.networks.plan import plan_network
from microkernels.onnx_models.errors import RefusedError
from microkernels.onnx_models.importer import Importer, map_graph
from microkernels.onnx_models.model import MappedModel
from microkernels.onnx_models.operators.table import OPERATORS
from microkernels.onnx_models.read import load_proto, part_of, read_graph
from microkernels.onnx_models.rewrite import in_curves, in_steps
from microkernels.runtime.ring import ChipEngines
from pe.config import PAIRS, PeConfig
from soc.generate.presets import design
from support.errors import Shown, VipError
from vip.progress import Progress, silent

from .layers import LayerFigures, planned_layers
from .reference import OnnxModel, check_mapping, mixed_images

#: Clock of the thesis's machine, in GHz.
_CLOCK_GHZ = 1.25


@dataclass(frozen=True, kw_only=True)
class ModelCheck(Shown):
    """What of a model is supported, and what it is predicted to take.

    Attributes:
        model: file. preset: of the machine. batch: images.
        operators: type of operator -> nodes, and those that are supported.
        refused: nodes that are not supported, and why.
        layers: none if a node is refused.
        vault_bytes: of each vault's memory that are used; 0 if a node is refused.
        room_bytes: of each vault's memory.
        vaults: of the machine.
        problem: why the layers do not fit the machine; "" if they do.
    """

    model: str
    preset: str
    batch: int
    operators: dict[str, tuple[int, int]]
    refused: tuple[RefusedError, ...]
    layers: tuple[LayerFigures, ...]
    vault_bytes: int
    room_bytes: int
    vaults: int
    problem: str

    @property
    def cycles(self) -> float:
        """Predicted, in all."""
        return sum(layer.taken for layer in self.layers)

    @property
    def ms(self) -> float:
        """Predicted time at 1.25 GHz."""
        return self.cycles / _CLOCK_GHZ / 1e6

    @property
    def supported(self) -> bool:
        """Every node is supported, and the layers fit the machine."""
        return not self.refused and not self.problem

    def to_json(self) -> dict[str, object]:
        """Plain JSON data."""
        return {
            **asdict(self),
            "refused": [vars(error) for error in self.refused],
            "layers": [layer.to_json() for layer in self.layers],
            "predicted_cycles": self.cycles,
            "predicted_ms": self.ms,
        }


def model_engines(preset: str) -> ChipEngines:
    """The engines of a preset, as planners of models know them.

    Raises:
        ConfigurationError: no such preset.
    """
    config = design(preset)
    engines = ChipEngines.of(config)
    if isinstance(config, PeConfig):
        # The memory of an engine alone, such as a board's, has no banks with rows.
        engines = replace(engines, alignment=COLUMN_BYTES)
    return engines


def read_model(path: Path | bytes, batch: int | None) -> tuple[Importer, OnnxModel | None]:
    """What of a model is supported, and the model in onnxruntime, if all of it is.

    Parameters:
        path: ONNX file, or its contents.
        batch: as of :func:`vip.models.compile.compile_model`.

    Raises:
        ModelError: the file holds no model, or one of unknown sizes or that can't be run.
        OSError: it can't be read.
    """
    graph = read_graph(load_proto(path), batch=batch)
    importer = map_graph(graph, OPERATORS)
    if importer.model is None:
        return importer, None
    session = OnnxModel(path)
    if mixed := mixed_images(path, session, graph):
        importer.refused, importer.model = [mixed], None
        return importer, None
    return importer, session


def for_machine(preset: str, model: MappedModel, wide: Collection[str] = ()) -> MappedModel:
    """The model as a machine can run it: with functions as curves, logistic ones where its engines
    lack the unit, and with maps and weights of bytes, but for integers and the maps ``wide``, where
    they multiply bytes and layers have them."""
    keys = {name: f"v.{name}[16]" for name in LOGISTIC}
    instructions = design(preset).pe.instructions
    lacking = [name for name, key in keys.items() if key not in instructions]
    model = in_curves(model, lacking)
    if PAIRS not in instructions:
        return model
    wide = {*model.integers, *model.rounded, *wide}
    model = in_steps(model, model.network.in_bytes(wide).bits)
    return replace(model, network=model.network.in_bytes(wide))


def long_program(preset: str, layout: NetworkLayout) -> str:
    """Which layer's program does not fit the engines' instruction buffer; "": all fit.

    Programs grow with the window of a convolution and with the pieces of a curve, of which there
    are as many as there may be before calibration; those of small windows are not written.
    """
    room = design(preset).pe.instruction_words
    for layer in layout.plan.network.layers:
        if layer.long_program is None:
            continue
        cause, estimate = layer.long_program
        if estimate <= room:
            continue
        words = max(len(launch.program.words) for launch in layout.launches_of(layer.name))
        if words > room:
            return (
                f"{layer.name}: {cause} needs a program of {words} words, but "
                f"the engines of {preset} have an instruction buffer of {room}"
            )
    return ""


def check_model(
    model: Path | str,
    *,
    preset: str = "vault",
    batch: int | None = None,
    outputs: Sequence[str] = (),
    shapes: Mapping[str, Sequence[int]] | None = None,
    progress: Progress = silent,
) -> ModelCheck:
    """Check a model before anything is built: supported operators, refused nodes, predicted cycles
    and memory.

    Parameters:
        model: ONNX file.
        preset: of a vault or chip.
        batch, outputs, shapes: as of :func:`vip.models.compile.compile_model`.
        progress: called with the stage of the work.

    Raises:
        VipError: no model, sizes that are not known, or no such machine.
        OSError: the file can't be read.
    """
    engines = model_engines(preset)
    model = Path(model)
    progress("reading the model")
    content = part_of(model, outputs, shapes or {})
    importer, session = read_model(content, batch)
    mapped, counts = importer.model, Counter(node.op_type for node in importer.graph.nodes)
    images = 0 if mapped is None else mapped.batch
    layers: tuple[LayerFigures, ...] = ()
    used, problem = 0, ""
    if mapped is not None and session is not None:
        progress("comparing with onnxruntime")
        check_mapping(content, session, mapped)
        mapped = for_machine(preset, mapped)
        progress("planning")
        try:
            plan = plan_network(mapped.network, batch=images, engines=engines)
            layout = NetworkLayout(plan, keep=False)
            layers = planned_layers(layout, mapped.origins)
            problem = long_program(preset, layout)
            used = layout.end
        except VipError as error:
            problem = str(error)
    return ModelCheck(
        model=str(model),
        preset=preset,
        batch=images,
        operators={op: (counts[op], importer.mapped[op]) for op in sorted(counts)},
        refused=tuple(importer.refused),
        layers=layers,
        vault_bytes=used,
        room_bytes=1 << engines.address_bits,
        vaults=engines.vaults,
        problem=problem,
    )
