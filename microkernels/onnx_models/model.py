"""A mapped model: a network with real parameters, whose fraction bits are yet to be chosen; its
inputs and outputs, of which some may carry numbers from one image to the next."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from microkernels.common.fixed_point import ELEMENT, HIGHEST, Elements, Reals, as_elements, real_of
from microkernels.networks.curves import Function
from microkernels.networks.maps import BYTE_BITS
from microkernels.networks.network import INPUT, Layer, MapSize, Network
from microkernels.networks.parameters import RealParameters

from .errors import ModelError

#: Operands of logistic functions beyond this can be clipped to it: a sigmoid is then 3e-4 from its
#: limit, about a step of the remaining 12 fraction bits.
LOGISTIC_LIMIT = 7.99
_BYTES = np.iinfo(np.int8)

_ScalarT = TypeVar("_ScalarT", bound=np.generic)


class Norm(NamedTuple):
    """A limit of magnitudes, for a norm of windows with small magnitudes.

    Attributes:
        share: the limit as a fraction of the largest magnitude on the data.
        above: the curve that computes the root for windows with larger magnitudes.
        power: of the norm. pixels: of a window.
    """

    share: float
    above: str
    power: int
    pixels: int


@dataclass(frozen=True, kw_only=True)
class Value:
    """A tensor that depends on a model's inputs.

    Attributes:
        tensor: name in the ONNX model; "" of one that is not an input, an output or compared.
        shape: in the ONNX model; elements are in the order of batch, channels, rows, columns.
        layer: that has it, or :data:`microkernels.networks.network.INPUT`.
        size: of its map.
        turned: elements are in the order of batch, columns, rows, channels.
        integers: it has an integer type.
        step: real number for which 1 in the map stands.
    """

    layer: str
    size: MapSize
    shape: tuple[int, ...]
    tensor: str = ""
    turned: bool = False
    integers: bool = False
    step: float = 1.0

    @property
    def inner(self) -> tuple[int, ...]:
        """Shape of one image: without the batch, if the tensor has one in front."""
        if self.shape and prod(self.shape[1:]) == self.size.elements:
            return self.shape[1:]
        return self.shape

    def images(self, maps: Reals) -> Reals:
        """Convert images x height x width x channels to ONNX's order: images x their shape."""
        order = (0, 2, 1, 3) if self.turned else (0, 3, 1, 2)
        return self.step * maps.transpose(order).reshape(len(maps), *self.inner)

    def zeros(self, count: int) -> Elements:
        """Maps of ``count`` images of zeros."""
        return np.zeros((count, self.size.height, self.size.width, self.size.channels), ELEMENT)

    def maps(self, values: NDArray[Any], count: int, name: str = "") -> Reals:
        """The inverse of :meth:`images`.

        Parameters:
            values: in ONNX's order, of any shape. count: number of images.
            name: for messages; by default that of the tensor.

        Raises:
            ModelError: as for :func:`to_maps`.
        """
        label = name or self.tensor
        return to_maps(label, values, count, self.size, turned=self.turned) / self.step


@dataclass(frozen=True, kw_only=True, eq=False)
class MappedModel(RealParameters):
    """A mapped model.

    Attributes:
        network: with placeholders for the fraction bits and constants that calibration chooses.
        batch: number of images.
        constants: layer -> its constant map, batch x height x width x channels.
        inputs, outputs: of the model.
        origins: layer -> node from which it comes.
        norms: layers that limit magnitudes for a norm of small ones.
        integers: layers and inputs with maps of integers; those in ``rounded`` round real numbers
            to the nearest integer, limited to bytes if the map has bytes.
        steps: layers that limit real numbers to integers of 8 bits -> the step of these, and how
            far their zero point is from the middle of their range.
        exact: layers and inputs that affect integer outputs -> the tensor, and the type of its
            integers.
        inner: tensors of real numbers between inputs and outputs that are outputs of layers, in the
            graph's order.
        approximation: maximum error, as a fraction of a tensor, of layers in floating point or of
            the graph's types, relative to real numbers.
    """

    network: Network
    batch: int
    constants: Mapping[str, Reals]
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    origins: Mapping[str, str]
    norms: Mapping[str, Norm]
    integers: frozenset[str]
    rounded: frozenset[str]
    steps: Mapping[str, tuple[float, float]]
    exact: Mapping[str, tuple[str, str]]
    inner: tuple[Value, ...]
    approximation: float


