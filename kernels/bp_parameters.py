"""The parameter block of the belief propagation kernel: what each PE does, in what order.

64-bit little-endian words, the header first::

    0  iterations
    1  PEs that share the tile
    2  first of the flags that a barrier reads (kernels.barrier)
    3  end of those flags
    4  for each slot, the address of its PE's part; a multiple of 4 words follows in all

A PE's part::

    0  address of the PE's own flag
    1  runs in an iteration
    2  the runs, RUN_WORDS words each

A *run* is a number of lines that a PE works on without a stop, in pairs or one by one; see
:class:`Run` for its words. With one PE the slot is ignored.
"""

from dataclasses import astuple, dataclass, fields, replace

import numpy as np

from .barrier import FlagTable
from .bp_share import Piece, Share
from .errors import KernelError

__all__ = ["HEADER_WORDS", "RUN_WORDS", "Run", "SweepPlace", "block_bytes", "most_words", "runs"]

#: 64-bit words before the table of parts, and before the runs of a part.
HEADER_WORDS = 4
PART_WORDS = 2
#: A sweep's runs: head, pairs, a line left over, tail.
MOST_RUNS = 4


@dataclass(frozen=True, kw_only=True)
class Run:
    """Lines that a PE works on without a stop. The attributes are the words, in this order.

    Attributes:
        lanes: lines worked on at a time, 2 or 1; 0: nothing to do.
        wait: address of a flag to wait for before; 0: none.
        costs: address of the smoothness costs to load before; 0: those there stay.
        load: address of the three vectors to load at the first pixel of the first line.
        edge: address of the message that arrives there.
        across: bytes from the first to the second line of a pair.
        step: bytes from a pixel to the next one of its line (negative when moving left or up).
        turn: bytes from the last message written to a line to the first of that lane's next line.
        next: bytes from a line to that lane's next line.
        groups: pairs, or single lines.
        updates: in each line; at least 1 unless ``lanes`` is 0.
        signal: address of a flag to write behind; 0: none.
        gather: 1: then wait until all PEs have come so far; 0: go on.
    """

    lanes: int = 0
    wait: int = 0
    costs: int = 0
    load: int = 0
    edge: int = 0
    across: int = 0
    step: int = 0
    turn: int = 0
    next: int = 0
    groups: int = 0
    updates: int = 0
    signal: int = 0
    gather: int = 0


RUN_WORDS = len(fields(Run))


@dataclass(frozen=True, kw_only=True)
class SweepPlace:
    """Where a sweep's tile lies in memory.

    Attributes:
        load: address of the three vectors to load at the first pixel of line 0.
        edge: address of the sweep's own message there.
        step: bytes from a pixel to the next one of its line.
        line_step: bytes from a line to the next.
        updates: in a line; 0 or more.
        costs: address of the smoothness costs.
    """

    load: int
    edge: int
    step: int
    line_step: int
    updates: int
    costs: int


def runs(place: SweepPlace, share: Share, flags: FlagTable, member: int) -> list[Run]:
    """What PE ``member`` does in one sweep; the last run ends with the barrier."""

    def lines(first: int, stride: int, count: int, lanes: int) -> Run:
        along = lanes * stride * place.line_step
        return Run(
            lanes=lanes,
            load=place.load + first * place.line_step,
            edge=place.edge + first * place.line_step,
            across=stride * place.line_step,
            step=place.step,
            turn=along - (place.updates - 1) * place.step,
            next=along,
            groups=count // lanes,
            updates=place.updates,
        )

    def piece(part: Piece, wait: int = 0, signal: int = 0) -> Run:
        skipped = part.line * place.line_step + part.first * place.step
        return Run(
            lanes=1,
            wait=wait,
            load=place.load + skipped,
            edge=place.edge + skipped,
            step=place.step,
            groups=1,
            updates=part.updates,
            signal=signal,
        )

    found = []
    if share.head is not None:
        found.append(piece(share.head, signal=flags.handover(member)))
    count, stride = len(share.lines), share.lines.step
    if count > 1:
        found.append(lines(share.lines.start, stride, count & ~1, 2))
    if count % 2:
        found.append(lines(share.lines[-1], stride, 1, 1))
    if share.tail is not None:
        found.append(piece(share.tail, wait=flags.handover(member - 1)))
    found = found or [Run()]
    found[0] = replace(found[0], costs=place.costs if found[0].lanes else 0)
    found[-1] = replace(found[-1], signal=flags.arrival(member), gather=1)
    return found


def _table_end(sharers: int) -> int:
    return HEADER_WORDS * (1 - (-sharers // HEADER_WORDS))


def most_words(sharers: int, sweeps: int) -> int:
    """Words that suffice for the block of any tile with so many PEs and sweeps an iteration."""
    return _table_end(sharers) + sharers * (PART_WORDS + sweeps * MOST_RUNS * RUN_WORDS)


def block_bytes(base: int, iterations: int, flags: FlagTable, plans: list[list[Run]]) -> bytes:
    """The block at address ``base`` for the PEs with the runs ``plans``, one list a slot.

    Raises:
        KernelError: a negative number of iterations.
    """
    if iterations < 0:
        raise KernelError(f"iterations must be 0 or more, not {iterations}")
    words = [iterations, len(plans), flags.base, flags.gathered_end]
    table_end = _table_end(len(plans))
    parts: list[int] = []
    for member, plan in enumerate(plans):
        words.append(base + 8 * (table_end + len(parts)))
        parts += [flags.arrival(member), len(plan)]
        for run in plan:
            parts += astuple(run)
    words += [0] * (table_end - len(words))
    return np.array(words + parts, "<i8").tobytes()
