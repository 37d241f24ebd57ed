"""Units with trimmed sizes: the larger does everything that passes the checks of the smaller.

Each unit is proved separately, at the actual sizes of both engines; ``docs/proofs.md`` lists what
is assumed of its inputs from other units.
"""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Cat, Const, Mux, Value
from amaranth.lib import wiring

from isa.faults import FaultCause
from isa.launch import START_FX, START_MR, START_VL
from isa.table import MAX_FX, ScalarOp, Unit
from pe.capabilities import Capabilities
from pe.codes import ControlOp, IssueClass
from pe.config import PeConfig
from pe.frontend.arc import RANGES, UNIT_BYTES, Arc
from pe.frontend.range_check import RangeCheck, cause_of
from pe.frontend.scalar import Scalar
from pe.vector.settings import SETTLING_CYCLES, VectorSettings

from .cut import cut
from .induction import Progress, Proof, prove_relation, silent
from .load_store import ends
from .relation import Relation, View
from .rows import any_of, codes_of, decoded_values, held, is_set
from .sides import extended
from .table_goals import range_goals, scalar_goals

Configs = tuple[PeConfig, PeConfig]


def prove_sizes(full: PeConfig, trimmed: PeConfig, progress: Progress = silent) -> dict[str, Proof]:
    """Prove the units of :data:`SIZED_UNITS` that ``trimmed`` has, by name.

    Raises:
        ProofError: a proof can't be set up.
    """
    proofs: dict[str, Proof] = {}
    for name, (unit, relation, is_there) in SIZED_UNITS.items():
        if is_there(trimmed):
            one, two = cut(unit(full), "full"), cut(unit(trimmed), "trimmed")
            proofs[name] = prove_relation(one, two, relation((full, trimmed)), progress)
    return proofs


