"""A DRAM and a requester for tests of the controller in Amaranth's simulator.

The DRAM obeys and checks every command against the table in :class:`memory.timing.DramTiming`,
written down here anew, command by command.
"""

import random
from collections import defaultdict, deque
from dataclasses import dataclass, field

from memory.config import VaultConfig
from memory.controller.dram_port import DramCommand

ALL = 0xFF
LONG_AGO = -(10**9)


@dataclass
class Bank:
    row: int | None = None
    at: dict[str, int] = field(default_factory=lambda: defaultdict(lambda: LONG_AGO))
    refreshes: int = 0


class Dram:
    """Feed :meth:`cycle` the port once a cycle; it raises on the first rule broken."""

    def __init__(self, config: VaultConfig) -> None:
        self.config = config
        self.banks = [Bank() for _ in range(config.banks)]
        self.words: dict[tuple[int, int, int, int], int] = defaultdict(int)
        self.activates: deque[int] = deque([LONG_AGO] * 4, maxlen=4)
        self.bursts: deque[tuple[int, bool, tuple[int, int, int]]] = deque()
        self.last_burst = (LONG_AGO, False)
        self.log: list[tuple[int, str, int]] = []
        self.stopped = False

    def _apart(self, now: int, bank: int, kind: str, since: int, clocks: int, rule: str) -> None:
        assert now - since >= clocks, f"cycle {now}: {kind} to bank {bank} breaks {rule}"

    def command(self, now: int, kind: DramCommand, number: int, row: int, column: int) -> None:
        t = self.config.timing
        bank = self.banks[number]
        at = bank.at
        self.log.append((now, kind.name, number))

        def apart(since: int, clocks: int, rule: str) -> None:
            self._apart(now, number, kind.name, since, clocks, rule)

        if kind is DramCommand.ACT:
            assert bank.row is None, f"cycle {now}: ACT of open bank {number}"
            apart(at["ACT"], t.tras + t.trp, "tRC")
            apart(at["PRE"], t.trp, "tRP")
            apart(at["REFRESH"], t.trfc, "tRFC")
            apart(self.activates[-1], t.trrd, "tRRD")
            apart(self.activates[0], t.tfaw, "tFAW")
            self.activates.append(now)
            bank.row = row
        elif kind is DramCommand.PRE:
            apart(at["ACT"], t.tras, "tRAS")
            apart(at["READ"], t.trtp, "tRTP")
            apart(at["WRITE"], t.tcwl + 4 + t.twr, "tWR")
            bank.row = None
        elif kind is DramCommand.REFRESH:
            assert bank.row is None, f"cycle {now}: REFRESH of open bank {number}"
            apart(at["PRE"], t.trp, "tRP")
            apart(at["REFRESH"], t.trfc, "tRFC")
            bank.refreshes += 1
        else:
            assert bank.row is not None, f"cycle {now}: {kind.name} of closed bank {number}"
            apart(at["ACT"], t.trcd, "tRCD")
            apart(max(at["READ"], at["WRITE"]), t.tccd, "tCCD")
            write = kind is DramCommand.WRITE
            if not write:
                apart(at["WRITE"], t.tcwl + 4 + t.twtr, "tWTR")
            start = now + (t.tcwl if write else t.tcl)
            previous, was_write = self.last_burst
            gap = 4 + (t.turnaround_clocks if was_write != write else 0)
            apart(previous, gap - (start - now), "the data bus")
            self.last_burst = (start, write)
            self.bursts.append((start, write, (number, bank.row, column)))
        at[kind.name] = now

    def data(self, now: int, write_data: int, write_strobe: int) -> int:
        """Word that the DRAM drives in cycle ``now``, after it has taken what the bus holds."""
        while self.bursts and self.bursts[0][0] + 4 <= now:
            self.bursts.popleft()
        if not self.bursts or now < self.bursts[0][0]:
            return random.Random(now).getrandbits(64)
        start, write, place = self.bursts[0]
        key = (*place, now - start)
        if not write:
            return self.words[key]
        for byte in range(8):
            if write_strobe >> byte & 1:
                mask = 0xFF << 8 * byte
                self.words[key] = self.words[key] & ~mask | write_data & mask
        return 0

    def refreshes_in_time(self, now: int) -> None:
        for number, bank in enumerate(self.banks):
            owed = now // self.config.timing.trefi - bank.refreshes
            assert owed <= 8, f"cycle {now}: bank {number} is {owed} refreshes behind"

    async def run(self, ctx, port) -> None:
        """Testbench: the DRAM at ``port``, until :attr:`stopped` is set."""
        now = 0
        while not self.stopped:
            # The data of a command given in this cycle starts later, so the order does not matter.
            if ctx.get(port.valid):
                self.command(
                    now,
                    ctx.get(port.kind),
                    ctx.get(port.bank),
                    ctx.get(port.row),
                    ctx.get(port.column),
                )
            word = self.data(now, ctx.get(port.write_data), ctx.get(port.write_strobe))
            ctx.set(port.read_data, word)
            self.refreshes_in_time(now)
            await ctx.tick()
            now += 1


