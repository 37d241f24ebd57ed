"""The verb ``check`` of models: what is supported, and predicted cycles and memory."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from microkernels.networks.jobs import NetworkLayout
from microkernels.networks.plan import plan_network
from microkernels.onnx_models.errors import RefusedError
from microkernels.onnx_models.read import part_of
from microkernels.onnx_models.rewrite import for_engines
from microkernels.runtime.ring import ChipEngines
from soc.generate.presets import design
from support.errors import Shown, VipError
from vip.progress import Progress, silent

from .layers import LayerFigures, planned_layers
from .reference import check_mapping, read_model

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
    config = design(preset)
    engines = ChipEngines.of(config)
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
        mapped = for_engines(mapped, config.pe.instructions)
        progress("planning")
        try:
            plan = plan_network(mapped.network, batch=images, engines=engines)
            layout = NetworkLayout(plan, keep=False)
            layers = planned_layers(layout, mapped.origins)
            problem = layout.long_program(preset)
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
