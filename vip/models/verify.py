"""Mapped models beside onnxruntime on random numbers, before anything is made of them.

Mapped layers are computed in floating point, of 64 bits unless the model is large
(:func:`microkernels.onnx_models.model.real_layers`), without fraction bits, so that a difference is
a fault of the mapping. They may differ by:

- 32-bit numbers in onnxruntime: :data:`_TOLERANCE` of the tensor's largest magnitude,
- what the mapping itself leaves out
  (:attr:`microkernels.onnx_models.model.MappedModel.approximation`), which layers that follow may
  enlarge: :data:`_ENLARGED` times that,
- where the model rounds to steps of integers, twice what that changes in a tensor: a number between
  two steps may become either,
- the error of onnxruntime's logistic functions, :data:`_LOGISTIC_ERROR`, if there are some,
- where a function is steep, such as a reciprocal near 0: :data:`_ENLARGED` times what onnxruntime's
  output changes when its inputs change by :data:`_NUDGE`.

Elements that are not finite in one of both are not compared: random numbers may be beyond the
domain of a function.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from microkernels.networks.parameters import Reals
from microkernels.onnx_models.errors import ModelError
from microkernels.onnx_models.magnitudes import with_norms
from microkernels.onnx_models.model import MappedModel, ModelPort, of_images, real_layers

from .reference import OnnxModel, onnx_outputs, with_every_output

_TOLERANCE = 5e-4
_ENLARGED = 8
_NUDGE = 1e-5
_LOGISTIC_ERROR = 1e-6
#: Share of the first set's range that the second set of numbers has.
_SMALL = 1 / 8
#: Products of an image from which on one set of numbers, of 32 bits, is enough.
_MOST_PRODUCTS = 1 << 30


class _Difference(NamedTuple):
    """How far a tensor is from onnxruntime's: difference, and its largest magnitude."""

    error: float
    largest: float


def check_mapping(
    model: Path | bytes,
    session: OnnxModel,
    mapped: MappedModel,
    data: Mapping[str, Reals] | None = None,
) -> None:
    """Refuse a mapped model whose layers do not do what onnxruntime does.

    Parameters:
        model: ONNX file, or its contents. session, mapped: of it.
        data: calibration data, images x height x width x channels of each input by its layer;
            random numbers are within their range. None: there are none, and random numbers have
            the standard normal distribution; models of integers are not compared.

    Raises:
        ModelError: a tensor has another shape, or other numbers; the message names the first one.
        UnrunnableError: onnxruntime can't run the model.
    """
    if data is None and any(port.integers for port in mapped.inputs):
        return
    numbers = _numbers(mapped, data)
    differing = _differing(session, mapped, numbers, mapped.outputs)
    if not differing:
        return
    content, makers = with_every_output(model)
    ports = [port for port in (*mapped.inner, *mapped.outputs) if port.tensor in makers]
    differing = _differing(OnnxModel(content), mapped, numbers, ports) or differing
    tensor, (error, largest) = next(iter(differing.items()))
    op, node = makers.get(tensor, ("", tensor))
    raise ModelError(
        f"node {node} ({op}): its output {tensor} differs by {error:.3g} between the mapped layers "
        f"and onnxruntime, where it reaches {largest:.3g}: one of both is wrong"
    )


def _numbers(mapped: MappedModel, data: Mapping[str, Reals] | None) -> dict[str, Reals]:
    """Sets of a batch's numbers, one after the other, by tensor."""
    random = np.random.default_rng(0)
    many = _products(mapped) <= _MOST_PRODUCTS
    numbers: dict[str, Reals] = {}
    for port in mapped.inputs:
        shape = (mapped.batch, *port.inner)
        wide: Reals = random.standard_normal(shape)
        middle, sample = 0.0, wide
        if data is not None:
            values = port.images(data[port.layer])
            wide = random.uniform(values.min(), values.max(), shape)
            middle, sample = float(values.mean()), values[np.arange(mapped.batch) % len(values)]
        small = middle + _SMALL * (wide - middle)
        sets = [wide, small, sample] if many else [wide]
        # The types of integers may not hold the differences of random ones.
        sets = [np.rint(sample)] if port.integers else sets
        numbers[port.tensor] = np.concatenate(sets)
    count = min(map(len, numbers.values()))
    return {name: values[:count] for name, values in numbers.items()}


def _products(mapped: MappedModel) -> int:
    """Products of the layers with weights, of an image."""
    sizes = mapped.network.sizes
    return sum(
        real.weights.size * sizes[name].width * sizes[name].height
        for name, real in mapped.real.items()
    )


def _differing(
    session: OnnxModel,
    mapped: MappedModel,
    numbers: Mapping[str, Reals],
    ports: Sequence[ModelPort],
) -> dict[str, _Difference]:
    """The tensors of ``ports`` that differ, in their order."""
    random = np.random.default_rng(1)
    both: dict[str, Reals] = {}
    for port in mapped.inputs:
        values = numbers[port.tensor]
        nudge = 0.0 if port.integers else _NUDGE
        signs = random.choice((-1, 1), values.shape)
        both[port.tensor] = np.concatenate([values, values * (1 + nudge * signs)])
    exact = onnx_outputs(session, both, inputs=mapped.inputs, outputs=ports, batch=mapped.batch)
    floats = _float_outputs(mapped, numbers, ports, steps=True)
    whole = replace(mapped, rounded=mapped.rounded & mapped.integers)
    rounds = bool(mapped.steps) or whole.rounded < mapped.rounded
    plain = _float_outputs(whole, numbers, ports, steps=False) if rounds else floats
    share = _TOLERANCE + _ENLARGED * mapped.approximation
    logistic = any(layer.transcendental for layer in mapped.network.layers)
    least = _LOGISTIC_ERROR if logistic else 0.0
    differing = {}
    for port in ports:
        expected, moved = np.split(exact[port.tensor], 2)
        values = floats[port.tensor]
        by_steps = np.nan_to_num(np.abs(values - plain[port.tensor]), posinf=0.0).max(initial=0.0)
        with np.errstate(invalid="ignore"):
            error, change = np.abs(values - expected), np.abs(moved - expected)
        finite = np.isfinite(values) & np.isfinite(expected) & np.isfinite(moved)
        largest = float(np.abs(expected[finite]).max(initial=0.0))
        allowed = share * largest + least + 2 * float(by_steps)
        wrong = finite & (error > allowed + _ENLARGED * change)
        if wrong.any():
            differing[port.tensor] = _Difference(float(error[wrong].max()), largest)
    return differing


def _float_outputs(
    mapped: MappedModel,
    numbers: Mapping[str, Reals],
    ports: Sequence[ModelPort],
    *,
    steps: bool,
) -> dict[str, Reals]:
    """Tensors of mapped layers in floating point: images x elements; ``steps`` as of
    :func:`microkernels.onnx_models.model.real_layers`."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    images = np.arange(len(next(iter(numbers.values()))))
    maps = {port.layer: port.maps(numbers[port.tensor], len(images)) for port in mapped.inputs}
    maps |= {name: of_images(values, images) for name, values in mapped.constants.items()}
    if _products(mapped) > _MOST_PRODUCTS:
        maps = {name: values.astype(np.float32) for name, values in maps.items()}
    names = {port.layer for port in ports}
    # Threads that wait for each other's small products take more time than they save.
    with threadpool_limits(1, "blas"):
        layers = {
            layer.name: values
            for layer, values in real_layers(with_norms(mapped, maps), maps, steps=steps)
            if layer.name in names
        }
    return {port.tensor: port.images(layers[port.layer]).reshape(len(images), -1) for port in ports}
