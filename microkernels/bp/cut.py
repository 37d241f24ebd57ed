"""Choice of the cut of an image into tiles: few large tiles, or many small ones.

A sweep passes along a line one pixel at a time, so it lasts as long as its longest lines, whatever
the number of tiles along it. More tiles across it leave fewer lines to an engine, until each has
one. Each tile along it costs the start of a run and the wait for the flag of the tile before. So a
small image is faster in fewer tiles than the machine has vaults.

Times are in updates of a message, from the rates of :mod:`microkernels.bp.partition`.
"""

from .partition import START_UPDATES, TIME, TIME_ALONE
from .tiles import TileCut

__all__ = ["fastest_cut", "predicted_updates"]


def fastest_cut(width: int, height: int, *, vaults: int, pes: int, block: int = 1) -> TileCut:
    """The cut with the shortest predicted time; among equals the one with more tiles, whose vaults
    hold less each.

    Parameters:
        width, height: of the image, in pixels.
        vaults: of the machine. pes: engines of a vault that work.
        block: pixels of a side of a block (:mod:`microkernels.bp.tiles`).
    """
    return TileCut(
        columns=_parts(width, height, vaults, pes, block),
        rows=_parts(height, width, vaults, pes, block),
    )


def predicted_updates(width: int, height: int, cut: TileCut, pes: int, block: int = 1) -> float:
    """Predicted time of an iteration on an image in the tiles of ``cut``, in updates of a
    message."""
    return 2 * (
        _time(width, height, cut.columns, pes, block) + _time(height, width, cut.rows, pes, block)
    )


def _parts(side: int, length: int, vaults: int, pes: int, block: int) -> int:
    most = min(vaults, -(-side // block))
    return min(range(most, 0, -1), key=lambda parts: _time(side, length, parts, pes, block))


def _time(side: int, length: int, parts: int, pes: int, block: int) -> float:
    """Time that depends on the number of ``parts`` of ``side``: of a sweep across them, along lines
    of ``length`` pixels of which each part has its share, and of the starts of a sweep along
    them."""
    lines = block * -(-side // (block * parts))
    each = -(-lines // pes)
    # Pairs are cut so that all engines end together; two lines of an engine are a pair.
    per_pixel = TIME_ALONE / TIME if each == 1 else max(2.0, lines / pes)
    return length * per_pixel + parts * START_UPDATES
