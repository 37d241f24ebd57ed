"""What is read from a scratchpad, and which of the accesses that share its ports go."""

from amaranth.hdl import Cat, Mux, Signal

from pe.scratchpad import Scratchpad
from pe.scratchpad_shared import PATIENCE, PortArbiter, share
from pe.vector.stages import read_cycles

from .proof import Watch

# The scratchpad: a byte, which may be any, and what was written there last.


def scratchpad(dut: Scratchpad, watch: Watch) -> None:
    """A read returns what was written last, of each byte, on each port."""
    m, size, shared = watch.m, dut.config.scratchpad_bytes, dut.config.shared_ports
    address = watch.any_constant(dut.config.scratchpad_bits)
    value, last = Signal(8), Signal(8)
    m.d.comb += last.eq(value)
    hits = []
    for port in dut.write:
        place = Signal(dut.config.scratchpad_bits)
        m.d.comb += place.eq(address - port.address)
        ready = port.ready if shared else 1
        hit = (place < 8) & port.strobe.bit_select(place[:3], 1) & ready & ~watch.first
        hits.append(hit)
        with m.If(hit):
            m.d.comb += last.eq(port.data.word_select(place[:3], 8))
    m.d.sync += value.eq(last)
    # Undefined by the contract: a byte written twice, and one read as it is written.
    watch.assume(~Cat(hits).all())
    fresh = Cat(hits).any()
    if shared:
        # A result may be written in the next cycle, and what waits asks again.
        watch.assume(~fresh | ~watch.before(fresh))
        fresh |= watch.before(fresh)
        for port in dut.write:
            for byte in range(8):
                row = port.rows.bit_select((port.address + byte)[3], 1)
                watch.assume(row | ~port.strobe[byte])
            watch.assume(
                ~watch.before(port.rows.any() & ~port.ready)
                | (port.rows == watch.before(port.rows))
            )
        for port, asks in (
            *((port, port.enable) for port in dut.read),
            *((port, port.strobe) for port in dut.write),
        ):
            waits = watch.before(asks.any() & ~port.ready)
            for field in (asks, port.address):
                watch.assume(~waits | (field == watch.before(field)))
    known = Signal()
    with m.If(Cat(hits).any()):
        m.d.sync += known.eq(1)
    assert size >= 8
    for role, port in zip(dut.roles, dut.read, strict=True):
        place = Signal(dut.config.scratchpad_bits)
        m.d.comb += place.eq(address - port.address)
        takes = port.enable & port.ready if shared else port.enable
        reads = watch.before(takes & (place < 8) & known & ~fresh)
        where, expected = watch.before(place[:3]), watch.before(value)
        for _ in range(1, read_cycles(dut.config) if role != "store" else 1):
            reads, where, expected = map(watch.before, (reads, where, expected))
        byte = port.data.word_select(address[:3] if role == "store" else where, 8)
        watch.never(reads & (byte != expected))


SCRATCHPAD_BUGS = (
    ("wraps = self._offset(port.address) > index", "wraps = self._offset(port.address) >= index"),
    ("turn.eq(-start)", "turn.eq(start)"),
    ("Mux(start > index, next_row, row)", "row"),
)
SHARED_BUGS = (
    ("row ^ (start > index)", "row ^ (start >= index)"),
    ("turn.eq(-start)", "turn.eq(start)"),
    ("at_0 & arbiter.is_late", "at_0 & ~arbiter.is_late", share),
    ("[parity].extend(", "[1 - parity].extend(", share),
    ("takes = goes & access.rows[parity]", "takes = goes", share),
)


# Ports that accesses share: what goes where, and how long each waits.


def port_arbiter(dut: PortArbiter, watch: Watch) -> None:
    """What goes has its port alone; a result goes in its cycle or the next, in turn; operands wait
    for what has waited; loads wait for at most so many cycles."""
    asks = {role: getattr(dut, role) for role in ("first", "second", "store", "load")}
    goes = {
        "first": dut.beat,
        "second": dut.beat,
        "store": dut.store_ready,
        "load": dut.load_ready,
    }
    late = watch.before(Mux(dut.result_waits, dut.result, 0))
    result = Mux(dut.is_late, late, dut.result)
    # What waits asks again.
    for role, ask in asks.items():
        before = watch.before(Mux(goes[role], 0, ask))
        watch.assume(watch.first | (before == 0) | (ask == before))
        waits = Signal(range(PATIENCE + 2), name=f"{role}_waits")
        left = (ask != 0) & ~goes[role]
        with watch.m.If(~left):
            watch.m.d.sync += waits.eq(0)
        with watch.m.Elif(waits <= PATIENCE):
            watch.m.d.sync += waits.eq(waits + 1)
        if role == "load":
            watch.never(left & (waits == PATIENCE))
        elif role == "store":
            # Only for a result that waited.
            watch.never(left & (waits >= PATIENCE) & ((late & ask) == 0))
        operands = (dut.second if role == "load" else dut.first) & ask
        watch.never((waits < PATIENCE) & (operands != 0) & goes[role] & (role in ("store", "load")))
    at_port_0 = dut.result_goes & ~dut.result_at_1
    at_port_1 = dut.result_goes & dut.result_at_1
    for one, other in (
        (Mux(dut.beat, dut.first, 0), Mux(dut.store_ready, dut.store, 0)),
        (Mux(dut.beat, dut.first, 0), Mux(at_port_0, result, 0)),
        (Mux(dut.store_ready, dut.store, 0), Mux(at_port_0, result, 0)),
        (Mux(dut.beat, dut.second, 0), Mux(dut.load_ready, dut.load, 0)),
        (Mux(dut.beat, dut.second, 0), Mux(at_port_1, result, 0)),
        (Mux(dut.load_ready, dut.load, 0), Mux(at_port_1, result, 0)),
    ):
        watch.never((one & other) != 0)
    watch.never(dut.is_late != (late != 0))
    watch.never(dut.is_late & ~dut.result_goes)
    watch.never((dut.result != 0) & (dut.result_waits == (dut.result_goes & ~dut.is_late)))
    watch.never((dut.result == 0) & dut.result_waits)


ARBITER_BUGS = (
    ("cycles == PATIENCE", "cycles == PATIENCE - 1"),
    ("Mux(self.result_at_1, now, 0)", "0"),
    ("self.is_late | ~self.result_goes", "~self.result_goes"),
    ("& ~(urgent_load & self.second.any())", ""),
    ("claim | Mux(urgent_store, 0, self.first)", "Mux(urgent_store, 0, self.first)"),
    ("self.first | self.store)),\n            claim", "self.first)),\n            claim"),
)
