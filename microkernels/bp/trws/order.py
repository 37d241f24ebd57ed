"""Order of the vector instructions of a pixel's two messages, and their places in the scratchpad.

A pixel is visited with the sums of its loaded vectors already made; its two messages, *along* the
row and *across* to the next row, are independent of each other. Instructions of a pixel, in which
``'`` marks those of the next one, and ``c`` is ``a`` (along) or ``x`` (across)::

    h = sum + m_a        all of what arrives
    n = h * gamma        h / 2 or h
    u_c = n - opposite   less the message of the neighbour that it goes to
    ...                  the new message: by a matrix of all pairs of labels, or by shifts
    m_c = r_c - r_c[0]
    q' p' s'             sums of the next pixel: cost + other + opposite_a + opposite_x

By a matrix the new message is one instruction, ``r_c = min(S + u_c)``. By shifts
(:mod:`microkernels.bp.shifts.transform`) it is ``g_c = min(u_c + P)``, ``u_c = min(u_c, g_c)``, and
for each shift ``t = u_c + cost``, ``w = min of t shifted both ways``, ``u_c = min(u_c, w)``. The
first ``t`` starts from ``u_c`` without the plateau, which is the same in the end. With edge weights
(shifts alone), ``k_c = costs * w_c`` and ``j_c = P * w_c`` come before; ``t`` and ``g`` read them.

The way from ``h`` to the ``h`` of the next pixel is the longest. :func:`body_order` is a list
scheduler: at each place it takes the instruction with the longest way to the end of those whose
operands are complete, or a *pad*, whose result is not used.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from isa.table import BY_KEY
from isa.timing import VECTOR_HELD, VECTOR_LATENCY, WORD_BYTES
from microkernels.common.errors import KernelError
from microkernels.common.feature_map import round_up

from ..problem import element_type
from ..record import vector_stride
from ..shifts.rhythm import beats_of
from ..shifts.transform import Transform

__all__ = ["PAD", "WEIGHTS", "WINDOW_VECTORS", "BodyOrder", "TrwsPlan", "body_order", "trws_plan"]

#: Name of an instruction whose result is not used.
PAD = "pad"
#: Vectors that a visit loads: the costs and all messages but the one that the visit before made.
WINDOW_VECTORS = 4
#: Edge weights after the labels of the data costs: to the right, down, left, up.
WEIGHTS = 4
_LANES = "ax"
_ALIGN = 16
_FEWEST_SLOTS, _MOST_SLOTS = 3, 8


@dataclass(frozen=True)
class BodyOrder:
    """The loop over the pixels of a row.

    Attributes:
        names: of the instructions in their order: ``h``, ``n``, ``q``, ``p``, ``s``, ``u_c``,
            ``r_c``, ``g_c``, ``b_c``, ``m_c``, ``k_c``, ``j_c``, or with the number of a shift
            ``t_c0``, ``w_c0``, ``v_c0``; :data:`PAD`.
        cycles: of the vector unit for a pixel.
        stored: the messages of the pixel before may be stored after the instruction of this number.
        freed: the pixel's slot may be loaded over after the instruction of this number.
    """

    names: tuple[str, ...]
    cycles: int
    stored: int
    freed: int


def body_order(
    transform: Transform | None, labels: int, bits: int, *, weighted: bool = False
) -> BodyOrder:
    """The order for vectors of ``labels`` elements of ``bits`` bits; no ``transform``: by a
    matrix. ``weighted``: edges have weights, by shifts alone."""
    beat = beats_of(labels, bits)
    beats = dict.fromkeys(_names(transform, weighted), beat)
    for name in beats:
        if name[0] in "nkj":
            beats[name] *= BY_KEY[f"v.s.mul[{bits}]"].passes
    if transform is None:
        beats |= {f"r_{lane}": labels * beat for lane in _LANES}
    needs = list(_needs(transform, beats, beat, bits))
    far = _ways(beats, needs, beat)
    begun: dict[str, int] = {}
    names: list[str] = []
    starts: list[int] = []
    now = 0

    def place(name: str, cycles: int) -> None:
        nonlocal now
        names.append(name)
        starts.append(now)
        now += cycles

    while len(begun) < len(beats):
        ready = [
            name
            for name in beats
            if name not in begun
            and all(
                maker in begun and begun[maker] + apart <= now
                for maker, reader, apart in needs
                if reader == name
            )
        ]
        if not ready:
            place(PAD, beat)
            continue
        best = max(ready, key=lambda name: far[name])
        begun[best] = now
        place(best, beats[best])
    ends = [begun["m_a"] + VECTOR_LATENCY, begun["s"] + VECTOR_LATENCY]
    while now < max(ends) or len(names) <= VECTOR_HELD:
        place(PAD, beat)
    # A store after instruction k: the one VECTOR_HELD places before it has read its operands.
    complete = max(begun["m_a"], begun["m_x"]) + beat + VECTOR_LATENCY
    stored = next(
        (k for k in range(1, len(names)) if now + starts[k - VECTOR_HELD + 1] >= complete),
        None,
    )
    freed = max(i for i, name in enumerate(names) if name[0] in "ukj") + VECTOR_HELD
    if stored is None or freed >= len(names):
        raise KernelError(f"no order of instructions for {labels} labels of {bits} bits")
    return BodyOrder(tuple(names), now, stored, freed)


def _names(transform: Transform | None, weighted: bool) -> Iterator[str]:
    yield from ("h", "n", "q", "p", "s")
    for lane in _LANES:
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
        yield f"m_{lane}"


def _needs(
    transform: Transform | None, beats: dict[str, int], beat: int, bits: int
) -> Iterator[tuple[str, str, int]]:
    """Instruction that makes a value or reads one that is made anew, instruction that reads or
    makes it, and cycles from the begin of the one to that of the other."""

    def made(maker: str, reader: str, late: int = 0) -> tuple[str, str, int]:
        # The last result of a longer instruction is read by the last beat.
        return maker, reader, VECTOR_LATENCY + max(0, beats[maker] - beat) + late

    yield made("h", "n")
    yield made("q", "p")
    yield made("p", "s")
    # The loop begins with h.
    yield from (("h", name, beats["h"]) for name in beats if name != "h")
    for lane in _LANES:
        last = f"u_{lane}"
        yield made("n", last)
        if transform is None:
            yield made(last, f"r_{lane}")
            last = f"r_{lane}"
        else:
            if transform.plateau is not None:
                yield made(last, f"g_{lane}")
                if f"j_{lane}" in beats:
                    yield made(f"j_{lane}", f"g_{lane}")
                # A reduction has its result after its last beat.
                yield made(f"g_{lane}", f"b_{lane}", beat - 1)
            for number, shift in enumerate(transform.shifts):
                total, window, least = (f"{kind}_{lane}{number}" for kind in "twv")
                yield made(last, total)
                if f"k_{lane}" in beats:
                    yield made(f"k_{lane}", total, number * bits // 8 // WORD_BYTES)
                late = -(-shift.labels * bits // 8 // WORD_BYTES)
                yield made(total, window, late)
                yield made(window, least)
                if number == 0 and transform.plateau is not None:
                    yield total, f"b_{lane}", beat
                    last = f"b_{lane}"
                yield made(last, least)
                last = least
            if transform.plateau is not None and not transform.shifts:
                last = f"b_{lane}"
        yield made(last, f"m_{lane}")


def _ways(beats: dict[str, int], needs: list[tuple[str, str, int]], beat: int) -> dict[str, int]:
    """Cycles from the begin of each instruction to the next pixel's ``h``, at least."""
    far = dict.fromkeys(beats, beat) | {"m_a": VECTOR_LATENCY, "s": VECTOR_LATENCY}
    for _ in beats:
        for maker, reader, apart in needs:
            far[maker] = max(far[maker], apart + far[reader])
    return far


