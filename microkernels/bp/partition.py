"""Which PE updates what of a sweep, so that all end together.

Lines do not depend on each other, and two at a time are fastest (:mod:`microkernels.bp.schedule`).
But 34 lines are 17 pairs, for 2 PEs 9 and 8. Pairs can be cut: a PE makes the first messages of a
pair, its *head*, before anything else, another the rest, its *tail*, after everything else. The
tail needs two messages that the head made almost a sweep ago, so it does not wait. This is the
wrap-around rule for machines that may interrupt jobs (McNaughton 1959): an odd line, then the pairs
one behind the other, cut into parts that take equal time, one for each PE. With fewer than two
lines for each PE no pair is cut, as a part would be shorter than a pair.

Whole pairs go to the PEs in turns, so that lines worked on at the same time are neighbours, which
lie in different banks (:mod:`microkernels.bp.layout`).
"""

from dataclasses import dataclass

from microkernels.common.errors import KernelError

__all__ = ["NOTHING", "PAIR", "START_UPDATES", "Piece", "Share", "share_sweep"]

#: Updates in whose time a PE can begin and end a piece of its own; no pair is cut for less.
START_UPDATES = 4
#: Lines of a pair. Pair ``p`` is the lines ``2 p`` and ``2 p + 1``.
PAIR = 2
#: Time of an update of a line in a pair, and of one of a line alone.
_TIME, _TIME_ALONE = 5, 6


@dataclass(frozen=True)
class Piece:
    """Part of a pair of lines.

    Attributes:
        pair: its number.
        first: first update of both lines (0: that into the second pixel).
        updates: how many of each; at least 1.
    """

    pair: int
    first: int
    updates: int


@dataclass(frozen=True)
class Share:
    """What one PE does of a sweep, in this order. A head never stands alone: the flag behind it is
    its own, and what ends the sweep comes behind another run.

    Attributes:
        head: first updates of a pair whose rest the next PE makes; None: none.
        pairs: numbers of whole pairs.
        line: number of a whole line alone; None: none.
        tail: last updates of a pair whose begin the PE before makes; None: none.
    """

    head: Piece | None = None
    pairs: range = range(0)
    line: int | None = None
    tail: Piece | None = None


#: The share of a PE that has nothing to do.
NOTHING = Share()


@dataclass(frozen=True)
class _Part:
    """What a PE has of the lines one behind the other, in this order: a line alone, updates of the
    rest of a pair, whole pairs, and updates of the begin of a pair."""

    alone: bool
    tail: int
    pairs: int
    head: int


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
    if lines <= sharers:
        return [Share(line=pe) if pe < lines else NOTHING for pe in range(sharers)]
    pairs = lines // PAIR
    turns = [range(turn, pairs, sharers) for turn in range(sharers)]
    if lines >= PAIR * sharers:
        parts = _parts(lines, updates, sharers)
        # Who has more pairs takes an earlier turn.
        ranks = sorted(range(sharers), key=lambda pe: -parts[pe].pairs)
        own = [turns[ranks.index(pe)][: part.pairs] for pe, part in enumerate(parts)]
        if [len(each) for each in own] == [part.pairs for part in parts]:
            return _cut(lines, updates, parts, own)
    alone = pairs % sharers if lines % PAIR else sharers
    return [
        Share(pairs=each, line=lines - 1 if pe == alone else None) for pe, each in enumerate(turns)
    ]


def _cut(lines: int, updates: int, parts: list[_Part], own: list[range]) -> list[Share]:
    """Shares of PEs that have these whole pairs, and pieces of what is left."""
    whole = {pair for each in own for pair in each}
    left = (pair for pair in range(lines // PAIR) if pair not in whole)
    shares, pair = [], 0
    for part, pairs in zip(parts, own, strict=True):
        tail = Piece(pair, updates - part.tail, part.tail) if part.tail else None
        head = None
        if part.head:
            pair = next(left)
            head = Piece(pair, 0, part.head)
        shares.append(Share(head, pairs, lines - 1 if part.alone else None, tail))
    return shares


def _parts(lines: int, updates: int, sharers: int) -> list[_Part]:
    """Parts of equal time, which counts what it takes to begin each piece."""
    start = START_UPDATES * _TIME
    line, pair = updates * _TIME_ALONE, PAIR * updates * _TIME
    pairs, alone, tail = lines // PAIR, lines % PAIR == 1, 0
    parts = []
    for left in range(sharers, 1, -1):
        # Whole pairs for each PE, and two pieces at each cut between them.
        begins = left + 2 * (left - 1) + alone + (tail > 0)
        work = pairs * pair + tail * PAIR * _TIME + alone * line
        time = (work + begins * start) // left
        time -= (line + start if alone else 0) + (tail * PAIR * _TIME + start if tail else 0)
        whole = min(pairs, max(0, time - start) // pair)
        time -= whole * pair + start if whole else 0
        head = max(0, time - start) // (PAIR * _TIME) if whole < pairs else 0
        if head >= updates - START_UPDATES:
            whole, head = whole + 1, 0
        elif head < START_UPDATES:
            head = 0
        parts.append(_Part(alone, tail, whole, head))
        pairs -= whole + (head > 0)
        alone, tail = False, updates - head if head else 0
    parts.append(_Part(alone, tail, pairs, 0))
    return parts
