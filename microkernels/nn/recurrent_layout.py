"""Plan and memory layout of a recurrent layer (:mod:`microkernels.nn.recurrent_kernel`).

A member's part of the parameter block has the words of :data:`WORDS` in order, then for each
pass the number of pieces of its outputs, and of each piece the address in the output map for column
0, the elements, and the place after that of the output in the scratchpad.
"""

from collections.abc import Sequence
from math import gcd

import numpy as np
from numpy.typing import NDArray

from isa.program import Declared, Span
from isa.table import MAX_MR, MAX_VL
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import COLUMN_BYTES, FeatureMap, round_up
from microkernels.common.fixed_point import ELEMENT, ELEMENT_BYTES, Elements
from microkernels.common.memory import Writable
from microkernels.common.parameter_block import block_bytes, block_size
from microkernels.common.scratchpad_plan import ScratchpadPlan
from microkernels.runtime.barrier import FlagTable

from .curves import polynomial_constants
from .recurrent import RecurrentShape

#: Blocks of weights in flight, and bytes of a block.
_FEWEST_SLOTS, _MOST_SLOTS = 2, 8
_MOST_BLOCK = 1024
#: Words of a part before its lists, with their purposes.
WORDS = {
    "steps": "time steps",
    "constants": "address of constants",
    "stream": "address of the weights; then where a step begins to load",
    "x": "address of the next step's gates",
    "kept": "address of the next pass's kept vectors",
    "start": "address of the next pass's first states",
    "to": "where the next states go",
    "other": "the other place",
    "middle": "where states between two phases go",
    "lead": "bytes of a state before this PE's cells",
    "own": "this PE's cells",
    "flag": "address of this PE's flag",
    "flags": "first flag of the barrier",
    "flags_end": "end of its flags",
}
#: For estimates: cycles of a step besides products and loads, of a turn, and of an operation on a
#: vector besides its beats.
_STEP, _TURN, _OPERATION = 400, 45, 16
_BUS_BYTES = 6.5
#: Instructions of a function by a polynomial.
_POLYNOMIAL = 35


