"""Outputs of an image that are inputs of the next one, such as the state of a recurrent network."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from microkernels.common.fixed_point import Elements
from microkernels.networks.parameters import Reals, as_elements, real_of
from microkernels.onnx_models.errors import ModelError
from microkernels.onnx_models.model import MappedModel, ModelPort, real_layers


class Ports(Protocol):
    """A model, mapped or compiled."""

    @property
    def inputs(self) -> tuple[ModelPort, ...]: ...
    @property
    def outputs(self) -> tuple[ModelPort, ...]: ...


def _pairs(model: Ports, carry: Mapping[str, str]) -> list[tuple[ModelPort, ModelPort]]:
    outputs = {port.tensor: port for port in model.outputs}
    inputs = {port.tensor: port for port in model.inputs}
    return [(outputs[one], inputs[other]) for one, other in carry.items()]


def check_carry(model: MappedModel, carry: Mapping[str, str]) -> None:
    """Refuse a carry that does not fit the model.

    Parameters:
        carry: output -> input.

    Raises:
        ModelError: no such output or input, one that is named twice or has another shape, the
            model's first input, or a batch.
    """
    if carry and model.batch != 1:
        raise ModelError(
            f"carry: images follow each other, so the batch must be 1, not {model.batch}"
        )
    for kind, names, ports in (
        ("output", list(carry), model.outputs),
        ("input", list(carry.values()), model.inputs[1:]),
    ):
        tensors = [port.tensor for port in ports]
        for name in names:
            if name not in tensors:
                listed = ", ".join(tensors) or "none"
                raise ModelError(
                    f"carry: no {kind} {name!r} that can be carried; there is {listed}"
                )
            if names.count(name) > 1:
                raise ModelError(f"carry: {kind} {name!r} is named twice")
    for one, other in _pairs(model, carry):
        if one.inner != other.inner:
            raise ModelError(
                f"carry: output {one.tensor} of shape {list(one.shape)} does not fit input "
                f"{other.tensor} of shape {list(other.shape)}"
            )


def zero_state(model: Ports, carry: Mapping[str, str]) -> dict[str, Elements]:
    """Zeros for the carried inputs of the first image, by layer."""
    return {port.layer: port.zeros(1) for _, port in _pairs(model, carry)}


def carried_elements(
    model: Ports,
    carry: Mapping[str, str],
    fractions: Mapping[str, int],
    bits: Mapping[str, int],
    maps: Mapping[str, Elements],
) -> dict[str, Elements]:
    """The carried inputs of the next image, by layer.

    Parameters:
        fractions, bits: of each map. maps: maps of the outputs of one image, by layer.
    """
    elements = {}
    for one, other in _pairs(model, carry):
        values = one.images(real_of(maps[one.layer], fractions[one.layer]))
        elements[other.layer] = as_elements(
            other.maps(values, 1), fractions[other.layer], bits[other.layer]
        )
    return elements


def carried_inputs(
    model: MappedModel, inputs: Mapping[str, Reals], carry: Mapping[str, str]
) -> dict[str, Reals]:
    """The carried inputs of images that follow each other, in floating point, by layer.

    Parameters:
        inputs: images x height x width x channels of all other inputs, by layer.
    """
    pairs = _pairs(model, carry)
    state: dict[str, Reals] = {
        name: values.astype(np.float64) for name, values in zero_state(model, carry).items()
    }
    steps: dict[str, list[Reals]] = {name: [] for name in state}
    constants = {name: values[:1] for name, values in model.constants.items()}
    images = len(next(iter(inputs.values()))) if pairs else 0
    for number in range(images):
        for name, values in state.items():
            steps[name].append(values)
        image = {name: values[number : number + 1] for name, values in inputs.items()}
        filled = {
            layer.name: values
            for layer, values in real_layers(model, {**image, **constants, **state})
        }
        state = {other.layer: other.maps(one.images(filled[one.layer]), 1) for one, other in pairs}
    return {name: np.concatenate(values) for name, values in steps.items()}
