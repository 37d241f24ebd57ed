"""Correspondence of vector units, one beat at a time (:mod:`synth.formal.pipeline`).

Both begin the same instruction in the same cycle and read the same operands, as the proof of the
whole engine shows. This proof shows that their results are equal, whichever stages one of them
lacks.
"""

import re
from collections.abc import Callable, Sequence
from functools import partial

from amaranth.hdl import Cat, Const, Mux, ShapeLike, Value
from amaranth.lib import data

from isa.table import MAX_VL, Instruction, Opcode, ReductionOp, Unit
from isa.timing import VECTOR_LATENCY, WORD_BYTES
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.ports import vector_command
from pe.vector.beat import LIMB_BITS, TAIL_BITS, value_pair
from pe.vector.control import VectorControl
from pe.vector.horizontal import VectorHorizontal
from pe.vector.stages import read_cycles
from pe.vector.unit import VectorUnit
from pe.vector.vertical import VectorVertical

from .cut import CutDesign, ProofError, cut
from .induction import Progress, Proof, graph_of_cut, prove_relation, silent
from .pipeline import MADE, Pipeline, pipeline_of
from .relation import Relation, Split, View
from .rows import any_of, codes_of, command_values, held, is_aligned, matching
from .table_goals import element_goals
from .vector import command_relation

_CONTROL = VectorControl.probes.within("control")
_VERTICAL = VectorVertical.probes.within("vertical")
_PAIR, _TOTAL = _VERTICAL.pair, VectorHorizontal.probes.within("horizontal").total
#: Registers that determine the beat.
_ROOTS = "|".join(
    re.escape(name)
    for name in (
        _CONTROL.current,
        _CONTROL.waiting,
        _CONTROL.running,
        _CONTROL.is_waiting,
        _CONTROL.busy,
        _CONTROL.unwritten,
        _CONTROL.row_end,
        _CONTROL.left,
        _CONTROL.first_word,
        _CONTROL.pass_index,
        _CONTROL.address_second,
    )
)
#: Inputs that arrive :func:`pe.vector.stages.read_cycles` after these.
_ARRIVING = ("read__0__data", "read__1__data")
#: Registers after the multipliers: the logic before and after them can be proved separately.
PRODUCTS = (_VERTICAL.partial, _VERTICAL.carries)
#: Bits of the product of two bytes.
_PART_BITS = 16
_COMMAND = "command__payload"


def prove_vector_unit(full: PeConfig, trimmed: PeConfig, progress: Progress = silent) -> Proof:
    """Prove that the vector units of both engines write the same results.

    ``trimmed`` has vector instructions, all of which ``full`` has.

    Raises:
        ProofError: a proof can't be set up.
    """
    one, two = (
        vector_pipeline(config, cut(VectorUnit(config), name))
        for config, name in ((full, "full"), (trimmed, "trimmed"))
    )
    return prove_relation(one, two, vector_unit_relation(full, trimmed), progress)


def vector_pipeline(config: PeConfig, unit: CutDesign) -> Pipeline:
    """The vector unit ``unit`` of ``config``, seen one beat at a time.

    Raises:
        ProofError: values of different beats meet, or a result is later than programs assume.
    """
    arrival = dict.fromkeys(_ARRIVING, read_cycles(config))
    pipeline = pipeline_of(unit, graph_of_cut(unit), _ROOTS, arrival, PRODUCTS)
    delays = {pipeline.delays[f"write__{name}"] for name in ("address", "data", "strobe")}
    # A scratchpad may write one cycle after its port.
    if len(delays) > 1 or max(delays) + 1 >= VECTOR_LATENCY:
        raise ProofError(f"{unit.name}: results are written {sorted(delays)} cycles behind a beat")
    return pipeline