@dataclass
class Access:
    address: int
    write: bool = False
    words: int = 1
    data: tuple[int, ...] = ()
    strobes: tuple[int, ...] = ()
    tag: int = 0
    #: Filled in: cycles of acceptance (of the last beat) and of the last response beat, the words
    #: read, and whether the answer was an error.
    accepted: int = -1
    answered: int = -1
    read: list[int] = field(default_factory=list)
    error: bool = False


class Requester:
    """Sends accesses in order as fast as it may and collects the responses."""

    def __init__(
        self,
        config: VaultConfig,
        accesses: list[Access],
        *,
        rng: random.Random | None = None,
        request_rate: float = 1.0,
        response_rate: float = 1.0,
        timeout: int = 20000,
    ) -> None:
        self.config = config
        self.accesses = accesses
        self.rng = rng or random.Random(0)
        self.request_rate = request_rate
        self.response_rate = response_rate
        self.timeout = timeout
        self.beats = self._beats()

    def _beats(self):
        for access in self.accesses:
            if not access.write:
                yield access, access.address, access.words - 1, 0, ALL, 1
                continue
            for n, (word, strobe) in enumerate(zip(access.data, access.strobes, strict=True)):
                left = len(access.data) - 1 - n
                yield access, access.address + 8 * n, left, word, strobe, left == 0

    async def run(self, ctx, port) -> None:
        free = list(range(1 << self.config.tag_bits))
        flying: dict[int, Access] = {}
        inside: int | None = None
        beat = next(self.beats, None)
        offered = False
        done = 0
        now = 0
        while done < len(self.accesses):
            assert now < self.timeout, f"{len(self.accesses) - done} accesses are lost"
            if beat and not offered:
                access, address, words, data, strobe, last = beat
                first = flying.get(access.tag) is not access
                if (free or not first) and self.rng.random() < self.request_rate:
                    if first:
                        access.tag = free.pop(self.rng.randrange(len(free)))
                        flying[access.tag] = access
                    ctx.set(
                        port.request.payload,
                        {
                            "address": address,
                            "tag": access.tag,
                            "write": access.write,
                            "words": words,
                            "data": data,
                            "strobe": strobe,
                            "last": last,
                        },
                    )
                    offered = True
            ctx.set(port.request.valid, offered)
            taking = self.rng.random() < self.response_rate
            ctx.set(port.response.ready, taking)
            if offered and ctx.get(port.request.ready):
                offered = False
                beat[0].accepted = now
                beat = next(self.beats, None)
            if taking and ctx.get(port.response.valid):
                response = ctx.get(port.response.payload)
                access = flying[response.tag]
                assert inside in (None, response.tag), "responses are mixed"
                inside = None if response.last else response.tag
                if not access.write:
                    access.read.append(response.data)
                if response.last:
                    access.error = bool(response.error)
                    access.answered = now
                    del flying[response.tag]
                    free.append(response.tag)
                    done += 1
            await ctx.tick()
            now += 1
        ctx.set(port.request.valid, 0)
        ctx.set(port.response.ready, 0)


def run_accesses(simulate, dut, accesses: list[Access], **options) -> Dram:
    """Run ``accesses`` on a controller and check every response against their program order."""
    dram = Dram(dut.config)
    requester = Requester(dut.config, accesses, **options)

    async def device(ctx):
        await dram.run(ctx, dut.dram)

    async def bench(ctx):
        await requester.run(ctx, dut.port)
        dram.stopped = True

    simulate(dut, device, bench)
    check(dut.config, accesses)
    return dram


def check(config: VaultConfig, accesses: list[Access]) -> None:
    """Whether every read returned what the accesses before it wrote."""
    memory: dict[int, int] = defaultdict(int)
    for access in accesses:
        if access.address >= config.size_bytes:
            assert access.error
            continue
        assert not access.error
        if access.write:
            for n, (word, strobe) in enumerate(zip(access.data, access.strobes, strict=True)):
                for byte in range(8):
                    if strobe >> byte & 1:
                        mask = 0xFF << 8 * byte
                        address = access.address + 8 * n
                        memory[address] = memory[address] & ~mask | word & mask
        else:
            expected = [memory[access.address + 8 * n] for n in range(access.words)]
            assert access.read == expected, f"read of {access.address:#x}"


def bandwidth(config: VaultConfig, accesses: list[Access]) -> float:
    """GB/s of whole columns from the first to the last answer."""
    cycles = max(a.answered for a in accesses) - min(a.answered for a in accesses)
    return (len(accesses) - 1) * 32 / (cycles * config.timing.tck_ns)


def random_accesses(
    config: VaultConfig, rng: random.Random, count: int, *, columns: int, writes: float = 0.4
) -> list[Access]:
    """Accesses of one to four words to a few columns all over the vault."""
    places = [32 * rng.randrange(config.size_bytes // 32) for _ in range(columns)]
    found = []
    for _ in range(count):
        words = rng.randint(1, 4)
        address = rng.choice(places) + 8 * rng.randint(0, 4 - words)
        if rng.random() < writes:
            data = tuple(rng.getrandbits(64) for _ in range(words))
            strobes = tuple(rng.choice((ALL, 0, rng.getrandbits(8))) for _ in range(words))
            found.append(Access(address, True, words, data, strobes))
        else:
            found.append(Access(address, False, words))
    return found
