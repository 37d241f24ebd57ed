"""Networks as plain JSON data and back, and their weights in one file of NumPy's."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from io import BytesIO
from typing import Any

import numpy as np

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements
from microkernels.networks.network import KINDS, MapSize, Network
from microkernels.networks.parameters import Weights

from .errors import ModelError, one_line

__all__ = ["load_arrays", "network_from_json", "network_to_json", "save_arrays"]

_KINDS = {kind.__name__: kind for kind in KINDS}


def network_to_json(network: Network) -> dict[str, Any]:
    """A network as plain data."""
    layers = [{"kind": type(layer).__name__, **asdict(layer)} for layer in network.layers]
    plain: dict[str, Any] = json.loads(json.dumps({"input": network.input, "layers": layers}))
    return plain


def network_from_json(content: Any) -> Network:
    """The reverse of :func:`network_to_json`.

    Raises:
        ModelError: it is no such data.
    """
    try:
        layers = []
        for attributes in content["layers"]:
            values = {name: value for name, value in attributes.items() if name != "kind"}
            layers.append(_KINDS[attributes["kind"]].stored(values))
        return Network(input=MapSize(*content["input"]), layers=tuple(layers))
    except (KeyError, TypeError, ValueError, OverflowError, KernelError) as error:
        raise ModelError(f"no description of a network: {one_line(error)}") from error


def save_arrays(weights: Mapping[str, Weights], constants: Mapping[str, Elements]) -> bytes:
    """Weights and constants by layer as the contents of a file of NumPy's (``.npz``)."""
    arrays: dict[str, Any] = {}
    for number, (name, numbers) in enumerate(weights.items()):
        arrays[f"weights{number}"] = numbers.weights
        arrays[f"bias{number}"] = numbers.bias
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
        with np.load(BytesIO(content), allow_pickle=False) as file:
            count = sum(name.startswith("weights") for name in file.files)
            weights = {
                str(file[f"name{number}"]): Weights(
                    weights=file[f"weights{number}"], bias=file[f"bias{number}"]
                )
                for number in range(count)
            }
            constant_count = sum(name.startswith("constant_name") for name in file.files)
            constants = {
                str(file[f"constant_name{number}"]): file[f"constant{number}"]
                for number in range(constant_count)
            }
    except (ValueError, OSError, KeyError, EOFError) as error:
        raise ModelError(f"no weights of a compiled model: {one_line(error)}") from error
    return weights, constants