class RecurrentPlan:
    """A division of a layer's cells and sequences.

    Parameters:
        shape: of the layer. steps: of each sequence, at least 1.
        sequences: of a vault, at least 1.
        sharers: engines of a vault. scratchpad_bytes: of each.

    Attributes:
        own: cells of a member; the last one may have fewer. members: number.
        vectors: sequences of a pass. passes: number.
        length: elements of a state in memory.
        scalars: constants of the program.
        rows: of a block.
        places: of the scratchpad.
        resident: all blocks stay in the ring.

    Raises:
        KernelError: more cells than fit.
    """

    vectors: int
    passes: int
    rows: int
    places: ScratchpadPlan
    resident: bool

    def __init__(
        self, shape: RecurrentShape, *, steps: int, sequences: int, sharers: int,
        scratchpad_bytes: int,
    ) -> None:  # fmt: skip
        self.shape, self.steps, self.sequences = shape, steps, sequences
        self.sharers = sharers
        self.own = round_up(-(-shape.cells // sharers), 4)
        self.members = -(-shape.cells // self.own)
        self.length = shape.chunks * shape.chunk
        self.scalars = _scalars(shape)
        options: list[tuple[float, int]] = []
        for vectors in range(1, min(sequences, MAX_VL // self.own) + 1):
            if not self._divide(vectors, scratchpad_bytes):
                break
            options.append((self.cycles, vectors))
        if not options:
            raise KernelError(
                f"{shape.cells} cells do not fit {sharers} engines with scratchpads of "
                f"{scratchpad_bytes} bytes"
            )
        self._divide(min(options)[1], scratchpad_bytes)

    @property
    def vector(self) -> int:
        """Elements of a vector: a member's cells of a pass."""
        return self.own * self.vectors

    @property
    def vector_bytes(self) -> int:
        """Bytes of a vector."""
        return self.vector * ELEMENT_BYTES

    def ranges(self, gates: int) -> list[tuple[int, int]]:
        """First gate and gates of each group that one instruction processes."""
        together = max(1, min(gates, MAX_VL // self.vector))
        return [(first, min(together, gates - first)) for first in range(0, gates, together)]

    @property
    def block_bytes(self) -> int:
        """Bytes of a block of weights."""
        return self.rows * self.shape.chunk * ELEMENT_BYTES

    @property
    def blocks(self) -> int:
        """Blocks of a step."""
        return self.shape.cell.rows * self.own // self.rows * self.shape.chunks

    def units(self, gates: int) -> int:
        """Vectors of sums that the blocks of so many gates divide: all gates of a single sequence
        are one."""
        return 1 if self.vectors == 1 else gates

    def _divide(self, vectors: int, scratchpad_bytes: int) -> bool:
        """Divide the sequences and the scratchpad; whether this is large enough."""
        self.vectors, self.passes = vectors, -(-self.sequences // vectors)
        cell, size = self.shape.cell, self.vector_bytes
        widest = max(count for _, count in self.ranges(len(cell.gates)))
        together = gcd(*map(len, cell.products)) if self.vectors == 1 else 1
        common = self.own * together
        for rows in range(min(common, MAX_MR), 0, -1):
            if common % rows:
                continue
            self.rows = rows
            self.places = plan = ScratchpadPlan({
                "scalars": len(self.scalars) * ELEMENT_BYTES,
                "peepholes": len(cell.peepholes) * size,
                "gates": len(cell.gates) * size,
                "kept": size,
                "u": size,
                "unit": widest * size,
                "power": widest * size,
                "state": self.vectors * self.length * ELEMENT_BYTES,
                "products": self.vectors * self.rows * ELEMENT_BYTES,
            })  # fmt: skip
            room = max(0, scratchpad_bytes - plan.used)
            slots = min(_MOST_SLOTS, room // self.block_bytes)
            self.resident = self.blocks * self.block_bytes <= room
            if self.resident:
                slots = self.blocks
            elif slots < _FEWEST_SLOTS or (
                self.rows > 1 and self.block_bytes > min(_MOST_BLOCK, room // 3)
            ):
                continue
            plan.set_ring(plan.used, self.block_bytes, slots, self.block_bytes)
            return True
        return False

    @property
    def cycles(self) -> float:
        """Predicted cycles."""
        shape, cell = self.shape, self.shape.cell
        turn = self.vectors * (self.rows * shape.chunk / 4 + _TURN) + _TURN
        moved = 0 if self.resident else self.blocks * self.block_bytes * self.members / _BUS_BYTES
        functions = (len(cell.gates) + (cell.kept == "c")) * (1 if shape.unit else _POLYNOMIAL)
        operations = functions + cell.operations
        work = operations * (self.vector / 4 + _OPERATION) + _STEP * len(cell.products)
        return self.passes * self.steps * (max(self.blocks * turn, moved) + work)


def _scalars(shape: RecurrentShape) -> tuple[int, ...]:
    """Constants of a program, each once."""
    values = [0, 1, -1, shape.one]
    if not shape.unit:
        for fraction in (shape.gate, shape.state):
            values += polynomial_constants("tanh", fraction)
    return tuple(dict.fromkeys(values))


class RecurrentLayout:
    """Addresses of a layer's data in a vault.

    Parameters:
        plan: of the layer.
        targets: by sequence, its map and row.
        base: first address; a multiple of 32.
        reverse: sequences begin with the last step.
        final: the kept vector follows the target's last column.
    """

    def __init__(
        self,
        plan: RecurrentPlan,
        targets: Sequence[tuple[FeatureMap, int]],
        base: int,
        *,
        reverse: bool,
        final: bool,
    ) -> None:
        self.plan, self.targets, self.base = plan, targets, base
        self.reverse, self.final = reverse, final
        # All maps have the same slices.
        self.x_step = targets[0][0].x_step
        cell = plan.shape.cell
        self.flags = FlagTable(
            base=round_up(base + self.block_bytes, COLUMN_BYTES), members=plan.members
        )
        self.end = self.flags.end
        state_bytes = plan.vectors * plan.length * ELEMENT_BYTES
        step_bytes = len(cell.gates) * plan.vector_bytes
        repeats = 0 if plan.resident else plan.places.slots
        self._strides = {
            name: round_up(size, COLUMN_BYTES)
            for name, size in (
                ("constants", plan.places["gates"]),
                ("x", plan.passes * plan.steps * step_bytes),
                ("kept", plan.passes * plan.vector_bytes),
                ("weights", (plan.blocks + repeats) * plan.block_bytes),
            )
        }
        self._bases = {
            name: self._take(plan.members * self._strides[name]) for name in self._strides
        }
        self.start = self._take(plan.passes * state_bytes)
        self.exchange = [self._take(state_bytes) for _ in range(1 + len(cell.products))]

    def _take(self, size: int) -> int:
        first, self.end = self.end, round_up(self.end + size, COLUMN_BYTES)
        return first

    def _of(self, name: str, member: int) -> int:
        """Address of a member's data."""
        return self._bases[name] + member * self._strides[name]

    # Where moves put inputs.

    def _vectors(self, name: str, vectors: NDArray[np.int64], number: int) -> NDArray[np.int64]:
        """Addresses of a sequence's cells in vectors with these numbers: theirs x cells."""
        plan = self.plan
        member, inside = np.divmod(np.arange(plan.shape.cells), plan.own)
        elements = vectors[..., None] * plan.vector + number * plan.own + inside
        addresses: NDArray[np.int64] = (
            self._bases[name] + member * self._strides[name] + elements * ELEMENT_BYTES
        )
        return addresses

    def x_addresses(self, sequence: int) -> NDArray[np.int64]:
        """Addresses of a sequence's parts of the gates: steps x gates with inputs x cells."""
        plan, cell = self.plan, self.plan.shape.cell
        pass_, number = divmod(sequence, plan.vectors)
        gates = np.array([cell.gates.index(gate) for gate in cell.inputs])
        steps = np.arange(plan.steps)
        steps = steps[::-1] if self.reverse else steps
        vectors = (pass_ * plan.steps + steps)[:, None] * len(cell.gates) + gates
        return self._vectors("x", vectors, number)

    def kept_addresses(self, sequence: int) -> NDArray[np.int64]:
        """Addresses of a sequence's first kept vector, by cell."""
        pass_, number = divmod(sequence, self.plan.vectors)
        return self._vectors("kept", np.array(pass_), number)

    def start_addresses(self, sequence: int) -> NDArray[np.int64]:
        """Addresses of a sequence's first state, by cell."""
        first = self.start + sequence * self.plan.length * ELEMENT_BYTES
        addresses: NDArray[np.int64] = first + np.arange(self.plan.shape.cells) * ELEMENT_BYTES
        return addresses

    # The parameter block.

    def _pieces(self, member: int, sequence: int) -> list[tuple[int, int, int]]:
        """Words of the pieces of a sequence's outputs."""
        plan = self.plan
        target, row = self.targets[sequence]
        first = at = member * plan.own
        end = min(first + plan.own, plan.shape.cells)
        pieces = []
        while at < end:
            count = min(end - at, target.depth - at % target.depth)
            place = (sequence % plan.vectors * plan.own + at - first) * ELEMENT_BYTES
            pieces.append((target.address(0, row, at), count, place))
            at += count
        return pieces

    def _lists(self, member: int) -> list[int]:
        words: list[int] = []
        for first in range(0, self.plan.passes * self.plan.vectors, self.plan.vectors):
            sequences = range(first, min(first + self.plan.vectors, len(self.targets)))
            pieces = [piece for number in sequences for piece in self._pieces(member, number)]
            words += [len(pieces), *(word for piece in pieces for word in piece)]
        return words

    @property
    def block_bytes(self) -> int:
        """Bytes of the parameter block."""
        members = range(self.plan.members)
        words = [len(WORDS) + len(self._lists(member)) + 1 for member in members]
        return block_size([*words, *[len(WORDS)] * (self.plan.sharers - self.plan.members)])

    def _part(self, member: int) -> list[int]:
        plan, exchange = self.plan, self.exchange
        first = member * plan.own
        names = ("constants", "weights", "x", "kept")
        return [
            plan.steps,
            *(self._of(name, member) for name in names),
            self.start,
            exchange[0],
            exchange[1],
            exchange[-1],
            first * ELEMENT_BYTES,
            min(plan.own, plan.shape.cells - first),
            self.flags.arrival(member),
            *self.flags.everyone,
            *self._lists(member),
            # A program reads one word past its lists.
            0,
        ]

    @property
    def declared(self) -> Declared:
        """The memory that is fixed by the layer: parameter block and flags."""
        return Declared(
            constants=(Span(self.base, self.block_bytes),),
            numbers=self.flags.numbers,
            slots=self.plan.sharers,
        )

    def store(self, memory: Writable, matrix: Elements, biases: Elements) -> None:
        """Write everything but what moves write to ``memory``.

        Parameters:
            matrix, biases: as for :func:`microkernels.nn.recurrent.run_elements`.
        """
        plan, cell, cells = self.plan, self.plan.shape.cell, self.plan.shape.cells
        words = [self._part(member) for member in range(plan.members)]
        idle = [[0] * len(WORDS)] * (plan.sharers - plan.members)
        memory.write(self.base, block_bytes(self.base, [*words, *idle]))
        memory.write(self.flags.base, self.flags.words())
        memory.write(self.flags.end, bytes(self.end - self.flags.end))
        filled = plan.members * plan.own - cells
        rows = matrix[: cell.rows * cells].reshape(cell.rows, cells, cells)
        rows = np.pad(rows, ((0, 0), (0, filled), (0, plan.length - cells)))
        by_cell = np.pad(matrix[cell.rows * cells :], ((0, 0), (0, filled)))
        of_gates = np.pad(
            biases[: cell.rows * cells].reshape(cell.rows, cells), ((0, 0), (0, filled))
        )
        order = [gate for phase in cell.products for gate in phase]
        for member in range(plan.members):
            part = slice(member * plan.own, (member + 1) * plan.own)
            blocks = rows[:, part].reshape(-1, plan.rows, plan.shape.chunks, plan.shape.chunk)
            stream = blocks.transpose(0, 2, 1, 3).ravel()
            repeats = 0 if plan.resident else plan.places.slots
            again = stream[: repeats * plan.rows * plan.shape.chunk]
            self._write(memory, "weights", member, np.concatenate([stream, again]))
            constants = np.zeros(plan.places["gates"] // ELEMENT_BYTES, ELEMENT)
            constants[: len(plan.scalars)] = plan.scalars
            peepholes = np.repeat(by_cell[:, None, part], plan.vectors, axis=1).ravel()
            first = plan.places["peepholes"] // ELEMENT_BYTES
            constants[first : first + len(peepholes)] = peepholes
            self._write(memory, "constants", member, constants)
            if len(cell.inputs) == len(cell.gates):
                continue
            gates = np.zeros(
                (plan.passes * plan.steps, len(cell.gates), plan.vectors, plan.own), ELEMENT
            )
            for number, gate in enumerate(cell.gates):
                if gate not in cell.inputs:
                    gates[:, number] = of_gates[order.index(gate), part]
            self._write(memory, "x", member, gates)

    def _write(self, memory: Writable, name: str, member: int, values: Elements) -> None:
        memory.write(self._of(name, member), np.ascontiguousarray(values, ELEMENT).tobytes())