def real_layers(
    model: MappedModel, inputs: Mapping[str, Reals], *, steps: bool = False
) -> Iterator[tuple[Layer, Reals]]:
    """Compute the layers in floating point, in order, and yield each with its outputs. Outputs that
    no later layer needs are dropped.

    Parameters:
        inputs: images x height x width x channels real numbers of each input, by its layer.
        steps: round to the steps of the model's integers, as the model does.
    """
    network = model.network
    bits = network.bits

    def stepped(name: str, values: Reals) -> Reals:
        if steps and name in model.steps:
            step, _ = model.steps[name]
            rounded: Reals = np.rint(values / step) * step
            return rounded
        if name not in model.rounded:
            return values
        integers: Reals = np.rint(values)
        return integers if bits[name] > BYTE_BITS else np.clip(integers, _BYTES.min, _BYTES.max)

    maps = {name: stepped(name, values) for name, values in inputs.items()}
    for layer in network.layers:
        if not layer.computed:
            continue
        sources = [maps[source] for source in network.sources[layer.name]]
        values = layer.real(sources, network.sizes[layer.name], model)
        maps[layer.name] = stepped(layer.name, values)
        yield layer, maps[layer.name]
        for source in network.last_reads[layer.name]:
            del maps[source]


def with_norms(model: MappedModel, inputs: Mapping[str, Reals]) -> MappedModel:
    """The model with the bounds of layers that limit magnitudes for norms.

    Parameters:
        inputs: images x height x width x channels real numbers of each input and constant, by
            layer.
    """
    if not model.norms:
        return model
    bounds, curves = dict(model.bounds), dict(model.curves)
    bounded = replace(model, bounds=bounds, curves=curves)

    def bind(source: str, values: Reals) -> None:
        largest = float(np.abs(values).max(initial=0.0))
        for name, norm in model.norms.items():
            if source in model.network.sources[name]:
                bounds[name] = (0.0, norm.share * largest)
                least = bounds[name][1] ** norm.power / norm.pixels
                curves[norm.above] = Function("root_from", (norm.power, least))

    for name, values in inputs.items():
        bind(name, values)
    # Each layer is computed after its bounds are known.
    for layer, real in real_layers(bounded, inputs):
        bind(layer.name, real)
    return bounded


def integer_limits(kind: str) -> tuple[int, int]:
    """The smallest and the largest integer of a type, by its name; truth values are 0 and 1."""
    if kind == "bool":
        return 0, 1
    limits = np.iinfo(kind)
    return int(limits.min), int(limits.max)


def check_integers(
    model: MappedModel, ends: Mapping[str, tuple[float, float]], largest: Mapping[str, float]
) -> None:
    """Refuse integers that must be exact but exceed their type, or elements.

    Parameters:
        ends: smallest and largest number of each layer and input. largest: magnitude, including
            intermediate values.

    Raises:
        ModelError: there are such integers.
    """
    for layer, (tensor, kind) in model.exact.items():
        low, high = ends[layer]
        lowest, highest = integer_limits(kind)
        if low < lowest or high > highest:
            raise ModelError(
                f"tensor {tensor}: on the calibration data its integers are from {low:,.0f} to "
                f"{high:,.0f}, which does not fit {kind}"
            )
        if largest[layer] > HIGHEST:
            raise ModelError(
                f"tensor {tensor}: on the calibration data its integers need {largest[layer]:,.0f}"
                f"; elements hold up to {HIGHEST:,}: end the model in real numbers, by Cast"
            )


def logistic_operands(network: Network) -> set[str]:
    """Maps read only by logistic functions, directly or after moves."""
    layers = {layer.name: layer for layer in network.layers}
    operands: set[str] = set()
    for name in reversed([INPUT, *layers]):
        users = [layers[use.name] for use in network.users(name)]
        if users and all(
            user.logistic or (user.copies and user.name in operands) for user in users
        ):
            operands.add(name)
    return operands


def harmless(layer: Layer, operands: Collection[str]) -> bool:
    """Whether values that the layer limits make no difference; in layers with weights, partial sums
    are limited too.

    Parameters:
        operands: from :func:`logistic_operands`.
    """
    return layer.name in operands and not layer.has_weights


def as_map(shape: tuple[int, ...]) -> MapSize:
    """Size of the map for an image: channels, rows, columns. Two dimensions have one row; beyond
    three, the last ones are columns."""
    channels, *sizes = shape or (1,)
    if len(sizes) < 2:
        return MapSize(prod(sizes), 1, channels)
    return MapSize(prod(sizes[1:]), sizes[0], channels)


