"""The C++ traffic model, cycle by cycle, without a simulator around it."""

import mmap
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sim_tb.harness.models import Library
from sim_tb.harness.traffic import (
    REQUESTER,
    TRAFFIC,
    Pattern,
    TrafficJob,
    TrafficOutcome,
    TrafficResult,
    Walk,
)
from tests.memory.port_traffic import PortMemory
from tests.sim_tb.model_library import compiled

SIZE = 1 << 14
SPAN = 4096
TAG_BITS = 5
BEGIN = 8192


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return compiled(tmp_path_factory.mktemp("traffic"), TRAFFIC, REQUESTER)


class Bench:
    """A memory in Python at each requester's port; ``spoil`` may change what it answers."""

    def __init__(self, model, path, patterns, *, patience=3000, max_cycles=100_000, **memory):
        self.model = model
        self.path = path
        self.job = TrafficJob(
            patterns=patterns,
            begin=BEGIN,
            span=SPAN // (32 * len(patterns)) * 32 * len(patterns),
            patience=patience,
            max_cycles=max_cycles,
        )
        self.options = memory
        self.spoil: Callable = lambda bench, beat: beat
        self.at_end: Callable = lambda bench: None
        self.memories = []
        self.answers = 0

    def run(self):
        self.path.write_bytes(bytes(SIZE))
        replace(
            self.job,
            image=str(self.path),
            size=SIZE,
            limit=2 * SIZE,
            counters=3,
            settle=20,
        ).start(self.model)
        with self.path.open("r+b") as file, mmap.mmap(file.fileno(), SIZE) as content:
            self.content = content
            ports = range(len(self.job.patterns))
            self.memories = [
                PortMemory(random.Random(number), b"", **self.options) for number in ports
            ]
            for memory in self.memories:
                memory.memory = content
            offers = [REQUESTER.outputs() for _ in ports]
            host = TRAFFIC.outputs()
            counter = 0
            while not host.idle:
                asked = host.counter_index
                host = self.model.cycle(TRAFFIC, 0, counter_value=counter)
                # The answer to an index comes in the cycle after it.
                counter = 100 + asked
                for number in ports:
                    offers[number] = self._cycle(number, offers[number], host.reset)
                if all(memory.tags == set() for memory in self.memories):
                    self.at_end(self)
        return self.model.result("traffic", TrafficResult)

    def _cycle(self, number, offer, reset):
        memory = self.memories[number]
        ready, beat = memory.plan()
        shown = self.spoil(self, beat) if beat is not None else None
        answer = shown or {"tag": 0, "data": 0, "last": 0, "error": 0}
        found = self.model.cycle(
            REQUESTER,
            number,
            reset=reset,
            tags=1 << TAG_BITS,
            request_ready=ready,
            response_valid=shown is not None,
            **{f"response_{name}": value for name, value in answer.items()},
        )
        names = ("address", "tag", "write", "words", "data", "strobe", "last")
        request = {name: int(getattr(offer, f"request_{name}")) for name in names}
        moved = shown is not None and offer.response_ready
        memory.step(request if offer.request_valid else None, moved)
        self.answers += bool(moved)
        return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "image"


PLAIN = Pattern(accesses=300, writes=0.4, partial=True, seed=3)


@pytest.mark.parametrize("count", [1, 3, 4])
@pytest.mark.parametrize(
    "options",
    [{}, {"accept": 0.5, "offer": 0.5, "latency": 10}, {"latency": 3, "in_order": True}],
)
def test_right_memory_passes(model, path, count, options):
    patterns = tuple(
        Pattern(accesses=100 + n, writes=0.4, partial=True, take=0.8, offer=0.9, seed=n)
        for n in range(count)
    )
    bench = Bench(model, path, patterns, **options)
    result = bench.run()
    assert (result.outcome, result.violation) == (TrafficOutcome.DONE, "")
    requests = [access for memory in bench.memories for access in memory.requests]
    assert len(requests) == sum(pattern.accesses for pattern in patterns)
    assert result.reads == sum(not access.write for access in requests)
    assert result.writes == sum(access.write for access in requests)
    assert result.bytes == 8 * sum(access.words for access in requests)
    assert sum(result.latencies) == len(requests)
    assert result.counters[:4] == (100, 101, 102, 0)
    # Each requester keeps to its own columns, all within the span.
    for number, memory in enumerate(bench.memories):
        for access in memory.requests:
            assert BEGIN <= access.address < BEGIN + bench.job.span
            assert (access.address - BEGIN) // 32 % count == number


