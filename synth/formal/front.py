"""Correspondence of fetch, operands, issue, dispatch and registers."""

import re
from functools import partial

from amaranth.hdl import Cat, Value

from hdl.ports import BYTE_BITS, COLUMN_BITS
from isa.table import FIELD_A, FIELD_B, FIELD_C, Instruction, Opcode, Unit
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.frontend.arc import RANGES
from pe.frontend.register_file import READ_PORTS
from pe.interface import PeCounter

from .probes import (
    CONTROL,
    COUNTERS,
    DECODE,
    DISPATCH,
    FETCH,
    ISSUE,
    LSU,
    OPERANDS,
    REGISTERS,
    RESPONSE,
    SEQUENCER,
)
from .relation import Relation, View
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

#: The engine's port with its status.
_STATUS = "control__status"
_LEGAL = f"{DECODE.out}.legal"
_BAD_SETTING, _FAULTS = f"{ISSUE.check}.bad_setting", f"{ISSUE.check}.faults"
#: Wires named by the assumptions.
PROBES = (
    _LEGAL,
    _BAD_SETTING,
    _FAULTS,
    ISSUE.halt,
    ISSUE.redirects,
    ISSUE.next__ready,
    ISSUE.next__valid,
    ISSUE.offer__valid,
    LSU.read__address,
    LSU.read__data,
    LSU.read__enable,
    LSU.write__address,
    LSU.write__data,
    LSU.write__strobe,
    CONTROL.address_first,
    CONTROL.address_second,
    CONTROL.read_first,
    CONTROL.read_second,
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
        ends = v[SEQUENCER.failed] & (v[state] > _RUN)
        return (v[reported] != 0) | ends

    state, reported = SEQUENCER.fsm_state, f"{SEQUENCER.report}.cause"
    relation.when(ended, f"{SEQUENCER.report}.pc")
    relation.when(lambda v: v[reported] != 0, f"{_STATUS}.pc")
    # Only its last value matters, as the program begins then.
    relation.when(lambda v: v[state] != _CLEAR, SEQUENCER.index, f"{REGISTERS.registers}.words:0")
    relation.truncated += [re.escape(SEQUENCER.index), re.escape(REGISTERS.valid)]
    relation.invariant(
        "only a running program goes", lambda f, t: ~f[SEQUENCER.going] | (f[state] == _RUN)
    )
    relation.invariant(
        "a running program has not faulted",
        lambda f, t: (f[reported] == 0) | ((f[state] != _CLEAR) & (f[state] != _RUN)),
    )
    relation.invariant("the sequencer has five states", lambda f, t: f[state] < 5)

    if all(row.opcode != Opcode.LD_REG for row in trimmed.rows):
        relation.invariant(
            "no register waits without an instruction that loads it",
            lambda f, t: f[REGISTERS.valid].all(),
        )

    def aligned(f: View, t: View) -> Value:
        lasts = [v[SEQUENCER.index].all() for v in (f, t)]
        return (f[state] != _CLEAR) | (lasts[0] == lasts[1])

    def cleared(f: View, t: View) -> Value:
        done = f[REGISTERS.valid].all()
        if t.has(REGISTERS.valid):
            done = done & t[REGISTERS.valid].all()
        clears = f[state] == _CLEAR
        return ~(clears & f[SEQUENCER.index].all()) | done

    relation.when(lambda v: v[state] != _CLEAR, REGISTERS.valid)
    relation.assume("both end the clearing of registers together", aligned)
    relation.assume("clearing makes all registers valid", cleared)
    relation.assume(
        "memory answers only what it was asked",
        lambda f, t: ~f[RESPONSE.valid] | (f[state] == _RUN) | (f[state] == _DRAIN),
    )


def _present(v: View) -> Value:
    """An instruction is in decode, on the program's path."""
    return v[OPERANDS.occupied] & ~v[ISSUE.redirect]


def _inside(v: View) -> Value:
    """Such an instruction is one of the program's words."""
    return _present(v) & ~v[OPERANDS.outside]


def _in_program(trimmed: PeConfig, v: View) -> Value:
    """The word in decode is an instruction of the trimmed engine."""
    word = v[OPERANDS.word]
    return any_of(is_word(word, row, trimmed.register_bits) for row in trimmed.rows)


def _operands(relation: Relation, trimmed: PeConfig) -> None:
    def fetched(v: View) -> Value:
        inside = v[FETCH.pc].as_unsigned() < v[SEQUENCER.words]
        return v[FETCH.valid] & ~v[ISSUE.redirect] & inside

    relation.when(lambda v: ~v[ISSUE.redirect], OPERANDS.occupied)
    relation.when(_present, OPERANDS.pc, OPERANDS.outside)
    relation.when(_inside, OPERANDS.word)
    relation.when(lambda v: ~v[ISSUE.redirect] & v[FETCH.valid], FETCH.pc)
    relation.when(lambda v: ~v[ISSUE.redirect] & v[SEQUENCER.going], FETCH.following)
    relation.when(fetched, f"{FETCH.buffer}.read__0__data")
    relation.guarantee(
        "the trimmed decoder takes the instructions that were kept, no others",
        lambda f, t: t[_LEGAL] == _in_program(trimmed, t),
    )

    def settled(v: View) -> Value:
        """There is no instruction, or a kept one; a removed one may wait in one engine only."""
        legal = _in_program(trimmed, v) & ~v[OPERANDS.outside]
        return ~v[ISSUE.redirect] & (~v[OPERANDS.occupied] | legal)

    relation.when(settled, OPERANDS.again)
    relation.invariant(
        "only an instruction that waited is read again",
        lambda f, t: (
            ~(f[OPERANDS.again] & ~f[OPERANDS.occupied])
            & ~(t[OPERANDS.again] & ~t[OPERANDS.occupied])
        ),
    )
    _read_registers(relation, trimmed)

    def known(f: View, t: View) -> Value:
        accepted = any_of(
            v[ISSUE.next__valid]
            & v[ISSUE.next__ready]
            & ~v[ISSUE.redirects]
            & ~v[ISSUE.redirect]
            & v[SEQUENCER.going]
            for v in (f, t)
        )
        # No instruction at issue can still change the path.
        certain = _present(f) & ~f[ISSUE.occupied]
        legal = f[_LEGAL] & t[_LEGAL]
        return ~(accepted | certain) | (legal & ~f[OPERANDS.outside])

    relation.assume("every instruction on the program's way is in it and was kept", known)


def _read_registers(relation: Relation, trimmed: PeConfig) -> None:
    """Registers that the instruction in decode reads."""

    def used(number: int) -> list[Instruction]:
        return [row for row in trimmed.rows if reads(row, _FIELDS[number])]

    def needed(number: int, v: View) -> Value:
        word = v[OPERANDS.word]
        reads_it = any_of(is_word(word, r, trimmed.register_bits) for r in used(number))
        # A register that lacked its value is read again.
        return _inside(v) & ~v[OPERANDS.again] & reads_it

    for number in range(READ_PORTS):
        relation.when(
            partial(needed, number),
            getattr(REGISTERS, f"passed_{number}"),
            f"{REGISTERS.registers}.read__{number}__data",
        )
    relation.when(
        lambda v: any_of(
            needed(n, v) & v[getattr(REGISTERS, f"passed_{n}")] for n in range(READ_PORTS)
        ),
        REGISTERS.written_word,
    )


def _issue(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    prefix = f"{ISSUE.instruction}."
    decoded = f"{prefix}decoded."
    full, trimmed = configs

    def present(v: View) -> Value:
        return v[ISSUE.occupied]

    def of(rows: list[Instruction], v: View) -> Value:
        terms = []
        for codes in dict.fromkeys(decoded_items(full, row) for row in rows):
            present_codes = [(name, code) for name, code in codes if v.has(decoded + name)]
            terms.append(Cat(v[decoded + name] == code for name, code in present_codes).all())
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
    relation.members_when(present, ISSUE.instruction)
    relation.when(lambda v: of(reading_a, v), f"{prefix}a")
    relation.when(lambda v: of(first, v), f"{prefix}first")
    relation.when(lambda v: of(second, v), f"{prefix}second")
    relation.when(lambda v: of(branches, v), f"{prefix}target")
    relation.when(lambda v: v[ISSUE.redirect] & v[SEQUENCER.going], ISSUE.target)
    relation.when(lambda v: v[COUNTERS.step_0], COUNTERS.late_event)
    relation.when(
        lambda v: v[COUNTERS.step_0] & (v[COUNTERS.late_event] == PeCounter.STALL_FETCH),
        COUNTERS.late_waits,
    )
    relation.add_codes(codes_of(decoded, decoded_values, configs, rows, present))
    relation.invariant(
        "the instruction at issue is in the program and legal",
        lambda f, t: ~present(f) | (f[decoded + "legal"] & ~f[prefix + "outside"]),
    )
    relation.assume(
        "no operands fault in the trimmed engine alone",
        lambda f, t: ~f[ISSUE.offer__valid] | (f[_FAULTS] == t[_FAULTS]),
    )
    relation.assume(
        "no setting faults in the trimmed engine alone",
        lambda f, t: ~present(f) | (f[_BAD_SETTING] == t[_BAD_SETTING]),
    )


def decoded_items(config: PeConfig, row: Instruction) -> tuple[tuple[str, int], ...]:
    """Members that distinguish ``row`` from others at issue, with their values."""
    (values,) = decoded_values(config, row)
    return tuple((name, code) for name, code in values.items() if code is not None)


class _Dispatched:
    """The kind of the instruction at dispatch, from the values of a design like ``full``."""

    def __init__(self, full: PeConfig) -> None:
        self._caps = Capabilities.of(full)
        self.prefix = f"{DISPATCH.instruction}."

    def legal(self, v: View) -> Value:
        """There is an instruction, without a fault."""
        faults = (f"{self.prefix}faults.{name}" for name in ("outside", "misaligned", "dram"))
        return v[DISPATCH.occupied] & ~any_of(held(v, name) for name in faults)

    def vector(self, v: View) -> Value:
        """It is for the vector unit."""
        return self.legal(v) & v[self.prefix + "vector"]

    def transfer(self, v: View) -> Value:
        """It is for the load-store unit."""
        return self.legal(v) & ~v[self.prefix + "vector"]

    def register(self, v: View) -> Value:
        """It loads or stores a register."""
        return self.transfer(v) & self._caps.is_register(v[self.prefix + "kind"])

    def loads_register(self, v: View) -> Value:
        """It loads a register."""
        return self.register(v) & ~self._caps.is_store(v[self.prefix + "kind"])

    def stores_register(self, v: View) -> Value:
        """It stores a register."""
        return self.register(v) & self._caps.is_store(v[self.prefix + "kind"])

    def has_range(self, number: int, v: View) -> Value:
        """It has range ``number``, of scratchpad bytes that it accesses."""
        store = self._caps.is_store(v[self.prefix + "kind"])
        words = self.transfer(v) & ~self.register(v)
        if number == 0:
            return self.vector(v) | (words & ~store)
        if number == 1:
            return self.vector(v) | (words & store)
        kind, vertical = (held(v, self.prefix + name) for name in ("kind", "vertical"))
        return self.vector(v) & ~self._caps.is_unary(kind, vertical)

    def uses_range(self, number: int, v: View) -> Value:
        """It accesses bytes of range ``number``."""
        return v[self.prefix + "used"][number]

    def uses_own_range(self, number: int, f: View, t: View) -> Value:
        """It uses a range only if it has it."""
        return ~self.legal(f) | ~self.uses_range(number, f) | self.has_range(number, f)


def _dispatch(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    full, trimmed = configs
    caps, at_dispatch = Capabilities.of(full), _Dispatched(full)
    prefix, legal = at_dispatch.prefix, at_dispatch.legal
    relation.when(legal, DISPATCH.conflict, DISPATCH.full)
    relation.members_when(legal, DISPATCH.instruction)
    relation.when(lambda v: v[DISPATCH.occupied], f"{prefix}pc")
    relation.members_when(lambda v: v[DISPATCH.occupied], f"{prefix}faults")
    moved = ("bytes", "columns", "is_empty", "settings.dram")
    relation.when(at_dispatch.transfer, *(prefix + name for name in moved))
    relation.when(at_dispatch.loads_register, f"{prefix}index")
    relation.members_when(at_dispatch.vector, f"{prefix}settings.vector")
    relation.when(at_dispatch.stores_register, f"{prefix}operands.value")
    for number in range(RANGES):
        condition = partial(at_dispatch.has_range, number)
        relation.members_when(condition, f"{prefix}operands.places[{number}]")
    rows = (*trimmed.rows_of(Unit.VECTOR), *trimmed.rows_of(Unit.LOAD_STORE))
    relation.add_codes(codes_of(prefix, dispatched_values, configs, rows, legal))
    if caps.memory and not Capabilities.of(trimmed).memory:
        causes = [f"{prefix}faults.{name}" for name in ("misaligned", "dram")]
        relation.invariant(
            "no address of a memory that nothing accesses is wrong",
            lambda f, t: ~(f[DISPATCH.occupied] & any_of(held(f, name) for name in causes)),
        )
    if not rows:
        relation.invariant("nothing is dispatched", lambda f, t: ~f[DISPATCH.occupied])
    relation.invariant(
        "what leaves dispatch is there and sound", lambda f, t: ~f[DISPATCH.fire_next] | legal(f)
    )
    _moved_registers(relation, at_dispatch, caps)
    for number in range(RANGES):
        relation.invariant(
            f"an instruction uses range {number} only if it has it",
            partial(at_dispatch.uses_own_range, number),
        )
    # If it is known which ranges are used, both engines compare the same ones.
    used = (partial(at_dispatch.uses_range, number) for number in range(RANGES))
    goals = "|".join(map(re.escape, (DISPATCH.fire_next, DISPATCH.conflict)))
    relation.apart.append((goals, (legal, *used)))


def _moved_registers(relation: Relation, at_dispatch: _Dispatched, caps: Capabilities) -> None:
    """Places in memory of registers that are loaded or stored."""
    prefix, register = at_dispatch.prefix, at_dispatch.register
    dram = f"{prefix}settings.dram"

    def aligned(f: View, t: View) -> Value:
        return ~register(f) | is_aligned(f[dram], caps.width.unpack(held(f, prefix + "width")))

    def in_word(f: View, t: View) -> Value:
        first = f[dram][:COLUMN_BITS]
        last = (first + f[prefix + "bytes"] - 1)[:COLUMN_BITS]
        return ~register(f) | (first[BYTE_BITS:] == last[BYTE_BITS:])

    relation.invariant(
        "a register that is moved lies in one column",
        lambda f, t: ~register(f) | (f[prefix + "columns"] == 1),
    )
    relation.invariant("a register that is moved lies at a multiple of its width", aligned)
    relation.invariant("a register that is moved lies in one word", in_word)
    if caps.transfers:
        relation.invariant(
            "a register that is moved has bytes",
            lambda f, t: ~register(f) | ~f[prefix + "is_empty"],
        )
