"""Single units do what their documentation says, at all times and for all inputs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from amaranth.hdl import Array, Cat, Mux, Signal, signed
from amaranth.lib import data

from hdl.quad_reducer import QuadReducer
from hdl.simd import LaneAdder, LaneReducer, lane_joins
from isa.table import ReductionOp
from memory.config import VaultConfig
from memory.controller.bank_machine import BankMachine
from memory.controller.dram_port import DramCommand
from memory.controller.queue import TransactionQueue
from memory.timing import DramTiming
from noc.router.channel_buffer import ChannelBuffer
from noc.router.output_channel import OutputChannel
from pe.config import PeConfig
from pe.frontend.arc import UNIT_BYTES, Arc
from pe.frontend.register_file import RegisterFile
from pe.scratchpad import Scratchpad
from pe.scratchpad_shared import PortArbiter
from soc.host.burst import BurstWalker

from .host_bursts import HOST, WALKER_BUGS, burst_walker
from .proof import Watch, proved, seeded
from .scratchpads import (
    ARBITER_BUGS,
    SCRATCHPAD_BUGS,
    SHARED_BUGS,
    port_arbiter,
    scratchpad,
)

_SMALL = PeConfig(registers=8, scratchpad_bytes=64, arc_entries=2)


def _counter(watch: Watch, up: Any, down: Any, most: int) -> Signal:
    """A number that counts, within 0..most."""
    count = Signal(range(most + 2))
    watch.m.d.sync += count.eq(count + up - down)
    return count


# The array range check: a unit of the scratchpad, which may be any, and what is in flight there.


def arc(dut: Arc, watch: Watch) -> None:
    """An access to a range in flight conflicts and no other does; an entry is free again when all
    its columns have arrived, and then at once."""
    m, entries = watch.m, range(dut.config.arc_entries)
    allocates = [dut.allocate & (dut.allocated == number) for number in entries]
    unit = watch.any_constant(dut.config.scratchpad_bits - (UNIT_BYTES - 1).bit_length())
    open_entries, covering, loads = [], [], []
    arrived, released = watch.before(dut.arrived), watch.before(dut.released)
    arrived_entry, released_entry = (
        watch.before(dut.arrived_entry),
        watch.before(dut.released_entry),
    )
    watch.assume(~dut.allocate | (~dut.full & (dut.allocated == dut.entry) & (dut.columns != 0)))
    watch.assume(~dut.allocate | (dut.start[2:] < dut.end))
    for number, allocate in zip(entries, allocates, strict=True):
        left = Signal(len(dut.columns), name=f"left_{number}")
        covers, load = Signal(name=f"covers_{number}"), Signal(name=f"load_{number}")
        ends = (arrived & (arrived_entry == number)) | (released & (released_entry == number))
        due = (dut.arrived & (dut.arrived_entry == number)) + (
            dut.released & (dut.released_entry == number)
        )
        # Only what is in flight arrives, in one way.
        watch.assume(due <= left - ends)
        watch.assume(due <= 1)
        with m.If(allocate):
            m.d.sync += [
                left.eq(dut.columns),
                load.eq(~dut.store),
                covers.eq((dut.start[2:] <= unit) & (unit < dut.end)),
            ]
        with m.Elif(ends):
            m.d.sync += left.eq(left - 1)
        open_entries.append(left != 0)
        covering.append((left != 0) & covers)
        loads.append(load)
    touches = Signal()
    must = []
    for access in dut.ranges:
        here = access.used & (access.start[2:] <= unit) & (unit < access.end)
        must += [
            here & covered & (load | access.writes)
            for covered, load in zip(covering, loads, strict=True)
        ]
    m.d.comb += touches.eq(Cat(must).any())
    watch.never(touches & ~dut.conflict & ~watch.first)
    watch.never(dut.conflict & ~Cat(access.used for access in dut.ranges).any())
    watch.never(dut.conflict & ~Cat(open_entries).any())
    watch.never(dut.full != Cat(open_entries).all())
    watch.never(~dut.full & Array(open_entries)[dut.entry])


ARC_BUGS = (
    ("(r.writes | ~stores)", "r.writes"),
    ("(start < r.end)", "(start + 1 < r.end)"),
    ("(Value.cast(completes), columns - 1)", "(Value.cast(completes), columns)"),
    ("self.full.eq(occupied.all())", "self.full.eq(occupied[0])"),
)


# The register file: a register, which may be any, and what was written there last.


def register_file(dut: RegisterFile, watch: Watch) -> None:
    """A read returns the last value, also one that is written meanwhile; a valid bit is 0 from the
    instruction that will write until the write."""
    m, config = watch.m, dut.config
    number = watch.any_constant(config.register_bits)
    value, now, valid = Signal(config.register_width), Signal(config.register_width), Signal(init=1)
    known = Signal()
    written = dut.write & (dut.target == number) & ~watch.first
    m.d.comb += now.eq(Mux(written, dut.data, value))
    m.d.sync += value.eq(now)
    with m.If(written):
        m.d.sync += [known.eq(1), valid.eq(1)]
    with m.Elif(dut.invalidate & (dut.pending == number) & ~watch.first):
        m.d.sync += valid.eq(0)
    expected, sure = watch.before(now), watch.before(known | written)
    for port in range(3):
        reads = watch.before(dut.read[port] & (dut.index[port] == number))
        watch.never(reads & sure & (dut.value[port] != expected))
    # Nothing is invalidated before the register is chosen.
    watch.assume(~watch.first | ~dut.invalidate)
    watch.never(dut.valid.bit_select(number, 1) != valid)


REGISTER_BUGS = (
    ("passed.eq(self.write & (self.target == index))", "passed.eq(0)"),
    ("(self.write, self.target, True)", "(self.write, self.target, False)"),
    ("with m.If(read & self.write):", "with m.If(read & ~self.write):"),
)


# The bank machine.

_TIMING = DramTiming(
    tck_ns=1.0,
    tccd_ns=2.0,
    tcl_ns=3.0,
    tcwl_ns=2.0,
    trcd_ns=3.0,
    trp_ns=3.0,
    tras_ns=6.0,
    twr_ns=2.0,
    trtp_ns=3.0,
    twtr_ns=2.0,
    trfc_ns=9.0,
    trefi_ns=200.0,
)
_VAULT = VaultConfig(
    banks=2,
    rows=4,
    row_bytes=64,
    transaction_queue=4,
    command_queue=2,
    tag_bits=2,
    counters=False,
    timing=_TIMING,
)


def bank_machine(dut: BankMachine, watch: Watch) -> None:
    """Every command that it offers is legal, by the times since those before (docs/memory.md)."""
    m, t = watch.m, dut.config.timing
    watch.assume(~dut.grant | dut.column | dut.row)
    longest = max(t.tras + t.trp, t.trfc, t.write_to_precharge) + 1
    since = {}
    issued = {}
    for kind in DramCommand:
        since[kind] = Signal(range(longest + 1), init=longest, name=f"since_{kind.name}")
        issued[kind] = dut.grant & (dut.kind == kind)
        with m.If(issued[kind]):
            m.d.sync += since[kind].eq(1)
        with m.Elif(since[kind] != longest):
            m.d.sync += since[kind].eq(since[kind] + 1)
    act, pre, read, write, refresh = (
        DramCommand.ACT,
        DramCommand.PRE,
        DramCommand.READ,
        DramCommand.WRITE,
        DramCommand.REFRESH,
    )
    is_open, row = Signal(), Signal(dut.config.row_bits)
    with m.If(issued[act]):
        m.d.sync += [is_open.eq(1), row.eq(dut.head.row)]
    with m.If(issued[pre]):
        m.d.sync += is_open.eq(0)
    rules = {
        act: (
            ~is_open,
            since[act] >= t.tras + t.trp,
            since[pre] >= t.trp,
            since[refresh] >= t.trfc,
        ),
        pre: (
            is_open,
            since[act] >= t.tras,
            since[read] >= t.trtp,
            since[write] >= t.tcwl + 4 + t.twr,
        ),
        refresh: (~is_open, since[pre] >= t.trp, since[refresh] >= t.trfc),
        read: (
            is_open,
            row == dut.head.row,
            dut.waiting,
            ~dut.head.write,
            dut.read_allowed,
            since[act] >= t.trcd,
            since[read] >= t.tccd,
            since[write] >= t.tccd,
            since[write] >= t.tcwl + 4 + t.twtr,
        ),
        write: (
            is_open,
            row == dut.head.row,
            dut.waiting,
            dut.head.write,
            dut.write_allowed,
            since[act] >= t.trcd,
            since[read] >= t.tccd,
            since[write] >= t.tccd,
        ),
    }
    for kind, legal in rules.items():
        watch.never(issued[kind] & ~Cat(legal).all())
    watch.never(dut.column & dut.row)
    watch.never(dut.column & (dut.kind != read) & (dut.kind != write))


BANK_BUGS = (
    ("row_timer.wait(timing.tras)", "row_timer.wait(timing.tras - 1)"),
    ("column_timer.wait(timing.trcd)", "column_timer.wait(timing.trcd - 1)"),
    ("row_timer.wait(timing.trtp)", "row_timer.wait(timing.trtp - 1)"),
    ("row_timer.wait(timing.write_to_precharge)", "row_timer.wait(timing.trtp)"),
    ("row_timer.wait(timing.trp)", "row_timer.wait(timing.trp - 1)"),
    ("row_timer.wait(timing.trfc)", "row_timer.wait(timing.trfc - 1)"),
    ("read_timer.wait(timing.write_to_read)", "read_timer.wait(timing.write_to_read - 1)"),
    ("& (head.row == open_row)", ""),
)


# The router.

_FLIT = {"word": 2}


def channel_buffer(dut: ChannelBuffer, watch: Watch) -> None:
    """Each queue returns its words in order, none lost: of one queue, the place of one word."""
    m = watch.m
    queue = watch.any_constant(1)
    pushes = dut.write & (dut.channel == queue) & ~watch.first
    pops = dut.pop.bit_select(queue, 1) & ~watch.first
    level = _counter(watch, pushes, pops, dut.depth)
    for number in range(dut.channels):
        mine = _counter(watch, dut.write & (dut.channel == number), dut.pop[number], dut.depth)
        watch.assume(~(dut.write & (dut.channel == number)) | (mine != dut.depth))
        watch.assume(~dut.pop[number] | dut.valid[number])
    watch.assume(((dut.pop & (dut.pop - 1)) == 0) & (~watch.first | (~dut.write & ~dut.pop.any())))
    # One word, which may be any, and how many are before it.
    marked, word, ahead = Signal(), Signal(2), Signal(range(dut.depth + 1))
    chosen = watch.any(1) & pushes & ~marked
    with m.If(chosen):
        m.d.sync += [marked.eq(1), word.eq(dut.word), ahead.eq(level - pops)]
    with m.Elif(marked & pops):
        m.d.sync += [ahead.eq(ahead - 1), marked.eq(ahead != 0)]
    heads = Array(head.as_value() for head in dut.heads)
    watch.never(marked & (ahead == 0) & (heads[queue] != word))
    watch.never(dut.valid.bit_select(queue, 1) != (level != 0))


BUFFER_BUGS = (
    (
        "bypass.eq(push & (level == 0) & (~head_valid | pop))",
        "bypass.eq(push & (~head_valid | pop))",
    ),
    (
        "head_valid.eq(bypass | fetch | (head_valid & ~pop))",
        "head_valid.eq(bypass | (head_valid & ~pop))",
    ),
    ("m.d.sync += read_pointer.eq(read_pointer + 1)", "m.d.sync += read_pointer.eq(read_pointer)"),
)


def output_channel(dut: OutputChannel, watch: Watch) -> None:
    """Credits are conserved: as many flits are under way or in the buffer as credits are gone, no
    flit leaves without one; and the flits of two packets are not mixed."""
    m = watch.m
    there = _counter(watch, dut.fire.any(), dut.credit, dut.credits)
    watch.assume((dut.fire & ~dut.eligible) == 0)
    watch.assume((dut.fire & (dut.fire - 1)) == 0)
    watch.assume(~dut.credit | (there != 0))
    # What the sources do: a body flit only of the packet that has the channel.
    holder, holding = Signal(dut.sources), Signal()
    with m.If(dut.fire.any()):
        m.d.sync += [holding.eq(~dut.last), holder.eq(dut.fire)]
    watch.assume((dut.body_valid & ~Mux(holding, holder, 0)) == 0)
    watch.assume((dut.header_valid & dut.body_valid) == 0)
    watch.never(dut.fire.any() & (there == dut.credits))
    watch.never(there > dut.credits)
    watch.never(dut.eligible.any() & (there == dut.credits))
    watch.never(holding & (dut.eligible & ~holder).any())
    watch.never((there != dut.credits) & (dut.body_valid & ~dut.eligible).any())


CHANNEL_BUGS = (
    (
        "credits + self.credit - self.fire.any()",
        "credits + self.credit - (self.fire.any() & self.last)",
    ),
    ("has_credit.eq(credits_next != 0)", "has_credit.eq(1)"),
    ("allocated.eq(~self.last)", "allocated.eq(0)"),
)


# Reductions of four numbers.


def quad_reducer(dut: QuadReducer, watch: Watch) -> None:
    """The result is that of the numbers in use, in as many bits as it takes."""
    values, use, code = list(dut.values), dut.use, dut.reduction
    codes = sorted(dut.operations)
    watch.assume(use[0] & (use[2] | ~use[3]))
    watch.assume(Cat(code == operation for operation in codes).any())
    for value, used in zip(values, use, strict=True):
        watch.assume((code != ReductionOp.ADD) | used | (value == 0))
    least, greatest = values[0], values[0]
    for value, used in zip(values[1:], use[1:], strict=True):
        least = Mux(used & (value < least), value, least)
        greatest = Mux(used & (value > greatest), value, greatest)
    total = values[0] + values[1] + values[2] + values[3]
    for operation, expected in (
        (ReductionOp.ADD, total),
        (ReductionOp.MIN, least),
        (ReductionOp.MAX, greatest),
    ):
        watch.never(dut.active & (code == operation) & (dut.result != expected))
    watch.never(~dut.active & (dut.result != 0))


REDUCER_BUGS = (
    ("Mux(second, beats(3, 1), beats(2, 1))", "Mux(second, beats(3, 1), beats(2, 0))"),
    ("second.eq(self.use[3] & beats(3, 2))", "second.eq(beats(3, 2))"),
    (
        "(values[0] + values[1]) + (values[2] + values[3])",
        "(values[0] + values[1]) + (values[2] - values[3])",
    ),
)

# Lanes of all widths, against signed numbers as wide as it takes.

_LANES = (4, 8, 16)
_WORD = 16


def _lanes(word: Any, width: int) -> list[Any]:
    return [word[at : at + width].as_signed() for at in range(0, _WORD, width)]


def lane_adder(dut: LaneAdder, watch: Watch) -> None:
    """Sums, differences, signs and overflows of the lanes, of each width."""
    size = dut.granule
    right = Mux(dut.subtract, ~dut.b, dut.b)
    widths = [watch.any(1) for _ in _LANES]
    watch.assume(sum(widths) == 1)
    lanes = list(zip(_LANES, widths, strict=True))
    watch.assume(dut.joins == lane_joins(lanes, size, _WORD))
    for width, active in lanes:
        for number, (a, b) in enumerate(
            zip(_lanes(dut.a, width), _lanes(right, width), strict=True)
        ):
            exact = Signal(signed(width + 2))
            watch.m.d.comb += exact.eq(Mux(dut.subtract, a - b, a + b))
            top = (number + 1) * width // size - 1
            fits = exact == exact[:width].as_signed()
            watch.never(active & (_lanes(dut.sum, width)[number] != exact[:width].as_signed()))
            watch.never(active & (dut.negative[top] != (exact < 0)))
            watch.never(active & (dut.overflow[top] == fits))


def lane_reducer(dut: LaneReducer, watch: Watch) -> None:
    """The reduction of each pair of lanes, with the bit that extends it."""
    watch.assume(sum(dut.lanes) == 1)
    watch.assume(Cat(dut.reduction == operation for operation in sorted(dut.operations)).any())
    watch.never(~dut.active & (dut.value != 0))
    for index, width in enumerate(_LANES):
        for number, (a, b) in enumerate(
            zip(_lanes(dut.a, width), _lanes(dut.b, width), strict=True)
        ):
            top = (number + 1) * width // dut.granule - 1
            found, used = Signal(signed(width + 1)), dut.use_b[top]
            watch.m.d.comb += found.eq(Cat(_lanes(dut.value, width)[number], dut.sign[top]))
            on = dut.active & dut.lanes[index]
            for operation, expected in (
                (ReductionOp.ADD, a + b),
                (ReductionOp.MIN, Mux(used & (b < a), b, a)),
                (ReductionOp.MAX, Mux(used & (b > a), b, a)),
            ):
                watch.never(on & (dut.reduction == operation) & (found != expected))


ADDER_BUGS = (
    ("self.joins[index] | self.subtract", "self.joins[index]"),
    ("differ = self.a[top] ^ self.b[top]", "differ = self.a[top] & self.b[top]"),
)
LANE_REDUCER_BUGS = (
    ("picks = [self.use_b[index] & (less[index] ^ low)", "picks = [(less[index] ^ low)"),
    ("(negative[index] & adds) | chosen[-1]", "(less[index] & adds) | chosen[-1]"),
)


# The order of accesses to one column: a request, and a later one for the same column.


def transaction_queue(dut: TransactionQueue, watch: Watch) -> None:
    """Of two requests for one column the later leaves after the earlier, both as they came."""
    m = watch.m
    busy = Signal(1 << dut.config.tag_bits)
    new, picked = dut.input.payload, dut.picked
    enters, leaves = dut.input.valid & dut.input.ready, dut.pick.any()
    m.d.sync += busy.eq(
        (busy | Mux(enters, 1 << new.entry.tag, 0)) & ~Mux(leaves, 1 << picked.entry.tag, 0)
    )
    watch.assume(~dut.input.valid | ~busy.bit_select(new.entry.tag, 1))
    watch.assume((dut.pick & ~dut.eligible) == 0)
    watch.assume((dut.pick & (dut.pick - 1)) == 0)
    first, second = (Signal.like(new, name=name) for name in ("earlier", "later"))
    waits, waits_too = Signal(), Signal()
    same = Cat(
        new.bank == first.bank,
        new.entry.row == first.entry.row,
        new.entry.column == first.entry.column,
    ).all()
    begins, goes_on = watch.any(1), watch.any(1)
    first_leaves = leaves & waits & (picked.entry.tag == first.entry.tag)
    second_leaves = leaves & waits_too & (picked.entry.tag == second.entry.tag)
    with m.If(first_leaves):
        m.d.sync += waits.eq(0)
    with m.Elif(enters & begins & ~waits & ~waits_too):
        m.d.sync += [waits.eq(1), first.eq(new)]
    with m.If(second_leaves):
        m.d.sync += waits_too.eq(0)
    with m.Elif(enters & goes_on & waits & ~first_leaves & same & ~waits_too):
        m.d.sync += [waits_too.eq(1), second.eq(new)]
    watch.never(second_leaves & waits)
    watch.never(first_leaves & (picked != first))
    watch.never(second_leaves & (picked != second))
    watch.never(leaves & ~busy.bit_select(picked.entry.tag, 1))


QUEUE_BUGS = (
    ("self.occupied & ~chained & target_ready", "self.occupied & target_ready"),
    ("new_place = Cat(new.bank, new.entry.row, new.entry.column)", "new_place = Cat(new.bank, 0)"),
)

_Make = Callable[[Any], Any]
_Bug = tuple[str, str] | tuple[str, str, Callable[..., Any]]
_UNITS: dict[str, tuple[type, _Make, Callable[[Any, Watch], None], tuple[_Bug, ...]]] = {
    "arc": (Arc, lambda kind: kind(_SMALL), arc, ARC_BUGS),
    "scratchpad": (Scratchpad, lambda kind: kind(_SMALL), scratchpad, SCRATCHPAD_BUGS),
    "scratchpad of shared ports": (
        Scratchpad,
        lambda kind: kind(replace(_SMALL, scratchpad_banks=16)),
        scratchpad,
        SHARED_BUGS,
    ),
    "port arbiter": (PortArbiter, lambda kind: kind(), port_arbiter, ARBITER_BUGS),
    "register file": (RegisterFile, lambda kind: kind(_SMALL), register_file, REGISTER_BUGS),
    "bank machine": (BankMachine, lambda kind: kind(_VAULT), bank_machine, BANK_BUGS),
    "closed bank": (
        BankMachine,
        lambda kind: kind(replace(_VAULT, page_policy="closed")),
        bank_machine,
        (),
    ),
    "channel buffer": (
        ChannelBuffer,
        lambda kind: kind(channels=2, depth=4, shape=data.StructLayout(_FLIT), kind="behavioural"),
        channel_buffer,
        BUFFER_BUGS,
    ),
    "output channel": (
        OutputChannel,
        lambda kind: kind(sources=3, credits=3),
        output_channel,
        CHANNEL_BUGS,
    ),
    "transaction queue": (
        TransactionQueue,
        lambda kind: kind(_VAULT),
        transaction_queue,
        QUEUE_BUGS,
    ),
    "burst walker": (BurstWalker, lambda kind: kind(HOST), burst_walker, WALKER_BUGS),
    "lane adder": (LaneAdder, lambda kind: kind(4, 4), lane_adder, ADDER_BUGS),
    "lane reducer": (
        LaneReducer,
        lambda kind: kind(4, 4, frozenset(ReductionOp), _LANES),
        lane_reducer,
        LANE_REDUCER_BUGS,
    ),
    "quad reducer": (
        QuadReducer,
        lambda kind: kind(6, frozenset(ReductionOp)),
        quad_reducer,
        REDUCER_BUGS,
    ),
}


#: Those that are shown for some cycles from the reset, not for all times.
_CYCLES = {"transaction queue": 8, "burst walker": 8}
#: Not slow: their proofs take less than a second of processor time.
_QUICK = ("arc", "output channel", "port arbiter")


@pytest.mark.parametrize(
    "unit",
    [pytest.param(unit, marks=() if unit in _QUICK else pytest.mark.slow) for unit in _UNITS],
)
def test_a_unit_does_what_it_says(unit: str) -> None:
    kind, make, watch, _ = _UNITS[unit]
    assert proved(make(kind), watch, cycles=_CYCLES.get(unit))


@pytest.mark.parametrize(
    ("unit", "bug"),
    [
        pytest.param(unit, bug, marks=() if (unit, bug) == ("arc", 0) else pytest.mark.slow)
        for unit, (_, _, _, bugs) in _UNITS.items()
        for bug in range(len(bugs))
    ],
)
def test_a_bug_is_found(unit: str, bug: int) -> None:
    kind, make, watch, bugs = _UNITS[unit]
    assert not proved(make(seeded(kind, *bugs[bug])), watch, cycles=_CYCLES.get(unit))
