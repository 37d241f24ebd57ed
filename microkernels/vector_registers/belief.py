"""A sweep of belief propagation on the three machines.

Memory has S, then for each step and engine a, b and c of eight messages, then messages likewise.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from microkernels.apps.array_job import array_job
from microkernels.bp.golden import sweep
from microkernels.bp.problem import BpProblem, MessageDirection
from microkernels.common.fixed_point import Elements
from microkernels.runtime.job import KernelJob

from .machine import (
    ELEMENT_BYTES,
    ENGINES,
    MACHINES,
    PACKED,
    REGISTER_BYTES,
    RegisterBuilder,
    drawn,
)

#: Labels, messages that fill a register, and side of the tile, whose columns are the lines.
LABELS, LINES, SIDE = 16, 8, 32
#: Messages that the register machine works on at once, half of a register.
_FEW = 4

_MATRIX = LABELS * LABELS * ELEMENT_BYTES
_STEP = SIDE * LABELS * ELEMENT_BYTES
_SHARED = ("a", "b", "c", "S", "S_end", "m")


class _Belief(RegisterBuilder):
    """A sweep of updates down a tile of 32 lines, 8 for each of 4 engines.

    Parameters:
        steps: updates of a line.
    """

    names: tuple[str, ...] = (*_SHARED, "r", "t", "q")
    rows = LABELS

    def __init__(self, steps: int) -> None:
        title = f"A sweep of belief propagation: {type(self).__name__}."
        lengths = (1, LABELS, PACKED, 2 * PACKED, 3 * PACKED)
        super().__init__(title, self.names, lengths, free=type(self) is _Belief)
        left = self.variable("left", steps, "updates left")
        matrix = self.constant("matrix", LABELS * LABELS, "elements of S")
        self.set_constants()
        self.inputs = self.engine_address("inputs", _MATRIX, 3 * REGISTER_BYTES, "a, b, c")
        messages = _MATRIX + 3 * _STEP * (steps + 1)
        self.outputs = self.engine_address("outputs", messages, REGISTER_BYTES, "messages")
        self.op("set.mr", self.length(self.rows))
        self.load("S", self.zero, matrix)
        self.load("a", self.inputs, self.length(3 * PACKED))
        self.load("m", self.outputs, self.length(PACKED))
        self.set_up()
        with self.loop("step", left):
            self.begin()
            self.step()
        self.end()
        self.op("v.drain")
        self.store_messages()
        self.op("halt")

    def load_next(self) -> None:
        """Load a, b and c of the next update."""
        self.op("add", self.inputs, self.inputs, 3 * _STEP)
        self.load("a", self.inputs, self.length(3 * PACKED))

    def store_messages(self) -> None:
        """Store the messages."""
        self.store(self.outputs, "m", self.length(PACKED))
        self.op("add", self.outputs, self.outputs, _STEP)

    def set_up(self) -> None:
        """Write what precedes the first update."""
        self.load("r", self.outputs, self.length(PACKED))

    def step(self) -> None:
        """Write eight updates; the last message of the step before isn't complete."""
        self.compute("v.v.add", PACKED, "q", "a", "b")
        self._normalise(LINES - 1)
        self.compute("v.v.add", PACKED, "q", "q", "c")
        self.compute("v.v.add", PACKED, "t", "q", "m")
        for line in range(LINES):
            total = self.within("t", line * LABELS, 0)
            self.compute("m.v.add.min", LABELS, self.within("r", line * LABELS, 1), "S", total)
            if line == 0:
                self.store_messages()
            if line == 1:
                self.load_next()
        for line in range(LINES - 1):
            self._normalise(line)

    def end(self) -> None:
        """Write what completes the last messages."""
        self._normalise(LINES - 1)

    def _normalise(self, line: int) -> None:
        raw = self.within("r", line * LABELS, 0)
        self.compute("v.s.sub", LABELS, self.within("m", line * LABELS, 1), raw, raw)