def test_latency_is_from_the_offer_to_the_last_beat(model, path):
    bench = Bench(model, path, (Pattern(accesses=50, window=1),), latency=20, in_order=True)
    result = bench.run()
    # Taken in the first cycle, answered after 20, four beats; the next offer comes right after.
    assert result.longest == result.mean == 1 + 20 + 3
    assert result.latencies[24] == 50
    assert result.cycles == 50 * 24
    assert result.longest_offer == 0


def nth_answer(number, change):
    """Spoils the beats from answer beat ``number`` on by ``change(beat)``, once it applies."""
    done = []

    def spoil(bench, beat):
        if done and done[0] is beat:
            return done[1]
        if not done and bench.answers >= number:
            changed = change(beat)
            if changed is not None:
                done.extend((beat, changed))
                return changed
        return beat

    return spoil


def spoiled(model, path, spoil, **options):
    bench = Bench(model, path, (PLAIN,), **options)
    bench.spoil = spoil
    return bench.run()


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("ERROR", lambda beat: {**beat, "error": 1} if beat["last"] else None),
        ("TAG_UNKNOWN", lambda beat: {**beat, "tag": 1 << TAG_BITS}),
        ("RESPONSE_LENGTH", lambda beat: {**beat, "last": 1} if not beat["last"] else None),
        ("RESPONSE_LENGTH", lambda beat: {**beat, "last": 0} if beat["last"] else None),
        (
            "DATA",
            lambda beat: {**beat, "data": beat["data"] ^ 1 << 40} if not beat["last"] else None,
        ),
    ],
)
def test_wrong_answers_are_named(model, path, rule, change):
    result = spoiled(model, path, nth_answer(40, change))
    assert result.outcome is TrafficOutcome.VIOLATION
    assert result.violation.startswith(f"{rule}: ")


def test_answer_to_another_request_within_an_answer(model, path):
    def spoil(bench, beat):
        others = bench.memories[0].tags - {beat["tag"]}
        if bench.answers > 50 and not beat["last"] and bench.started and others:
            return {**beat, "tag": min(others), "last": 0}
        bench.started = not beat["last"]
        return beat

    bench = Bench(model, path, (PLAIN,), latency=10)
    bench.started = False
    bench.spoil = spoil
    result = bench.run()
    assert result.outcome is TrafficOutcome.VIOLATION
    assert result.violation.startswith("RESPONSE_MIXED: ")


def test_answer_given_twice(model, path):
    bench = Bench(model, path, (PLAIN,))
    repeated = []

    def spoil(bench, beat):
        memory = bench.memories[0]
        if bench.answers > 30 and beat["last"] and not repeated:
            repeated.append(beat)
            memory.sending.append(dict(beat))
            memory.tags.add(beat["tag"])
        return beat

    bench.spoil = spoil

    class Forgiving(set):
        def remove(self, tag):
            self.discard(tag)

    start = PortMemory.__init__

    def forgiving(self, *arguments, **options):
        start(self, *arguments, **options)
        self.tags = Forgiving()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PortMemory, "__init__", forgiving)
        result = bench.run()
    assert result.outcome is TrafficOutcome.VIOLATION
    assert result.violation.startswith("TAG_UNKNOWN: ")


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("RESPONSE_CHANGED", lambda beat: {**beat, "tag": beat["tag"] ^ 1}),
        ("RESPONSE_WITHDRAWN", lambda beat: None),
    ],
)
def test_offers_must_hold_still(model, path, rule, change):
    pattern = Pattern(accesses=100, take=0.2, seed=5)
    bench = Bench(model, path, (pattern,))
    seen = []

    def spoil(bench, beat):
        if seen and seen[-1] is beat and bench.answers > 20:
            return change(beat)
        seen.append(beat)
        return beat

    bench.spoil = spoil
    result = bench.run()
    assert result.outcome is TrafficOutcome.VIOLATION
    assert result.violation.startswith(f"{rule}: ")


