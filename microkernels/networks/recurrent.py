"""Recurrent layers: all steps of a sequence in one launch."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from isa.program import Program
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import Elements, Reals, as_elements
from microkernels.common.memory import Writable
from microkernels.nn.recurrent import CELLS, Cell, RecurrentShape, run_elements, run_reals
from microkernels.nn.recurrent_kernel import recurrent_program
from microkernels.nn.recurrent_layout import RecurrentLayout, RecurrentPlan
from microkernels.runtime.ring import ChipEngines

from .families import KernelLayer, KernelStep
from .layer import ChipWork, Layer, LayerPlan, LayerStep
from .maps import MapSize, StoredMaps
from .moves import Move
from .parameters import Fractions, Peaks, RealParameters, Weights
from .rearrange import moves_between, owned_addresses

#: Fraction bits of the gates' parts of the input, and of states.
_GATE_BITS = (8, 12)
_STATE_BITS = (9, 13)
#: Magnitude beyond which functions of gates hardly change.
_LIMIT = 7.99
#: Cycles of a piece that is moved or stored, for estimates.
_PIECE = 25


@dataclass(frozen=True, kw_only=True)
class Recurrent(KernelLayer):
    """A layer of recurrent cells (:mod:`microkernels.nn.recurrent`).

    Its source has a pixel for each step and sequence, column by column, with the parts of the gates
    that depend on the input in channels, gate by gate. Its map has the states after each step in a
    column, with a row per sequence and the cells in channels. Weights are recurrent ones by gate
    and cell, then peepholes, all outputs x cells; biases are only used of gates without a part of
    the input.

    Attributes:
        cell: name in :data:`microkernels.nn.recurrent.CELLS`. cells: number.
        steps: of a sequence.
        reverse: sequences begin with the last step.
        hidden, kept: names of layers with the state before, and with that of the cells: a pixel per
            sequence; "": zeros. A layer whose cells keep what they output needs both or none.
        final: another column has what cells keep after the last step.
        gate, state, fraction: fraction bits of gates and states, and of weights.
        unit: the logistic unit computes functions, otherwise polynomials do.
    """

    reads_regions = False
    holds_inputs = True
    has_weights = True
    shifts = True
    output_limits = _STATE_BITS
    source_limits = _GATE_BITS
    needs_source = True
    transcendental = True
    input_refused = "a recurrent layer can't take the network's input; use a layer that copies it"

    cell: str
    cells: int
    steps: int
    reverse: bool = False
    hidden: str = ""
    kept: str = ""
    final: bool = False
    gate: int = _GATE_BITS[1]
    state: int = _STATE_BITS[1]
    fraction: int = 0
    unit: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        CHECK.one_of("cell", self.cell, tuple(CELLS))
        CHECK.at_least("cells", self.cells, 1)
        CHECK.at_least("steps", self.steps, 1)
        CHECK.within("fraction bits of gates", self.gate, *_GATE_BITS)
        CHECK.within("fraction bits of states", self.state, *_STATE_BITS)
        if (self.kept or self.final) and not self._kind.kept:
            raise KernelError(f"{self.name}: {self.cell} cells keep nothing")

    @property
    def _kind(self) -> Cell:
        return CELLS[self.cell]

    @property
    def shape(self) -> RecurrentShape:
        """The layer with its fraction bits."""
        return RecurrentShape(
            kind=self.cell, cells=self.cells, gate=self.gate, state=self.state,
            weights=self.fraction, unit=self.unit,
        )  # fmt: skip

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source, *filter(None, (self.hidden, self.kept)))

    def output(self, sources: Sequence[tuple[str, MapSize]]) -> MapSize:
        (name, size), *states = sources
        channels = len(self._kind.inputs) * self.cells
        if size.channels != channels:
            raise KernelError(
                f"{self.cells} cells need {channels} channels, but {name} has {size.channels}"
            )
        sequences, rest = divmod(size.width * size.height, self.steps)
        if rest:
            raise KernelError(f"{name} has {size}, whose pixels are not {self.steps} steps each")
        for other, state in states:
            if state.channels != self.cells or state.width * state.height != sequences:
                raise KernelError(
                    f"states before must have {self.cells} channels of {sequences} pixels, but "
                    f"{other} has {state} (width, height, channels)"
                )
        return MapSize(self.steps + self.final, sequences, self.cells)

    def weight_shape(self, source: MapSize) -> tuple[int, ...]:
        return (self._kind.rows * self.cells + len(self._kind.peepholes), self.cells)

    def operations(self, plan: LayerPlan) -> int:
        cell, steps = self._kind, self.steps * plan.output.height
        each = len(cell.gates) + cell.operations + 2 * cell.rows * self.cells
        return steps * self.cells * each

    # The plan.

    def slice_cycles(
        self, source: MapSize, depth: int, out_depth: int, engines: ChipEngines, *, first: bool
    ) -> float:
        pieces = -(-source.channels // depth) + -(-self.cells // out_depth)
        return _PIECE * source.width * source.height * pieces

    def variants(self, plan: LayerPlan, work: ChipWork, *, first: bool) -> list[LayerPlan]:
        # A vault has whole images.
        images = min(work.batch, work.engines.vaults)
        return [replace(plan, cut=replace(plan.cut, images=images))]

    def part(self, plan: LayerPlan, work: ChipWork) -> RecurrentPlan:
        """The kernel's plan for a vault."""
        return RecurrentPlan(
            self.shape,
            steps=self.steps,
            sequences=plan.output.height * plan.rounds(work.batch),
            sharers=work.engines.pes,
            scratchpad_bytes=work.engines.scratchpad_bytes,
        )

    def planned(self, plan: LayerPlan, work: ChipWork) -> LayerPlan:
        return replace(plan, cycles=self.part(plan, work).cycles)

    def moved_elements(
        self, before: LayerPlan, plan: LayerPlan, work: ChipWork, inputs: int
    ) -> float:
        return plan.input.elements * plan.rounds(work.batch) // inputs

    # The step.

    def vault_layout(self, step: KernelStep, vault: int) -> RecurrentLayout | None:
        targets = [
            (step.target.map(vault, round_), row)
            for round_, _ in _images(step, vault)
            for row in range(step.plan.output.height)
        ]
        if not targets:
            return None
        part = self.part(step.plan, ChipWork(step.target.batch, step.engines))
        base = step.engines.address(vault, step.offset)
        return RecurrentLayout(part, targets, base, reverse=self.reverse, final=self.final)

    def program(self, layout: RecurrentLayout, vault_bits: int) -> Program:
        return recurrent_program(layout, vault_bits=vault_bits)

    def vault_weights(self, step: KernelStep, weights: Weights, vault: int) -> Weights:
        return weights

    def store(self, layout: RecurrentLayout, memory: Writable, weights: Weights | None) -> None:
        assert weights is not None
        layout.store(memory, weights.weights, weights.bias)

    def moves(self, step: LayerStep, vault: int) -> list[Move]:
        assert isinstance(step, KernelStep)
        layout = step.layout(vault)
        if layout is None:
            return []
        source, *states = step.sources
        places = [layout.start_addresses] * bool(self.hidden)
        places += [layout.kept_addresses] * bool(self.kept)
        count, moves = step.plan.output.height, []
        for number, (_, image) in enumerate(_images(step, vault)):
            sequences = range(number * count, (number + 1) * count)
            into = [layout.x_addresses(sequence) for sequence in sequences]
            # Steps x sequences x gates x cells.
            moves += _moved(source, image, np.stack(into, axis=1))
            for state, of in zip(states, places, strict=True):
                moves += _moved(state, image, np.stack(list(map(of, sequences))))
        return moves

    # Numbers.

    def _start(
        self, states: Sequence[Elements | Reals], zeros: Elements | Reals
    ) -> tuple[Elements | Reals, Elements | Reals]:
        """States before the first step: sequences x cells."""
        before = iter(states)
        hidden, cells = (
            _columns(next(before)).reshape(-1, self.cells) if name else zeros
            for name in (self.hidden, self.kept)
        )
        return hidden, cells

    def _inputs(self, source: Elements | Reals) -> Elements | Reals:
        """Steps x sequences x gates x cells, in the order of computation."""
        by_step = _columns(source).reshape(
            len(source), self.steps, -1, len(self._kind.inputs), self.cells
        )
        by_step = by_step.swapaxes(0, 1).reshape(self.steps, -1, *by_step.shape[3:])
        return by_step[::-1] if self.reverse else by_step

    def _map(
        self, results: Elements | Reals, cells: Elements | Reals, images: int
    ) -> Elements | Reals:
        """Images x sequences x steps x cells."""
        if self.reverse:
            results = results[::-1]
        if self.final:
            results = np.concatenate([results, cells[np.newaxis]])
        by_image = results.reshape(len(results), images, -1, self.cells)
        return by_image.transpose(1, 2, 0, 3)

    def integer(
        self, plan: LayerPlan, sources: Sequence[Elements], weights: Weights | None
    ) -> Elements:
        assert weights is not None
        x = self._inputs(sources[0])
        zeros = np.zeros((x.shape[1], self.cells), np.int16)
        start = self._start(sources[1:], zeros)
        results, cells = run_elements(self.shape, x, start, weights.weights, weights.bias)
        return self._map(results, cells, len(sources[0]))

    def real(self, sources: Sequence[Reals], size: MapSize, parameters: RealParameters) -> Reals:
        real = parameters.real[self.name]
        x = self._inputs(sources[0])
        start = self._start(sources[1:], np.zeros((x.shape[1], self.cells)))
        results, cells, *_ = run_reals(self._kind, x, start, real.weights, real.bias)
        return self._map(results, cells, len(sources[0]))

    # Fraction bits.

    def tied(self, sources: tuple[str, ...]) -> tuple[str, ...]:
        return sources[1:]

    def shift(self, fractions: Fractions) -> int:
        return fractions.weights + fractions.output - fractions.sources[0]

    def peaks(
        self, sources: Sequence[Reals], largest: float, size: MapSize, parameters: RealParameters
    ) -> Peaks:
        real = parameters.real[self.name]
        x = self._inputs(sources[0])
        start = self._start(sources[1:], np.zeros((x.shape[1], self.cells)))
        *_, gates, cells = run_reals(self._kind, x, start, real.weights, real.bias)
        if self._kind.limited:
            gates = min(gates, _LIMIT)
        biases = float(np.abs(real.bias).max(initial=0.0))
        return Peaks(source=max(gates, biases), inner=cells)

    def scaled(
        self, fractions: Fractions, parameters: RealParameters
    ) -> tuple[Layer, Weights | None]:
        real, gate = parameters.real[self.name], fractions.sources[0]
        weights = Weights(
            weights=as_elements(real.weights, fractions.weights),
            bias=as_elements(real.bias, gate),
        )
        layer = replace(self, gate=gate, state=fractions.output, fraction=fractions.weights)
        return layer, weights

    def without(self, functions: Collection[str]) -> Layer:
        return replace(self, unit=False) if functions else self


def _images(step: LayerStep, vault: int) -> list[tuple[int, int]]:
    """Rounds in which a vault has an image, and the image."""
    target = step.target
    every = ((round_, target.image(vault, round_)) for round_ in range(target.rounds))
    return [(round_, image) for round_, image in every if image is not None]


def _columns(images: Elements | Reals) -> Elements | Reals:
    """Images x pixels column by column x channels."""
    return images.swapaxes(1, 2).reshape(len(images), -1, images.shape[-1])


def _moved(source: StoredMaps | None, image: int, target: NDArray[np.int64]) -> list[Move]:
    """Moves of an image's elements, column by column, to these addresses."""
    assert source is not None
    addresses = owned_addresses(source, image).swapaxes(0, 1).ravel()
    order = np.argsort(target, axis=None)
    return moves_between(addresses[order], target.ravel()[order])
