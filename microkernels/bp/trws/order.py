"""Order of the vector instructions of a pixel's two messages, and their places in the scratchpad.

When a pixel is visited, the sums of its loaded vectors are already computed; its two messages,
*along* the row and *across* to the next row, are independent. The instructions of a pixel, where
``'`` marks those of the next one, and ``c`` is ``a`` (along) or ``x`` (across)::

    h = sum + m_a        all of what arrives
    n = h * gamma        h / 2 or h
    u_c = n - opposite   less the message of the neighbour that it goes to
    ...                  the new message: by a matrix of all pairs of labels, or by shifts
    m_c = r_c - e_c      e_c is the least of r_c
    q' p' s'             sums of the next pixel: cost + other + opposite_a + opposite_x

By a matrix the new message is one instruction, ``r_c = min(S + u_c)``. By shifts
(:mod:`microkernels.bp.shifts.transform`) it is ``g_c = min(u_c + P)``, ``u_c = min(u_c, g_c)``, and
for each shift ``t = u_c + cost``, ``w = min of t shifted both ways``, ``u_c = min(u_c, w)``. The
first ``t`` starts from ``u_c`` without the plateau, which gives the same result. The least of
``r_c`` is that of the first ``u_c``, as costs are 0 or more and 0 between equal labels. With edge
weights (only by shifts), ``k_c = costs * w_c`` and ``j_c = P * w_c`` come before; ``t`` and ``g``
read them.

The path from ``h`` to the next pixel's ``h`` is the longest. :func:`body_order` is a list
scheduler: at each place it takes, among the instructions whose operands are complete, the one with
the longest path to the end, or a *pad*, whose result is not used.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from isa.table import BY_KEY
from isa.timing import VECTOR_HELD, VECTOR_LATENCY, WORD_BYTES
from microkernels.common.builder import DEFAULT_SCRATCHPAD
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import round_up
from microkernels.common.scratchpad_plan import ScratchpadPlan

from ..problem import element_type
from ..record import vector_stride
from ..shifts.rhythm import Rhythm, beats_of
from ..shifts.transform import Transform

#: Name of an instruction whose result is not used.
PAD = "pad"
#: Vectors that a visit loads: the costs and all messages except the one from the previous visit.
WINDOW_VECTORS = 4
#: Edge weights after the data costs' labels: right, down, left, up.
WEIGHTS = 4
#: The two messages of a pixel: along the row and across to the next row.
LANES = "ax"
_ALIGN = 16
_FEWEST_SLOTS, _MOST_SLOTS = 3, 8


def body_order(
    transform: Transform | None, labels: int, bits: int, *, weighted: bool = False
) -> Rhythm:
    """The loop over a row's pixels for vectors of ``labels`` elements of ``bits`` bits, as one lane
    whose places are instructions, with pads where there is none.

    They are ``h``, ``n``, ``q``, ``p``, ``s``, ``u_c``, ``r_c``, ``g_c``, ``b_c``, ``e_c``,
    ``m_c``, ``k_c``, ``j_c``, or with a shift's number ``t_c0``, ``w_c0``, ``v_c0``. The messages
    stored are those of the previous pixel.

    Parameters:
        transform: None: by a matrix.
        weighted: edges have weights, only by shifts.
    """
    beat = beats_of(labels, bits)
    beats = _beats(transform, labels, bits, weighted)
    needs = list(_needs(transform, beats, beat, bits))
    far = _ways(beats, needs, beat)
    begun: dict[str, int] = {}
    names: list[str] = []
    starts: list[int] = []
    clock = 0

    def place(name: str, cycles: int) -> None:
        nonlocal clock
        names.append(name)
        starts.append(clock)
        clock += cycles

    while len(begun) < len(beats):
        ready = [
            name
            for name in beats
            if name not in begun
            and all(
                maker in begun and begun[maker] + apart <= clock
                for maker, reader, apart in needs
                if reader == name
            )
        ]
        if not ready:
            place(PAD, beat)
            continue
        best = max(ready, key=lambda name: far[name])
        begun[best] = clock
        place(best, beats[best])
    ends = [begun["m_a"] + VECTOR_LATENCY, begun["s"] + VECTOR_LATENCY]
    while clock < max(ends) or len(names) <= VECTOR_HELD:
        place(PAD, beat)
    # A store after instruction k: the one VECTOR_HELD places before it has read its operands.
    complete = max(begun["m_a"], begun["m_x"]) + beat + VECTOR_LATENCY
    stored = next(
        (k for k in range(1, len(names)) if clock + starts[k - VECTOR_HELD + 1] >= complete),
        None,
    )
    freed = max(i for i, name in enumerate(names) if name[0] in "ukj") + VECTOR_HELD
    if stored is None or freed >= len(names):
        raise KernelError(f"no instruction order found for {labels} labels of {bits} bits")
    places = {name: i for i, name in enumerate(names) if name != PAD}
    return Rhythm(1, len(names), places, stored, freed)


def _beats(transform: Transform | None, labels: int, bits: int, weighted: bool) -> dict[str, int]:
    """Cycles of each instruction in the vector unit."""
    beat = beats_of(labels, bits)
    beats = dict.fromkeys(_names(transform, weighted), beat)
    for name in beats:
        if name[0] in "nkj":
            beats[name] *= BY_KEY[f"v.s.mul[{bits}]"].passes
    if transform is None:
        beats |= {f"r_{lane}": labels * beat for lane in LANES}
    return beats


def _names(transform: Transform | None, weighted: bool) -> Iterator[str]:
    yield from ("h", "n", "q", "p", "s")
    for lane in LANES:
        yield f"u_{lane}"
        if transform is None:
            yield f"r_{lane}"
        else:
            if weighted and transform.shifts:
                yield f"k_{lane}"
            if weighted and transform.plateau is not None:
                yield f"j_{lane}"
            for number in range(len(transform.shifts)):
                yield from (f"t_{lane}{number}", f"w_{lane}{number}", f"v_{lane}{number}")
            if transform.plateau is not None:
                yield from (f"g_{lane}", f"b_{lane}")
        yield from (f"e_{lane}", f"m_{lane}")


def _needs(
    transform: Transform | None, beats: dict[str, int], beat: int, bits: int
) -> Iterator[tuple[str, str, int]]:
    """The instruction that produces a value or reads one that is recomputed, the instruction that
    reads or produces it, and the cycles from one's start to the other's."""

    def result_of(maker: str, reader: str, late: int = 0) -> tuple[str, str, int]:
        # The last result of a longer instruction is read by the last beat.
        return maker, reader, VECTOR_LATENCY + max(0, beats[maker] - beat) + late

    yield result_of("h", "n")
    yield result_of("q", "p")
    yield result_of("p", "s")
    # The loop begins with h.
    yield from (("h", name, beats["h"]) for name in beats if name != "h")
    for lane in LANES:
        last = f"u_{lane}"
        yield result_of("n", last)
        if transform is None:
            yield result_of(last, f"r_{lane}")
            last = f"r_{lane}"
            yield result_of(last, f"e_{lane}")
        else:
            # The message along is urgent: its least is found first; that across where others wait.
            before, after = f"b_{lane}", f"v_{lane}0"
            if lane == "x" and before in beats and after in beats:
                yield result_of(before, f"e_{lane}")
                before = after
            yield result_of(last, f"e_{lane}")
            yield from ((f"e_{lane}", name, beat) for name in (before, after) if name in beats)
            if transform.plateau is not None:
                yield result_of(last, f"g_{lane}")
                if f"j_{lane}" in beats:
                    yield result_of(f"j_{lane}", f"g_{lane}")
                # A reduction has its result after its last beat.
                yield result_of(f"g_{lane}", f"b_{lane}", beat - 1)
            for number, (far, _) in enumerate(transform.shifts):
                total, window, least = (f"{kind}_{lane}{number}" for kind in "twv")
                yield result_of(last, total)
                if f"k_{lane}" in beats:
                    yield result_of(f"k_{lane}", total, number * bits // 8 // WORD_BYTES)
                late = -(-far * bits // 8 // WORD_BYTES)
                yield result_of(total, window, late)
                yield result_of(window, least)
                if number == 0 and transform.plateau is not None:
                    yield total, f"b_{lane}", beat
                    last = f"b_{lane}"
                yield result_of(last, least)
                last = least
            if transform.plateau is not None and not transform.shifts:
                last = f"b_{lane}"
        yield result_of(last, f"m_{lane}")
        yield result_of(f"e_{lane}", f"m_{lane}", beat - 1)


def _ways(beats: dict[str, int], needs: list[tuple[str, str, int]], beat: int) -> dict[str, int]:
    """Minimum cycles from the start of each instruction to the next pixel's ``h``."""
    far = dict.fromkeys(beats, beat) | {"m_a": VECTOR_LATENCY, "s": VECTOR_LATENCY}
    for _ in beats:
        for maker, reader, apart in needs:
            far[maker] = max(far[maker], apart + far[reader])
    return far


