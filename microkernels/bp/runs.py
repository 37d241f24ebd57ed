"""Runs of the engines, the steps of a sweep that they are part of, and their parameter block.

A vault sweeps its tiles one after the other (:mod:`microkernels.bp.tiles`), each a *step*; all
vaults go through the same steps. Sweeps to the right and left read the messages that move down and
up, and sweeps down and up read the messages that move right and left. Neither sweep of such a pair
writes a message that the other one uses. So the engines of a vault form two groups, called *teams*:
one half sweeps to the right while the other half sweeps to the left, then down and up. That gives
an engine fewer and longer pieces of a sweep. An odd number of engines is one team: it sweeps to the
right, then to the left.

Between two steps of a sweep a team waits for the messages that arrive at its next tile. Each engine
writes the messages that leave its tile into the following tile, then a flag in the vault of that
tile, and the team of that vault gathers these flags. Steps are counted, so a flag serves all steps.

One barrier follows each pair of sweeps, among the engines of a vault and those of its neighbours in
the ring. After the barrier all messages of both sweeps are in memory, and no engine reads the
messages that the next two sweeps will overwrite. Vaults two links apart never access the same
messages.

*Parameter block* of a vault, 64-bit little-endian words, the header first::

    0  iterations
    1  engines that share the vault's tiles
    2  for each slot, the address of its engine's part; filled up to a multiple of 4 words in all

An engine's part::

    0  address of the flag with the engine's last event (microkernels.runtime.barrier)
    1  runs in an iteration
    2  the runs, SweepRun.length() words each

A *run* is a number of lines that an engine works on without a stop, in pairs or one by one; see
:class:`SweepRun` for its words. With one engine the slot is ignored. All addresses are those that
engines use; on a chip of several vaults, chip addresses.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from microkernels.common import parameter_block
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import round_up
from microkernels.common.word_record import Word, WordRecord, word
from microkernels.runtime.barrier import FlagTable

from .partition import PAIR, PairPiece, Share
from .problem import MessageDirection

__all__ = [
    "Neighbours",
    "SweepRun",
    "block_bytes",
    "most_runs",
    "most_words",
    "step_runs",
    "sweep_team",
]

#: 64-bit words before the table of parts, and before the runs of a part.
HEADER_WORDS = 2
PART_WORDS = 2
_ALIGNMENT = 4


@dataclass(frozen=True, kw_only=True)
class SweepRun(WordRecord[Word]):
    """Lines that an engine works on without a stop: the words of its description, or the registers
    of a program that hold them. Without numbers it is a run with nothing to do."""

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
    #: 0: no step of a sweep is over after the run.
    flags_to_wait: Word = word("address of the first flag to wait for after it, or 0", default=0)
    #: Equal to ``flags_to_wait``: the step is over, and there is no flag to wait for.
    flags_end: Word = word("end of those flags", default=0)

    @property
    def signals(self) -> tuple[Word, Word, Word]:
        """Flags to write after the run: for the own vault and its two neighbours."""
        return self.signal_1, self.signal_2, self.signal_3


#: The words about the end of a run, which the run before must not overwrite.
END_WORDS = 5


def _table_end(sharers: int) -> int:
    return round_up(HEADER_WORDS + sharers, _ALIGNMENT)


def most_words(sharers: int, runs: int) -> int:
    """Words that suffice for any block with ``sharers`` engines and at most ``runs`` runs each."""
    return _table_end(sharers) + sharers * (PART_WORDS + runs * SweepRun.length())


def block_bytes(
    base: int, iterations: int, flags: list[int], plans: list[list[SweepRun[int]]]
) -> bytes:
    """The block at address ``base``.

    Parameters:
        iterations: 0 or more.
        flags: for each slot, word 0 of its part.
        plans: for each slot, its engine's runs.

    Raises:
        KernelError: a negative number of iterations.
    """
    if iterations < 0:
        raise KernelError(f"iterations must be 0 or more, not {iterations}")
    parts = [
        [flag, len(plan), *(word for run in plan for word in run.words())]
        for flag, plan in zip(flags, plans, strict=True)
    ]
    header = (iterations, len(plans))
    return parameter_block.block_bytes(base, parts, header=header, align=_ALIGNMENT)


#: A step's runs: head, pairs, a line alone, tail.
_RUNS = 4
#: Pairs of a run with four lines at a time.
_PAIRS = 2


def most_runs(lanes: int) -> int:
    """Most runs of an engine in a step, for a kernel that works on so many lines at a time."""
    return _RUNS + (lanes > PAIR)


def sweep_team(direction: MessageDirection, sharers: int) -> range:
    """Slots of the engines, of ``sharers`` in a vault, that sweep in ``direction``."""
    if sharers % 2:
        return range(sharers)
    half = sharers // 2
    return range(half, sharers) if direction.reverse else range(half)


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Flags of a vault and of those beside it in the ring.

    Attributes:
        vault: of the vault itself.
        before, after: of the vault before and the vault after it; None: there are no others.
    """

    vault: FlagTable
    before: FlagTable | None = None
    after: FlagTable | None = None

    def end_of_step(
        self, member: int, team: range, direction: MessageDirection, last: bool
    ) -> dict[str, int]:
        """The words of the step's last run that say how it ends.

        Parameters:
            member: slot of the engine.
            team: slots of its team.
            direction: of the sweep.
            last: it is the sweep's last step.
        """
        vault, nothing = self.vault, (self.vault.base, self.vault.base)
        # An engine whose team sweeps in one direction only has ended its part; the only team of an
        # odd number of engines sweeps the reverse direction next.
        if last and (direction.reverse or len(team) < vault.members):
            flags = [vault.arrival(member)]
            if self.before is not None and self.after is not None:
                flags += [self.before.from_after(member), self.after.from_before(member)]
            return _words(flags, vault.everyone)
        if last or self.before is None or self.after is None:
            return _words([], nothing)
        number = team.index(member)
        if direction.reverse:
            return _words([self.before.step_from_after(number)], vault.steps_after)
        return _words([self.after.step_from_before(number)], vault.steps_before)


