"""Order of the vector instructions of messages by shifts.

Instructions of one update, each as long as a vector (``b`` beats of 64 bits)::

    q = a + b    p = q + c    t = p + m                 data cost and messages, as in golden
    g = min(t + P)    u = min(t, g)                     the plateau; without it u is t
    s = u + c_i    x = min(s[o - m_i], s[o + m_i])    u = min(u, x)     for each shift
    m = u - u[0]                                        the message

Variants (:mod:`microkernels.bp.problem`) have more instructions. With weights, the costs and the
plateau times the weight, ``k`` and ``w``, replace ``b`` and ``c`` in the slot once those have been
read; ``s`` and ``g`` read them. With damping, ``n = u - u[0]``, ``d = o - n`` and ``f = d *
damping`` precede ``m = n + f``, replacing ``c`` and ``a``.

The first ``s``, and with parallel shifts every one, starts from ``t`` instead of ``u``, which gives
the same result (:mod:`microkernels.bp.shifts.transform`) and is known earlier. ``g`` is one
instruction, ``m.v.add.min`` with one row, as minimum and saturated sum commute.

The line's next update needs ``m``, and results take :data:`isa.timing.VECTOR_LATENCY` cycles.
Several lines are therefore interleaved (*lanes*): every ``period`` places, a place being one vector
instruction, the next lane's update begins. The vector unit executes one instruction after the
other, so this is a modulo schedule (Rau 1994): each instruction has a place relative to ``t`` of
its update, no two have the same place modulo the period, and operands are far enough apart.
:func:`rhythm` finds the shortest period. Empty places are filled with *pads*, instructions whose
result is not used.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from isa.timing import VECTOR_HELD, VECTOR_LATENCY, WORD_BYTES
from microkernels.common.errors import KernelError

from ..problem import USUAL, UpdateVariant, element_type
from .transform import Transform

#: Additions of an update: ``q`` and ``p``; ``a`` and ``b``, which make the sum of the other axis
#: (:mod:`.sums`), on blocks of pixels ``a`` before ``t``; or none.
Additions = Literal["inputs", "sums", "blocks", "none"]
#: Places to try beyond the number of instructions.
_MOST_PADS = 40
#: Instructions placed backwards from those that read their results, in this order.
_BEFORE = ("w", "k", "p", "q")


@dataclass(frozen=True)
class Rhythm:
    """A modulo schedule.

    Attributes:
        lanes: lines interleaved.
        period: places from one update to the next, of another lane.
        places: of each instruction, relative to ``t`` of its update.
        stored: the message may be stored after the instruction at this place.
        freed: a new update may be loaded over this one after the instruction at this place.
    """

    lanes: int
    period: int
    places: dict[str, int]
    stored: int
    freed: int

    def at(self, place: int) -> tuple[str, int] | None:
        """The instruction at a place of the period, and the number of updates since the one that it
        belongs to (negative: a later one); None: a pad."""
        for name, its in self.places.items():
            if its % self.period == place:
                return name, its // self.period
        return None


def beats_of(labels: int, bits: int) -> int:
    """Beats of a vector."""
    return -(-labels * element_type(bits).itemsize // WORD_BYTES)


def dependences(
    transform: Transform,
    beats: int,
    bits: int,
    variant: UpdateVariant = USUAL,
    *,
    adds: Additions = "inputs",
) -> Iterator[tuple[str, str, int]]:
    """The instruction that produces a value, the instruction that reads it, and the places between
    them; with weights also instructions that read a vector, and those that overwrite it.

    Parameters:
        adds: the instructions before or beside the transform.
    """
    size = bits // 8

    def places(late_beats: int) -> int:
        """Places between an instruction and one that reads a beat's results this many beats
        later."""
        return -(-(VECTOR_LATENCY + late_beats) // beats)

    if adds == "inputs":
        yield "q", "p", places(0)
        yield "p", "t", places(0)
    elif adds == "sums":
        # Both may read the message that t reads.
        yield "t", "a", 1
        yield "a", "b", places(0)
    elif adds == "blocks":
        # t replaces a vector that a reads.
        yield "a", "t", 1
        yield "a", "b", places(0)
    last = "t"
    yield from _starts(transform, places(0))
    if transform.plateau is not None:
        if variant.weighted:
            yield "p", "w", 1
            yield "w", "g", places(0)
        # A reduction has its result after its last beat.
        yield "g", "u", places(beats - 1)
        yield "t", "u", places(0)
        last = "u"
    for number, (far, _) in enumerate(transform.shifts):
        if not transform.parallel:
            yield last if number else "t", f"s{number}", places(0)
        if variant.weighted:
            yield "q", "k", 1
            yield "k", f"s{number}", places(number * size // WORD_BYTES)
        yield f"s{number}", f"x{number}", places(-(-far * size // WORD_BYTES))
        yield f"x{number}", f"u{number}", places(0)
        yield last, f"u{number}", places(0)
        last = f"u{number}"
    if variant.damped:
        yield last, "n", places(0)
        yield "n", "d", places(0)
        yield "d", "f", places(0)
        yield "n", "m", places(0)
        last = "f"
    yield last, "m", places(0)


def _starts(transform: Transform, far: int) -> Iterator[tuple[str, str, int]]:
    """Dependences of what takes ``t``, ``far`` places after it."""
    sums = [f"s{number}" for number in range(len(transform.shifts))] if transform.parallel else []
    least = [] if transform.plateau is None else ["g"]
    yield from (("t", name, far) for name in (*sums[:1], *least, *sums[1:]))
    # They are read before u replaces t.
    yield from ((name, "u", 1) for name in sums)


def rhythm(
    transform: Transform,
    labels: int,
    bits: int,
    lanes: int,
    variant: UpdateVariant = USUAL,
    *,
    adds: Additions = "inputs",
) -> Rhythm:
    """The modulo schedule with the shortest period that this search finds; ``adds`` as for
    :func:`dependences`.

    Raises:
        KernelError: no schedule was found.
    """
    beats = beats_of(labels, bits)
    needs = list(dependences(transform, beats, bits, variant, adds=adds))
    names = list(dict.fromkeys(name for one in needs for name in one[:2]))
    again = -(-VECTOR_LATENCY // beats)
    # Forward from t in the order of dependences, then p, q and products of weights backward.
    order = ["a"] if adds == "blocks" else []
    order += ["t", *(name for name in names if name not in (*order, "t", *_BEFORE))]
    order += [name for name in _BEFORE if name in names]
    # Products issue too late for a tighter order: with weights and damping 63.7 cycles, not 62.2.
    tails = _tails(needs) if variant.usual else {}
    for period in range(len(names), len(names) + _MOST_PADS):
        latest = {name: lanes * period - again - tail for name, tail in tails.items()}
        places = _placed(order, needs, period, latest, {})
        if places is None or places["m"] + again > lanes * period:
            continue
        done = -(-VECTOR_LATENCY // beats)
        last = max(places["m"], places.get("b", 0))
        stored = last + done + VECTOR_HELD
        freed = last + VECTOR_HELD
        if max(stored, freed) // period <= lanes:
            return Rhythm(lanes, period, places, stored, freed)
    raise KernelError(f"no schedule for {lanes} lines of {labels} labels of {bits} bits")


def _tails(needs: list[tuple[str, str, int]]) -> dict[str, int]:
    """Fewest places from each instruction that ``m`` waits for to ``m``."""
    tails = {"m": 0}
    while True:
        longer = {
            maker: tails[reader] + far
            for maker, reader, far in needs
            if reader in tails and tails.get(maker, -1) < tails[reader] + far
        }
        if not longer:
            return tails
        tails |= longer


def _placed(
    order: list[str],
    needs: list[tuple[str, str, int]],
    period: int,
    latest: dict[str, int],
    places: dict[str, int],
) -> dict[str, int] | None:
    """``places`` with those of the instructions of ``order`` that are not in it, each of which has
    a ``latest`` one if the next update waits for it."""
    if len(places) == len(order):
        return places
    name = order[len(places)]
    occupied = {place % period for place in places.values()}
    if name in _BEFORE:
        last = min(places[reader] - far for maker, reader, far in needs if maker == name)
        tries = range(last, last - period, -1)
    else:
        earliest = max(
            (
                places[maker] + far
                for maker, reader, far in needs
                if reader == name and maker in places
            ),
            default=0,
        )
        end = earliest + (1 if name in ("t", order[0]) else period)
        tries = range(earliest, min(end, latest.get(name, end) + 1))
    for place in tries:
        if place % period in occupied or not _lives(name, place, needs, period, places):
            continue
        complete = _placed(order, needs, period, latest, places | {name: place})
        if complete is not None:
            return complete
    return None


def _lives(
    name: str,
    place: int,
    needs: list[tuple[str, str, int]],
    period: int,
    places: dict[str, int],
) -> bool:
    """Whether ``name`` reads vectors shared by all lanes (s, x, g) before they are recomputed."""
    return all(
        place < places[maker] + period
        for maker, reader, _ in needs
        if reader == name and maker[0] in "sxg"
    )
