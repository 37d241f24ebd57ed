"""Banks of a scratchpad whose ports all accesses share, and who goes first."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from amaranth.hdl import Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.emission import shared_instance
from hdl.sram import SharedSram

from .config import PeConfig

#: Cycles that a load or store waits before it goes ahead of operands.
PATIENCE = 8
_ROLES = ("first", "second", "store", "result", "load")


def _meet(one: Value, other: Value) -> Value:
    return (one & other).any()


class PortArbiter(Component):
    """Divides the two ports that the banks of even rows have, and those of odd rows, in each cycle.

    Port 0 serves the first operand and stores, port 1 the second and loads, either of them results.
    An access takes its port in all banks with rows of a parity in which it has bytes. The operands
    of a beat go together. A result goes at port 0 where no operand and no store asks for it, or at
    port 1 where no operand does and no load that has waited :data:`PATIENCE` cycles; or it waits a
    cycle, and then goes in the next one, at port 0 before all others if it must. Stores and loads
    go where no operand asks for their port, and loads after results; when they have waited
    :data:`PATIENCE` cycles, operands wait for them, and results leave port 1 to such loads.

    All outputs but ``is_late`` follow the inputs of the same cycle.

    Members:
        first, second, store, result, load (in, 2): what asks for a port: bit 0 for even rows, bit 1
            for odd ones; 0: nothing. All but results ask until they go.
        beat (out, 1): the operands go in this cycle if they ask.
        store_ready (out, 1): the store does.
        load_ready (out, 1): the load does.
        result_goes (out, 1): a result does, if there is one: the one that waits, or else the one of
            this cycle.
        result_at_1 (out, 1): it goes at port 1, not 0.
        result_waits (out, 1): the result of this cycle goes in the next one.
        is_late (out, 1): a result of the cycle before waits, and goes in this one.
    """

    def __init__(self) -> None:
        asks = dict.fromkeys(_ROLES, In(2))
        goes = ("beat", "store_ready", "load_ready", "result_goes")
        results = ("result_at_1", "result_waits", "is_late")
        super().__init__({**asks, **dict.fromkeys((*goes, *results), Out(1))})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        urgent_store = self._urgent(m, "store")
        urgent_load = self._urgent(m, "load")
        # The result that waits, and the part of port 0 that it takes from others. Beats depend on
        # neither results nor loads of this cycle, which are late.
        late, claim, now, crowded = Signal(2), Signal(2), Signal(2), Signal()
        m.d.comb += [
            self.is_late.eq(late.any()),
            now.eq(Mux(self.is_late, late, self.result)),
            crowded.eq(_meet(now, self.first | self.store)),
            claim.eq(Mux(urgent_load | _meet(late, self.second), late, 0)),
            self.result_at_1.eq(crowded & ~urgent_load & ~_meet(now, self.second)),
            self.result_goes.eq(self.is_late | self.result_at_1 | ~crowded),
            self.result_waits.eq(self.result.any() & (self.is_late | ~self.result_goes)),
            self.beat.eq(
                ~_meet(self.first, claim | Mux(urgent_store, self.store, 0))
                & ~(urgent_load & self.second.any())
            ),
            self.store_ready.eq(~_meet(self.store, claim | Mux(urgent_store, 0, self.first))),
            self.load_ready.eq(
                urgent_load | ~_meet(self.load, self.second | Mux(self.result_at_1, now, 0))
            ),
        ]
        m.d.sync += late.eq(Mux(self.result_waits, self.result, 0))
        return m

    def _urgent(self, m: Module, role: str) -> Value:
        """Whether the load or store has waited for long enough."""
        # What asks for nothing is ready.
        ready = getattr(self, f"{role}_ready")
        cycles = Signal(range(PATIENCE + 1), name=f"{role}_cycles")
        urgent = Signal(name=f"urgent_{role}")
        m.d.comb += urgent.eq(cycles == PATIENCE)
        with m.If(ready):
            m.d.sync += cycles.eq(0)
        with m.Elif(~urgent):
            m.d.sync += cycles.eq(cycles + 1)
        return urgent


class Access(NamedTuple):
    """An access that may wait.

    Attributes:
        rows: those for whose ports it asks, as of :func:`pe.ports.rows_between`; 0: none.
        lanes: its bytes, by their place in a row, in an even and in an odd row, if it asks there.
        places: addresses of these rows in the banks of their parity.
        word: what it writes, byte by byte at those places; None: it reads.
    """

    rows: Value
    lanes: tuple[Value, Value]
    places: tuple[Value, Value]
    word: Value | None = None


def share(
    m: Module, platform: object, config: PeConfig, accesses: Mapping[str, Access]
) -> tuple[PortArbiter, dict[str, tuple[list[Value], list[Value]]]]:
    """Build the banks, whose ``accesses`` go as an arbiter says.

    Parameters:
        m: module that gets them and the arbiter.
        platform: the argument of the caller's ``elaborate``.
        config: the engine's, with 16 banks.
        accesses: role -> what asks, of those roles that are in use: ``first``, ``second`` and
            ``store`` read; ``result`` and ``load`` write, and need a ``word``.

    Returns:
        arbiter: says when they go. A result may be written a cycle after that in which it asks.
        words: role of each read -> bytes of the even and odd row that its port shows, a cycle
            later.
    """
    arbiter = PortArbiter()
    m.submodules.arbiter = shared_instance(arbiter, platform)
    for role, access in accesses.items():
        m.d.comb += getattr(arbiter, role).eq(access.rows)
    asks = {**accesses}
    if "result" in accesses:
        asks["late"] = _late(m, arbiter, accesses["result"])
    # Which accesses go at either port. Where several could, the last one that asks has the port:
    # the words of results are the last to be known.
    at_0, at_1 = arbiter.result_goes & ~arbiter.result_at_1, arbiter.result_at_1
    at_ports: tuple[dict[str, Value], dict[str, Value]] = (
        {
            "first": arbiter.beat,
            "store": arbiter.store_ready,
            "late": at_0 & arbiter.is_late,
            "result": at_0 & ~arbiter.is_late,
        },
        {
            "second": arbiter.beat,
            "load": arbiter.load_ready,
            "late": at_1 & arbiter.is_late,
            "result": at_1 & ~arbiter.is_late,
        },
    )
    words: dict[str, tuple[list[Value], list[Value]]] = {}
    for parity, rows in enumerate(("even", "odd")):
        banks = [
            SharedSram(
                width=8,
                depth=config.scratchpad_bytes // config.scratchpad_banks,
                ports=2,
                kind=config.sram,
            )
            for _ in range(config.scratchpad_banks // 2)
        ]
        for index, bank in enumerate(banks):
            m.submodules[f"{rows}{index}"] = shared_instance(bank, platform)
        for number, at_port in enumerate(at_ports):
            users = [(asks[role], goes) for role, goes in at_port.items() if role in asks]
            _join(m, parity, [bank.port[number] for bank in banks], users)
            for role in at_port:
                if role in asks and asks[role].word is None:
                    words.setdefault(role, ([], []))[parity].extend(
                        bank.port[number].data for bank in banks
                    )
    return arbiter, words


def _late(m: Module, arbiter: PortArbiter, result: Access) -> Access:
    """The result that waits, from the cycle before."""

    def later(name: str, value: Value) -> Value:
        late = Signal(len(value), name=f"late_result_{name}", reset_less=True)
        with m.If(arbiter.result_waits):
            m.d.sync += late.eq(value)
        return late

    assert result.word is not None
    even, odd = (later(f"lanes_{parity}", lanes) for parity, lanes in enumerate(result.lanes))
    place, other = (later(f"place_{parity}", at) for parity, at in enumerate(result.places))
    rows, word = later("rows", result.rows), later("word", result.word)
    return Access(rows, (even, odd), (place, other), word)


def _join(m: Module, parity: int, ports: list[Any], users: list[tuple[Access, Value]]) -> None:
    """Connect a port of each bank of rows of one parity to its users, each with whether it goes if
    it asks; at most one does."""
    address: Value | None = None
    word: Value | None = None
    enable: Value = Const(0, len(ports))
    write: Value = Const(0, 1)
    for access, goes in users:
        lanes, place = access.lanes[parity], access.places[parity]
        takes = goes & access.rows[parity]
        enable |= lanes & takes.replicate(len(ports))
        address = place if address is None else Mux(takes, place, address)
        if access.word is not None:
            write |= takes
            word = access.word if word is None else Mux(takes, access.word, word)
    for index, port in enumerate(ports):
        m.d.comb += [port.enable.eq(enable[index]), port.write.eq(write)]
        m.d.comb += port.address.eq(address) if address is not None else []
        m.d.comb += port.word.eq(word.word_select(index, 8)) if word is not None else []
