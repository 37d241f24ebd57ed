"""Labels on the machine: a launch after those of a job, and the memory that it needs.

Behind everything else of a job lie, in each vault alike, the parameter block, the constants
(:class:`microkernels.bp.labels_kernel.LabelsShape`) and the labels: one element a pixel, the rows
of the vault's tiles one after the other, each filled up to whole groups. Rows go to the engines of
a vault in turns. Rows of blocks are two rows of pixels, block after block.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isa.declared import Span
from isa.run import Launch
from microkernels.common import parameter_block
from microkernels.common.feature_map import COLUMN_BYTES, ROW_BYTES, round_up
from microkernels.common.fixed_point import Elements, add
from microkernels.common.memory import Readable, Writable
from microkernels.runtime.job import Golden, KernelJob

from .contents import RowPiece, row_pieces
from .labels_kernel import HEADER_WORDS, LabelsShape, labels_builder, labels_shape
from .layout import BpLayout
from .problem import BpProblem, MessageDirection, Messages, element_type
from .record import BLOCK

__all__ = ["machine_labels", "split_outputs", "with_labels"]

_ALIGNMENT = 4096
#: Words of a row: address of its first record, of its first label, groups.
_ROW_WORDS = 3
#: Upper limit of the cycles: of a launch, and for each pixel.
_START_CYCLES = 1_000_000
_PIXEL_CYCLES = 20_000


def machine_labels(problem: BpProblem, messages: Messages) -> NDArray[np.int64]:
    """``[y, x]``, the labels that the kernel chooses: those of
    :func:`microkernels.bp.golden.labels` where no belief saturates."""
    total = add(messages[MessageDirection.UP], messages[MessageDirection.DOWN])
    for part in (
        problem.data_costs,
        messages[MessageDirection.LEFT],
        messages[MessageDirection.RIGHT],
    ):
        total = add(total, part)
    result: NDArray[np.int64] = total.argmin(axis=2)
    return result


def split_outputs(problem: BpProblem, outputs: Elements) -> tuple[Messages, NDArray[np.int64]]:
    """Messages and labels ``[y, x]`` of the outputs of a job of :func:`with_labels`."""
    pixels = problem.height * problem.width
    shape = problem.no_messages().shape
    labels = outputs[-pixels:].reshape(problem.height, problem.width)
    return outputs[:-pixels].reshape(shape), labels.astype(np.int64)


def with_labels(
    job: KernelJob, problem: BpProblem, layout: BpLayout, scratchpad_bytes: int
) -> KernelJob:
    """``job`` with the launch ``labels`` after its own; the outputs are its messages and then the
    labels, as one line of elements.

    Parameters:
        job: belief propagation whose outputs are the messages of ``problem``.
        layout: of these messages. scratchpad_bytes: of an engine.

    Raises:
        KernelError: labels or records that don't fit an engine.
    """
    kernel = labels_shape(
        problem.labels,
        problem.bits,
        scratchpad_bytes,
        in_blocks=layout.in_blocks,
        tail=layout.variant.tail,
    )
    places = _Places(layout, kernel, round_up(job.end, _ALIGNMENT))
    vault_bits = None if job.ring is None else job.ring.address_bits
    program = labels_builder(kernel, vault_bits=vault_bits).program(
        f"labels_{problem.labels}x{problem.bits}.s"
    )

    def prepare(memory: Writable) -> None:
        job.prepare(memory)
        places.pack(memory)

    def outputs(memory: Readable) -> Elements:
        return np.concatenate([job.outputs(memory).ravel(), places.unpack(memory).ravel()])

    def golden() -> Elements:
        messages: Messages = job.expected
        labels = machine_labels(problem, messages).astype(messages.dtype)
        return np.concatenate([messages.ravel(), labels.ravel()])

    pixels = problem.width * problem.height
    return replace(
        job,
        name=f"{job.name} with labels",
        launches=(
            *job.launches,
            Launch(
                name="labels",
                program=program,
                parameters=places.base,
                max_cycles=_START_CYCLES + pixels * _PIXEL_CYCLES,
            ),
        ),
        prepare=prepare,
        outputs=outputs,
        golden=Golden(golden, lazy=True),
        end=places.end,
        declared=replace(job.declared, constants=(*job.declared.constants, *places.constants)),
    )


@dataclass(frozen=True)
class _Places:
    """Memory of the launch.

    Attributes:
        layout: of the messages. kernel: that chooses. base: offset in each vault.
    """

    layout: BpLayout
    kernel: LabelsShape
    base: int

    @cached_property
    def _pieces(self) -> list[list[RowPiece]]:
        """Rows of each vault, without those that fill up blocks."""
        vaults = range(self.layout.ring.vaults)
        return [
            [piece for piece in row_pieces(self.layout, vault) if piece.y < self.layout.grid.height]
            for vault in vaults
        ]

    def _groups(self, piece: RowPiece) -> int:
        width: int = min(piece.columns.stop, self.layout.grid.width) - piece.columns.start
        return -(-width * self.layout.unit // self.kernel.group)

    @property
    def _dtype(self) -> np.dtype[np.signedinteger]:
        return element_type(self.layout.bits)

    @cached_property
    def _numbers(self) -> int:
        """Offset of the constants."""
        rows = max(map(len, self._pieces))
        words = HEADER_WORDS + self.layout.sharers * 2 + rows * _ROW_WORDS
        return self.base + round_up(8 * words, COLUMN_BYTES)

    @cached_property
    def _labels(self) -> int:
        """Offset of the labels."""
        return self._numbers + round_up(self.kernel.constant_bytes, ROW_BYTES)

    def _row_bytes(self, piece: RowPiece) -> int:
        return round_up(
            self._groups(piece) * self.kernel.group * self._dtype.itemsize, COLUMN_BYTES
        )

    def _rows(self, vault: int) -> list[tuple[RowPiece, int]]:
        """Rows of a vault with the chip addresses of their labels."""
        rows: list[tuple[RowPiece, int]] = []
        at = self._labels
        for piece in self._pieces[vault]:
            rows.append((piece, self.layout.ring.address(vault, at)))
            at += self._row_bytes(piece)
        return rows

    @cached_property
    def end(self) -> int:
        """First offset after everything."""
        longest = max(sum(map(self._row_bytes, pieces)) for pieces in self._pieces)
        # A group may read records after the last row.
        return self._labels + longest + self.kernel.group * self.layout.record_bytes

    def _block(self, vault: int) -> tuple[int, bytes]:
        """The parameter block of a vault."""
        base, parts = self.layout.ring.address(vault, self.base), []
        rows = self._rows(vault)
        for engine in range(self.layout.sharers):
            share = rows[engine :: self.layout.sharers]
            words = [(piece.address, labels, self._groups(piece)) for piece, labels in share]
            parts.append([len(share), *(word for row in words for word in row)])
        header = (self.layout.sharers, self.layout.ring.address(vault, self._numbers))
        return base, parameter_block.block_bytes(base, parts, header=header)

    @property
    def constants(self) -> tuple[Span, ...]:
        """Memory that is fixed with the problem."""
        blocks = map(self._block, range(self.layout.ring.vaults))
        return tuple(Span(base, len(data)) for base, data in blocks)

    def pack(self, memory: Writable) -> None:
        """Write what is required before the launch."""
        numbers = self.kernel.constants().tobytes()
        for vault in range(self.layout.ring.vaults):
            memory.write(*self._block(vault))
            memory.write(self.layout.ring.address(vault, self._numbers), numbers)

    def unpack(self, memory: Readable) -> Elements:
        """Read the labels ``[y, x]``."""
        result = np.zeros((self.layout.grid.height, self.layout.grid.width), self._dtype)
        for vault in range(self.layout.ring.vaults):
            for piece, address in self._rows(vault):
                rows = result[piece.rows(self.layout), piece.columns]
                labels = np.frombuffer(memory.read(address, rows.nbytes), self._dtype)
                if self.layout.in_blocks:
                    labels = labels.reshape(-1, BLOCK, BLOCK).swapaxes(0, 1)
                rows[:] = labels.reshape(rows.shape)
        return result
