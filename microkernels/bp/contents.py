"""Memory contents of belief propagation before and after a launch: writing and reading them.

Everything lies where :mod:`microkernels.bp.layout` says.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from microkernels.common.errors import KernelError
from microkernels.common.memory import Readable, Writable

from .layout import BpLayout
from .problem import BpProblem, Direction, Messages, check_messages, element_type
from .record import COST_PLACE, PLACE
from .shifts.transform import transform_of

__all__ = ["RowPiece", "contents", "pack", "row_pieces", "unpack"]


def _check(layout: BpLayout, problem: BpProblem) -> None:
    held = (layout.width, layout.height, layout.labels, layout.bits)
    needed = (problem.width, problem.height, problem.labels, problem.bits)
    if held != needed:
        raise KernelError(
            "the layout is for {} x {} pixels, {} labels of {} bits; ".format(*held)
            + "the problem needs {} x {}, {} of {}".format(*needed)
        )
    if layout.shifts is not None and layout.shifts.transform != transform_of(problem.smoothness):
        raise KernelError("the layout is for other shifts than those of the smoothness costs")
    if layout.symmetric and not problem.symmetric:
        raise KernelError("the layout is for symmetric smoothness costs; the problem's are not")


@dataclass(frozen=True, kw_only=True)
class RowPiece:
    """Location of one row of a tile: ``length`` bytes of records from ``address`` on.

    Attributes:
        y, columns: row and columns of the image; pixels that fill up the last block lie beyond
            the image.
    """

    y: int
    columns: slice
    address: int
    length: int


def row_pieces(layout: BpLayout, vault: int | None = None) -> Iterator[RowPiece]:
    """All rows of all tiles of ``vault``; None: of all vaults."""
    vaults = range(layout.ring.vaults) if vault is None else (vault,)
    for tile in (tile for each in vaults for tile in layout.grid.tiles(each)):
        for y in range(layout.block * layout.grid.blocks(tile.height)):
            yield RowPiece(
                y=tile.y + y,
                columns=slice(tile.x, tile.x + tile.width),
                address=layout.record(tile, 0, y),
                length=layout.block * layout.grid.blocks(tile.width) * layout.record_bytes,
            )


def contents(
    problem: BpProblem,
    layout: BpLayout,
    *,
    iterations: int,
    messages: Messages | None = None,
) -> Iterator[tuple[int, bytes]]:
    """Memory contents required before the launch: addresses, ascending in each vault, and bytes.

    Parameter blocks, flags, smoothness costs, data costs and messages (None: all 0).

    Raises:
        KernelError: a layout for another problem, negative iterations, messages of a wrong shape.
    """
    _check(layout, problem)
    given = problem.no_messages() if messages is None else check_messages(problem, messages)
    planes = {COST_PLACE: problem.data_costs}
    planes |= {place: given[direction] for direction, place in PLACE.items()}
    costs: tuple[tuple[int, bytes], ...] = (
        (layout.matrix, np.ascontiguousarray(problem.smoothness).tobytes()),
        (layout.transposed, np.ascontiguousarray(problem.smoothness.T).tobytes()),
    )
    if layout.shifts is not None:
        costs = ((layout.matrix, layout.shifts.constants.tobytes()),)
    shared = ((layout.flags.base, layout.flags.words()), *costs)
    for vault in range(layout.ring.vaults):
        parameters = layout.parameter_block(iterations, vault)
        yield layout.ring.address(vault, layout.parameters), parameters
        for offset, data in shared:
            yield layout.ring.address(vault, offset), data
        for piece in row_pieces(layout, vault):
            records = np.zeros(piece.length, np.uint8)
            for place, values in planes.items() if piece.y < layout.height else ():
                row = np.ascontiguousarray(values[piece.y, piece.columns])
                _vectors(records, layout, place)[: len(row)] = row.view(np.uint8)
            yield piece.address, records.tobytes()


def _vectors(data: np.ndarray, layout: BpLayout, place: int) -> np.ndarray:
    """View ``[x, byte]`` of one vector of every record of a row."""
    records = data.reshape(-1, layout.record_bytes)
    start = place * layout.vector_bytes
    return records[:, start : start + layout.labels * layout.bits // 8]


def pack(
    problem: BpProblem,
    layout: BpLayout,
    memory: Writable,
    *,
    iterations: int,
    messages: Messages | None = None,
) -> None:
    """Write the :func:`contents` to ``memory``."""
    for address, data in contents(problem, layout, iterations=iterations, messages=messages):
        memory.write(address, data)


def unpack(layout: BpLayout, memory: Readable) -> Messages:
    """Read the messages of all directions back."""
    dtype = element_type(layout.bits)
    shape = (len(Direction), layout.height, layout.width, layout.labels)
    messages = np.empty(shape, dtype)
    for piece in row_pieces(layout):
        if piece.y >= layout.height:
            continue
        row = messages[:, piece.y, piece.columns]
        records = np.frombuffer(memory.read(piece.address, piece.length), np.uint8)
        for direction, place in PLACE.items():
            vectors = np.ascontiguousarray(_vectors(records, layout, place)[: row.shape[1]])
            row[direction] = vectors.view(dtype)
    return messages