def test_request_that_is_never_answered(model, path):
    bench = Bench(model, path, (PLAIN,), max_cycles=50_000)
    lost = []

    def spoil(bench, beat):
        memory = bench.memories[0]
        if not lost and memory.pending:
            lost.append(memory.pending.popleft())
        return beat

    bench.spoil = spoil
    result = bench.run()
    assert result.outcome is TrafficOutcome.VIOLATION
    assert result.violation.startswith("LOST: ")


def test_request_that_is_never_taken(model, path):
    result = Bench(model, path, (PLAIN,), accept=0.0).run()
    assert result.outcome is TrafficOutcome.VIOLATION
    assert result.violation.startswith("REFUSED: ")


def test_run_that_takes_too_long(model, path):
    result = Bench(model, path, (PLAIN,), accept=0.01, max_cycles=2000).run()
    assert result.outcome is TrafficOutcome.TOO_LONG


def test_write_that_overtakes_a_read_of_its_column(model, path):
    """A memory that performs a write before the read in front of it is found out."""
    pattern = Pattern(accesses=400, writes=0.5, walk=Walk.HOT, hot=1, seed=9)
    bench = Bench(model, path, (pattern,))
    accept = PortMemory._accept
    kept = []

    def late(self, beat):
        """Reads look at the memory when the next request comes, so after its write."""
        accept(self, beat)
        if kept and beat["last"]:
            access, answer = kept.pop()
            for number, item in enumerate(answer):
                at = access.address + 8 * number
                item["data"] = int.from_bytes(self.memory[at : at + 8], "little")
        if not beat["write"]:
            kept.append((self.requests[-1], self.pending[-1][1]))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PortMemory, "_accept", late)
        bench.options = {"latency": 12}
        result = bench.run()
    assert result.outcome is TrafficOutcome.VIOLATION
    assert result.violation.startswith("DATA: ")


def test_contents_in_the_end_are_compared(model, path):
    bench = Bench(model, path, (PLAIN,))

    def spoil_memory(bench):
        if len(bench.memories[0].requests) == PLAIN.accesses:
            bench.content[BEGIN + 77] ^= 0x10
            bench.at_end = lambda bench: None

    bench.at_end = spoil_memory
    result = bench.run()
    assert result.outcome is TrafficOutcome.VIOLATION
    assert result.violation.startswith("MEMORY: ")
    assert f"at {BEGIN + 72:#x} in the end" in result.violation


def columns_of(model, path, pattern):
    bench = Bench(model, path, (pattern,))
    assert bench.run().outcome is TrafficOutcome.DONE
    return [(access.address - BEGIN) // 32 for access in bench.memories[0].requests]


def test_walks(model, path):
    columns = SPAN // 32
    walked = columns_of(model, path, Pattern(walk=Walk.SEQUENTIAL, accesses=200))
    assert walked == [n % columns for n in range(200)]
    walked = columns_of(model, path, Pattern(walk=Walk.STRIDED, stride=32, accesses=200))
    assert walked[:9] == [0, 32, 64, 96, 1, 33, 65, 97, 2]
    walked = columns_of(model, path, Pattern(walk=Walk.HOT, hot=4, accesses=600))
    assert 500 < sum(column < 4 for column in walked) < 600
    walked = columns_of(model, path, Pattern(accesses=600))
    assert len(set(walked)) > 110
    assert max(Counter(walked).values()) < 20


@pytest.mark.parametrize(
    "values",
    [
        {"accesses": 0},
        {"stride": 0},
        {"hot": 0},
        {"window": 0},
        {"burst": -1},
        {"writes": 1.1},
        {"outside": -0.1},
        {"offer": 0.0},
        {"take": 2.0},
        {"seed": -1},
    ],
)
def test_pattern_outside_its_range_is_refused(values):
    (name,) = values
    with pytest.raises(ValueError, match=name):
        Pattern(**values)


@pytest.mark.parametrize(("begin", "span"), [(16, 64), (0, 0), (0, 96)])
def test_range_that_no_requesters_can_share_is_refused(begin, span):
    with pytest.raises(ValueError, match="must be a multiple"):
        TrafficJob(
            patterns=(Pattern(), Pattern()), begin=begin, span=span, patience=1, max_cycles=1
        )
