"""Correspondence of the load-store unit."""

from collections.abc import Callable

from amaranth.hdl import Value

from hdl.ports import memory_request
from isa.table import Opcode, Unit
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.lsu.ports import BYTE_BITS, COLUMN_BITS, load_table_entry

from .relation import Condition, Ghost, Invariant, Relation, View
from .rows import any_of, codes_of, entry_values, held, is_aligned, transfer_values

__all__ = ["load_store_relation"]

_TABLE = "load_store.table.words"
_ENTRY = "load_store.table.read__0__data"


def load_store_relation(relation: Relation, full: PeConfig, trimmed: PeConfig) -> None:
    """Add the rules of the load-store unit to ``relation``."""
    unit = "load_store."
    configs = (full, trimmed)
    _work(relation, configs, unit + "request.work", lambda v: v[unit + "request.working"])
    _work(relation, configs, unit + "request.waiting", lambda v: v[unit + "request.waits"])
    sent = unit + "request.sent"

    def offered(v: View) -> Value:
        return v[unit + "request.request__valid"]

    def stored(v: View) -> Value:
        return offered(v) & v[sent + ".write"]

    def formed_store(v: View) -> Value:
        return v[unit + "request.formed_valid"] & v[unit + "request.formed.write"]

    relation.gates += [
        (r"load_store\.request\.open_tag", lambda v: v[unit + "request.opened"]),
        (r"load_store\.write__0__address", lambda v: v[unit + "tag_ready"]),
        (r"load_store\.request\.value", lambda v: v[unit + "request.value_held"]),
        (
            r"load_store\.request\.(formed\..*|from_register)",
            lambda v: v[unit + "request.formed_valid"],
        ),
        (r"load_store\.request\.sent\..*", offered),
        (r"load_store\.request\.(sent\.data|turn)", stored),
        (
            r"load_store\.request\.place_formed",
            lambda v: formed_store(v) & ~v[unit + "request.from_register"],
        ),
        (r"memory__request__payload\..*", offered),
        (r"memory__request__payload\.data", stored),
    ]
    opcodes = {row.opcode for row in trimmed.rows}
    values = {Opcode.LD_REG: "response.result_valid", Opcode.ST_REG: "request.value_held"}
    for opcode, flag in values.items():
        if opcode not in opcodes:
            relation.invariants.append(
                Invariant(f"no {flag} without its instruction", _never(unit + flag))
            )
    if Opcode.ST_REG not in opcodes:
        relation.invariants.append(
            Invariant(
                "no word to store comes from a register without its instruction",
                lambda f, t: ~formed_store(f) | ~f[unit + "request.from_register"],
            )
        )
    else:
        relation.invariants.append(Invariant("one value to store waits at a time", _one_value))
    relation.layouts["load_store.request.formed"] = (
        memory_request(full.address_bits, full.tag_bits),
        memory_request(trimmed.address_bits, trimmed.tag_bits),
    )
    for port in ("load_store.request.sent", "memory__request__payload"):
        relation.layouts[port] = relation.layouts["load_store.request.formed"]
    if Opcode.ST_SRAM not in opcodes:
        relation.invariants.append(
            Invariant(
                "each word to store comes from a register without the one that stores words",
                lambda f, t: ~formed_store(f) | f[unit + "request.from_register"],
            )
        )
        relation.invariants.append(
            Invariant(
                "no word to store is turned without the instruction that stores words",
                lambda f, t: ~stored(f) | (held(f, unit + "request.turn") == 0),
            )
        )
    _response(relation, configs)
    if Capabilities.of(full).memory and not Capabilities.of(trimmed).memory:
        _idle(relation)


def _idle(relation: Relation) -> None:
    """Rules for a trimmed engine without the unit."""
    flags = ("request.working", "request.waits", "request.formed_valid", "request.request__valid")
    unit = "load_store."

    def rests(f: View, t: View) -> Value:
        busy = [f[unit + flag] for flag in (*flags, "response.valid", "outstanding")]
        return ~any_of(busy)

    relation.invariants.append(Invariant("the load-store unit rests", rests))
    relation.assumptions.append(
        Invariant("memory answers nothing unasked", lambda f, t: ~f["memory__response__valid"])
    )
    relation.gates.append((r"memory__response__ready", lambda v: v["memory__response__valid"]))


