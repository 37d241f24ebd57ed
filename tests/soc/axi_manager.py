"""A hostile AXI4 manager: bursts of every kind, as AXI has them or not, and what must come back.

In each cycle ``plan`` returns the values that it drives, then ``step`` takes those it saw.
"""

from collections import deque
from dataclasses import dataclass, field

OKAY, SLVERR, DECERR = 0, 2, 3
FIXED, INCR, WRAP = 0, 1, 2
PAGE = 4096
COLUMN = 32
LANES = 8


@dataclass
class Burst:
    write: bool
    id: int
    address: int
    length: int
    size: int
    kind: int
    #: Of each beat: its first byte and the one after its last.
    spans: list = field(default_factory=list)
    data: list = field(default_factory=list)
    strobes: list = field(default_factory=list)
    #: Answer expected: of a write one, of a read one a beat, with the bytes.
    responses: list = field(default_factory=list)
    content: list = field(default_factory=list)
    seen: int = 0

    @property
    def range(self):
        """Addresses of its bytes."""
        return min(a for a, _ in self.spans), max(b for _, b in self.spans)


def spans_of(address, length, size, kind):
    """Addresses of the beats, by the book (AMBA AXI, A3.4.1)."""
    width = 1 << size
    aligned = address // width * width
    found = []
    for beat in range(length):
        if kind == FIXED or beat == 0:
            found.append((address, aligned + width))
            continue
        start = aligned + beat * width
        if kind == WRAP:
            total = width * length
            low = address // total * total
            start = low + (address - low + beat * width) % total
        found.append((start, start + width))
    return found


