"""The interface of a layer: everything that planner, layout, golden model, calibration, store and
importer ask of it. Each kind of layer implements it in one class."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from isa.program import Declared, Program
from isa.run import Launch
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import FeatureMap, PartMap
from microkernels.common.fixed_point import FRACTION_LIMIT, LOWEST, NUMBERS, Elements, Reals, packed
from microkernels.common.memory import Writable
from microkernels.nn.conv_plan import ConvPlan
from microkernels.nn.dense_plan import DensePlan
from microkernels.nn.window_shape import ConvShape
from microkernels.runtime.ring import ChipEngines
from support.checks import shown

from .curves import Function
from .maps import MapCut, MapSize, StoredMaps, Windows, cuts
from .moves import Move
from .parameters import Fractions, Peaks, RealParameters, Weights

#: Converts items to a tuple.
Constructor = Callable[..., Sequence[Any]]
#: Name of a network's input, used instead of a layer's name.
INPUT = "input"
#: Used only for estimates: cycles per launch; bytes per cycle of the vault's memory; products per
#: cycle of an engine.
LAUNCH_CYCLES = 4000
MEMORY_BYTES = 8
#: Bytes of a vault's memory that cost as much as a cycle, where they count: on the thesis's chip
#: both then change the product of energy and time by as much.
CYCLE_BYTES = 4
LANES = 4


class ChipWork(NamedTuple):
    """The workload that a network is planned for.

    Attributes:
        batch: number of images.
        engines: of the chip.
    """

    batch: int
    engines: ChipEngines


class DensePart(NamedTuple):
    """A vault's part of a fully connected layer.

    Attributes:
        order: index of the input number at each place of the vectors; empty: -1, or beyond them.
        plan: of the kernel.
    """

    order: NDArray[np.int64]
    plan: DensePlan


@dataclass(frozen=True, kw_only=True)
class LayerPlan:
    """How the vaults share a layer.

    Attributes:
        layer: of the network.
        inputs: sizes of the maps that it reads; for a source its own.
        depth: channels per slice of these maps.
        cut: of its output map.
        part: of a vault; None: its tile is sufficient.
        strips: the input is stored in strips; for a convolution of the network's input.
        cycles: predicted for the complete batch, without moves.
        bytes: of memory, predicted per vault where they count: with line buffers, which save them.
    """

    layer: "Layer"
    inputs: tuple[MapSize, ...]
    depth: int
    cut: MapCut
    part: ConvPlan | ConvShape | DensePart | None = None
    strips: bool = False
    cycles: float = 0.0
    bytes: float = 0.0

    @property
    def cost(self) -> float:
        """What planners minimise."""
        return self.cycles + self.bytes / CYCLE_BYTES

    @property
    def input(self) -> MapSize:
        """Size of the first map that the layer reads."""
        return self.inputs[0]

    @property
    def output(self) -> MapSize:
        """Size of the output."""
        return self.cut.size

    @property
    def out_depth(self) -> int:
        """Channels per slice of the output."""
        return self.cut.depth

    @cached_property
    def windows(self) -> tuple[Windows, ...]:
        """The pixels of each input that the layer reads."""
        return self.layer.windows(self.inputs, self.output)

    @property
    def tile(self) -> MapSize:
        """Size of an output tile."""
        return self.cut.tile_size

    @property
    def region(self) -> MapSize:
        """Size of the region of the first map that a tile needs."""
        return self.windows[0].region_size(self.tile, self.input.channels)

    def rounds(self, batch: int) -> int:
        """Rounds in which the vaults process a batch."""
        return -(-batch // self.cut.images)

    def timed(self, cycles: float, work: ChipWork) -> "LayerPlan":
        """The plan with its predicted cycles, computed from those of one round's tile."""
        return replace(self, cycles=self.rounds(work.batch) * cycles + LAUNCH_CYCLES)


