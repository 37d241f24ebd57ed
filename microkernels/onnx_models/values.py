"""What is known of a graph that is mapped onto layers: tensors, refused nodes, coverage."""

from collections.abc import Mapping
from dataclasses import dataclass

from microkernels.networks.network import MapSize

from .model import Model

__all__ = ["Coverage", "Refusal", "Value"]


@dataclass(frozen=True, kw_only=True)
class Value:
    """A tensor that depends on the inputs.

    Attributes:
        layer: that holds it, or :data:`microkernels.networks.network.INPUT`.
        size: of the layer's map.
        shape: in the ONNX model; the elements are in the order of batch, channels, rows, columns.
        alone: nothing else uses the layer.
        turned: the elements are in the order of batch, columns, rows, channels.
    """

    layer: str
    size: MapSize
    shape: tuple[int, ...]
    alone: bool
    turned: bool = False


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A node that is not supported: its operator, its name, and why."""

    op: str
    node: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What of a graph is supported.

    Attributes:
        operators: of each type of operator, nodes in all, and nodes that are mapped.
        refused: nodes that are not supported. Nodes that depend on them are neither mapped nor
            refused.
        model: the mapped model; None if a node is refused.
    """

    operators: Mapping[str, tuple[int, int]]
    refused: tuple[Refusal, ...]
    model: Model | None
