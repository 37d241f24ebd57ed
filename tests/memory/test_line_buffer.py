"""The line buffer between random requesters, through a crossbar, and a random memory."""

import random
from functools import lru_cache

import pytest

from hdl.config import ConfigurationError
from memory.line_buffer.layout import check_lines
from memory.line_buffer.line_buffer import LineBuffer
from tests.memory.behind_crossbar import BehindCrossbar, run
from tests.memory.port_traffic import PortMemory, Requester

ADDRESS_BITS = 13
TAG_BITS = 3


@lru_cache(4)
def make_vault(requesters, *, lines=8, merges=2, memory_bits=ADDRESS_BITS, tag_bits=TAG_BITS):
    """A line buffer behind a crossbar."""

    def make(memory_tag_bits):
        return LineBuffer(
            lines=lines,
            merges=merges,
            address_bits=ADDRESS_BITS,
            memory_bits=memory_bits,
            tag_bits=memory_tag_bits,
            counters=True,
            sram="behavioural",
        )

    return BehindCrossbar(requesters, make, address_bits=ADDRESS_BITS, tag_bits=tag_bits)


class Reader(Requester):
    """Reads random columns that nobody writes."""

    def __init__(self, rng, memory, columns, **options):
        super().__init__(rng, memory, columns, writes=0.0, **options)


class Versions:
    """Columns that one requester writes and all read. All words of a column are its version, which
    only grows."""

    def __init__(self, columns):
        self.issued = dict.fromkeys(columns, 0)
        self.written = dict.fromkeys(columns, 0)


class Sharer(Requester):
    """Reads columns of :class:`Versions`, and writes them if it is the writer."""

    def __init__(self, rng, memory, versions, *, writer, **options):
        self.versions = versions
        super().__init__(rng, memory, versions.issued, writes=0.3 if writer else 0.0, **options)

    def _access(self):
        access = super()._access()
        column = access.address // 32
        if access.write:
            access.address, access.words = column * 32, 4
            self.versions.issued[column] += 1
            access.data = [self.versions.issued[column]] * 4
            access.strobes = [0xFF] * 4
        access.expected = self.versions.written[column]
        return access

    def _response(self, beat):
        access = self.open[beat["tag"]]
        column = access.address // 32
        if access.write:
            self.versions.written[column] = max(self.versions.written[column], access.data[0])
        else:
            # What was written before the request, and nothing that was not yet requested.
            assert access.expected <= beat["data"] <= self.versions.issued[column]
            access.expected = [beat["data"]] * access.words if beat["last"] else access.expected
            self.answer = (access, [beat["data"]] * (access.words - 1)) if beat["last"] else None
        if beat["last"] or access.write:
            super()._response(beat)


RATES = [
    (1, 1, 1, 1, 1),
    (0.3, 1, 1, 1, 5),
    (1, 0.3, 1, 1, 20),
    (1, 1, 0.3, 1, 9),
    (0.7, 0.6, 0.7, 0.6, 30),
]


@pytest.mark.parametrize("lines", [8, 32])
@pytest.mark.parametrize(("offer", "take", "accept", "answer", "latency"), RATES)
def test_each_requester_sees_its_own_accesses_in_order(
    simulate, lines, offer, take, accept, answer, latency
):
    count, columns = 3, 24
    rng = random.Random(lines)
    content = rng.randbytes(32 * columns)
    memory = PortMemory(rng, content, accept=accept, offer=answer, latency=latency)
    requesters = [
        Requester(
            random.Random(f"{latency} {number}"),
            content,
            range(number, columns, count),
            accesses=90,
            tag_bits=TAG_BITS,
            offer=offer,
            take=take,
        )
        for number in range(count)
    ]
    vault = make_vault(count, lines=lines)
    run(simulate, vault, memory, requesters)
    for number, requester in enumerate(requesters):
        for column in range(number, columns, count):
            at = slice(32 * column, 32 * column + 32)
            assert memory.memory[at] == requester.memory[at]


def test_words_of_a_line_stay_while_a_read_of_them_waits(simulate):
    """Answers leave slowly, and a line gets its next column quickly."""
    tag_bits = 5
    columns = 12
    rng = random.Random(3)
    content = rng.randbytes(32 * columns)
    memory = PortMemory(rng, content)
    requester = Requester(
        rng, content, range(columns), accesses=300, tag_bits=tag_bits, take=0.2, writes=0.3
    )
    run(simulate, make_vault(1, tag_bits=tag_bits), memory, [requester])


