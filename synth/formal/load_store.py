"""Correspondence of the load-store unit, and of the array range check within whole engines."""

from functools import partial

from amaranth.hdl import Cat, Value

from hdl.component import Probes
from hdl.ports import BYTE_BITS, COLUMN_BITS, memory_request
from isa.table import Opcode, Unit
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.frontend.arc import Arc
from pe.lsu.ports import load_table_entry

from .probes import ARC, LSU, REQUEST, RESPONSE
from .relation import Condition, Relation, Rule, View
from .rows import any_of, codes_of, entry_values, held, is_aligned, transfer_values

_TABLE, _ENTRY = f"{LSU.table}.words", f"{LSU.table}.read__0__data"
#: The request at the engine's port.
_PORT = "memory__request__payload"


def load_store_relation(relation: Relation, full: PeConfig, trimmed: PeConfig) -> None:
    """Add the rules of the load-store unit to ``relation``."""
    configs = (full, trimmed)
    _work(relation, configs, REQUEST.work, lambda v: v[REQUEST.working])
    _work(relation, configs, REQUEST.waiting, lambda v: v[REQUEST.waits])

    def offered(v: View) -> Value:
        return v[REQUEST.request__valid]

    def stored(v: View) -> Value:
        return offered(v) & v[f"{REQUEST.sent}.write"]

    relation.when(lambda v: v[REQUEST.opened], REQUEST.open_tag)
    relation.when(lambda v: v[LSU.tag_ready], LSU.write__0__address)
    relation.when(lambda v: v[REQUEST.value_held], REQUEST.value)
    relation.members_when(lambda v: v[REQUEST.formed_valid], REQUEST.formed)
    relation.when(lambda v: v[REQUEST.formed_valid], REQUEST.from_register)
    relation.members_when(offered, REQUEST.sent)
    relation.when(stored, f"{REQUEST.sent}.data", REQUEST.turn)
    relation.when(lambda v: _formed_store(v) & ~v[REQUEST.from_register], REQUEST.place_formed)
    relation.members_when(offered, _PORT)
    relation.when(stored, f"{_PORT}.data")
    requests = (
        memory_request(full.address_bits, full.tag_bits),
        memory_request(trimmed.address_bits, trimmed.tag_bits),
    )
    relation.layouts |= dict.fromkeys((REQUEST.formed, REQUEST.sent, _PORT), requests)
    opcodes = {row.opcode for row in trimmed.rows}
    values = {Opcode.LD_REG: RESPONSE.result_valid, Opcode.ST_REG: REQUEST.value_held}
    for opcode, flag in values.items():
        if opcode not in opcodes:
            rule = f"no {flag.removeprefix('load_store.')} without its instruction"
            relation.invariant(rule, _never(flag))
    if Opcode.ST_REG not in opcodes:
        relation.invariant(
            "no word to store comes from a register without its instruction",
            lambda f, t: ~_formed_store(f) | ~f[REQUEST.from_register],
        )
    else:
        relation.invariant("one value to store waits at a time", _one_value)
    if Opcode.ST_SRAM not in opcodes:
        relation.invariant(
            "each word to store comes from a register without the one that stores words",
            lambda f, t: ~_formed_store(f) | f[REQUEST.from_register],
        )
        relation.invariant(
            "no word to store is turned without the instruction that stores words",
            lambda f, t: ~stored(f) | (held(f, REQUEST.turn) == 0),
        )
    _response(relation, configs)
    if Capabilities.of(full).memory and not Capabilities.of(trimmed).memory:
        _idle(relation)


def _formed_store(v: View) -> Value:
    return v[REQUEST.formed_valid] & v[f"{REQUEST.formed}.write"]


def _idle(relation: Relation) -> None:
    """Rules for a trimmed engine without the unit."""
    flags = (
        REQUEST.working,
        REQUEST.waits,
        REQUEST.formed_valid,
        REQUEST.request__valid,
        RESPONSE.valid,
        LSU.outstanding,
    )

    def rests(f: View, t: View) -> Value:
        return ~any_of(f[flag] for flag in flags)

    relation.invariant("the load-store unit rests", rests)
    relation.assume("memory answers nothing unasked", lambda f, t: ~f["memory__response__valid"])
    relation.when(lambda v: v["memory__response__valid"], "memory__response__ready")


def _one_value(f: View, t: View) -> Value:
    """At most one of the places that a register store passes has one, with its value."""
    places = [
        f[flag] & f[f"{name}.store"] & f[f"{name}.register"]
        for flag, name in (
            (REQUEST.working, REQUEST.work),
            (REQUEST.waits, REQUEST.waiting),
        )
    ]
    places.append(_formed_store(f) & f[REQUEST.from_register])
    one, two, three = places
    alone = ~((one & two) | (one & three) | (two & three))
    return alone & (~(one | two | three) | f[REQUEST.value_held])


def _never(name: str) -> Rule:
    return lambda f, t: ~f[name]