def _words(signals: Sequence[int], gather: tuple[int, int]) -> dict[str, int]:
    words = {f"signal_{number}": flag for number, flag in enumerate(signals, 1)}
    return words | {"flags_to_wait": gather[0], "flags_end": gather[1]}


def step_runs(
    tile: SweepRun[int] | None,
    share: Share,
    flags: FlagTable,
    member: int,
    end: dict[str, int],
    lanes: int = PAIR,
) -> list[SweepRun[int]]:
    """The runs of one engine in one step.

    Parameters:
        tile: the words that all runs on the tile have (:meth:`.layout.BpLayout.sweep`); None: the
            vault has no tile in this step.
        share: the engine's part of it.
        flags: of its vault.
        member: its slot.
        end: words of the last run, from :meth:`Neighbours.end_of_step`.
        lanes: lines that the kernel works on at a time; with 4, pairs go in twos.
    """
    runs = [] if tile is None else _work(tile, share, flags, member, lanes)
    runs = runs or [SweepRun[int]()]
    runs[-1] = replace(runs[-1], **end)
    return runs


def _work(
    tile: SweepRun[int], share: Share, flags: FlagTable, member: int, most_lanes: int
) -> list[SweepRun[int]]:
    def wrap(lane_pitch: int, updates: int, last_pitch: int) -> int:
        """Bytes from a line's last message to the first one written to its lane's next line."""
        first = tile.pixel_pitch if updates > 1 else last_pitch
        return lane_pitch - (updates - 1) * tile.pixel_pitch - last_pitch + first

    def lines(first: int, lanes: int, stride: int = 1, groups: int = 1) -> SweepRun[int]:
        """Groups of ``lanes`` lines each, every ``stride``-th group from line ``first`` on. Of four
        lines, the second pair is half as far from the first as the next group."""
        lane_pitch = lanes * stride * tile.line_pitch
        return replace(
            tile,
            lanes=lanes,
            load_start=tile.load_start + first * tile.line_pitch,
            first_message=tile.first_message + first * tile.line_pitch,
            line_wrap=wrap(lane_pitch, tile.updates, tile.last_pitch),
            lane_pitch=lane_pitch,
            groups=groups,
        )

    def piece(part: PairPiece, **words: int) -> SweepRun[int]:
        run = lines(PAIR * part.pair, PAIR)
        skipped = part.first * tile.pixel_pitch
        run = replace(
            run,
            load_start=run.load_start + skipped,
            first_message=run.first_message + skipped,
            updates=part.updates,
            **words,
        )
        if most_lanes < PAIR:
            # The lines of the pair are worked on one after the other.
            line_wrap = wrap(run.lane_pitch, part.updates, run.last_pitch)
            run = replace(run, line_wrap=line_wrap)
        return run

    runs = []
    if share.head is not None:
        signal = flags.handover(member)
        runs.append(piece(share.head, last_pitch=tile.pixel_pitch, signal_1=signal))
    pairs = share.pairs
    if most_lanes > PAIR and len(pairs) >= _PAIRS:
        twos = len(pairs) // _PAIRS
        runs.append(lines(PAIR * pairs.start, _PAIRS * PAIR, pairs.step, twos))
        pairs = pairs[_PAIRS * twos :]
    if pairs:
        runs.append(lines(PAIR * pairs.start, PAIR, pairs.step, len(pairs)))
    if share.line is not None:
        runs.append(lines(share.line, 1))
    if share.tail is not None:
        runs.append(piece(share.tail, wait=flags.handover(member - 1)))
    return runs