def _one_value(f: View, t: View) -> Value:
    """At most one of the places that a store of a register passes holds one, with its value."""
    unit = "load_store.request."
    places = [
        f[unit + flag] & f[f"{unit}{name}.store"] & f[f"{unit}{name}.register"]
        for flag, name in (("working", "work"), ("waits", "waiting"))
    ]
    formed = f[unit + "formed_valid"] & f[unit + "formed.write"]
    places.append(formed & f[unit + "from_register"])
    one, two, three = places
    alone = ~((one & two) | (one & three) | (two & three))
    return alone & (~(one | two | three) | f[unit + "value_held"])


def _never(name: str) -> Callable[[View, View], Value]:
    return lambda f, t: ~f[name]


def _work(
    relation: Relation, configs: tuple[PeConfig, PeConfig], name: str, here: Condition
) -> None:
    """Rules for the transfer in register ``name``, which is there under the condition ``here``."""
    pattern = name.replace(".", r"\.")

    def register(v: View) -> Value:
        return here(v) & v[f"{name}.register"]

    relation.gates += [
        (pattern + r"\..*", here),
        (pattern + r"\.(scratchpad|entry)", lambda v: here(v) & ~v[f"{name}.register"]),
        (pattern + r"\.index", lambda v: register(v) & ~v[f"{name}.store"]),
    ]
    rows = configs[1].rows_of(Unit.LOAD_STORE)
    relation.add_codes(codes_of(f"{name}.", transfer_values, configs, rows, here))
    # A register lies in one column.
    relation.invariants.append(
        Invariant(
            f"{name} of a register has one column",
            lambda f, t: ~register(f) | (f[f"{name}.columns"] == 1),
        )
    )
    width = Capabilities.of(configs[0]).registers.width
    relation.invariants.append(
        Invariant(
            f"{name} of a register is at a multiple of its width",
            lambda f, t: (
                ~register(f) | is_aligned(f[f"{name}.dram"], width.unpack(f[f"{name}.width"]))
            ),
        )
    )
    word = slice(BYTE_BITS, COLUMN_BITS)
    relation.invariants.append(
        Invariant(
            f"{name} of a register lies in one word",
            lambda f, t: ~register(f) | (f[f"{name}.dram"][word] == f[f"{name}.last"][word]),
        )
    )


def _response(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    full, trimmed = configs
    beat = "load_store.response."
    for name in (_TABLE, _ENTRY):
        relation.layouts[name] = (load_table_entry(full), load_table_entry(trimmed))
    _entry(relation, configs, _TABLE, None)
    _entry(relation, configs, _ENTRY, lambda v: v[beat + "valid"])

    def loads(v: View) -> Value:
        return ~v[f"{_ENTRY}.store"] & ~v[f"{_ENTRY}.register"]

    relation.gates += [
        (r"load_store\.response\.beat\..*", lambda v: v[beat + "valid"]),
        (
            r"load_store\.response\.next_address",
            lambda v: v[beat + "following"] & v["ghost:fills"],
        ),
        (r"load_store\.response\.(result|result_index)", lambda v: v[beat + "result_valid"]),
    ]
    relation.ghosts.append(
        Ghost(
            "ghost:fills",
            lambda v: (v[beat + "valid"] & loads(v)) | (~v[beat + "valid"] & v["ghost:fills"]),
        )
    )
    relation.assumptions.append(
        Invariant(
            "the beats of one response follow one another",
            lambda f, t: ~(f[beat + "valid"] & f[beat + "following"] & loads(f)) | f["ghost:fills"],
        )
    )


def _entry(
    relation: Relation, configs: tuple[PeConfig, PeConfig], name: str, here: Condition | None
) -> None:
    """Rules for an entry of the table: in it (``here`` None: always), or read from it."""

    def when(v: View) -> list[Value]:
        return [here(v)] if here is not None else []

    def all_of(*terms: Value) -> Value:
        value = terms[0]
        for term in terms[1:]:
            value = value & term
        return value

    def to_scratchpad(v: View) -> Value:
        return all_of(~v[f"{name}.store"], ~v[f"{name}.register"], *when(v))

    def to_register(v: View) -> Value:
        return all_of(~v[f"{name}.store"], v[f"{name}.register"], *when(v))

    pattern = name.replace(".", r"\.")
    relation.gates += [
        (pattern + r"\.first", lambda v: all_of(~v[f"{name}.store"], *when(v))),
        (pattern + r"\.target\.scratchpad\..*", to_scratchpad),
        (pattern + r"\.target\.register\..*", to_register),
    ]
    rows = configs[1].rows_of(Unit.LOAD_STORE)
    relation.add_codes(codes_of(f"{name}.", entry_values, configs, rows, here))