@dataclass(frozen=True)
class TrwsPlan:
    """Byte addresses in the scratchpad; pairs are of the messages along and across.

    Attributes:
        constants, constant_bytes: data loaded at the start: two multipliers, ``P`` for each label,
            costs of the shifts, and room for ``t`` with elements on both sides that stay.
        halve, keep: of the multipliers.
        plateau, costs: of the parts. sums: of ``t``.
        matrix: of the smoothness costs, without shifts.
        weighted, weighted_plateau: of ``k`` and ``j``.
        windows: of ``w``. least: of ``g``. totals: of ``u``. raw: of ``r``. messages: of ``m``.
        pad, idle: result and operand of pads.
        ring, slot, slots: ring of loaded vectors: address, bytes of a slot, and how many.
        vector: bytes from a vector of a slot to the next.
        used: bytes of all.
    """

    constants: int
    constant_bytes: int
    halve: int
    keep: int
    plateau: int
    costs: int
    sums: tuple[int, int]
    matrix: int
    weighted: tuple[int, int]
    weighted_plateau: tuple[int, int]
    windows: tuple[int, int]
    least: tuple[int, int]
    totals: tuple[int, int]
    raw: tuple[int, int]
    messages: tuple[int, int]
    pad: int
    idle: int
    ring: int
    slot: int
    slots: int
    vector: int
    used: int


