"""A requester and a memory for tests of anything between two memory ports, in any simulator.

In each cycle ``plan`` returns the values that each drives, then ``step`` takes the result.
"""

from collections import deque
from dataclasses import dataclass, field

ALL_BYTES = 0xFF
WORD_BYTES = 8
COLUMN_BYTES = 32


@dataclass
class Access:
    """One request; ``expected`` are the words that a read must return."""

    tag: int
    address: int
    words: int
    write: bool
    data: list[int] = field(default_factory=list)
    strobes: list[int] = field(default_factory=list)
    expected: list[int] = field(default_factory=list)
    error: bool = False
    issued: int = 0

    def beats(self):
        """Payloads of the request's beats."""
        if not self.write:
            return [
                {
                    "address": self.address,
                    "tag": self.tag,
                    "write": 0,
                    "words": self.words - 1,
                    "data": 0,
                    "strobe": ALL_BYTES,
                    "last": 1,
                }
            ]
        return [
            {
                "address": self.address + WORD_BYTES * i,
                "tag": self.tag,
                "write": 1,
                "words": self.words - 1 - i,
                "data": self.data[i],
                "strobe": self.strobes[i],
                "last": int(i == self.words - 1),
            }
            for i in range(self.words)
        ]


def apply_write(memory, access):
    """Change ``memory`` (a bytearray) as a write does."""
    for i, (value, strobe) in enumerate(zip(access.data, access.strobes, strict=True)):
        for byte in range(WORD_BYTES):
            if strobe >> byte & 1:
                memory[access.address + WORD_BYTES * i + byte] = value >> 8 * byte & 0xFF


def words_at(memory, address, words):
    """``words`` words of ``memory`` from ``address``."""
    return [
        int.from_bytes(memory[at : at + WORD_BYTES], "little")
        for at in range(address, address + WORD_BYTES * words, WORD_BYTES)
    ]


class Requester:
    """Makes random accesses to columns of its own and checks all that comes back.

    ``memory`` is the shared start state, of which it keeps a copy: what a read must return follows
    from the order of its requests, as no other requester accesses its columns.
    """

    def __init__(
        self,
        rng,
        memory,
        columns,
        *,
        accesses,
        tag_bits,
        offer=1.0,
        take=1.0,
        writes=0.4,
        whole=False,
        failing=frozenset(),
    ):
        self.rng = rng
        self.memory = bytearray(memory)
        self.columns = list(columns)
        self.accesses = accesses
        self.offer = offer
        self.take = take
        self.writes = writes
        self.whole = whole
        self.failing = failing
        self.free = deque(range(1 << tag_bits))
        self.open = {}
        self.beats = deque()
        self.offered = None
        self.ready = False
        self.answer = None
        self.cycle = 0
        self.finished = []
        self.request_cycles = []
        self.response_cycles = []
        self.order = []

    @property
    def done(self):
        """Whether all accesses are complete."""
        return len(self.finished) == self.accesses

    def plan(self):
        """The request beat to offer in this cycle (or None) and whether responses are taken."""
        if self.offered is None and self.rng.random() < self.offer:
            if not self.beats and len(self.open) + len(self.finished) < self.accesses and self.free:
                self.beats.extend(self._access().beats())
            if self.beats:
                self.offered = self.beats.popleft()
        self.ready = self.rng.random() < self.take
        return self.offered, self.ready

    def _access(self):
        rng = self.rng
        # Tags are used in random order, so that their numbers say nothing.
        self.free.rotate(rng.randrange(len(self.free)))
        column = rng.choice(self.columns)
        words = 4 if self.whole else rng.randint(1, 4)
        access = Access(
            tag=self.free.popleft(),
            address=column * COLUMN_BYTES + WORD_BYTES * rng.randint(0, 4 - words),
            words=words,
            write=rng.random() < self.writes,
            error=column in self.failing,
            issued=self.cycle,
        )
        if access.write:
            access.data = [rng.getrandbits(64) for _ in range(words)]
            access.strobes = [rng.choice((ALL_BYTES, 0, rng.getrandbits(8))) for _ in range(words)]
            if not access.error:
                apply_write(self.memory, access)
        else:
            access.expected = words_at(self.memory, access.address, words)
        self.open[access.tag] = access
        return access

    def step(self, request_ready, response):
        """Take the signals at the end of the cycle; ``response`` is None without a valid beat."""
        if self.offered is not None and request_ready:
            self.request_cycles.append(self.cycle)
            self.offered = None
        if response is not None and self.ready:
            self.response_cycles.append(self.cycle)
            self._response(response)
        self.cycle += 1

    def _response(self, beat):
        access = self.open[beat["tag"]]
        if self.answer is None:
            self.answer = (access, [])
        assert access is self.answer[0], "beats of two responses are mixed"
        words = self.answer[1]
        words.append(beat["data"])
        ends = access.write or len(words) == access.words
        if access.error:
            # Only `last` tells the end.
            assert beat["last"] or not ends
        else:
            assert beat["last"] == ends
        if not beat["last"]:
            return
        assert beat["error"] == access.error
        if not access.write and not access.error:
            assert words == access.expected, f"read of {access.address:#x}"
        self.answer = None
        del self.open[access.tag]
        self.free.append(access.tag)
        self.finished.append(access)


