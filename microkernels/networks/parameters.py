"""Parameters of layers besides their sizes: weights, real parameters, fraction bits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from .curves import Function


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """A layer's weights: elements, or real numbers until the fraction bits are decided.

    Attributes:
        weights: with the shape from :attr:`microkernels.networks.network.Network.weights`.
        bias: one number per filter or output.
    """

    weights: NDArray[Any]
    bias: NDArray[Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class RealParameters:
    """Real parameters of layers, by layer name.

    Attributes:
        real: weights of layers that have weights.
        bounds: smallest and largest result of layers with limits.
        affine: factor and offset of affine layers.
        curves: functions of layers that are curves.
        epsilons: for layers that normalise rows, what is added to the mean square.
    """

    real: Mapping[str, Weights]
    bounds: Mapping[str, tuple[float, float]]
    affine: Mapping[str, tuple[float, float]]
    curves: Mapping[str, Function]
    epsilons: Mapping[str, float]


class Fractions(NamedTuple):
    """A layer's fraction bits.

    Attributes:
        output, sources: of its maps.
        weights: of its weights; for an affine layer of its factor, and for a layer that normalises
            rows of the rows' factors; otherwise 0.
        ends: smallest and largest argument of a curve, otherwise 0.
    """

    output: int
    sources: tuple[int, ...] = ()
    weights: int = 0
    ends: tuple[float, float] = (0.0, 0.0)


class Peaks(NamedTuple):
    """Largest magnitudes within a layer.

    Attributes:
        inner: of values computed on the way to the output.
        source: of values computed from the source with its fraction bits.
        factor: of the rows' factors; None: it has none.
    """

    inner: float = 0.0
    source: float = 0.0
    factor: float | None = None
