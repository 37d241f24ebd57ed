"""An engine's work in one step of a sweep: the runs over its share of a tile, and the step's end.

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
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from microkernels.runtime.barrier import FlagTable

from .parameters import Run
from .partition import PAIR, Piece, Share
from .problem import Direction

__all__ = ["Neighbours", "SweepPlace", "most_runs", "step_runs", "sweep_team"]

#: A step's runs: head, pairs, a line alone, tail.
_RUNS = 4
#: Pairs of a run with four lines at a time.
_PAIRS = 2


def most_runs(lanes: int) -> int:
    """Most runs of an engine in a step, for a kernel that works on so many lines at a time."""
    return _RUNS + (lanes > PAIR)


@dataclass(frozen=True, kw_only=True)
class SweepPlace:
    """Location of a step's tile in memory.

    Attributes:
        load: address of the three vectors to load at the first pixel of line 0.
        edge: address of the sweep's own message there.
        step: bytes from a pixel to the next one of its line.
        exit: bytes from the last message but one of a line to the last.
        line_step: bytes from a line to the next.
        updates: in a line; 0 or more.
        costs: address of the smoothness costs.
    """

    load: int
    edge: int
    step: int
    exit: int
    line_step: int
    updates: int
    costs: int


def sweep_team(direction: Direction, sharers: int) -> range:
    """Slots of the engines, of ``sharers`` in a vault, that sweep in ``direction``."""
    if sharers % 2:
        return range(sharers)
    half = sharers // 2
    return range(half, sharers) if direction.reverse else range(half)


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Flags of a vault and of those beside it in the ring.

    Attributes:
        own: of the vault itself.
        before, after: of the vault before and the vault after it; None: there are no others.
    """

    own: FlagTable
    before: FlagTable | None = None
    after: FlagTable | None = None

    def end_of_step(
        self, member: int, team: range, direction: Direction, last: bool
    ) -> dict[str, int]:
        """The words of the step's last run that say how it ends.

        Parameters:
            member: slot of the engine.
            team: slots of its team.
            direction: of the sweep.
            last: it is the sweep's last step.
        """
        own, nothing = self.own, (self.own.base, self.own.base)
        # An engine whose team sweeps in one direction only has ended its part; the only team of an
        # odd number of engines sweeps the reverse direction next.
        if last and (direction.reverse or len(team) < own.members):
            flags = [own.arrival(member)]
            if self.before is not None and self.after is not None:
                flags += [self.before.from_after(member), self.after.from_before(member)]
            return _words(flags, own.everyone)
        if last or self.before is None or self.after is None:
            return _words([], nothing)
        number = team.index(member)
        if direction.reverse:
            return _words([self.before.step_from_after(number)], own.steps_after)
        return _words([self.after.step_from_before(number)], own.steps_before)


def _words(signals: Sequence[int], gather: tuple[int, int]) -> dict[str, int]:
    words = {f"signal_{number}": flag for number, flag in enumerate(signals, 1)}
    return words | {"gather": gather[0], "gather_end": gather[1]}


def step_runs(
    place: SweepPlace | None,
    share: Share,
    flags: FlagTable,
    member: int,
    end: dict[str, int],
    lanes: int = PAIR,
) -> list[Run]:
    """The runs of one engine in one step.

    Parameters:
        place: of the tile; None: the vault has none in this step.
        share: the engine's part of it.
        flags: of its vault.
        member: its slot.
        end: words of the last run, from :meth:`Neighbours.end_of_step`.
        lanes: lines that the kernel works on at a time; with 4, pairs go in twos.
    """
    found = [] if place is None else _work(place, share, flags, member, lanes)
    found = found or [Run()]
    found[-1] = replace(found[-1], **end)
    return found


def _work(place: SweepPlace, share: Share, flags: FlagTable, member: int, most: int) -> list[Run]:
    first_step = place.step if place.updates > 1 else place.exit
    last_message = (place.updates - 1) * place.step + place.exit

    def lines(first: int, lanes: int, stride: int = 1, groups: int = 1) -> Run:
        """Groups of ``lanes`` lines each, every ``stride``-th group from line ``first`` on. Of four
        lines, the second pair is half as far from the first as the next group."""
        along = lanes * stride * place.line_step
        return Run(
            lanes=lanes,
            load=place.load + first * place.line_step,
            edge=place.edge + first * place.line_step,
            across=place.line_step,
            costs=place.costs,
            step=place.step,
            exit=place.exit,
            turn=along - last_message + first_step,
            next=along,
            groups=groups,
            updates=place.updates,
        )

    def piece(part: Piece, **words: int) -> Run:
        run = lines(PAIR * part.pair, PAIR)
        skipped = part.first * place.step
        run = replace(
            run,
            load=run.load + skipped,
            edge=run.edge + skipped,
            updates=part.updates,
            **words,
        )
        if most < PAIR:
            # The lines of the pair are worked on one after the other.
            first = run.step if part.updates > 1 else run.exit
            last = (part.updates - 1) * run.step + run.exit
            run = replace(run, turn=run.next - last + first)
        return run

    found = []
    if share.head is not None:
        signal = flags.handover(member)
        found.append(piece(share.head, exit=place.step, signal_1=signal))
    pairs = share.pairs
    if most > PAIR and len(pairs) >= _PAIRS:
        twos = len(pairs) // _PAIRS
        found.append(lines(PAIR * pairs.start, _PAIRS * PAIR, pairs.step, twos))
        pairs = pairs[_PAIRS * twos :]
    if pairs:
        found.append(lines(PAIR * pairs.start, PAIR, pairs.step, len(pairs)))
    if share.line is not None:
        found.append(lines(share.line, 1))
    if share.tail is not None:
        found.append(piece(share.tail, wait=flags.handover(member - 1)))
    return found