class Manager:
    """Random bursts to a memory of ``memory``, which is a start state.

    A burst that overlaps one of the other kind on its way waits for it: there is no order between.
    Answers on the channel ``stuck``, b or r, are never taken, nor waited for.
    """

    def __init__(
        self,
        rng,
        memory,
        bursts,
        *,
        offer=1.0,
        take=1.0,
        outstanding=12,
        failing=frozenset(),
        stuck="",
    ):
        self.rng = rng
        self.memory = bytearray(memory)
        self.offer = offer
        self.take = take
        self.outstanding = outstanding
        self.failing = failing
        self.bursts = deque(bursts)
        self.stuck = stuck
        self.total = sum(stuck != ("b" if burst.write else "r") for burst in self.bursts)
        self.offers = {"aw": None, "w": None, "ar": None}
        self.queues = {"aw": deque(), "w": deque(), "ar": deque()}
        self.writes, self.reads = deque(), deque()
        self.ready = {"b": False, "r": False}
        self.before = {"b": None, "r": None}
        self.finished = []
        self.cycle = 0
        self.beat_cycles = {"w": [], "r": []}

    @property
    def done(self):
        """Whether every burst has its answer, but for those on a stuck channel."""
        return len(self.finished) == self.total

    def plan(self):
        """Beats offered on aw, w and ar (dictionaries, or None), and ready of b and r."""
        while self.bursts and self._free(self.bursts[0]):
            self.start(self.bursts.popleft())
        for name, queue in self.queues.items():
            if self.offers[name] is None and queue and self.rng.random() < self.offer:
                self.offers[name] = queue.popleft()
        for name in self.ready:
            self.ready[name] = name != self.stuck and self.rng.random() < self.take
        return self.offers, self.ready

    def _free(self, burst):
        others = self.reads if burst.write else self.writes
        if len(self.writes) + len(self.reads) == self.outstanding:
            return False
        low, high = burst.range
        return all(other.range[1] <= low or other.range[0] >= high for other in others)

    def start(self, burst):
        """Queue the beats of ``burst``, and note what must come back."""
        address = {
            "id": burst.id,
            "addr": burst.address,
            "len": burst.length - 1,
            "size": burst.size,
            "burst": burst.kind,
        }
        error = self._error(burst)
        failed = [start // COLUMN in self.failing for start, _ in burst.spans]
        if burst.write:
            self.queues["aw"].append(address)
            beats = zip(burst.data, burst.strobes, strict=True)
            for number, (data, strobe) in enumerate(beats):
                last = number == burst.length - 1
                self.queues["w"].append({"data": data, "strb": strobe, "last": int(last)})
                start = burst.spans[number][0] // LANES * LANES
                if error == OKAY and not failed[number]:
                    for lane in range(LANES):
                        if strobe >> lane & 1:
                            self.memory[start + lane] = data >> 8 * lane & 0xFF
            burst.responses = [error or (SLVERR if any(failed) else OKAY)]
            self.writes.append(burst)
        else:
            self.queues["ar"].append(address)
            burst.responses = [error or (SLVERR if bad else OKAY) for bad in failed]
            burst.content = [bytes(self.memory[a:b]) for a, b in burst.spans]
            self.reads.append(burst)

    def _error(self, burst):
        if burst.address >= len(self.memory):
            return DECERR
        wrong = burst.size > 3 or burst.kind > WRAP
        if burst.kind == WRAP:
            wrong |= burst.length not in (2, 4, 8, 16) or burst.address % (1 << burst.size) != 0
        if burst.kind == INCR:
            wrong |= burst.address // PAGE != (burst.spans[-1][1] - 1) // PAGE
        return SLVERR if wrong else OKAY

    def step(self, ready, b, r):
        """Ready of aw, w and ar, and the beats seen on b and r (dictionaries, or None)."""
        for name, taken in ready.items():
            if self.offers[name] is not None and taken:
                if name == "w":
                    self.beat_cycles["w"].append(self.cycle)
                self.offers[name] = None
        for name, beat in (("b", b), ("r", r)):
            before = self.before[name]
            assert before is None or beat == before, f"{name} changed before it was taken"
            self.before[name] = None if self.ready[name] else beat
        if b is not None and self.ready["b"]:
            burst = self.writes.popleft()
            assert (b["id"], b["resp"]) == (burst.id, burst.responses[0]), burst
            self.finished.append(burst)
        if r is not None and self.ready["r"]:
            self.beat_cycles["r"].append(self.cycle)
            self._read(r)
        self.cycle += 1

    def _read(self, beat):
        burst = self.reads[0]
        number = burst.seen
        burst.seen += 1
        assert (beat["id"], beat["resp"]) == (burst.id, burst.responses[number]), burst
        assert beat["last"] == (burst.seen == burst.length), burst
        if beat["resp"] == OKAY:
            start, end = burst.spans[number]
            lane = start % LANES
            bits = beat["data"] >> 8 * lane & (1 << 8 * (end - start)) - 1
            assert bits.to_bytes(end - start, "little") == burst.content[number], burst
        if beat["last"]:
            self.finished.append(self.reads.popleft())


def make(rng, *, write, address, length, size=3, kind=INCR, identifier=0, sparse=False):
    """A burst; ``sparse`` writes leave out random bytes."""
    burst = Burst(write, identifier, address, length, size, kind)
    burst.spans = spans_of(address, length, size, kind)
    if write:
        for start, end in burst.spans:
            lanes = sum(1 << at % LANES for at in range(start, min(end, start + LANES)))
            burst.data.append(rng.getrandbits(64))
            burst.strobes.append(lanes & rng.getrandbits(8) if sparse else lanes)
    return burst


def random_burst(rng, memory_bytes, id_bits, *, illegal=0.0):
    """A burst of any kind within the memory; with the chance ``illegal`` one that is refused."""
    size = rng.randint(0, 3)
    kind = rng.choice((FIXED, INCR, INCR, WRAP))
    width = 1 << size
    length = {
        FIXED: rng.randint(1, 16),
        INCR: rng.choice((1, 2, rng.randint(1, 24), rng.randint(1, 256))),
        WRAP: rng.choice((2, 4, 8, 16)),
    }[kind]
    # Few pages, so that bursts meet.
    page = rng.randrange(memory_bytes // PAGE) * PAGE
    address = page + rng.randrange(PAGE)
    if kind == INCR:
        address = page + rng.randrange(PAGE - width * length + 1)
    if kind == WRAP:
        address = address // width * width
    if rng.random() < illegal:
        way = rng.randrange(5)
        if way == 0:
            address += rng.choice((1, 3, 1 << 20)) * memory_bytes
        elif way == 1:
            size = rng.randint(4, 7)
            address = page
        elif way == 2:
            kind = 3
        elif way == 3:
            kind, length = WRAP, rng.choice((1, 3, 5, 17, 256))
            address = page
        else:
            kind, size, length = INCR, 3, rng.randint(2, 256)
            address = page + PAGE - rng.randint(1, 8 * length - 1)
    return make(
        rng,
        write=rng.random() < 0.5,
        address=address,
        length=length,
        size=size,
        kind=kind,
        identifier=rng.getrandbits(id_bits),
        sparse=rng.random() < 0.5,
    )
