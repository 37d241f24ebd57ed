"""Correspondence of fetch, operands, issue, dispatch and registers."""

from amaranth.hdl import Cat, Value

from isa.table import FIELD_A, FIELD_B, FIELD_C, Instruction, Opcode, Unit
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.frontend.arc import RANGES
from pe.frontend.register_file import READ_PORTS
from pe.interface import PeCounter
from pe.lsu.ports import BYTE_BITS, COLUMN_BITS

from .relation import Invariant, Relation, View
from .rows import (
    any_of,
    codes_of,
    decoded_values,
    dispatched_values,
    held,
    is_aligned,
    is_word,
    reads,
)

__all__ = ["PROBES", "front_relation"]

#: Wires that the assumptions name.
PROBES = (
    "decode.out.legal",
    "issue.check.bad_setting",
    "issue.check.faults",
    "issue.halt",
    "issue.redirects",
    "issue.next__ready",
    "issue.next__valid",
    "issue.offer__valid",
    "load_store.read__address",
    "load_store.read__data",
    "load_store.read__enable",
    "load_store.write__address",
    "load_store.write__data",
    "load_store.write__strobe",
    "vector.control.address_first",
    "vector.control.address_second",
    "vector.control.read_first",
    "vector.control.read_second",
)
_CLEAR, _RUN, _DRAIN = 1, 2, 3
_FIELDS = (FIELD_A, FIELD_B, FIELD_C)