def _range_check(configs: Configs) -> Relation:
    """Instructions that pass in the trimmed engine access the same places, all within its smaller
    memories; all others fault in it."""
    full, trimmed = configs
    caps = Capabilities.of(full)
    relation = Relation(signed=["[abc]"], ignored=[_OUTPUTS])
    rows = trimmed.rows
    relation.add_codes(codes_of("decoded.", decoded_values, configs, rows))
    relation.assume(
        "VL and MR are within the trimmed engine's limits",
        lambda f, t: (
            (f["vl"] != 0)
            & (f["vl"] <= trimmed.vl_limit)
            & ((f["mr"] <= trimmed.mr_limit) | (not Capabilities.of(trimmed).reduced))
        ),
    )

    def is_unit(f: View, unit: IssueClass) -> Value:
        return caps.is_unit(held(f, "decoded.unit"), unit)

    def cause(v: View) -> Value:
        names = ("dram", "misaligned", "outside")
        return cause_of(SimpleNamespace(**{name: held(v, f"faults.{name}") for name in names}))

    def passes(f: View, t: View) -> Value:
        checked = is_unit(f, IssueClass.VECTOR) | is_unit(f, IssueClass.LOAD_STORE)
        return checked & (cause(t) == FaultCause.NONE)

    def same_ranges(f: View, t: View) -> Value:
        terms = []
        for number in range(RANGES):
            mine, theirs = (
                {name: v[f"ranges__{number}.{name}"] for name in _RANGE} for v in (f, t)
            )
            same = Cat(mine[name] == theirs[name] for name in _RANGE[1:]).all()
            terms += [mine["used"] == theirs["used"], ~mine["used"] | same]
        return ~passes(f, t) | Cat(terms).all()

    def same_transfer(f: View, t: View) -> Value:
        transfers = passes(f, t) & is_unit(f, IssueClass.LOAD_STORE)
        same = Cat(f[name] == t[name] for name in ("bytes", "is_empty")).all()
        # Without bytes to move, the place may be beyond the memory's end.
        places = Cat(f[name] == t[name] for name in ("columns", "dram")).all()
        return ~transfers | (same & (f["is_empty"] | places))

    def within(f: View, t: View) -> Value:
        inside = [
            ~f[f"ranges__{number}.used"]
            | (f[f"ranges__{number}.end"] <= trimmed.scratchpad_bytes // UNIT_BYTES)
            for number in range(RANGES)
        ]
        transfer = is_unit(f, IssueClass.LOAD_STORE)
        inside.append(~transfer | (f["dram"] + f["bytes"] <= 1 << trimmed.address_bits))
        return ~passes(f, t) | Cat(inside).all()

    def faults(f: View, t: View) -> Value:
        causes = cause(f), cause(t)
        faulted = causes[0] != FaultCause.NONE
        return ~faulted | ((causes[1] != FaultCause.NONE) & (causes[1] <= causes[0]))

    def settings(f: View, t: View) -> Value:
        control = held(f, "decoded.control")
        limits = {ControlOp.SET_VL: trimmed.max_vl, ControlOp.SET_MR: trimmed.max_mr}
        beyond = any_of(
            caps.control.is_one_of(control, [op.value]) & (f["a"] > limit)
            for op, limit in limits.items()
        )
        sets = is_unit(f, IssueClass.CONTROL)
        return ~sets | (t["bad_setting"] == (f["bad_setting"] | beyond))

    relation.guarantee("what passes touches the same ranges", same_ranges)
    relation.guarantee("what passes moves the same bytes", same_transfer)
    relation.guarantee("what passes lies in the trimmed engine's memories", within)
    relation.guarantee("what faults in the full engine faults in the trimmed one", faults)
    relation.guarantee("settings fault where they are beyond limits, nowhere else", settings)
    range_goals(relation, trimmed)
    return relation


def _counted(left: int, f: View, t: View) -> Value:
    """With ``left`` bits of MR left, the number of elements is the product of VL and the other
    bits. The product is bit-serial, highest bit first: solvers can match its steps, but not those
    of a multiplier."""
    del f
    total: Value = Const(0, len(t["elements"]))
    for bit in reversed(range(left, len(t["mr"]))):
        total = ((total << 1) + Mux(t["mr"][bit], t["vl"], 0))[: len(total)]
    return (t["left"] != left) | (t["elements"] == total)


def _settings(configs: Configs) -> Relation:
    """Settings are the same; so is the size of a matrix, as far as the trimmed engine keeps it."""
    trimmed = configs[1]
    caps = Capabilities.of(trimmed)
    keys = trimmed.instructions
    relation = Relation(truncated=["elements"])
    if not caps.reduced:
        relation.ignored += ["mr", "elements", "left", "settling"]
    if not caps.fractions:
        relation.ignored.append("fx")
    setters = {"set.vl": trimmed.max_vl, "set.mr": trimmed.max_mr, "set.fx": MAX_FX}

    def sets(v: View) -> Value:
        return any_of(v[key.replace(".", "_")] for key in setters)

    relation.gates.append(("value", sets))

    def taken(f: View, t: View) -> Value:
        terms = []
        for key, limit in setters.items():
            low = Const(1, 1) if key == "set.fx" else f["value"] != 0
            fits = (f["value"] <= limit) & low if key in keys else Const(0, 1)
            terms.append(~f[key.replace(".", "_")] | fits)
        return Cat(terms).all()

    relation.assume("only settings are made that the trimmed engine takes", taken)
    if "set.vl" not in keys:
        relation.invariant("a VL that nothing sets stays", lambda f, t: f["vl"] == START_VL)
    if caps.reduced and "set.mr" not in keys:
        relation.invariant("an MR that nothing sets stays", lambda f, t: f["mr"] == START_MR)
    if caps.reduced and {"set.vl", "set.mr"} <= keys:
        # For one engine only: the product of the upper bits of MR that have been counted.
        relation.invariant(
            "no more bits are left than a product has", lambda f, t: t["left"] <= SETTLING_CYCLES
        )
        for left in range(SETTLING_CYCLES + 1):
            relation.invariant(
                f"the size of a matrix becomes VL x MR, {left} bits left", partial(_counted, left)
            )
    if caps.fractions and "set.fx" not in keys:
        relation.invariant("fraction bits that nothing sets stay", lambda f, t: f["fx"] == START_FX)
    return relation


def _scalar(configs: Configs) -> Relation:
    """A result that fits registers is the same; one that doesn't faults."""
    full, trimmed = configs
    caps = Capabilities.of(full)
    relation = Relation(signed=["first"], ignored=["second", _OUTPUTS])
    rows = trimmed.rows_of(Unit.SCALAR)
    relation.add_codes(codes_of("decoded.", decoded_values, configs, rows))

    def same_second(f: View, t: View) -> Value:
        plain = [v["second"] ^ v["decoded.inverted"].replicate(len(v["second"])) for v in (f, t)]
        return plain[0] == extended(plain[1], full.register_width, True)

    relation.assume("second operands are the same, apart from where they are inverted", same_second)
    shifts = [ScalarOp.SLL, ScalarOp.SRL, ScalarOp.SRA]

    def result(f: View, t: View) -> Value:
        wide = extended(t["result"], full.register_width, True)
        same = f["result"] == wide
        shifted = caps.scalar.is_one_of(held(f, "decoded.scalar"), shifts)
        fits = ~t["overflow"] & same & ~f["overflow"]
        # A shift that loses bits faults too.
        return ~f["decoded.writes"] | fits | (t["overflow"] & (shifted | ~same | f["overflow"]))

    def branch(f: View, t: View) -> Value:
        return ~f["decoded.branch"] | (f["taken"] == t["taken"])

    relation.guarantee("a result is the same or faults, if it does not fit", result)
    relation.guarantee("branches go the same way", branch)
    scalar_goals(relation, full)
    return relation


def _arc(configs: Configs) -> Relation:
    """With fewer entries, no conflict is missed and none is added; it is full earlier."""
    full, trimmed = configs
    caps = Capabilities.of(trimmed)
    entries = range(trimmed.arc_entries)
    relation = Relation(ignored=["full", "entry"])

    def busy(number: int, v: View) -> Value:
        return v[f"columns_{number}"] != 0

    for number in range(RANGES):
        places = (f"ranges__{number}.{name}" for name in ("start", "end", "writes"))
        relation.when(partial(is_set, f"ranges__{number}.used"), *places)
    relation.when(partial(is_set, "allocate"), "allocated", "start", "end", "columns", "store")
    for number in range(full.arc_entries):
        places = (f"{name}_{number}" for name in ("start", "end", "store"))
        relation.when(partial(busy, number), *places)
    for event in ("arrived", "released"):
        relation.when(partial(is_set, event), f"{event}_entry")
        relation.when(partial(is_set, f"late_{event}"), f"late_{event}_entry")

    def stores(v: View, number: int) -> Value:
        if v.has(f"store_{number}"):
            return v[f"store_{number}"]
        return Const(int(bool(caps.transfers.stores)), 1)

    def unneeded(number: int, f: View, t: View) -> Value:
        return ~busy(number, f)

    def same_kind(number: int, f: View, t: View) -> Value:
        return ~busy(number, f) | (stores(f, number) == stores(t, number))

    def allocated(f: View, t: View) -> Value:
        kind: Value = Const(1, 1)
        if not (caps.transfers.loads and caps.transfers.stores):
            kind = f["store"] == int(bool(caps.transfers.stores))
        sized = (f["columns"] != 0) & (~f["store"] | (f["columns"] == 1))
        free = any_of((f["allocated"] == n) & ~busy(n, t) for n in entries)
        return ~f["allocate"] | (kind & sized & free)

    relation.assume("only a free entry of the trimmed engine is taken", allocated)
    relation.assume("only what is in transfer ends", ends(full))
    for number in range(trimmed.arc_entries, full.arc_entries):
        relation.invariant(f"entry {number} is not needed", partial(unneeded, number))

    if not (caps.transfers.loads and caps.transfers.stores):
        for number in entries:
            relation.invariant(
                f"entry {number} is of a kind that the trimmed engine has",
                partial(same_kind, number),
            )

    def reported(f: View, t: View) -> Value:
        # All belong to one engine, so that its comparisons share gates; the other's answer is the
        # same.
        unit = (UNIT_BYTES - 1).bit_length()
        missed = []
        for n in entries:
            for number in range(RANGES):
                mine = {name: t[f"ranges__{number}.{name}"] for name in _RANGE}
                apart = (mine["start"][unit:] >= t[f"end_{n}"]) | (t[f"start_{n}"] >= mine["end"])
                waits = mine["writes"] | ~stores(t, n)
                missed.append(busy(n, t) & mine["used"] & waits & ~apart)
        return t["conflict"] == any_of(missed)

    relation.guarantee("an access to what is in transfer is reported, no other", reported)
    relation.guarantee(
        "the same entry is offered, unless the trimmed engine has none",
        lambda f, t: t["full"] | ((f["entry"] == t["entry"]) & ~f["full"]),
    )
    return relation


_RANGE = ("used", "start", "end", "writes")
_OUTPUTS = r"ranges__\d.*|bytes|columns|is_empty|dram|faults.*|bad_setting|result|overflow|taken"

#: Name -> the unit, the condition under which two correspond, and whether an engine has it.
SIZED_UNITS: dict[
    str,
    tuple[
        Callable[[PeConfig], "wiring.Component[Any]"],
        Callable[[Configs], Relation],
        Callable[[PeConfig], bool],
    ],
] = {
    "range check": (RangeCheck, _range_check, lambda config: True),
    "settings": (VectorSettings, _settings, lambda config: bool(Capabilities.of(config).vector)),
    "scalar unit": (Scalar, _scalar, lambda config: bool(config.rows_of(Unit.SCALAR))),
    "array range check": (Arc, _arc, lambda config: bool(Capabilities.of(config).transfers)),
}
