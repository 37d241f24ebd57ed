"""Correspondence of vector units, one beat at a time (:mod:`synth.formal.pipeline`).

Both begin the same instruction in the same cycle and read the same operands, as the proof of the
whole engine shows. Here their results are equal, whatever stages one of them lacks.
"""

import re
from collections.abc import Callable

from amaranth.hdl import Cat, Const, Mux, ShapeLike, Value
from amaranth.lib import data

from isa.table import MAX_VL, Opcode, ReductionOp, Unit
from isa.timing import VECTOR_LATENCY, WORD_BYTES
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.ports import vector_command
from pe.vector.beat import LIMB_BITS, TAIL_BITS, value_pair
from pe.vector.stages import read_cycles
from pe.vector.unit import VectorUnit

from .cut import Cut, cut
from .errors import ProofError
from .induction import Progress, Proof, graph_of_cut, prove_relation
from .pipeline import MADE, Pipeline, pipeline_of
from .relation import Invariant, Relation, Split, View
from .rows import any_of, codes_of, command_values, held, is_aligned
from .table_goals import element_goals
from .vector import command_relation

__all__ = ["PRODUCTS", "prove_vector_unit", "vector_pipeline", "vector_unit_relation"]

#: Registers that decide the beat.
_ROOTS = (
    r"control\.(current|waiting|running|is_waiting|busy|unwritten|row_end|left|first_word|pass_index"
    r"|address_second)"
)
#: Inputs that come :func:`pe.vector.stages.read_cycles` after those.
_ARRIVING = ("read__0__data", "read__1__data")
#: Registers after the multipliers: neither the logic before nor that after them needs the other.
PRODUCTS = ("vertical.partial", "vertical.carries")
#: Bits of the product of two bytes.
_PART_BITS = 16
_COMMAND = "command__payload"


def prove_vector_unit(full: PeConfig, trimmed: PeConfig, progress: Progress | None = None) -> Proof:
    """Prove that the vector units of both engines write the same results.

    ``trimmed`` has vector instructions, all of which ``full`` has.

    Raises:
        ProofError: a proof that can't be set up.
    """
    one, two = (
        vector_pipeline(config, cut(VectorUnit(config), name))
        for config, name in ((full, "full"), (trimmed, "trimmed"))
    )
    return prove_relation(one, two, vector_unit_relation(full, trimmed), progress)


def vector_pipeline(config: PeConfig, unit: Cut) -> Pipeline:
    """The vector unit ``unit`` of ``config`` seen one beat at a time.

    Raises:
        ProofError: values of different beats meet, or a result comes later than programs rely on.
    """
    arrival = dict.fromkeys(_ARRIVING, read_cycles(config))
    pipeline = pipeline_of(unit, graph_of_cut(unit), _ROOTS, arrival, PRODUCTS)
    delays = {pipeline.delays[f"write__{name}"] for name in ("address", "data", "strobe")}
    # A scratchpad may write in the cycle after that of its port.
    if len(delays) > 1 or max(delays) + 1 >= VECTOR_LATENCY:
        raise ProofError(f"{unit.name}: results are written {sorted(delays)} cycles behind a beat")
    return pipeline


