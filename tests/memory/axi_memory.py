"""A hostile AXI4 memory: out of order, interleaved, late, as far as the specification allows."""

from collections import deque

WORD_BYTES = 8
OKAY, SLVERR, DECERR = 0, 2, 3
ADDRESS = ("id", "addr", "len", "size", "burst")
WRITE = ("wdata", "wstrb", "wlast")


class AxiMemory:
    """In each cycle ``plan`` returns the values that it drives, then ``step`` takes those it saw.

    A write is performed at any time between its last beat and its response, a read at any time
    between its address and its first beat; nothing is ordered between identifiers. Columns in
    ``failing`` answer with errors and are not written.
    """

    def __init__(self, rng, memory, data_bits, *, accept=1.0, answer=1.0, failing=frozenset()):
        self.rng = rng
        self.memory = bytearray(memory)
        self.width = data_bits // 8
        self.accept = accept
        self.answer = answer
        self.failing = failing
        self.ready = dict.fromkeys(("aw", "w", "ar"), False)
        self.before = dict.fromkeys(("aw", "w", "ar"))
        self.addresses = deque()
        self.beats = deque()
        self.to_write = []
        self.written = []
        self.to_read = []
        self.reading = []
        self.b = None
        self.r = None
        self.ids = {"aw": set(), "ar": set()}
        self.most_in_flight = 0
        self.interleaved = 0
        self.last_read_id = None
        self.reordered = 0

    def plan(self):
        """Ready of aw, w and ar, and the beats offered on b and r (dictionaries, or None)."""
        rng = self.rng
        for channel in self.ready:
            self.ready[channel] = rng.random() < self.accept
        self._perform()
        if self.b is None and self.written and rng.random() < self.answer:
            identifier, error = self.written.pop(rng.randrange(len(self.written)))
            self.b = {"bid": identifier, "bresp": SLVERR if error else OKAY}
        if self.r is None and self.reading and rng.random() < self.answer:
            index = rng.randrange(len(self.reading))
            self.reordered += index > 0
            identifier, beats = self.reading[index]
            data, response = beats.popleft()
            self.r = {"rid": identifier, "rdata": data, "rresp": response, "rlast": not beats}
            if self.last_read_id not in (None, identifier):
                self.interleaved += 1
            self.last_read_id = identifier if beats else None
            if not beats:
                self.reading.pop(index)
        return self.ready, self.b, self.r

    def drive(self, ctx, bus):
        """Set the inputs of ``bus`` to what :meth:`plan` returns."""
        ready, b, r = self.plan()
        for channel, accepts in ready.items():
            ctx.set(getattr(bus, f"{channel}ready"), accepts)
        for channel, beat in (("b", b), ("r", r)):
            ctx.set(getattr(bus, f"{channel}valid"), beat is not None)
            for name, value in (beat or {}).items():
                ctx.set(getattr(bus, name), value)

    def _perform(self):
        rng = self.rng
        while self.to_write and rng.random() < 0.5:
            write = self.to_write.pop(rng.randrange(len(self.to_write)))
            identifier, address, beats = write
            error = address // 32 in self.failing
            for number, (data, strobe) in enumerate(beats):
                for byte in range(self.width):
                    if strobe >> byte & 1 and not error:
                        at = address + number * self.width + byte
                        self.memory[at] = data >> 8 * byte & 0xFF
            self.written.append((identifier, error))
        while self.to_read and rng.random() < 0.5:
            read = self.to_read.pop(rng.randrange(len(self.to_read)))
            identifier, address, count = read
            error = address // 32 in self.failing
            spans = [address + i * self.width for i in range(count)]
            data = [int.from_bytes(self.memory[at : at + self.width], "little") for at in spans]
            # Any beat may report the error.
            failed = rng.randrange(count) if error else None
            responses = [DECERR if i == failed else OKAY for i in range(count)]
            self.reading.append((identifier, deque(zip(data, responses, strict=True))))

    def step(self, aw, w, ar, bready, rready):
        """The beats seen on aw, w and ar (dictionaries, or None), and bready and rready."""
        for name, beat in (("aw", aw), ("w", w), ("ar", ar)):
            before = self.before[name]
            assert before is None or beat == before, f"{name} changed before it was taken"
            self.before[name] = None if self.ready[name] else beat
            if beat is not None and self.ready[name]:
                getattr(self, f"_{name}")(beat)
        if self.b is not None and bready:
            self.ids["aw"].remove(self.b["bid"])
            self.b = None
        if self.r is not None and rready:
            if self.r["rlast"]:
                self.ids["ar"].remove(self.r["rid"])
            self.r = None
        in_flight = len(self.ids["aw"]) + len(self.ids["ar"])
        self.most_in_flight = max(self.most_in_flight, in_flight)
        while self.addresses and len(self.beats) > self.addresses[0]["len"]:
            address = self.addresses.popleft()
            beats = [self.beats.popleft() for _ in range(address["len"] + 1)]
            assert [beat["wlast"] for beat in beats] == [0] * address["len"] + [1]
            self.to_write.append(
                (address["id"], address["addr"], [(b["wdata"], b["wstrb"]) for b in beats])
            )

    def _address(self, channel, beat):
        assert beat["id"] not in self.ids[channel]
        assert beat["burst"] == 1
        assert 1 << beat["size"] == self.width
        assert beat["addr"] % self.width == 0
        assert beat["addr"] % 32 + self.width * (beat["len"] + 1) <= 32
        self.ids[channel].add(beat["id"])

    def _aw(self, beat):
        self._address("aw", beat)
        self.addresses.append(beat)

    def _ar(self, beat):
        self._address("ar", beat)
        self.to_read.append((beat["id"], beat["addr"], beat["len"] + 1))

    def _w(self, beat):
        self.beats.append(beat)


def payload(bus, channel):
    """Signals of a channel of ``bus`` by their short names."""
    if channel == "w":
        return {name: getattr(bus, name) for name in WRITE}
    return {name: getattr(bus, f"{channel}{name}") for name in ADDRESS}
