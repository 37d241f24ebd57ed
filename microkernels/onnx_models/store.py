"""Networks as plain JSON data and back, and their weights in one file of NumPy's."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from io import BytesIO
from typing import Any

import numpy as np

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements
from microkernels.networks.golden import Weights
from microkernels.networks.network import (
    Activation,
    Add,
    Combine,
    Conv,
    Dense,
    Depthwise,
    Layer,
    MapSize,
    Multiply,
    Network,
    Normalize,
    Pool,
    Product,
    Rearrange,
    Source,
)
from microkernels.networks.pairs import Pads, Pair
from microkernels.nn.curves import curve_of

from .errors import ModelError, one_line

__all__ = ["load_arrays", "network_from_json", "network_to_json", "save_arrays"]

_KINDS: Mapping[str, type[Layer]] = {
    kind.__name__: kind
    for kind in (
        Activation,
        Add,
        Combine,
        Conv,
        Dense,
        Depthwise,
        Multiply,
        Normalize,
        Pool,
        Product,
        Rearrange,
        Source,
    )
}
#: Attributes that are tuples -> the class of the tuple.
_TUPLES: Mapping[str, Callable[..., tuple[Any, ...]]] = {
    "kernel": Pair,
    "window": Pair,
    "stride": Pair,
    "padding": Pads,
    "size": MapSize,
    "curve": curve_of,
}


def _tuple(name: str, values: list[Any]) -> tuple[Any, ...]:
    kind = _TUPLES.get(name)
    return tuple(values) if kind is None else kind(*values)


def network_to_json(network: Network) -> dict[str, Any]:
    """A network as plain data."""
    layers = [{"kind": type(layer).__name__, **asdict(layer)} for layer in network.layers]
    found: dict[str, Any] = json.loads(json.dumps({"input": network.input, "layers": layers}))
    return found


def network_from_json(content: Any) -> Network:
    """The reverse of :func:`network_to_json`.

    Raises:
        ModelError: it is no such data.
    """
    try:
        layers = []
        for each in content["layers"]:
            values = {
                name: _tuple(name, value) if isinstance(value, list) else value
                for name, value in each.items()
                if name != "kind"
            }
            make: Callable[..., Layer] = _KINDS[each["kind"]]
            layers.append(make(**values))
        return Network(input=MapSize(*content["input"]), layers=tuple(layers))
    except (KeyError, TypeError, ValueError, OverflowError, KernelError) as error:
        raise ModelError(f"no description of a network: {one_line(error)}") from error


def save_arrays(weights: Mapping[str, Weights], constants: Mapping[str, Elements]) -> bytes:
    """Weights and constants by layer as the contents of a file of NumPy's (``.npz``)."""
    arrays: dict[str, Any] = {}
    for number, (name, held) in enumerate(weights.items()):
        arrays[f"weights{number}"] = held.weights
        arrays[f"bias{number}"] = held.bias
        arrays[f"name{number}"] = np.array(name)
    for number, (name, values) in enumerate(constants.items()):
        arrays[f"constant{number}"] = values
        arrays[f"constant_name{number}"] = np.array(name)
    content = BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def load_arrays(content: bytes) -> tuple[dict[str, Weights], dict[str, Elements]]:
    """The reverse of :func:`save_arrays`.

    Raises:
        ModelError: it is no such file.
    """
    try:
        with np.load(BytesIO(content), allow_pickle=False) as held:
            count = sum(name.startswith("weights") for name in held.files)
            weights = {
                str(held[f"name{number}"]): Weights(
                    weights=held[f"weights{number}"], bias=held[f"bias{number}"]
                )
                for number in range(count)
            }
            others = sum(name.startswith("constant_name") for name in held.files)
            constants = {
                str(held[f"constant_name{number}"]): held[f"constant{number}"]
                for number in range(others)
            }
    except (ValueError, OSError, KeyError, EOFError) as error:
        raise ModelError(f"no weights of a compiled model: {one_line(error)}") from error
    return weights, constants
