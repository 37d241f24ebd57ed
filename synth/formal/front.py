"""Correspondence of fetch, operands, issue, dispatch and registers."""

import re
from functools import partial

from amaranth.hdl import Cat, Value

from isa.table import FIELD_A, FIELD_B, FIELD_C, Instruction, Opcode, Unit
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.core import Pe
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

_ENGINE = Pe.PROBES
_SEQUENCER, _COUNTERS, _REGISTERS = _ENGINE.sequencer, _ENGINE.counters, _ENGINE.registers
_FETCH, _OPERANDS, _DECODE, _ISSUE = _ENGINE.fetch, _ENGINE.operands, _ENGINE.decode, _ENGINE.issue
_DISPATCH, _LSU, _VECTOR = _ENGINE.dispatch, _ENGINE.load_store, _ENGINE.vector.control
#: Wires that the assumptions name.
PROBES = (
    _DECODE.legal,
    _ISSUE.bad_setting,
    _ISSUE.faults,
    _ISSUE.halt,
    _ISSUE.leads_away,
    _ISSUE.next_ready,
    _ISSUE.next_valid,
    _ISSUE.offer_valid,
    *(f"{_LSU.read}_{name}" for name in ("address", "data", "enable")),
    *(f"{_LSU.write}_{name}" for name in ("address", "data", "strobe")),
    _VECTOR.address_first,
    _VECTOR.address_second,
    _VECTOR.read_first,
    _VECTOR.read_second,
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
        ends = v[_SEQUENCER.failed] & (v[state] > _RUN)
        return (v[reported] != 0) | ends

    state, reported = _SEQUENCER.state, f"{_SEQUENCER.report}.cause"
    relation.when(ended, f"{_SEQUENCER.report}.pc")
    relation.when(lambda v: v[reported] != 0, f"{_ENGINE.status}.pc")
    # Only its last value matters: then the program begins.
    relation.when(lambda v: v[state] != _CLEAR, _SEQUENCER.index, _REGISTERS.words)
    relation.truncated += [re.escape(_SEQUENCER.index), re.escape(_REGISTERS.valid)]
    relation.invariants += [
        Invariant(
            "only a running program goes",
            lambda f, t: ~f[_SEQUENCER.going] | (f[state] == _RUN),
        ),
        Invariant(
            "a running program has not faulted",
            lambda f, t: (f[reported] == 0) | ((f[state] != _CLEAR) & (f[state] != _RUN)),
        ),
        Invariant("the sequencer has five states", lambda f, t: f[state] < 5),
    ]

    if all(row.opcode != Opcode.LD_REG for row in trimmed.rows):
        relation.invariants.append(
            Invariant(
                "no register waits without an instruction that loads it",
                lambda f, t: f[_REGISTERS.valid].all(),
            )
        )

    def aligned(f: View, t: View) -> Value:
        lasts = [v[_SEQUENCER.index].all() for v in (f, t)]
        return (f[state] != _CLEAR) | (lasts[0] == lasts[1])

    def cleared(f: View, t: View) -> Value:
        done = f[_REGISTERS.valid].all()
        if t.has(_REGISTERS.valid):
            done = done & t[_REGISTERS.valid].all()
        clears = f[state] == _CLEAR
        return ~(clears & f[_SEQUENCER.index].all()) | done

    relation.when(lambda v: v[state] != _CLEAR, _REGISTERS.valid)
    relation.assumptions += [
        Invariant("both end the clearing of registers together", aligned),
        Invariant("clearing makes all registers valid", cleared),
        Invariant(
            "memory answers only what it was asked",
            lambda f, t: ~f[_LSU.response.valid] | (f[state] == _RUN) | (f[state] == _DRAIN),
        ),
    ]


def _operands(relation: Relation, trimmed: PeConfig) -> None:
    def present(v: View) -> Value:
        return v[_OPERANDS.held] & ~v[_ISSUE.redirect]

    def inside(v: View) -> Value:
        return present(v) & ~v[_OPERANDS.outside]

    def fetched(v: View) -> Value:
        inside = v[_FETCH.pc].as_unsigned() < v[_SEQUENCER.words]
        return v[_FETCH.valid] & ~v[_ISSUE.redirect] & inside

    relation.when(lambda v: ~v[_ISSUE.redirect], _OPERANDS.held)
    relation.when(present, _OPERANDS.pc, _OPERANDS.outside)
    relation.when(inside, _OPERANDS.word)
    relation.when(lambda v: ~v[_ISSUE.redirect] & v[_FETCH.valid], _FETCH.pc)
    relation.when(lambda v: ~v[_ISSUE.redirect] & v[_SEQUENCER.going], _FETCH.following)
    relation.when(fetched, _FETCH.fetched)

    def decodes(f: View, t: View) -> Value:
        word = t[_OPERANDS.word]
        kept = any_of(is_word(word, row, trimmed.register_bits) for row in trimmed.rows)
        return t[_DECODE.legal] == kept

    relation.guarantees.append(
        Invariant("the trimmed decoder takes the instructions that were kept, no others", decodes)
    )

    def settled(v: View) -> Value:
        """No instruction is here, or a kept one; a removed one may wait in one engine alone."""
        word = v[_OPERANDS.word]
        kept = any_of(is_word(word, row, trimmed.register_bits) for row in trimmed.rows)
        return ~v[_ISSUE.redirect] & (~v[_OPERANDS.held] | (kept & ~v[_OPERANDS.outside]))

    relation.when(settled, _OPERANDS.again)
    relation.invariants.append(
        Invariant(
            "only an instruction that waited is read again",
            lambda f, t: (
                ~(f[_OPERANDS.again] & ~f[_OPERANDS.held])
                & ~(t[_OPERANDS.again] & ~t[_OPERANDS.held])
            ),
        )
    )

    def used(number: int) -> list[Instruction]:
        return [row for row in trimmed.rows if reads(row, _FIELDS[number])]

    def needed(number: int, v: View) -> Value:
        word = v[_OPERANDS.word]
        reads_it = any_of(is_word(word, r, trimmed.register_bits) for r in used(number))
        # A register that lacked its value is read once more.
        return inside(v) & ~v[_OPERANDS.again] & reads_it

    for number in range(READ_PORTS):
        relation.when(
            partial(needed, number),
            f"{_REGISTERS.passed}_{number}",
            f"{_REGISTERS.read}__{number}__data",
        )
    relation.when(
        lambda v: any_of(needed(n, v) & v[f"{_REGISTERS.passed}_{n}"] for n in range(READ_PORTS)),
        _REGISTERS.written,
    )

    def known(f: View, t: View) -> Value:
        taken = any_of(
            v[_ISSUE.next_valid]
            & v[_ISSUE.next_ready]
            & ~v[_ISSUE.leads_away]
            & ~v[_ISSUE.redirect]
            & v[_SEQUENCER.going]
            for v in (f, t)
        )
        # Nothing at issue can lead away from it any more.
        certain = present(f) & ~f[_ISSUE.held]
        legal = f[_DECODE.legal] & t[_DECODE.legal]
        return ~(taken | certain) | (legal & ~f[_OPERANDS.outside])

    relation.assumptions.append(
        Invariant("every instruction on the program's way is in it and was kept", known)
    )


def _issue(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    now = f"{_ISSUE.now}."
    decoded = f"{now}decoded."
    full, trimmed = configs

    def present(v: View) -> Value:
        return v[_ISSUE.held]

    def of(rows: list[Instruction], v: View) -> Value:
        terms = []
        for codes in {decoded_items(full, row) for row in rows}:
            known = [(name, code) for name, code in codes if v.has(decoded + name)]
            terms.append(Cat(v[decoded + name] == code for name, code in known).all())
        return present(v) & any_of(terms)

    def is_plain(row: Instruction) -> bool:
        return row.unit is Unit.SCALAR and row.branch is None

    rows = trimmed.rows
    branches = [row for row in rows if row.branch is not None]
    first = [r for r in rows if (is_plain(r) or reads(r, FIELD_B)) and r not in branches]
    first += [r for r in branches if reads(r, FIELD_A)]
    second = [r for r in rows if (is_plain(r) or reads(r, FIELD_C)) and r not in branches]
    second += [r for r in branches if reads(r, FIELD_B)]
    reading_a = [row for row in rows if reads(row, FIELD_A)]
    relation.members_when(present, _ISSUE.now)
    relation.when(lambda v: of(reading_a, v), f"{now}a")
    relation.when(lambda v: of(first, v), f"{now}first")
    relation.when(lambda v: of(second, v), f"{now}second")
    relation.when(lambda v: of(branches, v), f"{now}target")
    relation.when(lambda v: v[_ISSUE.redirect] & v[_SEQUENCER.going], _ISSUE.target)
    relation.when(lambda v: v[_COUNTERS.counts], _COUNTERS.late_event)
    relation.when(
        lambda v: v[_COUNTERS.counts] & (v[_COUNTERS.late_event] == PeCounter.STALL_FETCH),
        _COUNTERS.late_waits,
    )
    relation.add_codes(codes_of(decoded, decoded_values, configs, rows, present))
    relation.invariants.append(
        Invariant(
            "the instruction at issue is in the program and legal",
            lambda f, t: ~present(f) | (f[decoded + "legal"] & ~f[now + "outside"]),
        )
    )
    relation.assumptions += [
        Invariant(
            "no operands fault in the trimmed engine alone",
            lambda f, t: ~f[_ISSUE.offer_valid] | (f[_ISSUE.faults] == t[_ISSUE.faults]),
        ),
        Invariant(
            "no setting faults in the trimmed engine alone",
            lambda f, t: ~present(f) | (f[_ISSUE.bad_setting] == t[_ISSUE.bad_setting]),
        ),
    ]


def decoded_items(config: PeConfig, row: Instruction) -> tuple[tuple[str, int], ...]:
    """Members that distinguish ``row`` from others at issue, with their values."""
    (values,) = decoded_values(config, row)
    return tuple((name, code) for name, code in values.items() if code is not None)


class _Dispatched:
    """What the instruction at dispatch is, from the values of a design like ``full``."""

    def __init__(self, full: PeConfig) -> None:
        self._caps = Capabilities.of(full)
        self.now = f"{_DISPATCH.now}."

    def legal(self, v: View) -> Value:
        """There is one, without a fault."""
        faults = (f"{self.now}faults.{name}" for name in ("outside", "misaligned", "dram"))
        return v[_DISPATCH.held] & ~any_of(held(v, name) for name in faults)

    def vector(self, v: View) -> Value:
        """It is for the vector unit."""
        return self.legal(v) & v[self.now + "vector"]

    def transfer(self, v: View) -> Value:
        """It is for the load-store unit."""
        return self.legal(v) & ~v[self.now + "vector"]

    def register(self, v: View) -> Value:
        """It loads or stores a register."""
        return self.transfer(v) & self._caps.is_register(v[self.now + "kind"])

    def loads_register(self, v: View) -> Value:
        """It loads a register."""
        return self.register(v) & ~self._caps.is_store(v[self.now + "kind"])

    def stores_register(self, v: View) -> Value:
        """It stores a register."""
        return self.register(v) & self._caps.is_store(v[self.now + "kind"])

    def has_range(self, number: int, v: View) -> Value:
        """It has a range of this number: of bytes of the scratchpad that it accesses."""
        store = self._caps.is_store(v[self.now + "kind"])
        words = self.transfer(v) & ~self.register(v)
        if number == 0:
            return self.vector(v) | (words & ~store)
        if number == 1:
            return self.vector(v) | (words & store)
        kind, vertical = (held(v, self.now + name) for name in ("kind", "vertical"))
        return self.vector(v) & ~self._caps.is_unary(kind, vertical)

    def uses_range(self, number: int, v: View) -> Value:
        """It accesses bytes of that range."""
        return v[self.now + "used"][number]

    def uses_own_range(self, number: int, f: View, t: View) -> Value:
        """It uses a range only if it has it."""
        return ~self.legal(f) | ~self.uses_range(number, f) | self.has_range(number, f)


def _dispatch(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    full, trimmed = configs
    caps, at_dispatch = Capabilities.of(full), _Dispatched(full)
    now, legal = at_dispatch.now, at_dispatch.legal
    relation.when(legal, _DISPATCH.conflict, _DISPATCH.full)
    relation.members_when(legal, _DISPATCH.now)
    relation.when(lambda v: v[_DISPATCH.held], f"{now}pc")
    relation.members_when(lambda v: v[_DISPATCH.held], f"{now}faults")
    moved = ("bytes", "columns", "nothing", "settings.dram")
    relation.when(at_dispatch.transfer, *(now + name for name in moved))
    relation.when(at_dispatch.loads_register, f"{now}index")
    relation.members_when(at_dispatch.vector, f"{now}settings.vector")
    relation.when(at_dispatch.stores_register, f"{now}operands.value")
    for number in range(RANGES):
        condition = partial(at_dispatch.has_range, number)
        relation.members_when(condition, f"{now}operands.places[{number}]")
    rows = (*trimmed.rows_of(Unit.VECTOR), *trimmed.rows_of(Unit.LOAD_STORE))
    relation.add_codes(codes_of(now, dispatched_values, configs, rows, legal))
    if caps.memory and not Capabilities.of(trimmed).memory:
        causes = [f"{now}faults.{name}" for name in ("misaligned", "dram")]
        relation.invariants.append(
            Invariant(
                "no address of a memory that nothing accesses is wrong",
                lambda f, t: ~(f[_DISPATCH.held] & any_of(held(f, name) for name in causes)),
            )
        )
    if not rows:
        relation.invariants.append(
            Invariant("nothing is dispatched", lambda f, t: ~f[_DISPATCH.held])
        )
    relation.invariants.append(
        Invariant(
            "what leaves dispatch is there and sound", lambda f, t: ~f[_DISPATCH.leaves] | legal(f)
        )
    )
    relation.invariants += _moved_registers(at_dispatch, caps)
    relation.invariants += [
        Invariant(
            f"an instruction uses range {number} only if it has it",
            partial(at_dispatch.uses_own_range, number),
        )
        for number in range(RANGES)
    ]
    # Where it is known which ranges are used, both engines compare the same ones.
    used = (partial(at_dispatch.uses_range, number) for number in range(RANGES))
    goals = "|".join(map(re.escape, (_DISPATCH.leaves, _DISPATCH.conflict)))
    relation.apart.append((goals, (legal, *used)))


def _moved_registers(at_dispatch: _Dispatched, caps: Capabilities) -> list[Invariant]:
    """Places in memory of registers that are loaded or stored."""
    now, register = at_dispatch.now, at_dispatch.register
    dram = f"{now}settings.dram"

    def aligned(f: View, t: View) -> Value:
        return ~register(f) | is_aligned(f[dram], caps.width.unpack(f[now + "width"]))

    def in_word(f: View, t: View) -> Value:
        first = f[dram][:COLUMN_BITS]
        last = (first + f[now + "bytes"] - 1)[:COLUMN_BITS]
        return ~register(f) | (first[BYTE_BITS:] == last[BYTE_BITS:])

    rules = [
        Invariant(
            "a register that is moved lies in one column",
            lambda f, t: ~register(f) | (f[now + "columns"] == 1),
        ),
        Invariant("a register that is moved lies at a multiple of its width", aligned),
        Invariant("a register that is moved lies in one word", in_word),
    ]
    if caps.transfers:
        rules.append(
            Invariant(
                "a register that is moved has bytes",
                lambda f, t: ~register(f) | ~f[now + "nothing"],
            )
        )
    return rules
