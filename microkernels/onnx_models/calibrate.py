"""Calibration: fraction bits of all maps and weights of a model, from data.

A map has as many fraction bits as the largest magnitude on the data allows. A layer that scales
then tries fewer on the golden model, which also shows saturating partial sums, and chooses those
with the least squared error. If another layer of the group saturates, the group tries one bit less,
and the error of the outputs decides. Weights have as many bits as fit, with one fraction for all
filters of a layer, since the shift is a setting of the whole vector unit. A convolution shifts its
sums right by the fraction of its input plus that of its weights minus that of its output, which
must be 0 to 15.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from microkernels.common.fixed_point import (
    FRACTION_LIMIT,
    HIGHEST,
    NUMBERS,
    Elements,
    Reals,
    as_elements,
    real_of,
)
from microkernels.networks.curves import has_pole
from microkernels.networks.jobs import NetworkLayout
from microkernels.networks.network import INPUT, Layer, Network
from microkernels.networks.parameters import Fractions, Weights
from microkernels.networks.plan import Activation, activation, activations
from microkernels.networks.rows import NORMAL_BITS

from .errors import ModelError
from .model import (
    LOGISTIC_LIMIT,
    MappedModel,
    check_integers,
    harmless,
    logistic_operands,
    of_images,
    real_layers,
    with_norms,
)
from .rewrite import Formats, balanced, groups

#: Range of fractions of maps; beyond it, numbers are too small or too large for any scale.
_LEAST, _MOST = -64, 64
#: Maximum magnitude of a map's numbers.
MOST_MAGNITUDE = (HIGHEST + 0.5) * 2.0**-_LEAST
#: Maximum bits that a layer tries to drop, maximum times that groups lose a bit, and number of
#: images for the search.
_TRIED = 3
_ROUNDS = 4
_SEARCH_IMAGES = 16
#: Maximum fraction of a layer's weights that may be clipped.
_MOST_LIMITED = 1e-3


def fraction_for(magnitude: float, bits: int) -> int:
    """The maximum fraction bits with which numbers of this magnitude fit ``bits``."""
    if magnitude == 0:
        return FRACTION_LIMIT
    if not np.isfinite(magnitude):
        raise ModelError("a map has infinite numbers on the calibration data")
    # Clipping 32767.5 loses half a unit, like rounding.
    limit = np.iinfo(NUMBERS[bits]).max + 0.5
    return int(np.clip(np.floor(np.log2(limit / magnitude)), _LEAST, _MOST))


def with_fractions(
    model: MappedModel, formats: Formats, layer: Layer
) -> tuple[Layer, Weights | None]:
    """A layer with its fraction bits and constants, and its weights as elements.

    Raises:
        ModelError: products need a shift by more bits than an engine has.
    """
    fractions = formats[layer.name]
    shift = layer.shift(fractions)
    if layer.shifts and not 0 <= shift <= layer.most_shift:
        raise ModelError(f"{layer.name}: products can't be shifted right by {shift} bits")
    return layer.scaled(fractions, model)


class Magnitudes(NamedTuple):
    """Results for the calibration data.

    Attributes:
        largest: magnitude of each map, and of intermediate values computed from it.
        factors: largest row factor of each layer that normalises rows, except for softmax.
        ranges: smallest and largest argument of each layer that is a curve.
    """

    largest: dict[str, float]
    factors: dict[str, float]
    ranges: dict[str, tuple[float, float]]


def _ends(values: Reals) -> tuple[float, float]:
    return float(values.min(initial=np.inf)), float(values.max(initial=-np.inf))


def _range(
    model: MappedModel, name: str, ends: tuple[float, float], real: Reals
) -> tuple[float, float]:
    """The range of arguments of a curve, whose values are ``real``."""
    curve = model.curves[name]
    label = f"node {model.origins.get(name, name)}: {curve.title}"
    if not np.isfinite(real).all():
        raise ModelError(
            f"{label} is undefined for some of the calibration data, which range from "
            f"{ends[0]:g} to {ends[1]:g}"
        )
    if has_pole(curve, *ends):
        raise ModelError(
            f"{label} has a pole within the range of the calibration data, {ends[0]:g} to "
            f"{ends[1]:g}"
        )
    return ends


def magnitudes(model: MappedModel, inputs: Mapping[str, Reals]) -> Magnitudes:
    """Magnitudes of a model's numbers on data.

    Parameters:
        inputs: images x height x width x channels real numbers of each input and constant, by
            layer.

    Raises:
        ModelError: a function is undefined for some of the numbers, or they are too large.
    """
    network = model.network
    logistic = logistic_operands(network)
    peaks = {name: float(np.abs(values).max(initial=0.0)) for name, values in inputs.items()}
    sources_needed = {
        source
        for layer in network.layers
        if layer.needs_source
        for source in network.sources[layer.name]
    }
    maps = dict(inputs)
    ends = {name: _ends(values) for name, values in inputs.items()}
    ranges: dict[str, tuple[float, float]] = {}
    factors: dict[str, float] = {}
    for layer, real in real_layers(model, inputs):
        name, source = layer.name, network.sources[layer.name][0]
        ends[name] = _ends(real)
        if name in model.curves:
            ranges[name] = _range(model, name, ends[source], real)
        sources = [maps[one] for one in network.sources[name]] if layer.needs_source else []
        within = layer.peaks(sources, peaks[source], network.sizes[name], model)
        peaks[source] = max(peaks[source], within.source)
        peaks[name] = max(float(np.abs(real).max()), within.inner)
        if within.factor is not None:
            factors[name] = within.factor
        if name in sources_needed:
            maps[name] = real
    for name, peak in peaks.items():
        if not peak <= MOST_MAGNITUDE:
            raise ModelError(
                f"node {model.origins.get(name, name)}: numbers on the calibration data reach "
                f"{peak:.3g}; at most {MOST_MAGNITUDE:.3g} have a scale"
            )
    check_integers(model, ends, peaks)
    limited = {
        name: min(peak, LOGISTIC_LIMIT) if name in logistic else peak
        for name, peak in peaks.items()
    }
    return Magnitudes(limited, factors, ranges)


@dataclass(frozen=True, kw_only=True)
class MapReport:
    """How one map behaves on the calibration data.

    Attributes:
        layer: that produces the map. node: of the model, from which the layer comes.
        fraction: fraction bits. weight_fraction: fraction bits of the layer's weights; None if it
            has none.
        largest: largest magnitude of the real numbers.
        error: of the elements relative to the mapped layers in floating point: root of the mean
            squared error divided by that of the mean square.
        saturated: number of saturated values, of ``elements``.
        beyond: number of a function's arguments outside their range in floating point, where the
            function is constant.
    """

    layer: str
    node: str
    fraction: int
    weight_fraction: int | None
    largest: float
    error: float
    saturated: int
    elements: int
    beyond: int = 0


class Calibration:
    """A model with its fraction bits, all of them chosen.

    Parameters:
        model: as mapped.
        layout: of the model's network on its machine; it determines the order of additions.
        inputs: images x height x width x channels real numbers of each input, by its layer.

    Attributes:
        model: with its limits of norms.
        network, weights, constants: the layers, their weights and constant maps as elements, for
            the kernels; constants have the images of a batch.
        formats: of all layers, and of the input.
        maps: reports, one per layer in order.
        images: numbers of the images in the reports.
        outputs: elements of the model's outputs for these images, by layer.

    Raises:
        ModelError: no fraction bits fit.
    """

    def __init__(
        self, model: MappedModel, layout: NetworkLayout, inputs: Mapping[str, Reals]
    ) -> None:
        numbers = np.arange(len(inputs[INPUT]))
        constants = {name: of_images(values, numbers) for name, values in model.constants.items()}
        inputs = {**inputs, **constants}
        model = balanced(with_norms(model, inputs), inputs)
        self.model = model
        self._layout = layout
        self._every = inputs
        self._group = groups(model.network)
        self._operands = logistic_operands(model.network)
        peaks = magnitudes(model, inputs)
        self._largest, self._row_factors, self._ranges = peaks
        count = len(inputs[INPUT])
        chosen = np.linspace(0, count - 1, min(count, _SEARCH_IMAGES)).round().astype(int)
        self.images = tuple(map(int, chosen))
        # The selected images form batches of their own.
        places = np.arange(len(chosen))
        constants = {
            name: of_images(constant, places) for name, constant in model.constants.items()
        }
        self._samples = {name: values[chosen] for name, values in inputs.items()} | constants
        # Groups of integers.
        self._whole = {self._group[name] for name in (*model.exact, *model.rounded)}
        #: Of the weights of each layer.
        self._bits = {layer.name: layer.bits for layer in model.network.layers}
        self._limits = self._group_limits()
        self._fractions = self._fitting()
        self._weight_limits = self._largest_fractions()
        reports, self.outputs = self._choose()
        layers, self.weights = [], dict[str, Weights]()
        for layer in model.network.layers:
            scaled, parameters = (layer, None)
            if layer.computed:
                scaled, parameters = with_fractions(model, self.formats, layer)
            layers.append(scaled)
            if parameters is not None:
                self.weights[layer.name] = parameters
        self.network: Network = replace(model.network, layers=tuple(layers))
        self.maps = tuple(self._on_all_images(reports))
        for report in self.maps:
            if report.saturated and report.layer in model.exact:
                raise ModelError(
                    f"node {report.node}: partial sums of its integers need more than the 16 bits "
                    "of elements; end the model in real numbers, by Cast"
                )
        self.constants = self._elements(model.constants, self.formats)

    @property
    def saturated(self) -> int:
        """Number of values that saturate on the calibration data."""
        return sum(report.saturated for report in self.maps)

    def _choose(self) -> tuple[list[MapReport], dict[str, Elements]]:
        """Choose the formats: reports of all maps, and the elements of the outputs."""
        self._run(search=True)
        best, self.formats = self._run(search=False), self._possible()
        for _ in range(_ROUNDS):
            saturated = {self._group[report.layer] for report in best[1] if report.saturated}
            lower = set(filter(self._reducible, saturated - self._whole))
            if not lower:
                break
            for group in lower:
                self._fractions[group] -= 1
            try:
                tried = self._run(search=False)
            except ModelError:
                # Other maps have no bit to give.
                break
            if tried[0] >= best[0]:
                break
            best, self.formats = tried, self._possible()
        return best[1:]

    def _fitting(self) -> dict[str, int]:
        """The maximum number of fraction bits of each group."""
        needs: dict[str, float] = {}
        for name, largest in self._largest.items():
            group = self._group[name]
            needs[group] = max(needs.get(group, 0.0), largest)
        network = self.model.network
        bits = {self._group[name]: bits for name, bits in network.bits.items()}
        fractions = {group: fraction_for(peak, bits[group]) for group, peak in needs.items()}
        for group, limits in self._limits.items():
            fractions[group] = int(np.clip(fractions[group], *limits))
        real = {group for name, group in self._group.items() if name not in self.model.integers}
        for group in fractions.keys() - real:
            fractions[group] = min(fractions[group], 0)
        return fractions | {self._group[name]: 0 for name in self.model.rounded}

    def _group_limits(self) -> dict[str, tuple[int, int]]:
        """Fewest and most fraction bits of groups that layers limit."""
        limits: dict[str, tuple[int, int]] = {}
        network = self.model.network
        for layer in network.layers:
            of_source = [(source, layer.source_limits) for source in network.sources[layer.name]]
            for name, ends in (*of_source, (layer.name, layer.output_limits)):
                if ends is not None:
                    low, high = limits.get(self._group[name], ends)
                    limits[self._group[name]] = max(low, ends[0]), min(high, ends[1])
        return limits

    def _reducible(self, group: str) -> bool:
        """Whether the group may have a fraction bit less."""
        return group not in self._limits or self._fractions[group] > self._limits[group][0]

    def _reduce(self, name: str, bits: int, layer: Layer) -> None:
        """Take fraction bits from a map's group, so that ``layer`` can shift its products.

        Raises:
            ModelError: the group would have fewer than its layers take.
        """
        group = self._group[name]
        self._fractions[group] -= bits
        if group in self._limits and self._fractions[group] < self._limits[group][0]:
            raise ModelError(
                f"node {self.model.origins.get(layer.name, layer.name)}: its weights are too large "
                f"for its states and gates, whose numbers need at least {self._limits[group][0]} "
                "fraction bits; scale its inputs or weights"
            )

    def _largest_fractions(self) -> dict[str, int]:
        largest = {
            name: float(np.abs(real.weights).max(initial=0.0))
            for name, real in self.model.real.items()
        }
        largest |= {name: abs(factor) for name, (factor, _) in self.model.affine.items()}
        largest |= self._row_factors
        limits = {
            name: fraction_for(magnitude, self._bits[name]) for name, magnitude in largest.items()
        }
        rows = {name: int(np.clip(limits[name], *NORMAL_BITS)) for name in self._row_factors}
        return limits | rows

    def _possible(self) -> Formats:
        """Formats with the groups' fractions, reduced until all shifts are possible.

        Raises:
            ModelError: no fractions fit.
        """
        network = self.model.network
        weights = dict(self._weight_limits)
        for _ in range(4 * len(network.layers) + 4):
            maps = {name: self._fractions[self._group[name]] for name in network.sizes}
            formats = {
                name: Fractions(
                    output=fraction,
                    sources=tuple(maps[source] for source in network.sources.get(name, ())),
                    weights=weights.get(name, 0),
                    ends=self._ranges.get(name, (0.0, 0.0)),
                )
                for name, fraction in maps.items()
            }
            changed = False
            for layer in network.layers:
                if not layer.shifts:
                    continue
                fractions = formats[layer.name]
                shift = layer.shift(fractions)
                if shift < 0:
                    fewer = fractions._replace(output=fractions.output - 1)
                    # A recurrent layer's output is also its operand, and its source is the sum.
                    of_output = layer.shift(fewer) > shift
                    name = layer.name if of_output else network.sources[layer.name][0]
                    self._reduce(name, -shift, layer)
                elif shift > layer.most_shift and layer.name in weights:
                    weights[layer.name] -= shift - layer.most_shift
                elif shift > layer.most_shift:
                    source = max(network.sources[layer.name], key=lambda name: maps[name])
                    self._reduce(source, shift - layer.most_shift, layer)
                else:
                    continue
                changed = True
                break
            if not changed:
                return formats
        raise ModelError("no fraction bits fit all layers: the weights' magnitudes differ too much")

    def _run(self, *, search: bool) -> tuple[float, list[MapReport], dict[str, Elements]]:
        """Compare the golden model with real numbers, layer by layer: the largest error of an
        output, reports of all maps, and the elements of the outputs.

        Parameters:
            search: the first layer of a group may choose fewer bits for it.
        """
        model = self.model
        network = model.network
        formats = self._possible()
        values = self._elements(self._samples, formats)
        decided: set[str] = set()
        reports = []
        ends = {port.layer for port in model.outputs}
        outputs: dict[str, Elements] = {}
        worst = 0.0
        for layer, real in real_layers(model, self._samples):
            sources = [values[source] for source in network.sources[layer.name]]
            group = self._group[layer.name]
            open_yet = group not in decided and group not in self._whole
            if search and open_yet and layer.has_weights:
                formats = self._search(layer, sources, real, formats)
                values |= self._elements(self._samples, formats)
            if search and layer.name in model.real:
                formats = self._search_weights(layer, sources, real, formats)
            decided.update(
                self._group[member] for member in (layer.name, *network.sources[layer.name])
            )
            golden = self._golden(layer, sources, formats)
            values[layer.name] = golden.elements
            error = self._error(layer, golden.elements, formats, real)
            if layer.name in ends:
                outputs[layer.name] = golden.elements
                worst = max(worst, error)
            reports.append(
                MapReport(
                    layer=layer.name,
                    node=model.origins.get(layer.name, layer.name),
                    fraction=formats[layer.name].output,
                    weight_fraction=formats[layer.name].weights
                    if layer.name in self._weight_limits
                    else None,
                    largest=float(np.abs(real).max()),
                    error=error,
                    saturated=golden.saturated,
                    elements=golden.elements.size,
                    beyond=golden.beyond,
                )
            )
            for source in network.last_reads[layer.name] - self._samples.keys():
                del values[source]
        return worst, reports, outputs

    def _on_all_images(self, reports: list[MapReport]) -> list[MapReport]:
        """Reports whose counts of saturated values and of arguments beyond a function's range also
        include the images outside the search."""
        rest = np.setdiff1d(np.arange(len(self._every[INPUT])), self.images)
        counts = {report.layer: report for report in reports}
        plan = replace(self._layout.plan, network=self.network)
        for first in range(0, len(rest), _SEARCH_IMAGES):
            numbers = rest[first : first + _SEARCH_IMAGES]
            values = self._elements(
                {name: real[numbers] for name, real in self._every.items()}, self.formats
            )
            for layer, result in activations(plan, self.weights, values):
                before = counts[layer.name]
                saturated = 0 if harmless(layer, self._operands) else result.saturated
                counts[layer.name] = replace(
                    before,
                    saturated=before.saturated + saturated,
                    elements=before.elements + result.elements.size,
                    beyond=before.beyond + result.beyond,
                )
        return list(counts.values())

    def _elements(self, maps: Mapping[str, Reals], formats: Formats) -> dict[str, Elements]:
        bits = self.model.network.bits
        return {
            name: as_elements(real, formats[name].output, bits[name]) for name, real in maps.items()
        }

    def _golden(self, layer: Layer, sources: list[Elements], formats: Formats) -> Activation:
        layer, parameters = with_fractions(self.model, formats, layer)
        result = activation(self._layout.plan, layer, parameters, sources)
        return result._replace(saturated=0) if harmless(layer, self._operands) else result

    def _search(
        self, layer: Layer, sources: list[Elements], real: Reals, formats: Formats
    ) -> Formats:
        """Formats with the fraction for the layer's output that gives the least error."""
        group = self._group[layer.name]
        start = dict(self._fractions)
        best = (self._made_error(layer, sources, formats, real), formats, start)
        for _ in range(1, _TRIED):
            if not self._reducible(group):
                break
            self._fractions = {**self._fractions, group: self._fractions[group] - 1}
            try:
                tried = self._possible()
            except ModelError:
                # Another map has no bit to give.
                break
            earlier = all(
                tried[source].output == formats[source].output
                for source in self.model.network.sources[layer.name]
            )
            if not earlier:
                break
            error = self._made_error(layer, sources, tried, real)
            if error >= best[0]:
                break
            best = (error, tried, dict(self._fractions))
        _, formats, self._fractions = best
        return formats

    def _search_weights(
        self, layer: Layer, sources: list[Elements], real: Reals, formats: Formats
    ) -> Formats:
        """Formats with more bits for the layer's weights, as long as this clips few weights and
        reduces the error, for example if large weights belong to channels that are 0."""
        absolute = np.abs(self.model.real[layer.name].weights)
        error = self._made_error(layer, sources, formats, real)
        while True:
            start = self._weight_limits[layer.name]
            limit = np.iinfo(NUMBERS[layer.bits]).max + 0.5
            limited = int(np.count_nonzero(np.ldexp(absolute, start + 1) > limit))
            if limited > absolute.size * _MOST_LIMITED:
                return formats
            self._weight_limits[layer.name] = start + 1
            tried = self._possible()
            trial = error
            same = all(tried[name].output == one.output for name, one in formats.items())
            if same and tried != formats:
                trial = self._made_error(layer, sources, tried, real)
            if trial >= error:
                self._weight_limits[layer.name] = start
                return formats
            formats, error = tried, trial

    def _made_error(
        self, layer: Layer, sources: list[Elements], formats: Formats, real: Reals
    ) -> float:
        golden = self._golden(layer, sources, formats)
        return self._error(layer, golden.elements, formats, real)

    def _error(self, layer: Layer, elements: Elements, formats: Formats, real: Reals) -> float:
        """Root of the mean squared error, relative to the root of the mean square."""
        values = real_of(elements, formats[layer.name].output)
        if layer.name in self._operands:
            values, real = (
                np.clip(numbers, -LOGISTIC_LIMIT, LOGISTIC_LIMIT) for numbers in (values, real)
            )
        power = float(np.mean(np.square(real)))
        error = float(np.mean(np.square(values - real)))
        return float(np.sqrt(error / power)) if power else float(np.sqrt(error))