def vector_unit_relation(full: PeConfig, trimmed: PeConfig) -> Relation:
    """The correspondence of the states of two engines' vector units.

    ``trimmed`` has vector instructions, all of which ``full`` has.
    """
    relation = Relation()
    configs = (full, trimmed)
    works = command_relation(relation, configs, _CONTROL)
    rows = trimmed.rows_of(Unit.VECTOR)
    relation.layouts[_COMMAND] = (vector_command(full), vector_command(trimmed))
    relation.add_codes(codes_of(_COMMAND + ".", command_values, configs, rows))
    # A smaller scratchpad has shorter addresses, which may wrap after the last beat.
    relation.truncated += [
        rf"({_CONTROL.current}|{_CONTROL.waiting})\.(result|first|second)",
        re.escape(_CONTROL.address_second),
        rf"{_COMMAND}\.(result|first|second)",
        r"read__\d__address",
        r"write__address",
    ]
    relation.gates += [
        (r"read__0__address", lambda v: v["read__0__enable"]),
        (r"read__1__address", lambda v: v["read__1__enable"]),
        (r"write__address", lambda v: v["write__strobe"].any()),
    ]
    relation.ignored.append(r"write__data")
    for byte in range(WORD_BYTES):
        relation.guarantee(f"byte {byte} of results agrees", _same_byte(byte))
    element_goals(relation, trimmed)
    _sizes(relation, trimmed)
    _products(relation, full)
    _sums(relation, configs)
    # In each case the bytes that count are known, so that both multiply the same bytes.
    relation.split = Split(_CONTROL.running, works, _CONTROL.left, _CONTROL.row_end, TAIL_BITS)
    return relation


def _same_byte(byte: int) -> Callable[[View, View], Value]:
    def same(f: View, t: View) -> Value:
        values = [v["write__data"].word_select(byte, 8) for v in (f, t)]
        return ~f["write__strobe"][byte] | (values[0] == values[1])

    return same


def _sizes(relation: Relation, trimmed: PeConfig) -> None:
    """VL and MR are within the smaller limits, since settings beyond them fault."""

    def within(v: View, prefix: str) -> Value:
        vl = v[prefix + "vl"]
        terms = (vl != 0) & (vl <= trimmed.vl_limit)
        if not Capabilities.of(trimmed).reduced:
            return terms
        mr = v[prefix + "mr"]
        return terms & (mr != 0) & (mr <= trimmed.mr_limit)

    relation.assume(
        "a command has a VL and MR that the trimmed engine takes",
        lambda f, t: ~f["command__valid"] | within(f, _COMMAND + "."),
    )

    def held_within(work: str, flag: str, f: View, t: View) -> Value:
        return ~f[flag] | within(f, f"{work}.")

    for name, work, flag in (
        ("now", _CONTROL.current, _CONTROL.running),
        ("waiting", _CONTROL.waiting, _CONTROL.is_waiting),
    ):
        relation.invariant(
            f"VL and MR of {name} are within limits", partial(held_within, work, flag)
        )


def _products(relation: Relation, full: PeConfig) -> None:
    """The products of the bytes of a row are the same."""
    caps = Capabilities.of(full).vector
    parts = data.StructLayout({f"of_{byte}": _PART_BITS for byte in range(WORD_BYTES)})

    for name in PRODUCTS:
        for port in (name, MADE + name):
            relation.layouts[port] = (parts, parts)
            for byte in range(WORD_BYTES):
                relation.when(partial(_counts, byte, caps), f"{port}.of_{byte}")


def _counts(byte: int, caps: Capabilities, v: View) -> Value:
    """Whether the product of this byte of a word counts: the row has it, or adds it as zero."""
    prefix = f"{_CONTROL.current}."
    multiplies = caps.multiplies(held(v, prefix + "kind"), held(v, prefix + "vertical"))
    sums = caps.reduction.is_one_of(held(v, prefix + "reduction"), [ReductionOp.ADD])
    used = (v[_CONTROL.left] != 0) | (v[_CONTROL.row_end][:TAIL_BITS] >= byte)
    return v[_CONTROL.running] & multiplies & (sums | used)


