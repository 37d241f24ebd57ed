"""Which PE updates what of a sweep, so that all end together.

Lines do not depend on each other, but 34 lines for 4 PEs are 9, 9, 8, 8. The lines that are over
can be cut: a PE makes the first messages of a line, its *head*, before anything else, another the
rest, its *tail*, after everything else. The tail needs one message that the head made almost a
sweep ago, so it does not wait. This is the wrap-around rule for machines that may interrupt jobs
(McNaughton 1959): the lines one behind the other, cut into equal parts, one for each PE. Where
there is at least a line for each PE, a part is no shorter than a line and no line is cut twice.

Whole lines go to the PEs in turns, so that those worked on at the same time are neighbours, which
lie in different banks (:mod:`kernels.bp_layout`).
"""

from dataclasses import dataclass
from itertools import pairwise

from .errors import KernelError

__all__ = ["NOTHING", "START_UPDATES", "Piece", "Share", "share_sweep"]

#: Updates in whose time a PE could begin and end a piece of its own; no line is cut for less.
START_UPDATES = 8


@dataclass(frozen=True)
class Piece:
    """Part of one line.

    Attributes:
        line: number of the line.
        first: its first update (0: that into the second pixel).
        updates: how many; at least 1.
    """

    line: int
    first: int
    updates: int


@dataclass(frozen=True)
class Share:
    """What one PE does of a sweep, in this order.

    Attributes:
        head: first updates of a line whose rest the next PE makes; None: none.
        lines: whole lines.
        tail: last updates of a line whose begin the PE before makes; None: none.
    """

    head: Piece | None
    lines: range
    tail: Piece | None


#: The share of a PE that has nothing to do.
NOTHING = Share(None, range(0), None)


def share_sweep(lines: int, updates: int, sharers: int) -> list[Share]:
    """The share of each PE.

    Parameters:
        lines: of the tile; at least 1.
        updates: in a line; 0 or more.
        sharers: PEs; at least 1.

    Raises:
        KernelError: a value outside its range.
    """
    if lines < 1 or updates < 0 or sharers < 1:
        raise KernelError(
            f"{lines} lines of {updates} updates for {sharers} PEs: give at least 1 line, "
            "0 updates and 1 PE"
        )
    if not updates:
        return [NOTHING] * sharers
    total = lines * updates
    whole = -(-lines // sharers) * updates
    if lines < sharers or -(-total // sharers) + START_UPDATES >= whole:
        return [Share(None, range(pe, lines, sharers), None) for pe in range(sharers)]
    cuts = [pe * total // sharers for pe in range(sharers + 1)]
    counts = [end // updates - -(-start // updates) for start, end in pairwise(cuts)]
    own = [range(pe, pe + count * sharers, sharers) for pe, count in enumerate(counts)]
    rest = iter(sorted(set(range(lines)) - {line for each in own for line in each}))
    heads: list[Piece | None] = [None] * sharers
    tails: list[Piece | None] = [None] * sharers
    for pe, cut in enumerate(cuts[1:-1]):
        made = cut % updates
        if made:
            line = next(rest)
            heads[pe] = Piece(line, 0, made)
            tails[pe + 1] = Piece(line, made, updates - made)
    return [Share(*parts) for parts in zip(heads, own, tails, strict=True)]
