"""Reads and writes the memory contents of belief propagation before and after a launch.

:mod:`microkernels.bp.layout` defines all addresses.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import add
from microkernels.common.memory import Readable, Writable

from .layout import BpLayout
from .problem import BpProblem, MessageDirection, Messages, check_messages, element_type
from .record import SUM_PLACE, fill_blocks, read_blocks
from .tiles import Tile


def _check(layout: BpLayout, problem: BpProblem) -> None:
    layout_shape = (layout.grid.width, layout.grid.height, layout.plan.labels, layout.plan.bits)
    needed = (problem.width, problem.height, problem.labels, problem.bits)
    if layout_shape != needed:
        raise KernelError(
            "the layout is for {} x {} pixels, {} labels of {} bits; ".format(*layout_shape)
            + "the problem needs {} x {}, {} of {}".format(*needed)
        )
    if not layout.plan.suits(problem.smoothness):
        raise KernelError("the layout's shifts differ from those of the smoothness costs")
    if layout.plan.variant.weighted != (problem.weights is not None):
        raise KernelError("the layout and the problem must both have edge weights, or neither")
    if layout.symmetric and not problem.symmetric:
        raise KernelError("the layout is for symmetric smoothness costs; the problem's are not")


def row_tiles(layout: BpLayout, vault: int | None = None) -> Iterator[Tile]:
    """All rows of records of all tiles of ``vault`` (None: of all vaults), each as a one-row tile;
    rows that fill up the last block are outside the image."""
    vaults = range(layout.ring.vaults) if vault is None else (vault,)
    for tile in (tile for number in vaults for tile in layout.grid.tiles(number)):
        height = layout.grid.block * layout.grid.blocks(tile.height)
        for y in range(0, height, layout.unit):
            yield replace(tile, y=tile.y + y, height=layout.unit)


def contents(
    problem: BpProblem,
    layout: BpLayout,
    *,
    iterations: int,
    messages: Messages | None = None,
) -> Iterator[tuple[int, bytes]]:
    """Memory contents required before the launch: addresses, ascending in each vault, and bytes.

    The contents are parameter blocks, flags, smoothness costs, data costs and messages (None: all
    0).

    Raises:
        KernelError: a layout for another problem, negative iterations, messages of the wrong shape.
    """
    _check(layout, problem)
    start = problem.no_messages() if messages is None else check_messages(problem, messages)
    planes: dict[MessageDirection | None, Messages] = {None: problem.data_costs}
    planes |= {direction: start[direction] for direction in MessageDirection}
    places, costs = (layout.matrix, layout.transposed), layout.plan.costs(problem.smoothness)
    tails = _tails(problem)
    shared = ((layout.flags.base, layout.flags.words()), *zip(places, costs, strict=False))
    for vault in range(layout.ring.vaults):
        parameters = layout.parameter_block(iterations, vault)
        yield layout.ring.address(vault, layout.parameters), parameters
        for offset, data in shared:
            yield layout.ring.address(vault, offset), data
        for row in row_tiles(layout, vault):
            records = np.zeros(layout.row_bytes(row), np.uint8)
            for direction, values in planes.items() if row.y < layout.grid.height else ():
                rows = np.ascontiguousarray(values[row.pixels])
                vectors = rows.view(np.uint8)
                if layout.plan.in_blocks:
                    fill_blocks(records, direction, vectors, layout.vector_bytes)
                else:
                    _vectors(records, layout, direction)[: vectors.shape[1]] = vectors[0]
            if layout.plan.sums:
                up, down = (
                    start[way][row.pixels] for way in (MessageDirection.UP, MessageDirection.DOWN)
                )
                sums = np.ascontiguousarray(add(add(up, down), problem.data_costs[row.pixels]))
                vectors = sums.view(np.uint8)
                at = SUM_PLACE * layout.vector_bytes
                if layout.plan.in_blocks:
                    fill_blocks(records, None, vectors, layout.vector_bytes, sums=True)
                else:
                    of_pixels = records.reshape(-1, layout.record_bytes)
                    of_pixels[:, at : at + vectors.shape[2]] = vectors[0]
            for direction, weights in tails.items() if row.y < layout.grid.height else ():
                vectors_end = weights[row.pixels][0].view(np.uint8)
                _vectors(records, layout, direction, tail=True)[: len(vectors_end)] = vectors_end
            yield layout.record_at(row.x, row.y), records.tobytes()


def _tails(problem: BpProblem) -> dict[MessageDirection | None, Messages]:
    """``[y, x]``: the weights after a vector (:mod:`microkernels.bp.problem`)."""
    if problem.weights is None:
        return {}
    dtype = element_type(problem.bits)
    # A weight that does not fit multiplies only smoothness costs of 0.
    right, down = (
        one.clip(max=np.iinfo(dtype).max).astype(dtype)
        for one in (problem.weights.right, problem.weights.down)
    )
    along = [np.pad(right, ((0, 0), sides)) for sides in ((0, 1), (1, 0))]
    across = [np.pad(down, (sides, (0, 0))) for sides in ((0, 1), (1, 0))]
    return {None: np.stack(along, axis=2), MessageDirection.RIGHT: np.stack(across, axis=2)}


def _vectors(
    data: np.ndarray, layout: BpLayout, direction: MessageDirection | None, *, tail: bool = False
) -> np.ndarray:
    """View ``[x, byte]`` of one vector in every record of a row, or of the elements after its
    labels; None: the data costs."""
    records = data.reshape(-1, layout.record_bytes)
    size = layout.plan.size
    start = layout.place(direction) * layout.vector_bytes
    if tail:
        start += layout.plan.labels * size
    return records[:, start : start + (layout.tail if tail else layout.plan.labels) * size]


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
    """Read back the messages of all directions."""
    dtype = element_type(layout.plan.bits)
    shape = (len(MessageDirection), layout.grid.height, layout.grid.width, layout.plan.labels)
    messages = np.empty(shape, dtype)
    for row in row_tiles(layout):
        if row.y >= layout.grid.height:
            continue
        rows = messages[:, *row.pixels]
        data = memory.read(layout.record_at(row.x, row.y), layout.row_bytes(row))
        records = np.frombuffer(data, np.uint8)
        for direction in MessageDirection:
            if layout.plan.in_blocks:
                used = layout.plan.labels * dtype.itemsize
                vectors = read_blocks(records, direction, used, layout.vector_bytes)
            else:
                vectors = _vectors(records, layout, direction)[None, : rows.shape[2]]
            rows[direction] = np.ascontiguousarray(vectors).view(dtype)
    return messages
