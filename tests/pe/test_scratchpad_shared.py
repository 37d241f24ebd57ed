"""A scratchpad whose accesses share ports, against a byte array and the order that ports go by."""

import random
from dataclasses import dataclass, field, replace

import pytest

from pe.config import PeConfig
from pe.scratchpad import Scratchpad, read_roles, write_roles
from pe.scratchpad_shared import PATIENCE, PortArbiter
from tests.executed_lines import design_of, simulator_of

_READS = ("first", "second", "store")
#: Accesses crowd on so many bytes, around the end.
HOT = 48
_VECTORS = frozenset({"halt", "ld.sram[8]", "st.sram[8]", "v.v.add[16]"})


def rows_of(places: list[int]) -> set[int]:
    """0 if one of these bytes lies in an even row, 1 if one does in an odd row."""
    return {place // 8 % 2 for place in places}


@dataclass
class Ports:
    """Who goes in each cycle, role by role, from what each asks for."""

    late: set[int] = field(default_factory=set)
    waits: dict[str, int] = field(default_factory=lambda: {"store": 0, "load": 0})

    def cycle(self, asks: dict[str, set[int]]) -> tuple[set[str], bool]:
        """Roles that go, and whether the result does that came in the cycle before."""
        first, second, store, load, result = (
            asks.get(role, set()) for role in (*_READS, "load", "result")
        )
        urgent = {role for role, cycles in self.waits.items() if cycles == PATIENCE}
        # Port -> rows in which it is in use, in the order of those that go.
        claims: tuple[set[int], set[int]] = (set(), set())
        goes: set[str] = set()

        def go(role: str, port: int, rows: set[int]) -> None:
            if rows and not rows & claims[port]:
                claims[port].update(rows)
                goes.add(role)

        waiting, came = bool(self.late), self.late or result
        if "load" in urgent:
            go("load", 1, load)
        if waiting and came & (first | store) and ("load" in urgent or came & second):
            go("result", 0, came)
        if "store" in urgent:
            go("store", 0, store)
            claims[0].update(store)
        beat = not (first & claims[0]) and not ("load" in urgent and second)
        if beat:
            go("first", 0, first)
            go("second", 1, second)
        # The others leave them their ports even if they wait, and so do they to urgent stores.
        claims[0].update(first)
        claims[1].update(second)
        go("store", 0, store)
        # A result rather at port 0, and where nothing else may go but a load.
        if "result" not in goes and not came & (first | store):
            go("result", 0, came)
        elif "result" not in goes and not came & second and "load" not in urgent:
            go("result", 1, came)
        go("load", 1, load)
        for role, rows in (("store", store), ("load", load)):
            left = bool(rows) and role not in goes
            self.waits[role] = min(self.waits[role] + 1, PATIENCE) if left else 0
        self.late = result if waiting or "result" not in goes else set()
        return goes, waiting


def test_the_arbiter_lets_go_in_order() -> None:
    dut = design_of(PortArbiter)
    rng = random.Random(1)
    ports = Ports()
    seen: set[str] = set()

    async def bench(ctx) -> None:
        asks: dict[str, set[int]] = {}
        for number in range(3000):
            busy = 0.97 if number // 300 % 2 else 0.5
            for role in (*_READS, "load", "result"):
                if role not in asks and rng.random() < busy:
                    asks[role] = set(rng.choice(((0,), (1,), (0, 1))))
            for role in (*_READS, "load", "result"):
                ctx.set(getattr(dut, role), sum(1 << row for row in asks.get(role, ())))
            operands = {role for role in ("first", "second") if role in asks}
            before = dict(ports.waits)
            goes, late = ports.cycle(asks)
            assert ctx.get(dut.is_late) == late
            assert ctx.get(dut.beat) == (operands <= goes) or not operands
            for role in ("store", "load"):
                assert ctx.get(getattr(dut, f"{role}_ready")) == (role in goes) or role not in asks
                if before[role] == PATIENCE:
                    seen.add(f"urgent {role}")
            if late or "result" in asks:
                assert ctx.get(dut.result_goes) == ("result" in goes)
            assert ctx.get(dut.result_waits) == bool(ports.late)
            seen.update({"late"} if late else set())
            for role in (*_READS, "load"):
                if role in goes:
                    del asks[role]
            asks.pop("result", None)
            await ctx.tick()

    with simulator_of(dut) as simulator:
        simulator.add_clock(1e-9)
        simulator.add_testbench(bench)
        simulator.run()
    assert seen == {"late", "urgent load", "urgent store"}


@dataclass
class Move:
    """An access: its address, and of a write the strobes and data."""

    address: int
    strobe: int = 0xFF
    data: int = 0

    def places(self, size: int) -> list[int]:
        """Byte addresses that it reads or writes."""
        return [(self.address + at) % size for at in range(8) if self.strobe >> at & 1]


class Traffic:
    """Random accesses, of which those that wait are repeated, and what they read and write.

    Attributes:
        moves: role -> what asks in this cycle.
        words: role of a read -> bytes that its port shows, from the next cycle on and, of operands,
            in the one after; None where they are undefined.
        late: results that came a cycle ago. waits: role -> cycles in which it waited.
    """

    def __init__(self, config: PeConfig, seed: int) -> None:
        self.size = config.scratchpad_bytes
        self.step = config.scratchpad_alignment
        self.rng = random.Random(seed)
        self.reads, self.writes = read_roles(config), write_roles(config)
        self.moves: dict[str, Move] = {}
        self.words: dict[str, list[list[int | None]]] = {
            role: [[0] * 8] * (1 if role == "store" else 2) for role in self.reads
        }
        self.late, self.waits = 0, dict.fromkeys((*self.reads, *self.writes), 0)
        self._ports = Ports()
        self._memory = [0] * self.size
        # Bytes that were written in the last two cycles: results may be on their way.
        self._recent: list[set[int]] = [set(), set()]

    def ask(self, busy: float) -> set[str]:
        """Choose what asks in this cycle; returns the roles that go."""
        rng = self.rng
        spent = set.union(*self._recent)
        for role in self.writes:
            if role in self.moves:
                spent.update(self.moves[role].places(self.size))
        for role in (*self.reads, *self.writes):
            if role in self.moves or rng.random() >= busy:
                continue
            move = Move(rng.randrange(-HOT // 2, HOT // 2) % self.size & -self.step)
            if role in self.writes:
                chosen = rng.choice([0xFF, 0x0F, rng.randrange(1, 256)])
                allowed = [(move.address + at) % self.size not in spent for at in range(8)]
                move.strobe = sum(chosen & 1 << at for at in range(8) if allowed[at])
                move.data = rng.getrandbits(64)
                spent.update(move.places(self.size))
            if move.strobe:
                self.moves[role] = move
        asks = {role: rows_of(move.places(self.size)) for role, move in self.moves.items()}
        goes, late = self._ports.cycle(asks)
        self.late += late
        return goes - {"result"} | ({"result"} & self.moves.keys())

    def end(self, goes: set[str]) -> None:
        """End the cycle, in which these roles went."""
        written = {p for role in self.writes if role in goes for p in self._places(role)}
        for role, words in self.words.items():
            words[1:] = words[:-1]
            if role in goes:
                at = self.moves[role].address
                if role == "store":
                    at &= -8
                    row = self.moves[role].address - at
                    places = [
                        (at + byte + (8 if byte < row else 0)) % self.size for byte in range(8)
                    ]
                else:
                    places = self._places(role)
                open_places = written | self._recent[-1]
                words[0] = [None if p in open_places else self._memory[p] for p in places]
        for role in [*self.moves]:
            if role not in goes:
                self.waits[role] += 1
                continue
            move = self.moves.pop(role)
            if role in self.writes:
                for at in range(8):
                    if move.strobe >> at & 1:
                        self._memory[(move.address + at) % self.size] = move.data >> 8 * at & 0xFF
        self._recent = [self._recent[-1], written]

    def _places(self, role: str) -> list[int]:
        return self.moves[role].places(self.size)


_BINARY = PeConfig(scratchpad_bytes=256, scratchpad_banks=16, instructions=_VECTORS)


@pytest.mark.parametrize("cycles", [200, pytest.param(4000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "config",
    [
        _BINARY,
        replace(_BINARY, scratchpad_bytes=64, scratchpad_alignment=8),
        replace(_BINARY, instructions=frozenset({"halt", "m.v.nop.add[8]", "st.sram[8]"})),
    ],
    ids=["any", "aligned", "no second operand"],
)
def test_random_accesses_wait_and_read_what_was_written(config: PeConfig, cycles: int) -> None:
    dut = design_of(Scratchpad, config)
    traffic = Traffic(config, 1)
    ports = dict(zip((*traffic.reads, *traffic.writes), (*dut.read, *dut.write), strict=True))

    async def bench(ctx) -> None:
        for number in range(cycles):
            goes = traffic.ask(0.95 if number // 50 % 2 else 0.5)
            for role, port in ports.items():
                move = traffic.moves.get(role, Move(0, 0))
                ctx.set(port.address, move.address)
                if role in traffic.reads:
                    ctx.set(port.enable, role in traffic.moves)
                else:
                    rows = rows_of(move.places(traffic.size)) if role in traffic.moves else ()
                    ctx.set(port.rows, sum(1 << row for row in rows))
                    ctx.set(port.data, move.data)
                    ctx.set(port.strobe, move.strobe)
            for role in traffic.moves:
                assert ctx.get(ports[role].ready) == (role in goes), (number, role)
            traffic.end(goes)
            await ctx.tick()
            for role, words in traffic.words.items():
                word = ctx.get(ports[role].data).to_bytes(8, "little")
                for byte, expected in zip(word, words[-1], strict=True):
                    assert expected in (None, byte), (number, role)

    with simulator_of(dut) as simulator:
        simulator.add_clock(1e-9)
        simulator.add_testbench(bench)
        simulator.run()
    # Without a second operand, results always find a port.
    assert (traffic.late > cycles // 20) == ("second" in traffic.reads)
    if "second" in traffic.reads:
        assert min(traffic.waits[role] for role in ("first", "store", "load")) > cycles // 40