def vector_unit_relation(full: PeConfig, trimmed: PeConfig) -> Relation:
    """When the states of the vector units of two engines correspond.

    ``trimmed`` has vector instructions, all of which ``full`` has.
    """
    relation = Relation()
    configs = (full, trimmed)
    works = command_relation(relation, configs, "control.")
    rows = trimmed.rows_of(Unit.VECTOR)
    relation.layouts[_COMMAND] = (vector_command(full), vector_command(trimmed))
    relation.add_codes(codes_of(_COMMAND + ".", command_values, configs, rows))
    # A smaller scratchpad has shorter addresses, which may wrap after the last beat.
    relation.truncated += [
        r"control\.(current|waiting)\.(result|first|second)",
        r"control\.address_second",
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
        relation.guarantees.append(Invariant(f"byte {byte} of results agrees", _same_byte(byte)))
    relation.guarantees += element_goals(trimmed)
    _sizes(relation, trimmed)
    _products(relation, full)
    _sums(relation, configs)
    # In each case the bytes that count are known, so that products of both are of the same bytes.
    relation.split = Split("control.running", works, "control.left", "control.row_end", TAIL_BITS)
    return relation


def _same_byte(byte: int) -> Callable[[View, View], Value]:
    def same(f: View, t: View) -> Value:
        values = [v["write__data"].word_select(byte, 8) for v in (f, t)]
        return ~f["write__strobe"][byte] | (values[0] == values[1])

    return same


def _sizes(relation: Relation, trimmed: PeConfig) -> None:
    """VL and MR are within the smaller limits, as settings beyond them fault."""

    def within(v: View, prefix: str) -> Value:
        vl = v[prefix + "vl"]
        terms = (vl != 0) & (vl <= trimmed.vl_limit)
        if not Capabilities.of(trimmed).reduced:
            return terms
        mr = v[prefix + "mr"]
        return terms & (mr != 0) & (mr <= trimmed.mr_limit)

    relation.assumptions.append(
        Invariant(
            "a command has a VL and MR that the trimmed engine takes",
            lambda f, t: ~f["command__valid"] | within(f, _COMMAND + "."),
        )
    )
    for name, flag in (("current", "running"), ("waiting", "is_waiting")):
        relation.invariants.append(
            Invariant(
                f"VL and MR of {name} are within limits",
                lambda f, t, name=name, flag=flag: (  # type: ignore[misc]
                    ~f["control." + flag] | within(f, f"control.{name}.")
                ),
            )
        )


def _products(relation: Relation, full: PeConfig) -> None:
    """The products of the bytes of a row are the same."""
    caps = Capabilities.of(full).vector
    parts = data.StructLayout({f"of_{byte}": _PART_BITS for byte in range(WORD_BYTES)})

    for name in PRODUCTS:
        for port in (name, MADE + name):
            relation.layouts[port] = (parts, parts)
            relation.gates += [
                (rf"{re.escape(port)}\.of_{byte}", lambda v, byte=byte: _counts(v, caps, byte))  # type: ignore[misc]
                for byte in range(WORD_BYTES)
            ]


def _counts(v: View, caps: Capabilities, byte: int) -> Value:
    """Whether the product of this byte of a word counts: the row has it, or adds it as zero."""
    now = "control.current."
    multiplies = caps.multiplies(held(v, now + "kind"), held(v, now + "vertical"))
    sums = caps.reduction.is_one_of(held(v, now + "reduction"), [ReductionOp.ADD])
    used = (v["control.left"] != 0) | (v["control.row_end"][:TAIL_BITS] >= byte)
    return v["control.running"] & multiplies & (sums | used)


def _sums(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    """Results of earlier beats: of the row, and of the word's earlier passes."""
    full, trimmed = configs
    caps = Capabilities.of(full).vector
    relation.truncated += [r"vertical\.pair\..*", r"horizontal\.total"]
    relation.ignored.append(r"vertical\.pair\.below_.*_low")

    def behind_pass(v: View, number: int) -> Value:
        """This word's product already has as many passes."""
        done = v["control.pass_index"] if v.has("control.pass_index") else Const(0, 1)
        return v["control.running"] & (done >= number)

    def upper_counts(v: View) -> Value:
        return _counts(v, caps, WORD_BYTES // 2)

    def within_row(v: View) -> Value:
        reduces = caps.is_form(held(v, "control.current.kind"), Opcode.MATRIX_VECTOR)
        return v["control.running"] & ~v["control.first_word"] & reduces

    relation.layouts["vertical.pair"] = (_sliced(full), _sliced(trimmed))
    relation.gates += [
        (r"vertical\.pair\..*", lambda v: behind_pass(v, 1)),
        (r"vertical\.pair\.upper_high", lambda v: behind_pass(v, 1) & upper_counts(v)),
        (r"vertical\.pair\.lower_low", lambda v: behind_pass(v, 2)),
        (r"vertical\.pair\.upper_low", lambda v: behind_pass(v, 2) & upper_counts(v)),
        (r"vertical\.pair\.below_.*_high", lambda v: behind_pass(v, 3)),
        (r"horizontal\.total", within_row),
    ]
    relation.invariants += [
        Invariant(
            "no row has more words left than it has",
            lambda f, t: (
                ~f["control.running"]
                | Mux(
                    f["control.first_word"],
                    f["control.left"] == f["control.row_end"][TAIL_BITS:],
                    f["control.left"] < f["control.row_end"][TAIL_BITS:],
                )
            ),
        ),
        Invariant(
            "a row ends with an element",
            lambda f, t: (
                ~f["control.running"]
                | is_aligned(
                    f["control.row_end"][:TAIL_BITS] + 1,
                    caps.width.unpack(held(f, "control.current.width")),
                )
            ),
        ),
        Invariant(
            "no row is longer than the longest",
            lambda f, t: (
                ~f["control.running"]
                | (
                    f["control.row_end"] >> caps.width.unpack(held(f, "control.current.width"))
                    < MAX_VL
                )
            ),
        ),
    ]
    reduced = [row for row in trimmed.rows_of(Unit.VECTOR) if row.reduction is not None]
    if not reduced:
        return

    def bounded(f: View, t: View) -> Value:
        done = f["control.row_end"][TAIL_BITS:] - f["control.left"]
        total = f["horizontal.total"].as_signed()
        cases = []
        for row in reduced:
            codes = command_values(full, row)[0]
            here = Cat(
                f[f"control.current.{name}"] == code
                for name, code in codes.items()
                if f.has(f"control.current.{name}")
            ).all()
            assert row.width is not None
            bits = row.value_bits
            one = 1 << bits - 1
            # Only a sum of products may be as large as its lowest value is low.
            most: Value = Const(one - 1)
            least: Value = Const(-one)
            if row.reduction is ReductionOp.ADD:
                most = (
                    done.as_unsigned()[: len(f["control.left"])] * (WORD_BYTES // row.width.bytes)
                ) << (bits - 1)
                least = -most
            cases.append(here & (total <= most) & (total >= least))
        return ~within_row(f) | any_of(cases)

    relation.invariants.append(Invariant("no sum outgrows its row", bounded))


def _sliced(config: PeConfig) -> data.StructLayout:
    """:func:`pe.vector.beat.value_pair` with the contribution of each pass of a product apart."""
    members: dict[str, ShapeLike] = {}
    for name, member in value_pair(Capabilities.of(config).vector):
        low = min(LIMB_BITS, member.width)
        members |= {f"{name}_low": low, f"{name}_high": member.width - low}
    return data.StructLayout(members)
