"""Reads and writes the memory contents of belief propagation before and after a launch.

:mod:`microkernels.bp.layout` defines all addresses.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import add
from microkernels.common.memory import Readable, Writable

from .layout import BpLayout
from .problem import BpProblem, MessageDirection, Messages, check_messages, element_type
from .record import Kind, block_views
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


def row_tiles(layout: BpLayout, vault: int | None = None) -> Iterator[tuple[Tile, int]]:
    """All rows of records of all tiles of ``vault`` (None: of all vaults), each as a one-row tile
    with the address of its first record; rows that fill up the last block are outside the image."""
    vaults = range(layout.ring.vaults) if vault is None else (vault,)
    for tile in (tile for number in vaults for tile in layout.grid.tiles(number)):
        height = layout.grid.block * layout.grid.blocks(tile.height)
        for y in range(0, height, layout.unit):
            row = replace(tile, y=tile.y + y, height=layout.unit)
            yield row, layout.record(tile, 0, y)


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
    planes: dict[Kind, Messages] = {"costs": problem.data_costs}
    planes |= {direction: start[direction] for direction in MessageDirection}
    places, costs = (layout.matrix, layout.transposed), layout.plan.costs(problem.smoothness)
    tails = _tails(problem)
    shared = ((layout.flags.base, layout.flags.words()), *zip(places, costs, strict=False))
    for vault in range(layout.ring.vaults):
        parameters = layout.parameter_block(iterations, vault)
        yield layout.ring.address(vault, layout.parameters), parameters
        for offset, data in shared:
            yield layout.ring.address(vault, offset), data
        for row, address in row_tiles(layout, vault):
            records = np.zeros(layout.row_bytes(row), np.uint8)
            if row.y < layout.grid.height:
                rows = {kind: values[row.pixels] for kind, values in planes.items()}
                if layout.plan.sums:
                    both = add(rows[MessageDirection.UP], rows[MessageDirection.DOWN])
                    rows["sums"] = add(both, rows["costs"])
                for kind, values in rows.items():
                    _fill(_views(records, layout, row, kind), values)
                for kind, weights in tails.items():
                    _fill(_views(records, layout, row, kind, tail=True), weights[row.pixels])
            yield address, records.tobytes()


def _tails(problem: BpProblem) -> dict[Kind, Messages]:
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
    return {"costs": np.stack(along, axis=2), MessageDirection.RIGHT: np.stack(across, axis=2)}


def _views(
    data: NDArray[np.uint8], layout: BpLayout, row: Tile, kind: Kind, *, tail: bool = False
) -> list[NDArray[np.uint8]]:
    """Views of the vectors of one kind in a row of records, or of what follows their labels: pixel
    by pixel, ending with an axis of bytes. There are two of data costs in blocks."""
    size, used = layout.plan.size, layout.plan.labels * layout.plan.size
    if layout.plan.in_blocks:
        return block_views(data, kind, used, layout.vector_bytes)
    start = layout.place(kind) * layout.vector_bytes + used * tail
    end = start + (layout.tail * size if tail else used)
    return [data.reshape(-1, layout.record_bytes)[: row.width, start:end]]


def _fill(views: list[NDArray[np.uint8]], values: Messages) -> None:
    """Put values ``[y, x, element]`` into all views."""
    for view in views:
        view[...] = np.ascontiguousarray(values).view(np.uint8).reshape(view.shape)


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


def unpack(
    layout: BpLayout, memory: Readable, kinds: Sequence[Kind] = tuple(MessageDirection)
) -> Messages:
    """Read back vectors, ``[kind, y, x, label]``: by default the messages of all directions."""
    dtype = element_type(layout.plan.bits)
    shape = (len(kinds), layout.grid.height, layout.grid.width, layout.plan.labels)
    result = np.empty(shape, dtype)
    for row, address in row_tiles(layout):
        if row.y < layout.grid.height:
            records = np.frombuffer(memory.read(address, layout.row_bytes(row)), np.uint8)
            for kind, rows in zip(kinds, result[:, *row.pixels], strict=True):
                view = np.ascontiguousarray(_views(records, layout, row, kind)[0])
                rows[...] = view.view(dtype).reshape(rows.shape)
    return result
