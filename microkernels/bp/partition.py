"""Partition of a sweep over the engines of a vault, so that all engines end at the same time.

Lines do not depend on each other, and two at a time are fastest (:mod:`microkernels.bp.kernel`).
But 34 lines are 17 pairs, which gives 2 engines 9 and 8 pairs. So pairs can be cut: one engine
computes the first messages of a pair, its *head*, before all its other work, and another engine
computes the rest, its *tail*, after all its other work. The tail needs two messages that the head
produced almost a sweep earlier, so it does not wait. This is the wrap-around rule for preemptive
scheduling (McNaughton 1959): an odd line, then the pairs one after the other, cut into parts that
take equal time, one for each engine. With fewer than two lines for each engine no pair is cut, as a
part would be shorter than a pair.

Whole pairs are assigned to the engines in turns, so that lines processed at the same time are
neighbours, which lie in different banks (:mod:`microkernels.bp.layout`).
"""

from dataclasses import dataclass

from microkernels.common.errors import KernelError

__all__ = [
    "NOTHING",
    "PAIR",
    "START_UPDATES",
    "TIME",
    "TIME_ALONE",
    "PairPiece",
    "Share",
    "share_sweep",
]

#: Overhead of a piece of its own, begin and end, in units of one update; no cut piece is shorter.
START_UPDATES = 4
#: Lines of a pair. Pair ``p`` is the lines ``2 p`` and ``2 p + 1``.
PAIR = 2
#: Time of an update of a line in a pair, and of one of a line alone.
TIME, TIME_ALONE = 5, 6


@dataclass(frozen=True)
class PairPiece:
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
    """The part of a sweep that one engine computes, in this order. A head is never the only piece:
    the flag after the head is its own, and the end of the sweep is signalled after another run.

    Attributes:
        head: first updates of a pair whose rest the next engine computes; None: none.
        pairs: numbers of whole pairs.
        line: number of a whole single line; None: none.
        tail: last updates of a pair whose head the previous engine computes; None: none.
    """

    head: PairPiece | None = None
    pairs: range = range(0)
    line: int | None = None
    tail: PairPiece | None = None


#: The share of an engine that has nothing to do.
NOTHING = Share()


@dataclass(frozen=True)
class _Part:
    """An engine's part of the sequence of lines, in this order: a single line, updates of a tail,
    whole pairs, and updates of a head."""

    alone: bool
    tail: int
    pairs: int
    head: int


def share_sweep(
    lines: int, updates: int, sharers: int, alone_time: int = TIME_ALONE
) -> list[Share]:
    """The share of each engine.

    Parameters:
        lines: of the tile; at least 1.
        updates: in a line; 0 or more.
        sharers: engines; at least 1.
        alone_time: of an update of a line alone, in the unit of :data:`TIME`.

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
        parts = _parts(lines, updates, sharers, alone_time)
        # An engine with more pairs takes an earlier turn.
        ranks = sorted(range(sharers), key=lambda pe: -parts[pe].pairs)
        pairs_of = [turns[ranks.index(pe)][: part.pairs] for pe, part in enumerate(parts)]
        if [len(pairs_of_pe) for pairs_of_pe in pairs_of] == [part.pairs for part in parts]:
            return _cut(lines, updates, parts, pairs_of)
    alone = pairs % sharers if lines % PAIR else sharers
    return [
        Share(pairs=turn, line=lines - 1 if pe == alone else None) for pe, turn in enumerate(turns)
    ]


def _cut(lines: int, updates: int, parts: list[_Part], pairs_of: list[range]) -> list[Share]:
    """Shares of engines that have these whole pairs, and pieces of the remaining pairs."""
    uncut = {pair for pairs in pairs_of for pair in pairs}
    left = (pair for pair in range(lines // PAIR) if pair not in uncut)
    shares, pair = [], 0
    for part, pairs in zip(parts, pairs_of, strict=True):
        tail = PairPiece(pair, updates - part.tail, part.tail) if part.tail else None
        head = None
        if part.head:
            pair = next(left)
            head = PairPiece(pair, 0, part.head)
        shares.append(Share(head, pairs, lines - 1 if part.alone else None, tail))
    return shares


def _parts(lines: int, updates: int, sharers: int, alone_time: int) -> list[_Part]:
    """Parts of equal time; the time includes the overhead to begin each piece."""
    start = START_UPDATES * TIME
    line, pair = updates * alone_time, PAIR * updates * TIME
    pairs, alone, tail = lines // PAIR, lines % PAIR == 1, 0
    parts = []
    for left in range(sharers, 1, -1):
        # Whole pairs for each engine, and two pieces at each cut between them.
        begins = left + 2 * (left - 1) + alone + (tail > 0)
        work = pairs * pair + tail * PAIR * TIME + alone * line
        time = (work + begins * start) // left
        time -= (line + start if alone else 0) + (tail * PAIR * TIME + start if tail else 0)
        uncut = min(pairs, max(0, time - start) // pair)
        time -= uncut * pair + start if uncut else 0
        head = max(0, time - start) // (PAIR * TIME) if uncut < pairs else 0
        if head >= updates - START_UPDATES:
            uncut, head = uncut + 1, 0
        elif head < START_UPDATES:
            head = 0
        parts.append(_Part(alone, tail, uncut, head))
        pairs -= uncut + (head > 0)
        alone, tail = False, updates - head if head else 0
    parts.append(_Part(alone, tail, pairs, 0))
    return parts