def of_images(constant: NDArray[_ScalarT], numbers: NDArray[np.int64]) -> NDArray[_ScalarT]:
    """The maps of a constant for images with these numbers, from 0 on; all batches have the same.

    Parameters:
        constant: as for :class:`MappedModel`.
    """
    if len(constant) == 1 or (constant == constant[:1]).all():
        return np.broadcast_to(constant[:1], (len(numbers), *constant.shape[1:]))
    return constant[numbers % len(constant)]


def to_maps(
    name: str, values: NDArray[Any], batch: int, size: MapSize, *, turned: bool = False
) -> Reals:
    """Images as batch x height x width x channels real numbers.

    Parameters:
        name: of the tensor, for messages.
        values: in ONNX's order, of any shape with as many elements.
        turned: as for :class:`Value`.

    Raises:
        ModelError: the number of elements is wrong, or they are not finite numbers.
    """
    if not (np.issubdtype(values.dtype, np.number) or values.dtype == np.bool_):
        raise ModelError(f"{name}: values must be numbers, not {values.dtype}")
    if np.issubdtype(values.dtype, np.complexfloating):
        raise ModelError(f"{name}: values must be real numbers, not {values.dtype}")
    if values.size != batch * size.elements:
        raise ModelError(
            f"{name}: {batch} x {size.channels} x {size.height} x {size.width} values are needed, "
            f"not the shape {values.shape}"
        )
    shape = (size.channels, size.height, size.width)
    if turned:
        shape = (size.width, size.height, size.channels)
    images = values.astype(np.float64).reshape(batch, *shape)
    if not np.isfinite(images).all():
        raise ModelError(f"{name}: values must be finite, but some are NaN or infinite")
    return images.transpose((0, 2, 1, 3) if turned else (0, 2, 3, 1))


class Ports(Protocol):
    """A model, mapped or compiled."""

    @property
    def inputs(self) -> tuple[Value, ...]: ...
    @property
    def outputs(self) -> tuple[Value, ...]: ...


def images_of(
    model: Ports,
    arrays: Mapping[str, NDArray[Any]],
    label: str,
    carried: Collection[str] = (),
) -> dict[str, NDArray[Any]]:
    """Images x their shape of each input, by tensor, as the arrays have them.

    Parameters:
        model: with the inputs. arrays: by tensor; "" or ``x`` is the only input's. The array of an
            input of a model without a batch may be a single image.
        label: the data are, for messages.
        carried: inputs that are left out.

    Raises:
        ModelError: an array is missing, or of another shape or number of images, or an input of
            integers has other numbers.
    """
    images: dict[str, NDArray[Any]] = {}
    count = 0
    for port in model.inputs:
        if port.tensor in carried:
            continue
        values = arrays.get(port.tensor)
        if values is None and len(model.inputs) - len(carried) == 1:
            values = arrays.get("", arrays.get("x"))
        if values is None:
            names = ", ".join(repr(name) for name in arrays if name) or "one without a name"
            raise ModelError(f"{label}: there is no array {port.tensor!r}, only {names}")
        shape = values.shape
        if shape == port.inner == port.shape:
            values = values[np.newaxis]
        if not values.ndim or values.shape[1:] != port.inner or not len(values):
            raise ModelError(
                f"{label}: input {port.tensor} needs the shape "
                f"{' x '.join(map(str, ('images', *port.inner)))}, not "
                f"{' x '.join(map(str, shape)) or 'a number'}"
            )
        if port.integers and values.dtype.kind == "f" and (values != np.rint(values)).any():
            raise ModelError(f"{label}: input {port.tensor} needs integers")
        if count and len(values) != count:
            raise ModelError(f"{label}: inputs of {count} and of {len(values)} images")
        count = len(values)
        images[port.tensor] = values
    return images


def spread(
    model: Ports,
    arrays: Mapping[str, NDArray[Any]],
    label: str,
    carried: Collection[str] = (),
) -> dict[str, Reals]:
    """Arrays as images x height x width x channels real numbers of each input, by its layer.

    Parameters:
        model, arrays, label, carried: as of :func:`images_of`.

    Raises:
        ModelError: as of :func:`images_of`, or numbers that are not finite.
    """
    images = images_of(model, arrays, label, carried)
    return {
        port.layer: port.maps(values, len(values), f"{label}, input {port.tensor}")
        for port in model.inputs
        if (values := images.get(port.tensor)) is not None
    }


def _pairs(model: Ports, carry: Mapping[str, str]) -> list[tuple[Value, Value]]:
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