def _sums(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    """Results of earlier beats of the row, and of earlier passes of the word."""
    full, trimmed = configs
    caps = Capabilities.of(full).vector
    pair = re.escape(_PAIR)
    relation.truncated += [rf"{pair}\..*", re.escape(_TOTAL)]
    relation.ignored.append(rf"{pair}\.below_.*_low")

    def behind_pass(v: View, number: int) -> Value:
        """This word's product already has ``number`` passes."""
        done = v[_CONTROL.pass_index] if v.has(_CONTROL.pass_index) else Const(0, 1)
        return v[_CONTROL.running] & (done >= number)

    def upper_counts(v: View) -> Value:
        return _counts(WORD_BYTES // 2, caps, v)

    def within_row(v: View) -> Value:
        reduces = caps.is_form(held(v, f"{_CONTROL.current}.kind"), Opcode.MATRIX_VECTOR)
        return v[_CONTROL.running] & ~v[_CONTROL.first_word] & reduces

    relation.layouts[_PAIR] = (_sliced(full), _sliced(trimmed))
    relation.gates += [
        (rf"{pair}\..*", lambda v: behind_pass(v, 1)),
        (rf"{pair}\.upper_high", lambda v: behind_pass(v, 1) & upper_counts(v)),
        (rf"{pair}\.lower_low", lambda v: behind_pass(v, 2)),
        (rf"{pair}\.upper_low", lambda v: behind_pass(v, 2) & upper_counts(v)),
        (rf"{pair}\.below_.*_high", lambda v: behind_pass(v, 3)),
        (re.escape(_TOTAL), within_row),
    ]
    _row_places(relation, caps)
    reduced = [row for row in trimmed.rows_of(Unit.VECTOR) if row.reduction is not None]
    if reduced:
        bounded = partial(_bounded, full, reduced)
        relation.invariant("no sum outgrows its row", lambda f, t: ~within_row(f) | bounded(f))


def _row_places(relation: Relation, caps: Capabilities) -> None:
    """The words and the end of a row are consistent with it."""

    def width(v: View) -> Value:
        return held(v, f"{_CONTROL.current}.width")

    relation.invariant(
        "no row has more words left than it has",
        lambda f, t: (
            ~f[_CONTROL.running]
            | Mux(
                f[_CONTROL.first_word],
                f[_CONTROL.left] == f[_CONTROL.row_end][TAIL_BITS:],
                f[_CONTROL.left] < f[_CONTROL.row_end][TAIL_BITS:],
            )
        ),
    )
    relation.invariant(
        "a row ends with an element",
        lambda f, t: (
            ~f[_CONTROL.running]
            | is_aligned(
                f[_CONTROL.row_end][:TAIL_BITS] + 1,
                caps.width.unpack(width(f)),
            )
        ),
    )
    relation.invariant(
        "no row is longer than the longest",
        lambda f, t: (
            ~f[_CONTROL.running]
            | (
                f[_CONTROL.row_end] >> caps.width.unpack(held(f, f"{_CONTROL.current}.width"))
                < MAX_VL
            )
        ),
    )


def _bounded(full: PeConfig, reduced: Sequence[Instruction], f: View) -> Value:
    """The sum of the row so far is within the range of that many products."""
    done = f[_CONTROL.row_end][TAIL_BITS:] - f[_CONTROL.left]
    total = f[_TOTAL].as_signed()
    cases = []
    for row in reduced:
        (codes,) = command_values(full, row)
        is_row = Cat(matching(f, f"{_CONTROL.current}.", codes)).all()
        assert row.width is not None
        bits = row.value_bits
        one = 1 << bits - 1
        # Only a sum of products may reach the magnitude of its lowest value.
        highest: Value = Const(one - 1)
        lowest: Value = Const(-one)
        if row.reduction is ReductionOp.ADD:
            highest = (
                done.as_unsigned()[: len(f[_CONTROL.left])] * (WORD_BYTES // row.width.bytes)
            ) << (bits - 1)
            lowest = -highest
        cases.append(is_row & (total <= highest) & (total >= lowest))
    return any_of(cases)


def _sliced(config: PeConfig) -> data.StructLayout:
    """:func:`pe.vector.beat.value_pair` with a separate contribution for each pass of a product."""
    members: dict[str, ShapeLike] = {}
    for name, member in value_pair(Capabilities.of(config).vector):
        low = min(LIMB_BITS, member.width)
        members |= {f"{name}_low": low, f"{name}_high": member.width - low}
    return data.StructLayout(members)
