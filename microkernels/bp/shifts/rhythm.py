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

The first ``s`` starts from ``t`` instead of ``u``, which gives the same result
(:mod:`microkernels.bp.shifts.transform`) and is known earlier. ``g`` is one instruction,
``m.v.add.min`` with one row, as minimum and saturated sum commute.

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

from isa.timing import VECTOR_HELD, VECTOR_LATENCY, WORD_BYTES
from microkernels.common.errors import KernelError

from ..problem import USUAL, UpdateVariant, element_type
from .transform import Transform

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
    transform: Transform, beats: int, bits: int, variant: UpdateVariant = USUAL
) -> Iterator[tuple[str, str, int]]:
    """The instruction that produces a value, the instruction that reads it, and the places between
    them; with weights also instructions that read a vector, and those that overwrite it."""
    size = bits // 8

    def places(late_beats: int) -> int:
        """Places between an instruction and one that reads a beat's results this many beats
        later."""
        return -(-(VECTOR_LATENCY + late_beats) // beats)

    yield "q", "p", places(0)
    yield "p", "t", places(0)
    last = "t"
    if transform.plateau is not None:
        yield "t", "g", places(0)
        if variant.weighted:
            yield "p", "w", 1
            yield "w", "g", places(0)
        # A reduction has its result after its last beat.
        yield "g", "u", places(beats - 1)
        yield "t", "u", places(0)
        last = "u"
    for number, (far, _) in enumerate(transform.shifts):
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


def rhythm(
    transform: Transform, labels: int, bits: int, lanes: int, variant: UpdateVariant = USUAL
) -> Rhythm:
    """The modulo schedule with the shortest period that this search finds.

    Raises:
        KernelError: no schedule was found.
    """
    beats = beats_of(labels, bits)
    needs = list(dependences(transform, beats, bits, variant))
    names = list(dict.fromkeys(name for one in needs for name in one[:2]))
    again = -(-VECTOR_LATENCY // beats)
    # Forward from t in the order of dependences, then p, q and products of weights backward.
    order = ["t", *(name for name in names if name not in ("t", *_BEFORE))]
    order += [name for name in _BEFORE if name in names]
    for period in range(len(names), len(names) + _MOST_PADS):
        places = _placed(order, needs, period, {})
        if places is None or places["m"] + again > lanes * period:
            continue
        done = -(-VECTOR_LATENCY // beats)
        stored = places["m"] + done + VECTOR_HELD
        freed = places["m"] + VECTOR_HELD
        if max(stored, freed) // period <= lanes:
            return Rhythm(lanes, period, places, stored, freed)
    raise KernelError(f"no schedule for {lanes} lines of {labels} labels of {bits} bits")


def _placed(
    order: list[str], needs: list[tuple[str, str, int]], period: int, places: dict[str, int]
) -> dict[str, int] | None:
    """``places`` with those of the instructions of ``order`` that are not in it."""
    if len(places) == len(order):
        return places
    name = order[len(places)]
    occupied = {place % period for place in places.values()}
    if name in _BEFORE:
        latest = min(places[reader] - far for maker, reader, far in needs if maker == name)
        tries = range(latest, latest - period, -1)
    else:
        earliest = max(
            (
                places[maker] + far
                for maker, reader, far in needs
                if reader == name and maker in places
            ),
            default=0,
        )
        tries = range(earliest, earliest + (1 if name == "t" else period))
    for place in tries:
        if place % period in occupied or not _lives(name, place, needs, period, places):
            continue
        complete = _placed(order, needs, period, places | {name: place})
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