@dataclass(frozen=True, kw_only=True)
class TrwsPlan:
    """Everything that a program depends on except its blocks.

    Attributes:
        transform: of the smoothness costs; None: by a matrix.
        labels, bits: of the problem.
        weighted: edges have weights; only by shifts.
        scratchpad_bytes: per engine.
    """

    transform: Transform | None
    labels: int
    bits: int
    weighted: bool = False
    scratchpad_bytes: int = DEFAULT_SCRATCHPAD

    @cached_property
    def order(self) -> Rhythm:
        """The loop over a row's pixels."""
        return body_order(self.transform, self.labels, self.bits, weighted=self.weighted)

    @property
    def names(self) -> tuple[str, ...]:
        """The loop's instructions in order, with :data:`PAD` between them."""
        names = {place: name for name, place in self.order.places.items()}
        return tuple(names.get(place, PAD) for place in range(self.order.period))

    @property
    def cycles(self) -> int:
        """Cycles of the vector unit per pixel."""
        beats = _beats(self.transform, self.labels, self.bits, self.weighted)
        return sum(beats.get(name, beats_of(self.labels, self.bits)) for name in self.names)

    @cached_property
    def pad(self) -> ScratchpadPlan:
        """Places, those ending in ``_a`` and ``_x`` for the messages along and across, and the ring
        of loaded vectors.

        What is loaded at the start extends from address 0 to ``constants_end``: the multipliers
        ``halve`` and ``keep``, the ``plateau`` for each label, ``costs`` of the shifts, and room
        for ``t`` between elements that never change. The others are named as in the order.

        Raises:
            KernelError: not even the minimum number of slots fits, or edge weights without shifts.
        """
        self._check_form()
        size = element_type(self.bits).itemsize
        vector = round_up(self.labels * size, _ALIGN)
        shifts = () if self.transform is None else self.transform.shifts
        limited = self.transform is not None and self.transform.plateau is not None
        # The product of all costs and a weight is one instruction on a whole vector.
        product = vector if self.weighted and shifts else 0
        pad = ScratchpadPlan()
        # The multipliers are 1 and 2 halves.
        pad.take("halve", 2 * size)
        pad.take("plateau", vector if limited else 0)
        pad.take("costs", product or size * len(shifts))
        margin = size * max((far for far, _ in shifts), default=0)
        pad.take("before", margin)
        for lane in LANES:
            pad.take(f"t_{lane}", vector if shifts else 0)
            pad.take(f"after_{lane}", margin)
        pad.take("constants_end", 0)
        by_matrix = self.transform is None
        pad.take("S", self.labels * self.labels * size if by_matrix else 0)
        for name, used in (
            ("k", product),
            ("j", vector if limited and self.weighted else 0),
            ("w", vector if shifts else 0),
            ("g", size if limited else 0),
            ("e", size),
            ("u", vector),
            ("r", vector if by_matrix else 0),
            ("m", vector),
        ):
            for lane in LANES:
                pad.take(f"{name}_{lane}", used)
        padded = vector if PAD in self.names else 0
        pad.take(PAD, padded)
        pad.take("idle", padded)
        stride = vector_stride(self.labels + (WEIGHTS if self.weighted else 0), self.bits)
        places, room = pad.used, self.scratchpad_bytes
        if pad.take_ring(WINDOW_VECTORS, stride, room=room, most=_MOST_SLOTS) < _FEWEST_SLOTS:
            form = "by a matrix" if by_matrix else "by shifts"
            raise KernelError(
                f"TRW-S with {self.labels} labels of {self.bits} bits does not fit a scratchpad of "
                f"{self.scratchpad_bytes} bytes {form}: it takes "
                f"{places + _FEWEST_SLOTS * pad.slot}"
            )
        return pad

    def _check_form(self) -> None:
        if self.weighted and self.transform is None:
            raise KernelError(
                "TRW-S with edge weights works only by shifts, which need smoothness costs that "
                "depend on the labels' difference, start at 0 and are convex up to an "
                "optional plateau"
            )
