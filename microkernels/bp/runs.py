"""Runs of the engines, their shares of a sweep and its steps, and their parameter block.

A vault sweeps its tiles one after the other (:mod:`microkernels.bp.tiles`), each a *step*; all
vaults go through the same steps. Sweeps to the right and left read the messages that move down and
up; sweeps down and up read the messages that move right and left. Neither sweep of such a pair
writes a message that the other one uses, so a vault's engines form two groups, called *teams*: one
half sweeps right while the other half sweeps left, then down and up. This gives each engine fewer
and longer pieces of a sweep. An odd number of engines is one team: it sweeps right, then left.

Between two steps of a sweep a team waits for the messages that arrive at its next tile. Each engine
writes the messages that leave its tile into the following tile, then a flag in the vault of that
tile, and the team of that vault gathers these flags. Steps are counted, so a flag serves all steps.

One barrier follows each pair of sweeps, among a vault's engines and those of its neighbours in the
ring. After the barrier all messages of both sweeps are in memory, and no engine reads the messages
that the next two sweeps will overwrite. Vaults two links apart never access the same messages.

A vault's *parameter block* consists of 64-bit little-endian words, the header first::

    0  iterations
    1  engines that share the vault's tiles
    2  for each slot, the address of its engine's part; filled up to a multiple of 4 words in all

An engine's part::

    0  address of the flag with the engine's last event (microkernels.runtime.barrier)
    1  runs in an iteration
    2  the runs, SweepRun.length() words each

A *run* is a number of lines that an engine processes without stopping, in pairs or one by one; see
:class:`SweepRun` for its words. With one engine the slot is ignored. All addresses are those that
engines use; on a chip of several vaults, chip addresses.

*Shares of a sweep.* All engines of a vault finish at the same time. Lines are independent, and two
at a time are fastest (:mod:`microkernels.bp.kernel`). But 34 lines are 17 pairs, which gives 2
engines 9 and 8 pairs. Pairs can therefore be cut: one engine computes the first messages of a pair,
its *head*, before all its other work, and another engine computes the rest, its *tail*, after all
its other work. The tail needs two messages that the head produced almost a sweep earlier, so it
does not wait. This is the wrap-around rule for preemptive scheduling (McNaughton 1959): an odd
line, then the pairs one after the other, cut into parts that take equal time, one for each engine.
With fewer than two lines per engine no pair is cut, as a part would be shorter than a pair.

Whole pairs are dealt to the engines in turn, so lines processed at the same time are neighbours,
which are in different banks (:mod:`microkernels.bp.layout`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from microkernels.common import parameter_block
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import round_up
from microkernels.common.parameter_block import Word, WordRecord, word
from microkernels.runtime.barrier import FlagTable

from .problem import MessageDirection

#: Overhead of a separate piece (start and end), in units of one update; no cut piece is shorter.
START_UPDATES = 4
#: Lines per pair. Pair ``p`` is lines ``2 p`` and ``2 p + 1``.
PAIR = 2
#: Lines that the kernel with sums interleaves in first visits.
SUM_LANES = 2 * PAIR
#: Time of an update of a line in a pair, and of a single line.
TIME, TIME_ALONE = 5, 6
#: 64-bit words before the table of parts, and before a part's runs.
HEADER_WORDS = 2
PART_WORDS = 2
_ALIGNMENT = 4


@dataclass(frozen=True, kw_only=True)
class SweepRun(WordRecord[Word]):
    """Lines that an engine processes without stopping: the words of the description, or a program's
    registers for them. Without numbers it is a run with nothing to do."""

    #: With sums (:mod:`microkernels.bp.sums`) 4 or 2 in first visits. In second visits, which are
    #: of pairs, bytes from the data cost to the other message of the axis; in
    #: blocks, from ``load_start`` to the sums that are made.
    lanes: Word = word("lines worked on at a time, 2 or 1; 0: nothing to do", default=0)
    wait: Word = word("address of a flag to wait for before it; 0: none", default=0)
    #: 0: those in the scratchpad stay valid.
    costs: Word = word("address of smoothness costs to load before it, or 0", default=0)
    load_start: Word = word(
        "address of a, b, c at the first pixel of the load stream's line", default=0
    )
    first_message: Word = word("address of the message that arrives there", default=0)
    line_pitch: Word = word("bytes from the first to the second line of a pair", default=0)
    #: Negative when moving left or up.
    pixel_pitch: Word = word("bytes from pixel to pixel of a line", default=0)
    #: Of one update from ``first_message`` on. Not ``pixel_pitch`` if it goes to another tile.
    last_pitch: Word = word("bytes from the last message but one of a line to the last", default=0)
    line_wrap: Word = word(
        "bytes from the last message of a line to the first of its lane's next", default=0
    )
    lane_pitch: Word = word("bytes from a line to the next one of its lane", default=0)
    groups: Word = word("pairs or single lines left in the update stream", default=0)
    updates: Word = word("updates in a line; at least 1 unless there are no lanes", default=0)
    signal_1: Word = word("address of flag 1 to write after it, or 0", default=0)
    signal_2: Word = word("address of flag 2 to write after it, or 0", default=0)
    signal_3: Word = word("address of flag 3 to write after it, or 0", default=0)
    #: 0: no step of a sweep ends after the run.
    flags_to_wait: Word = word("address of the first flag to wait for after it, or 0", default=0)
    #: Equal to ``flags_to_wait``: the step ends, and there is no flag to wait for.
    flags_end: Word = word("end of those flags", default=0)

    @property
    def signals(self) -> tuple[Word, Word, Word]:
        """Flags to write after the run: for its own vault and the two neighbours."""
        return self.signal_1, self.signal_2, self.signal_3


#: The words about the end of a run, which the previous run must not overwrite.
END_WORDS = 5


def _table_end(sharers: int) -> int:
    return round_up(HEADER_WORDS + sharers, _ALIGNMENT)


def most_words(sharers: int, runs: int) -> int:
    """Number of words sufficient for any block with ``sharers`` engines and at most ``runs`` runs
    each."""
    return _table_end(sharers) + sharers * (PART_WORDS + runs * SweepRun.length())


def block_bytes(
    base: int, iterations: int, flags: list[int], plans: list[list[list[SweepRun[int]]]]
) -> bytes:
    """The block at address ``base``.

    Parameters:
        iterations: 0 or more.
        flags: for each slot, word 0 of its part.
        plans: for each slot, the engine's runs; with sums, as many of the last iteration follow.

    Raises:
        KernelError: a negative number of iterations.
    """
    if iterations < 0:
        raise KernelError(f"iterations must be 0 or more, not {iterations}")
    parts = [
        [flag, len(plan[0]), *(word for runs in plan for run in runs for word in run.words())]
        for flag, plan in zip(flags, plans, strict=True)
    ]
    header = (iterations, len(plans))
    return parameter_block.block_bytes(base, parts, header=header, align=_ALIGNMENT)


#: A step's runs: head, pairs, a single line, tail.
_RUNS = 4
#: Pairs per run with four lines at a time.
_PAIRS = 2


def most_runs(lanes: int) -> int:
    """Maximum runs of an engine per step, for a kernel that interleaves this many lines."""
    return _RUNS + (lanes > PAIR)


def sweep_team(direction: MessageDirection, sharers: int) -> range:
    """Slots of the engines, of ``sharers`` in a vault, that sweep in ``direction``."""
    if sharers % 2:
        return range(sharers)
    half = sharers // 2
    return range(half, sharers) if direction.reverse else range(half)


def end_words(signals: Sequence[int], gather: tuple[int, int]) -> dict[str, int]:
    """The words of a step's last run that say how it ends: flags to write after it, and first and
    end address of the flags to wait for."""
    words = {f"signal_{number}": flag for number, flag in enumerate(signals, 1)}
    return words | {"flags_to_wait": gather[0], "flags_end": gather[1]}


def share_sweep(
    tile: SweepRun[int],
    lines: int,
    team: range,
    flags: FlagTable,
    alone_time: int = TIME_ALONE,
) -> list[list[SweepRun[int]]]:
    """The runs of each engine, in the order in which it makes them, of pairs and of single lines. A
    head is never the only run: the flag after it is used by the head, and the end of the sweep is
    signalled after another run.

    Parameters:
        tile: the words that all runs on the tile share (:meth:`.layout.BpLayout.sweep`).
        lines: of the tile; at least 1.
        team: slots of the engines, at least one.
        flags: of their vault.
        alone_time: time of an update of a single line, in units of :data:`TIME`.

    Raises:
        KernelError: a value out of range.
    """
    sharers, updates = len(team), tile.updates
    if lines < 1 or updates < 0 or sharers < 1:
        raise KernelError(
            f"{lines} lines of {updates} updates for {sharers} PEs: allowed are at least 1 line, "
            "0 updates and 1 PE"
        )
    if not updates:
        return [[] for _ in team]

    uncut = partial(_uncut, tile)
    if lines <= sharers:
        return [uncut(range(pe, min(pe + 1, lines)), 1) for pe in range(sharers)]
    pairs = lines // PAIR
    last_line = uncut(range(PAIR * pairs, lines), 1)
    turns = [range(turn, pairs, sharers) for turn in range(sharers)]
    if lines >= PAIR * sharers:
        parts = _parts(lines, updates, sharers, alone_time)
        # An engine with more pairs comes first.
        ranks = sorted(range(sharers), key=lambda pe: -parts[pe][0])
        pairs_of = [turns[ranks.index(pe)][:count] for pe, (count, _) in enumerate(parts)]
        if [len(turn) for turn in pairs_of] == [count for count, _ in parts]:
            assigned = {pair for turn in pairs_of for pair in turn}
            left = (pair for pair in range(pairs) if pair not in assigned)
            shares = []
            tail: list[SweepRun[int]] = []
            for slot, turn, (_, head) in zip(team, pairs_of, parts, strict=True):
                share = [*uncut(turn), *last_line, *tail]
                last_line, tail = [], []
                if head:
                    pair, flag = next(left), flags.handover(slot)
                    (run,) = uncut(range(pair, pair + 1))
                    share.insert(0, replace(part(run, 0, head), signal_1=flag))
                    tail = [replace(part(run, head, updates - head), wait=flag)]
                shares.append(share)
            return shares
    return [
        [*uncut(turn), *(last_line if pe == pairs % sharers else [])]
        for pe, turn in enumerate(turns)
    ]


def _uncut(tile: SweepRun[int], groups: range, lanes: int = PAIR) -> list[SweepRun[int]]:
    """The run of groups of whole lines of a tile, by number, if there are any."""
    first, lane_pitch = (lanes * number * tile.line_pitch for number in (groups.start, groups.step))
    run = replace(
        tile,
        lanes=lanes,
        load_start=tile.load_start + first,
        first_message=tile.first_message + first,
        line_wrap=_wrap(tile, lane_pitch),
        lane_pitch=lane_pitch,
        groups=len(groups),
    )
    return [run] if groups else []


def _parts(lines: int, updates: int, sharers: int, alone_time: int) -> list[tuple[int, int]]:
    """Parts of equal time of the sequence of lines: for each engine the number of whole pairs, and
    the updates of a head after them. They are preceded by the rest of the previous pair or, for the
    first engine, a single line. The time includes the overhead of starting each piece."""
    start = START_UPDATES * TIME
    line, pair = updates * alone_time, PAIR * updates * TIME
    pairs, alone, tail = lines // PAIR, lines % PAIR == 1, 0
    parts = []
    for left in range(sharers, 1, -1):
        # Whole pairs per engine, and two pieces at each cut between them.
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
        parts.append((uncut, head))
        pairs -= uncut + (head > 0)
        alone, tail = False, updates - head if head else 0
    parts.append((pairs, 0))
    return parts


def part(run: SweepRun[int], first: int, updates: int) -> SweepRun[int]:
    """The run of ``updates`` updates of each line from update ``first`` on."""
    skipped = first * run.pixel_pitch
    ends = first + updates == run.updates
    return replace(
        run,
        load_start=run.load_start + skipped,
        first_message=run.first_message + skipped,
        last_pitch=run.last_pitch if ends else run.pixel_pitch,
        updates=updates,
    )


def _wrap(run: SweepRun[int], lane_pitch: int) -> int:
    """Bytes from a line's last message to the first one written to its lane's next line."""
    first = run.pixel_pitch if run.updates > 1 else run.last_pitch
    return lane_pitch - (run.updates - 1) * run.pixel_pitch - run.last_pitch + first


def step_runs(
    share: list[SweepRun[int]], end: dict[str, int], lanes: int = PAIR
) -> list[SweepRun[int]]:
    """One engine's runs in one step.

    Parameters:
        share: the engine's part of the tile; empty: it has none in this step.
        end: words of the last run (:func:`end_words`).
        lanes: lines that the kernel interleaves; with 4, pairs are processed in twos.
    """
    runs = share or [SweepRun[int]()]
    if lanes > PAIR:
        runs = [run for pairs in runs for run in _in_fours(pairs)]
    elif lanes < PAIR:
        # A cut pair's lines are processed one after the other.
        runs = [replace(run, line_wrap=_wrap(run, run.lane_pitch)) for run in runs]
    return [*runs[:-1], replace(runs[-1], **end)]


def _in_fours(run: SweepRun[int]) -> list[SweepRun[int]]:
    """The run with its pairs in twos, and the rest. The second pair of four lines is half as far
    from the first as the next group."""
    fours, rest = divmod(run.groups, _PAIRS)
    if run.lanes != PAIR or not fours:
        return [run]
    lane_pitch = _PAIRS * run.lane_pitch
    moved = fours * lane_pitch
    runs = [
        replace(
            run,
            lanes=_PAIRS * PAIR,
            line_wrap=_wrap(run, lane_pitch),
            lane_pitch=lane_pitch,
            groups=fours,
        ),
        replace(
            run,
            load_start=run.load_start + moved,
            first_message=run.first_message + moved,
            groups=rest,
        ),
    ]
    return runs[: 1 + rest]