def _work(
    relation: Relation, configs: tuple[PeConfig, PeConfig], name: str, present: Condition
) -> None:
    """Rules for the transfer in register ``name``, which has one while ``present``."""

    def register(v: View) -> Value:
        return present(v) & v[f"{name}.register"]

    relation.members_when(present, name)
    relation.when(
        lambda v: present(v) & ~v[f"{name}.register"], f"{name}.scratchpad", f"{name}.entry"
    )
    relation.when(lambda v: register(v) & ~v[f"{name}.store"], f"{name}.index")
    rows = configs[1].rows_of(Unit.LOAD_STORE)
    relation.add_codes(codes_of(f"{name}.", transfer_values, configs, rows, present))
    # A register lies in one column.
    relation.invariant(
        f"{name} of a register has one column",
        lambda f, t: ~register(f) | (f[f"{name}.columns"] == 1),
    )
    width = Capabilities.of(configs[0]).registers.width
    relation.invariant(
        f"{name} of a register is at a multiple of its width",
        lambda f, t: (
            ~register(f) | is_aligned(f[f"{name}.dram"], width.unpack(held(f, f"{name}.width")))
        ),
    )
    word = slice(BYTE_BITS, COLUMN_BITS)
    relation.invariant(
        f"{name} of a register lies in one word",
        lambda f, t: ~register(f) | (f[f"{name}.dram"][word] == f[f"{name}.last"][word]),
    )


def _response(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    full, trimmed = configs
    for name in (_TABLE, _ENTRY):
        relation.layouts[name] = (load_table_entry(full), load_table_entry(trimmed))
    _entry(relation, configs, _TABLE, None)
    _entry(relation, configs, _ENTRY, lambda v: v[RESPONSE.valid])

    def loads(v: View) -> Value:
        return ~v[f"{_ENTRY}.store"] & ~v[f"{_ENTRY}.register"]

    relation.members_when(lambda v: v[RESPONSE.valid], RESPONSE.beat)
    relation.when(lambda v: v[RESPONSE.following] & v["ghost:fills"], RESPONSE.next_address)
    relation.when(lambda v: v[RESPONSE.result_valid], RESPONSE.result, RESPONSE.result_index)
    relation.ghosts["ghost:fills"] = lambda v: (
        (v[RESPONSE.valid] & loads(v)) | (~v[RESPONSE.valid] & v["ghost:fills"])
    )
    relation.assume(
        "the beats of one response follow one another",
        lambda f, t: ~(f[RESPONSE.valid] & f[RESPONSE.following] & loads(f)) | f["ghost:fills"],
    )


def _entry(
    relation: Relation, configs: tuple[PeConfig, PeConfig], name: str, present: Condition | None
) -> None:
    """Rules for an entry of the table: in the table (``present`` None: always), or read from it."""

    def when(v: View) -> list[Value]:
        return [present(v)] if present is not None else []

    def all_of(*terms: Value) -> Value:
        value = terms[0]
        for term in terms[1:]:
            value = value & term
        return value

    def to_scratchpad(v: View) -> Value:
        return all_of(~v[f"{name}.store"], ~v[f"{name}.register"], *when(v))

    def to_register(v: View) -> Value:
        return all_of(~v[f"{name}.store"], v[f"{name}.register"], *when(v))

    relation.when(lambda v: all_of(~v[f"{name}.store"], *when(v)), f"{name}.first")
    relation.members_when(to_scratchpad, f"{name}.target.scratchpad")
    relation.members_when(to_register, f"{name}.target.register")
    rows = configs[1].rows_of(Unit.LOAD_STORE)
    relation.add_codes(codes_of(f"{name}.", entry_values, configs, rows, present))


def ends(full: PeConfig, arc: Probes = Arc.probes) -> Rule:
    """Whether an arrival or release belongs to a transfer, in the array range check of the engine
    ``full``, which has the probes ``arc``."""

    def holds(f: View, t: View) -> Value:
        terms = []
        for event in (arc.late_arrived, arc.late_released):
            entry = f[f"{event}_entry"]
            busy = any_of(
                (entry == number) & (f[_numbered(arc.columns_0, number)] != 0)
                for number in range(full.arc_entries)
            )
            terms.append(~f[event] | busy)
        return Cat(terms).all()

    return holds


def transfer_relation(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    """Add the rules of the array range check of whole engines to ``relation``."""
    full, trimmed = configs
    relation.when(lambda v: v[ARC.late_arrived], f"{ARC.late_arrived}_entry")
    relation.when(lambda v: v[ARC.late_released], f"{ARC.late_released}_entry")
    full_kinds = Capabilities.of(full).transfers
    kinds = Capabilities.of(trimmed).transfers
    entries = range(full.arc_entries)
    if kinds and bool(kinds.loads) != bool(kinds.stores) and full_kinds.loads and full_kinds.stores:
        relation.assume("only what is in transfer ends", ends(full, ARC))

        def one_way(number: int, f: View, t: View) -> Value:
            stores = f[_numbered(ARC.store_0, number)] == int(not kinds.loads)
            return (f[_numbered(ARC.columns_0, number)] == 0) | stores

        for number in entries:
            relation.invariant(
                f"what entry {number} moves goes the one way that is left", partial(one_way, number)
            )
    if kinds or not full_kinds:
        return

    def rests(f: View, t: View) -> Value:
        columns = [f[_numbered(ARC.columns_0, number)] for number in entries]
        return ~any_of((*columns, f[ARC.late_arrived], f[ARC.late_released]))

    relation.invariant("nothing is in transfer without an instruction that moves vectors", rests)


def _numbered(first: str, number: int) -> str:
    """The name of entry ``number``, after that of entry 0."""
    return f"{first.removesuffix('0')}{number}"