def front_relation(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    """Add the rules to ``relation``; ``configs`` are of the full and the trimmed engine."""
    _sequencer(relation, configs[1])
    _operands(relation, configs[1])
    _issue(relation, configs)
    _dispatch(relation, configs)


def _sequencer(relation: Relation, trimmed: PeConfig) -> None:
    def ended(v: View) -> Value:
        ends = v["sequencer.failed"] & (v["sequencer.fsm_state"] > _RUN)
        return (v["sequencer.report.cause"] != 0) | ends

    relation.gates += [
        (r"sequencer\.report\.pc", ended),
        (r"control__status\.pc", lambda v: v["control__status.cause"] != 0),
        (r"control__status\.pc", lambda v: v["sequencer.report.cause"] != 0),
        # Only its last value matters: then the program begins.
        (r"sequencer\.index", lambda v: v["sequencer.fsm_state"] != _CLEAR),
        (r"registers\.registers\.words:0", lambda v: v["sequencer.fsm_state"] != _CLEAR),
    ]
    relation.truncated += [r"sequencer\.index", r"registers\.valid"]
    relation.invariants += [
        Invariant(
            "only a running program goes",
            lambda f, t: ~f["sequencer.going"] | (f["sequencer.fsm_state"] == _RUN),
        ),
        Invariant(
            "a running program has not faulted",
            lambda f, t: (
                (f["sequencer.report.cause"] == 0)
                | ((f["sequencer.fsm_state"] != _CLEAR) & (f["sequencer.fsm_state"] != _RUN))
            ),
        ),
        Invariant("the sequencer has five states", lambda f, t: f["sequencer.fsm_state"] < 5),
    ]

    if all(row.opcode != Opcode.LD_REG for row in trimmed.rows):
        relation.invariants.append(
            Invariant(
                "no register waits without an instruction that loads it",
                lambda f, t: f["registers.valid"].all(),
            )
        )

    def aligned(f: View, t: View) -> Value:
        lasts = [v["sequencer.index"].all() for v in (f, t)]
        return (f["sequencer.fsm_state"] != _CLEAR) | (lasts[0] == lasts[1])

    def cleared(f: View, t: View) -> Value:
        done = f["registers.valid"].all()
        if t.has("registers.valid"):
            done = done & t["registers.valid"].all()
        clears = f["sequencer.fsm_state"] == _CLEAR
        return ~(clears & f["sequencer.index"].all()) | done

    relation.gates.append((r"registers\.valid", lambda v: v["sequencer.fsm_state"] != _CLEAR))
    relation.assumptions += [
        Invariant("both end the clearing of registers together", aligned),
        Invariant("clearing makes all registers valid", cleared),
        Invariant(
            "memory answers only what it was asked",
            lambda f, t: (
                ~f["load_store.response.valid"]
                | (f["sequencer.fsm_state"] == _RUN)
                | (f["sequencer.fsm_state"] == _DRAIN)
            ),
        ),
    ]


def _operands(relation: Relation, trimmed: PeConfig) -> None:
    def here(v: View) -> Value:
        return v["operands.occupied"] & ~v["issue.redirect"]

    def inside(v: View) -> Value:
        return here(v) & ~v["operands.outside"]

    def fetched(v: View) -> Value:
        inside = v["fetch.pc"].as_unsigned() < v["sequencer.words"]
        return v["fetch.valid"] & ~v["issue.redirect"] & inside

    relation.gates += [
        (r"operands\.occupied", lambda v: ~v["issue.redirect"]),
        (r"operands\.(pc|outside)", here),
        (r"operands\.word", inside),
        (r"fetch\.pc", lambda v: ~v["issue.redirect"] & v["fetch.valid"]),
        (r"fetch\.following", lambda v: ~v["issue.redirect"] & v["sequencer.going"]),
        (r"fetch\.buffer\.read__0__data", fetched),
    ]

    def decodes(f: View, t: View) -> Value:
        word = t["operands.word"]
        kept = any_of(is_word(word, row, trimmed.register_bits) for row in trimmed.rows)
        return t["decode.out.legal"] == kept

    relation.guarantees.append(
        Invariant("the trimmed decoder takes the instructions that were kept, no others", decodes)
    )

    def settled(v: View) -> Value:
        """No instruction is here, or a kept one; a removed one may wait in one engine alone."""
        word = v["operands.word"]
        kept = any_of(is_word(word, row, trimmed.register_bits) for row in trimmed.rows)
        return ~v["issue.redirect"] & (~v["operands.occupied"] | (kept & ~v["operands.outside"]))

    relation.gates.append((r"operands\.again", settled))
    relation.invariants.append(
        Invariant(
            "only an instruction that waited is read again",
            lambda f, t: (
                ~(f["operands.again"] & ~f["operands.occupied"])
                & ~(t["operands.again"] & ~t["operands.occupied"])
            ),
        )
    )

    def used(number: int) -> list[Instruction]:
        return [row for row in trimmed.rows if reads(row, _FIELDS[number])]

    def needed(number: int, v: View) -> Value:
        word = v["operands.word"]
        reads_it = any_of(is_word(word, r, trimmed.register_bits) for r in used(number))
        # A register that lacked its value is read once more.
        return inside(v) & ~v["operands.again"] & reads_it

    for number in range(READ_PORTS):
        pattern = rf"registers\.(passed_{number}|registers\.read__{number}__data)"
        relation.gates.append((pattern, lambda v, number=number: needed(number, v)))  # type: ignore[misc]
    relation.gates.append(
        (
            r"registers\.written",
            lambda v: any_of(needed(n, v) & v[f"registers.passed_{n}"] for n in range(READ_PORTS)),
        )
    )

    def known(f: View, t: View) -> Value:
        taken = any_of(
            v["issue.next__valid"]
            & v["issue.next__ready"]
            & ~v["issue.redirects"]
            & ~v["issue.redirect"]
            & v["sequencer.going"]
            for v in (f, t)
        )
        # Nothing at issue can lead away from it any more.
        certain = here(f) & ~f["issue.occupied"]
        legal = f["decode.out.legal"] & t["decode.out.legal"]
        return ~(taken | certain) | (legal & ~f["operands.outside"])

    relation.assumptions.append(
        Invariant("every instruction on the program's way is in it and was kept", known)
    )


def _issue(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    here = "issue.instruction."
    decoded = here + "decoded."
    full, trimmed = configs

    def sound(v: View) -> Value:
        return v["issue.occupied"]

    def of(rows: list[Instruction], v: View) -> Value:
        terms = []
        for codes in {decoded_items(full, row) for row in rows}:
            known = [(name, code) for name, code in codes if v.has(decoded + name)]
            terms.append(Cat(v[decoded + name] == code for name, code in known).all())
        return sound(v) & any_of(terms)

    def is_plain(row: Instruction) -> bool:
        return row.unit is Unit.SCALAR and row.branch is None

    rows = trimmed.rows
    branches = [row for row in rows if row.branch is not None]
    first = [r for r in rows if (is_plain(r) or reads(r, FIELD_B)) and r not in branches]
    first += [r for r in branches if reads(r, FIELD_A)]
    second = [r for r in rows if (is_plain(r) or reads(r, FIELD_C)) and r not in branches]
    second += [r for r in branches if reads(r, FIELD_B)]
    reading_a = [row for row in rows if reads(row, FIELD_A)]
    relation.gates += [
        (r"issue\.instruction\..*", sound),
        (r"issue\.instruction\.a", lambda v: of(reading_a, v)),
        (r"issue\.instruction\.first", lambda v: of(first, v)),
        (r"issue\.instruction\.second", lambda v: of(second, v)),
        (r"issue\.instruction\.target", lambda v: of(branches, v)),
        (r"issue\.target", lambda v: v["issue.redirect"] & v["sequencer.going"]),
        (r"counters\.late_event", lambda v: v["counters.step_0"]),
        (
            r"counters\.late_waits",
            lambda v: v["counters.step_0"] & (v["counters.late_event"] == PeCounter.STALL_FETCH),
        ),
    ]
    relation.add_codes(codes_of(decoded, decoded_values, configs, rows, sound))
    relation.invariants.append(
        Invariant(
            "the instruction at issue is in the program and legal",
            lambda f, t: ~sound(f) | (f[decoded + "legal"] & ~f[here + "outside"]),
        )
    )
    relation.assumptions += [
        Invariant(
            "no operands fault in the trimmed engine alone",
            lambda f, t: (
                ~f["issue.offer__valid"] | (f["issue.check.faults"] == t["issue.check.faults"])
            ),
        ),
        Invariant(
            "no setting faults in the trimmed engine alone",
            lambda f, t: ~sound(f) | (f["issue.check.bad_setting"] == t["issue.check.bad_setting"]),
        ),
    ]


def decoded_items(config: PeConfig, row: Instruction) -> tuple[tuple[str, int], ...]:
    """Members that distinguish ``row`` from others at issue, with their values."""
    (values,) = decoded_values(config, row)
    return tuple((name, code) for name, code in values.items() if code is not None)


def _dispatch(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    here = "dispatch.instruction."
    full, trimmed = configs
    caps = Capabilities.of(full)

    def faulty(v: View) -> Value:
        names = (f"{here}faults.{name}" for name in ("outside", "misaligned", "dram"))
        return any_of(held(v, name) for name in names)

    def sound(v: View) -> Value:
        return v["dispatch.occupied"] & ~faulty(v)

    def vector(v: View) -> Value:
        return sound(v) & v[here + "vector"]

    def transfer(v: View) -> Value:
        return sound(v) & ~v[here + "vector"]

    def register(v: View) -> Value:
        return transfer(v) & caps.is_register(v[here + "kind"])

    def ranged(number: int, v: View) -> Value:
        store = caps.is_store(v[here + "kind"])
        other = transfer(v) & ~register(v)
        if number == 0:
            return vector(v) | (other & ~store)
        if number == 1:
            return vector(v) | (other & store)
        kind, vertical = (held(v, here + name) for name in ("kind", "vertical"))
        return vector(v) & ~caps.is_unary(kind, vertical)

    relation.gates += [
        (r"dispatch\.(conflict|full)", sound),
        (r"dispatch\.instruction\..*", sound),
        (r"dispatch\.instruction\.(pc|faults\..*)", lambda v: v["dispatch.occupied"]),
        (r"dispatch\.instruction\.(bytes|columns|is_empty|settings\.dram)", transfer),
        (
            r"dispatch\.instruction\.index",
            lambda v: register(v) & ~caps.is_store(v[here + "kind"]),
        ),
        (r"dispatch\.instruction\.settings\.vector\..*", vector),
        (
            r"dispatch\.instruction\.operands\.value",
            lambda v: register(v) & caps.is_store(v[here + "kind"]),
        ),
    ]
    for number in range(RANGES):
        relation.gates.append(
            (
                rf"dispatch\.instruction\.operands\.places\[{number}\]\..*",
                lambda v, number=number: ranged(number, v),  # type: ignore[misc]
            )
        )
    rows = (*trimmed.rows_of(Unit.VECTOR), *trimmed.rows_of(Unit.LOAD_STORE))
    relation.add_codes(codes_of(here, dispatched_values, configs, rows, sound))
    if caps.memory and not Capabilities.of(trimmed).memory:
        causes = [f"{here}faults.{name}" for name in ("misaligned", "dram")]
        relation.invariants.append(
            Invariant(
                "no address of a memory that nothing accesses is wrong",
                lambda f, t: ~(f["dispatch.occupied"] & any_of(held(f, name) for name in causes)),
            )
        )
    if not rows:
        relation.invariants.append(
            Invariant("nothing is dispatched", lambda f, t: ~f["dispatch.occupied"])
        )
    relation.invariants.append(
        Invariant(
            "what leaves dispatch is there and sound",
            lambda f, t: ~f["dispatch.fire_next"] | sound(f),
        )
    )

    relation.invariants.append(
        Invariant(
            "a register that is moved lies in one column",
            lambda f, t: ~register(f) | (f[here + "columns"] == 1),
        )
    )
    relation.invariants.append(
        Invariant(
            "a register that is moved lies at a multiple of its width",
            lambda f, t: (
                ~register(f)
                | is_aligned(f[here + "settings.dram"], caps.width.unpack(f[here + "width"]))
            ),
        )
    )

    if caps.transfers:
        relation.invariants.append(
            Invariant(
                "a register that is moved has bytes",
                lambda f, t: ~register(f) | ~f[here + "is_empty"],
            )
        )

    def in_word(f: View, t: View) -> Value:
        first = f[here + "settings.dram"][:COLUMN_BITS]
        last = (first + f[here + "bytes"] - 1)[:COLUMN_BITS]
        return ~register(f) | (first[BYTE_BITS:] == last[BYTE_BITS:])

    relation.invariants.append(Invariant("a register that is moved lies in one word", in_word))

    def is_used(v: View, number: int) -> Value:
        return v[here + "used"][number]

    for number in range(RANGES):
        relation.invariants.append(
            Invariant(
                f"an instruction uses range {number} only if it has it",
                lambda f, t, n=number: ~sound(f) | ~is_used(f, n) | ranged(n, f),  # type: ignore[misc]
            )
        )
    # Where it is known which ranges are used, both engines compare the same ones.
    used = (lambda v, number=number: is_used(v, number) for number in range(RANGES))
    relation.apart.append((r"dispatch\.(fire_next|conflict)", (sound, *used)))