@dataclass(frozen=True, kw_only=True)
class LayerStep(ABC):
    """What all vaults do for a layer: each vault's data, and the launch that processes it.

    The data is at the same offset in each vault. All rounds of a layer are one launch; weights and
    biases are stored once.

    Attributes:
        plan: of the layer.
        engines: of the chip.
        sources: outputs of the layers that it reads; None: the network's input.
        inputs: maps moved for it; None: it reads ``sources`` directly.
        target: its output.
        constants: offsets, in each vault, of zeros and of lowest elements.
        offset: of the data in each vault; 0 until it is placed.
    """

    plan: LayerPlan
    engines: ChipEngines
    sources: Sequence[StoredMaps | None]
    inputs: Sequence[StoredMaps | None]
    target: StoredMaps
    constants: tuple[int, int]
    offset: int = 0

    @property
    def layer_name(self) -> str:
        """Name of the layer."""
        return self.plan.layer.name

    @property
    def pes(self) -> int:
        """Engines per vault."""
        return self.engines.pes

    @property
    def name(self) -> str:
        """Name of its launch."""
        return self.layer_name

    @property
    @abstractmethod
    def bytes(self) -> int:
        """Bytes that the step needs in each vault."""

    @property
    @abstractmethod
    def launch(self) -> Launch:
        """The step's launch."""

    @property
    @abstractmethod
    def declared(self) -> Declared:
        """What is fixed by the network in the first vault when the launch runs: its parameter
        block, and flags."""

    @abstractmethod
    def write(self, memory: Writable, weights: Weights | None) -> None:
        """Write the parameter blocks and constants of all vaults to ``memory``.

        Parameters:
            weights: of the layer; None: it has no weights.
        """

    def read(self, vault: int, round_: int) -> list[FeatureMap]:
        """The regions that a vault reads in a round, moved or where they were written."""
        maps: list[FeatureMap] = []
        for windows, moved, written in zip(
            self.plan.windows, self.inputs, self.sources, strict=True
        ):
            if moved is not None:
                maps.append(moved.map(vault, round_))
                continue
            assert written is not None
            tile, reader = written.tile(vault), self.target.tile(vault)
            assert tile is not None
            assert reader is not None
            region = windows.region(reader, written.size.channels)
            whole = written.map(vault, round_)
            place = {"left": region.x - tile.x, "top": region.y - tile.y}
            size = {"width": region.width, "height": region.height}
            same = (region.width, region.height) == (tile.width, tile.height)
            maps.append(whole if same else PartMap.of(whole, **place, **size))
        return maps

    def constant(self, value: int, vault: int) -> int:
        """Address in a vault of elements of 0, or of the lowest value."""
        return self.engines.address(vault, self.constants[value == LOWEST])

    def part(self, weights: Weights, vault: int) -> Weights:
        """Weights of a vault's channels, with zeros for channels that it lacks."""
        tile = self.target.tile(vault)
        assert tile is not None
        packed = self.plan.layer.packed
        first = tile.channel * packed
        part = slice(first, first + tile.channels * packed)
        bias = weights.bias[part]
        lacking = (0, self.plan.tile.channels * packed - len(bias))
        inner = [(0, 0)] * (weights.weights.ndim - 1)
        return Weights(
            weights=np.pad(weights.weights[part], (lacking, *inner)), bias=np.pad(bias, lacking)
        )

    def _launch(self, program: Program, parameters: int) -> Launch:
        return Launch(name=self.name, program=program, parameters=parameters)