class PortMemory:
    """Checks requests, performs them as they arrive, and answers in random order.

    Columns in ``failing`` are not written and answered with errors, reads with one beat or more.
    """

    def __init__(
        self,
        rng,
        memory,
        *,
        accept=1.0,
        offer=1.0,
        latency=1,
        in_order=False,
        failing=frozenset(),
    ):
        self.rng = rng
        self.failing = failing
        self.memory = bytearray(memory)
        self.accept = accept
        self.offer_chance = offer
        self.latency = latency
        self.in_order = in_order
        self.ready = False
        self.open = None
        self.tags = set()
        self.pending = deque()
        self.sending = deque()
        self.offered = None
        self.cycle = 0
        self.requests = []

    def plan(self):
        """Whether requests are taken in this cycle, and the response beat offered (or None)."""
        self.ready = self.rng.random() < self.accept
        if self.offered is None and self.rng.random() < self.offer_chance:
            if not self.sending:
                ready = [item for item in self.pending if item[0] <= self.cycle]
                if ready:
                    item = ready[0] if self.in_order else self.rng.choice(ready)
                    self.pending.remove(item)
                    self.sending.extend(item[1])
            if self.sending:
                self.offered = self.sending.popleft()
        return self.ready, self.offered

    def step(self, request, response_ready):
        """Take the signals at the end of the cycle; ``request`` is None without a valid beat."""
        if request is not None and self.ready:
            self._accept(request)
        if self.offered is not None and response_ready:
            if self.offered["last"]:
                self.tags.remove(self.offered["tag"])
            self.offered = None
        self.cycle += 1

    def _accept(self, beat):
        assert beat["address"] % WORD_BYTES == 0
        if self.open is None:
            assert beat["tag"] not in self.tags
            assert beat["address"] % COLUMN_BYTES + 8 * (beat["words"] + 1) <= COLUMN_BYTES
            self.open = Access(
                tag=beat["tag"],
                address=beat["address"],
                words=beat["words"] + 1,
                write=bool(beat["write"]),
            )
        access = self.open
        if access.write:
            done = len(access.data)
            assert beat["write"]
            assert beat["tag"] == access.tag
            assert beat["address"] == access.address + WORD_BYTES * done
            assert beat["words"] == access.words - 1 - done
            access.data.append(beat["data"])
            access.strobes.append(beat["strobe"])
            assert beat["last"] == (len(access.data) == access.words)
        else:
            assert beat["last"]
            assert beat["strobe"] == ALL_BYTES
        if not beat["last"]:
            return
        self.open = None
        self.tags.add(access.tag)
        access.issued = self.cycle
        self.requests.append(access)
        error = access.address // COLUMN_BYTES in self.failing
        if access.write:
            if not error:
                apply_write(self.memory, access)
            data = [self.rng.getrandbits(64)]
        else:
            data = words_at(self.memory, access.address, access.words)
            if error:
                data = data[: self.rng.randint(1, access.words)]
        last = len(data) - 1
        answer = [
            {
                "tag": access.tag,
                "data": word,
                "last": int(i == last),
                # It counts on the last beat alone.
                "error": int(error) if i == last else word & 1,
            }
            for i, word in enumerate(data)
        ]
        self.pending.append((self.cycle + self.latency, answer))