def trws_plan(
    transform: Transform | None,
    labels: int,
    bits: int,
    scratchpad_bytes: int,
    *,
    weighted: bool = False,
) -> TrwsPlan:
    """The plan with as many slots as fit, up to 8.

    Raises:
        KernelError: not even the fewest slots fit, or edge weights without shifts.
    """
    if weighted and transform is None:
        raise KernelError(
            "TRW-S with edge weights has a kernel by shifts alone: for smoothness costs of the "
            "difference of labels that begin at 0, are convex and may end in one value"
        )
    size = element_type(bits).itemsize
    vector = round_up(labels * size, _ALIGN)
    at = 0

    def take(used: int) -> int:
        nonlocal at
        start, at = at, round_up(at + used, _ALIGN)
        return start

    def pair(used: int) -> tuple[int, int]:
        return take(used), take(used)

    shifts = () if transform is None else transform.shifts
    plateau_bytes = 0 if transform is None or transform.plateau is None else vector
    # A product of all costs and a weight is one instruction on a whole vector.
    every = vector if weighted and shifts else 0
    # The multipliers are 1 and 2 halves.
    halve = take(2 * size)
    plateau, costs = take(plateau_bytes), take(every or size * len(shifts))
    beside = size * max((shift.labels for shift in shifts), default=0)
    take(beside)
    along = take(vector if shifts else 0)
    take(beside)
    across = take(vector if shifts else 0)
    take(beside)
    constant_bytes = at
    matrix = take(labels * labels * size if transform is None else 0)
    products = pair(every), pair(plateau_bytes if weighted else 0)
    windows = pair(vector if shifts else 0)
    least = pair(size if plateau_bytes else 0)
    totals = pair(vector)
    raw = pair(vector) if transform is None else totals
    messages = pair(vector)
    padded = vector if PAD in body_order(transform, labels, bits, weighted=weighted).names else 0
    pad, idle = take(padded), take(padded)
    stride = vector_stride(labels + (WEIGHTS if weighted else 0), bits)
    slot = round_up(WINDOW_VECTORS * stride, _ALIGN)
    slots = min(_MOST_SLOTS, (scratchpad_bytes - at) // slot)
    if slots < _FEWEST_SLOTS:
        form = "by a matrix" if transform is None else "by shifts"
        raise KernelError(
            f"TRW-S with {labels} labels of {bits} bits does not fit a scratchpad of "
            f"{scratchpad_bytes} bytes {form}: it takes {at + _FEWEST_SLOTS * slot}"
        )
    return TrwsPlan(
        constants=0,
        constant_bytes=constant_bytes,
        halve=halve,
        keep=halve + size,
        plateau=plateau,
        costs=costs,
        sums=(along, across),
        matrix=matrix,
        weighted=products[0],
        weighted_plateau=products[1],
        windows=windows,
        least=least,
        totals=totals,
        raw=raw,
        messages=messages,
        pad=pad,
        idle=idle,
        ring=at,
        slot=slot,
        slots=slots,
        vector=stride,
        used=at + slot * slots,
    )