class _Registers(_Belief):
    """Sixteen registers and a reduction unit. In a half, rows of S meet four totals."""

    names = (*_SHARED, *(f"{kind}{n}" for kind in "ts" for n in range(_FEW)), "k0", "k1")
    rows = 1

    def set_up(self) -> None:
        """Write what precedes the first update."""
        self.compute("v.v.add", PACKED, "a", "a", "b")

    def step(self) -> None:
        """Write eight updates, and the next one's first addition, which hides a latency."""
        self.end()
        self.compute("v.v.add", PACKED, "a", "a", "c")
        self._row(0)
        self._row(1)
        self.store_messages()
        self.compute("v.v.add", PACKED, "a", "a", "m")
        for half in range(LINES // _FEW):
            if half:
                self._row(0)
            for line in range(_FEW):
                self.move(LABELS, (f"t{line}", 0), ("a", (_FEW * half + line) * LABELS))
            if half:
                self._row(1)
                self._pack(0, LABELS - 1, 2, 3)
                self.load_next()
            for row in range(LABELS):
                if 0 < row < LABELS - 1:
                    self._row(row + 1)
                self._minima(row, 0, 1)
                if row:
                    self._pack(half, row - 1, 2, 3)
                self._minima(row, 2, 3)
                self._pack(half, row, 0, 1)
        self.compute("v.v.add", PACKED, "a", "a", "b")
        self._pack(1, LABELS - 1, 2, 3)

    def end(self) -> None:
        """Subtract each message's first entry, in registers of their own."""
        for half in range(LINES // _FEW):
            packed = [(line, ("m", (_FEW * half + line) * LABELS)) for line in range(_FEW)]
            for line, place in packed:
                self.move(LABELS, (f"t{line}", 0), place)
            for line, _ in packed:
                self.compute("v.s.sub", LABELS, f"s{line}", f"t{line}", f"t{line}")
            for line, place in packed:
                self.move(LABELS, place, (f"s{line}", 0))

    def _row(self, row: int) -> None:
        self.move(LABELS, (f"k{row % 2}", 0), ("S", row * LABELS))

    def _minima(self, row: int, *lines: int) -> None:
        for line in lines:
            self.compute("m.v.add.min", LABELS, f"s{line}", f"k{row % 2}", f"t{line}")

    def _pack(self, half: int, row: int, *lines: int) -> None:
        for line in lines:
            self.move(1, ("m", (_FEW * half + line) * LABELS + row), (f"s{line}", 0))


class _NoReduction(_Belief):
    """Sixteen registers: the smoothness costs of one label of the source at a time."""

    names = (*_SHARED, *(f"o{n}" for n in range(_FEW)), "k0", "k1", "x0", "x1", "y0", "y1")
    rows = 1

    def set_up(self) -> None:
        """Write what precedes the first update: nothing."""

    end = set_up

    def step(self) -> None:
        """Write eight updates, in two halves."""
        self.compute("v.v.add", PACKED, "a", "a", "b")
        self.compute("v.v.add", PACKED, "a", "a", "c")
        self._column(0)
        self.store_messages()
        self.compute("v.v.add", PACKED, "c", "a", "m")
        for half in range(LINES // _FEW):
            self._first_label(half)
            self._other_labels(half)
            self._normalise(half)
        self._column(0)
        self._column(1)
        self._last_move(1)

    def _first_label(self, half: int) -> None:
        """The sums of label 0, which are the minima so far. No register of sums is in use."""
        places = ("x0", "x1", "y1", "y0")
        for line in range(_FEW - 1):
            self._entry(half, 0, line, places[line])
        self._column(0)
        self._column(1)
        if half:
            self._last_move(half - 1)
        else:
            self.op("add", self.inputs, self.inputs, 3 * _STEP)
            self.load("a", self.inputs, self.length(2 * PACKED))
        self._entry(half, 0, _FEW - 1, places[-1])
        for line in range(_FEW):
            self.compute("v.s.add", LABELS, f"o{line}", "k0", places[line])
            if line < 2:
                self._entry(half, 1, line, places[line])

    def _other_labels(self, half: int) -> None:
        """Sums of the other labels and the minima with them, each a message later than its sum."""
        slots = [(label, line) for label in range(1, LABELS) for line in range(_FEW)]
        for number, (label, line) in enumerate(slots):
            if line == 0 and label + 1 < LABELS:
                self._column(label + 1)
            self.compute("v.s.add", LABELS, f"y{line % 2}", f"k{label % 2}", f"x{line % 2}")
            if number + 2 < len(slots):
                after = slots[number + 2]
                self._entry(half, *after, f"x{line % 2}")
            if number:
                self._least(slots[number - 1][1])
        if half:
            self.op("add", self._at[0], self.inputs, 2 * REGISTER_BYTES)
            self.load("c", self._at[0], self.length(PACKED))

    def _column(self, label: int) -> None:
        self.move(LABELS, (f"k{label % 2}", 0), ("S", label * LABELS))

    def _entry(self, half: int, label: int, line: int, target: str) -> None:
        self.move(1, (target, 0), ("c", (_FEW * half + line) * LABELS + label))

    def _least(self, line: int) -> None:
        self.compute("v.v.min", LABELS, f"o{line}", f"o{line}", f"y{line % 2}")

    def _normalise(self, half: int) -> None:
        """The last minimum, and subtract first entries. The last message is still to be moved."""
        places = ("k0", "x0", "x1", "y0")

        def subtract(line: int) -> None:
            self.compute("v.s.sub", LABELS, places[line], f"o{line}", f"o{line}")

        subtract(0)
        subtract(1)
        self._least(_FEW - 1)
        subtract(2)
        for line in range(2):
            self.move(LABELS, ("m", (_FEW * half + line) * LABELS), (places[line], 0))
        subtract(3)
        self.move(LABELS, ("m", (_FEW * half + 2) * LABELS), (places[2], 0))

    def _last_move(self, half: int) -> None:
        self.move(LABELS, ("m", (_FEW * half + 3) * LABELS), ("y0", 0))


def belief_job(machine: str, *, seed: int = 1, steps: int = SIDE - 1) -> KernelJob:
    """The sweep of ``steps`` updates on four engines, with random costs and messages."""
    random = np.random.default_rng(seed)
    draw = drawn(random)
    smoothness = np.minimum(abs(np.subtract.outer(range(LABELS), range(LABELS))), 5) * 40
    problem = BpProblem(draw(0, 1000, (steps + 1, SIDE, LABELS)), smoothness)
    messages = draw(-500, 500, (4, steps + 1, SIDE, LABELS))
    messages[..., 0] = 0
    down = messages[MessageDirection.DOWN]
    sides = (problem.data_costs, messages[MessageDirection.LEFT], messages[MessageDirection.RIGHT])
    inputs = np.stack([part.reshape(steps + 1, ENGINES, PACKED) for part in sides], axis=2)
    start = _MATRIX + inputs.nbytes
    program = _BELIEFS[machine](steps).program(f"ablation_belief_{machine}.s")

    def golden() -> Elements:
        result = messages.copy()
        sweep(problem, result, MessageDirection.DOWN)
        expected: Elements = result[MessageDirection.DOWN]
        return expected

    data = {0: problem.smoothness, _MATRIX: inputs, start: down[0]}
    name = f"{machine} belief propagation"
    return replace(
        array_job(name, program, data, start, golden, 0), pes=ENGINES, updates=steps * SIDE
    )


_BELIEFS: Mapping[str, type[_Belief]] = dict(
    zip(MACHINES, (_Belief, _Registers, _NoReduction), strict=True)
)