@dataclass(frozen=True, kw_only=True)
class Layer(ABC):
    """A layer of a network. Each derived class is a kind of layer.

    Attributes:
        name: not empty, without white space, and unique.
        source: name of the layer whose output is the input, or :data:`INPUT`; "": the previous
            layer.
        bits: of the numbers that it reads: 16, or 8 for maps of bytes, two per element.
    """

    #: The layer is computed; otherwise the host writes its map to memory.
    computed: ClassVar[bool] = True
    #: What the vaults do after moves; None: nothing.
    step: ClassVar[type[LayerStep] | None] = None
    #: The layer reads regions of maps through windows; otherwise its own moves provide what it
    #: reads.
    reads_regions: ClassVar[bool] = True
    #: The step has places for its inputs, which must be known before the moves; its output has a
    #: place of its own, too, outside the maps that its readers read.
    holds_inputs: ClassVar[bool] = False
    #: Its output has the same slices as its sources.
    keeps_slices: ClassVar[bool] = False
    #: Its output and its sources have one slice each.
    one_slice: ClassVar[bool] = False
    #: It has weights; each output depends on all channels of its source.
    has_weights: ClassVar[bool] = False
    mixes_channels: ClassVar[bool] = False
    #: Its output's elements are those of its sources.
    copies: ClassVar[bool] = False
    #: Why the layer can't take the network's input, and what would work; "": it can.
    input_refused: ClassVar[str] = ""
    #: Attributes that are tuples -> what converts stored values to them.
    tuples: ClassVar[Mapping[str, Constructor]] = {}

    name: str
    source: str = ""
    bits: int = 16

    def __post_init__(self) -> None:
        CHECK.fields(self)
        CHECK.one_of("bits", self.bits, tuple(NUMBERS))
        if self.bits < 16 and not self.reads_bytes:
            raise KernelError(f"{type(self).__name__} layers can't read maps of bytes")
        # Each launch has a name: a layer's name and a word.
        if self.name.split() != [self.name] or self.name == INPUT:
            raise KernelError(
                f"a layer can't have the name {shown(self.name)}: a name is not empty, has no "
                f"white space, and is not {INPUT!r}"
            )

    @classmethod
    def stored(cls, values: Mapping[str, Any]) -> Self:
        """The layer from attributes as stored in JSON."""
        attributes = dict(values)
        for name, value in values.items():
            if isinstance(value, list):
                constructor: Constructor = cls.tuples.get(name, _tuple)
                attributes[name] = constructor(*value)
        make: Callable[..., Self] = cls
        return make(**attributes)

    @property
    def kind(self) -> str:
        """What reports call it, and what its pace is measured with."""
        return type(self).__name__

    # The network.

    @property
    def reads_bytes(self) -> bool:
        """Whether it can read maps of bytes."""
        return False

    @property
    def output_bits(self) -> int:
        """Bits of the numbers that it writes."""
        return self.bits

    def of_bits(self, bits: int, output: int) -> "Layer":
        """The layer for numbers of ``bits``, and for outputs of ``output`` bits; its shifts hold a
        place."""
        return replace(self, bits=bits)

    @property
    def packed(self) -> int:
        """Numbers per element of its output."""
        return packed(self.output_bits)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the layers whose output it takes, as in its attributes."""
        return (self.source,)

    @abstractmethod
    def output(self, sources: Sequence[tuple[str, MapSize]]) -> MapSize:
        """Size of its map for sources with these names and sizes.

        Raises:
            KernelError: the sources do not fit the layer or each other.
        """

    def weight_shape(self, source: MapSize) -> tuple[int, ...]:
        """Shape of the weights for a source of this size, if the layer has weights."""
        raise AssertionError(f"{self.name} has no weights")

    def operations(self, plan: LayerPlan) -> int:
        """Additions, multiplications and comparisons per image."""
        return 0

    # The plan.

    def slice_cycles(
        self, source: MapSize, depth: int, out_depth: int, engines: ChipEngines, *, first: bool
    ) -> float:
        """Estimated cycles of a vault per image with slices of ``depth`` channels of its source and
        ``out_depth`` channels of its output; infinite: they do not fit; 0: it does not matter.

        Parameters:
            first: the layer reads the network's input.
        """
        return 0.0

    def least_slice_cycles(
        self, source: MapSize, depth: int, out_depth: int, engines: ChipEngines
    ) -> float:
        """A lower bound of :meth:`slice_cycles`, which is found faster."""
        return 0.0

    def output_depth(self, vaults: int) -> int | None:
        """Channels per slice of its output, for a layer whose vaults need whole columns of memory;
        None: it does not matter."""
        return None

    def unreadable(self, size: MapSize, depth: int, scratchpad_bytes: int) -> str:
        """What does not fit an engine with slices of ``depth`` channels of a source of ``size``;
        "": everything fits.

        Raises:
            KernelError: slices of one channel do not fit either; the message says what would.
        """
        return ""

    def windows(self, inputs: Sequence[MapSize], output: MapSize) -> tuple[Windows, ...]:
        """The pixels of each input that the layer reads."""
        raise KernelError(f"{self.name} has no windows")

    def variants(self, plan: LayerPlan, work: ChipWork, *, first: bool) -> list[LayerPlan]:
        """Plans with all possible cuts.

        Parameters:
            first: the layer reads the network's input.
        """
        every = cuts(plan.cut, work.engines.vaults, work.batch)
        return [replace(plan, cut=cut) for cut in every]

    def least_cycles(self, plan: LayerPlan, work: ChipWork) -> float:
        """Lower bound of a plan's cycles."""
        return 0.0

    def planned(self, plan: LayerPlan, work: ChipWork) -> LayerPlan:
        """The plan with its predicted cycles.

        Raises:
            KernelError: a tile does not fit the engines.
        """
        return plan

    def reads_in_place(self, before: LayerPlan, plan: LayerPlan) -> bool:
        """Whether each vault reads nothing of the previous layer but what it has written."""
        return False

    def covers(self, before: LayerPlan, plan: LayerPlan, vaults: int) -> bool:
        """Whether the region that each vault reads contains its tile of the previous layer."""
        return False

    def moved_elements(
        self, before: LayerPlan, plan: LayerPlan, work: ChipWork, inputs: int
    ) -> float:
        """Predicted number of elements moved for an input of a batch.

        Parameters:
            inputs: number of the layer's inputs.
        """
        return 0

    # The layout.

    def placed(
        self, plan: LayerPlan, sources: Sequence[StoredMaps | None], work: ChipWork
    ) -> LayerPlan:
        """The plan, including what depends on the places of its sources."""
        return plan

    def moves(self, step: LayerStep, vault: int) -> list[Move]:
        """The moves of a vault for the layer.

        Parameters:
            step: of the layer, with its place if it :attr:`holds_inputs`; with its maps alone if
                it has no step.
        """
        return []

    def store_input(self, step: LayerStep, memory: Writable, images: Elements) -> None:
        """Write the network's input, batch x height x width x channels elements, to ``memory``, for
        a layer that reads it but no regions."""
        raise AssertionError(f"{self.name} reads regions")

    # Numbers.

    @abstractmethod
    def integer(
        self, plan: LayerPlan, sources: Sequence[Elements], weights: Weights | None
    ) -> Elements:
        """Golden model, bit-exact: images x any shape, in the order of height, width, channels.

        Parameters:
            plan: of the layer, except for fraction bits and constants.
            sources: images x height x width x channels each.
        """

    @abstractmethod
    def real(self, sources: Sequence[Reals], size: MapSize, parameters: RealParameters) -> Reals:
        """The layer in floating point, as ONNX's operators are defined.

        Parameters:
            sources: images x height x width x channels each.
            size: of the output.
        """

    # Fraction bits.

    @property
    def scales(self) -> bool:
        """Whether the output may have other fraction bits than the sources."""
        return self.shifts

    @property
    def shifts(self) -> bool:
        """Whether the layer shifts products right."""
        return False

    def shift(self, fractions: Fractions) -> int:
        """Bits by which it does."""
        first, *second = fractions.sources
        return first + (second[0] if second else fractions.weights) - fractions.output

    def tied(self, sources: tuple[str, ...]) -> tuple[str, ...]:
        """Those of its sources whose maps have the fraction bits of its output."""
        return () if self.scales else sources

    @property
    def output_limits(self) -> tuple[int, int] | None:
        """Minimum and maximum fraction bits of the output; None: any."""
        return None

    @property
    def source_limits(self) -> tuple[int, int] | None:
        """Minimum and maximum fraction bits of the source; None: any."""
        return None

    @property
    def needs_source(self) -> bool:
        """Whether :meth:`peaks` needs the source's numbers."""
        return False

    def peaks(
        self, sources: Sequence[Reals], largest: float, size: MapSize, parameters: RealParameters
    ) -> Peaks:
        """Largest magnitudes within the layer.

        Parameters:
            sources: numbers of the sources; none unless :attr:`needs_source`.
            largest: magnitude of the first source.
            size: of the output.
        """
        return Peaks()

    @property
    def most_shift(self) -> int:
        """Most bits by which the layer shifts products right."""
        return FRACTION_LIMIT

    def scaled(
        self, fractions: Fractions, parameters: RealParameters
    ) -> "tuple[Layer, Weights | None]":
        """The layer with its fraction bits and constants, and its weights as elements."""
        return self, None

    def beyond(self, source: Elements) -> int:
        """Arguments outside the range of a curve."""
        return 0

    # Other layers with the same result.

    def with_relu(self) -> "Layer | None":
        """The layer with negative outputs set to 0; None: it can't, or already does."""
        return None

    @property
    def logistic(self) -> str:
        """The logistic unit's function that the layer computes; "": none."""
        return ""

    @property
    def transcendental(self) -> bool:
        """Whether other libraries compute the layer with an error of their own."""
        return False

    def formula(self, parameters: RealParameters) -> Function | None:
        """The function of elements that the layer computes; None: it is none."""
        return None

    def without(self, functions: Collection[str]) -> "Layer":
        """The layer without these functions of the logistic unit: an activation becomes a curve to
        be fitted."""
        return self

    @property
    def long_program(self) -> tuple[str, float] | None:
        """What makes the program long, and its maximum words, infinite if unknown; None: the
        program is short."""
        return None


def _tuple(*values: Any) -> tuple[Any, ...]:
    return values