@pytest.mark.parametrize(("offer", "take", "accept", "answer", "latency"), RATES)
@pytest.mark.parametrize("merges", [2, 8])
def test_readers_of_a_column_share_it(simulate, merges, offer, take, accept, answer, latency):
    count, columns = 4, 10
    rng = random.Random(merges)
    content = rng.randbytes(32 * columns)
    memory = PortMemory(rng, content, accept=accept, offer=answer, latency=latency)
    requesters = [
        Reader(
            random.Random(number),
            content,
            range(columns),
            accesses=100,
            tag_bits=TAG_BITS,
            offer=offer,
            take=take,
        )
        for number in range(count)
    ]
    run(simulate, make_vault(count, lines=16, merges=merges), memory, requesters)
    # Every column is in a line after its first fetch; others pass while it is on its way.
    assert columns <= len(memory.requests) < 200


@pytest.mark.parametrize(("offer", "take", "accept", "answer", "latency"), RATES)
@pytest.mark.parametrize("seed", range(2))
def test_a_read_sees_every_write_that_was_acknowledged(
    simulate, seed, offer, take, accept, answer, latency
):
    count, columns = 4, 6
    content = bytes(32 * columns)
    memory = PortMemory(random.Random(seed), content, accept=accept, offer=answer, latency=latency)
    versions = Versions(range(columns))
    requesters = [
        Sharer(
            random.Random(f"{seed} {number}"),
            content,
            versions,
            writer=number == 0,
            accesses=90,
            tag_bits=TAG_BITS,
            offer=offer,
            take=take,
        )
        for number in range(count)
    ]
    run(simulate, make_vault(count), memory, requesters)
    assert versions.written == versions.issued
    assert max(versions.issued.values()) > 3


def test_errors_are_answered_and_not_kept(simulate):
    count, columns = 3, 12
    rng = random.Random(5)
    content = rng.randbytes(32 * columns)
    failing = frozenset({1, 4, 7})
    memory = PortMemory(rng, content, latency=8, failing=failing)
    requesters = [
        Reader(
            random.Random(number),
            content,
            range(columns),
            accesses=100,
            tag_bits=TAG_BITS,
            failing=failing,
        )
        for number in range(count)
    ]
    run(simulate, make_vault(count), memory, requesters)
    assert sum(access.address // 32 in failing for access in memory.requests) > 10


def test_accesses_beyond_the_memory_pass(simulate):
    memory_bits = 8
    rng = random.Random(6)
    content = rng.randbytes(1 << ADDRESS_BITS)
    memory = PortMemory(rng, content)
    columns = [*range(4), *range(1 << memory_bits - 5, (1 << memory_bits - 5) + 4)]
    requester = Reader(rng, content, columns, accesses=200, tag_bits=TAG_BITS)
    run(simulate, make_vault(1, memory_bits=memory_bits), memory, [requester])
    inside = [access for access in memory.requests if access.address < 1 << memory_bits]
    assert len(inside) < 20
    assert len(memory.requests) > 80


@pytest.mark.parametrize(
    ("lines", "merges", "message"),
    [
        (48, 4, "line_buffer must be a power of two from 8 to 128, not 48"),
        (256, 4, "line_buffer must be a power of two from 8 to 128, not 256"),
        (True, 4, "line_buffer"),
        (64, 3, "line_merges must be a power of two from 2 to 16, not 3"),
        (0, 1, "line_merges"),
    ],
)
def test_parameters_outside_their_range(lines, merges, message):
    with pytest.raises(ConfigurationError, match=message):
        check_lines(lines, merges)


def test_latency_and_rate_of_reads_from_a_line(simulate):
    content = bytes(range(64))
    memory = PortMemory(random.Random(1), content, latency=40)
    requester = Reader(random.Random(2), content, [1], accesses=40, tag_bits=TAG_BITS, whole=True)
    run(simulate, make_vault(1, merges=8), memory, [requester])
    assert len(memory.requests) == 1
    # Words leave without gaps once the line is there.
    last = requester.response_cycles[-80:]
    assert last == list(range(last[0], last[0] + 80))
    lone = Reader(random.Random(3), content, [1], accesses=30, tag_bits=1, whole=True, offer=0.02)
    run(simulate, make_vault(1), PortMemory(random.Random(1), content), [lone])
    # Three cycles within the buffer, and two of the crossbar, where no other read is near.
    requests, responses = lone.request_cycles, lone.response_cycles[::4]
    apart = [n for n in range(5, 30) if requests[n] - requests[n - 1] > 20]
    assert len(apart) > 5
    assert {responses[n] - requests[n] for n in apart} == {5}
