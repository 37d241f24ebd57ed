"""The C++ memory model, cycle by cycle, without a simulator around it."""

import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from sim_tb.harness.memory import MEMORY, MemoryBehaviour, MemoryResult
from sim_tb.harness.models import Library
from tests.sim_tb.model_library import compiled

SIZE = 1 << 16
PORT = 3
ALL = 0xFF


@dataclass(frozen=True)
class Request:
    """One request; a write has as many data words as ``words``."""

    address: int
    tag: int
    words: int = 1
    data: tuple[int, ...] = ()
    strobes: tuple[int, ...] = ()

    def beats(self) -> list[tuple[int, ...]]:
        """Address, tag, write, words less one, data, strobe, last of each beat."""
        if not self.data:
            return [(self.address, self.tag, 0, self.words - 1, 0, ALL, 1)]
        strobes = self.strobes or (ALL,) * len(self.data)
        last = len(self.data) - 1
        return [
            (self.address + 8 * i, self.tag, 1, last - i, word, strobes[i], int(i == last))
            for i, word in enumerate(self.data)
        ]


@dataclass
class Beat:
    """A beat of a response and the cycle in which it was taken."""

    cycle: int
    tag: int
    data: int
    last: int
    error: int


@dataclass
class Port:
    """Drives a port of the model as hardware would."""

    model: Library
    cycle: int = 0
    outputs: Any = field(default_factory=MEMORY.outputs)
    taken: list[Beat] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)

    def step(self, beat: tuple[int, ...] | None, response_ready: bool = True) -> bool:
        """One cycle with ``beat`` offered; whether it was accepted."""
        last = self.outputs
        accepted = bool(beat and last.request_ready)
        if last.response_valid and response_ready:
            self.taken.append(
                Beat(
                    self.cycle,
                    last.response_tag,
                    last.response_data,
                    last.response_last,
                    last.response_error,
                )
            )
        names = ("address", "tag", "write", "words", "data", "strobe", "last")
        request = dict(zip(names, beat or (0,) * 7, strict=True))
        self.outputs = self.model.cycle(
            MEMORY,
            PORT,
            request_valid=beat is not None,
            response_ready=response_ready,
            **{f"request_{name}": value for name, value in request.items()},
        )
        self.cycle += 1
        return accepted

    def send(self, request: Request) -> None:
        """Offer the beats of ``request`` until all are accepted."""
        for beat in request.beats():
            while not self.step(beat):
                assert not violation(self.model)
                assert self.cycle < 1_000_000
        self.accepted.append(self.cycle - 1)

    def finish(self) -> None:
        """Go on until nothing is in flight."""
        while self.outputs.in_flight:
            self.step(None)
            assert not violation(self.model)
            assert self.cycle < 1_000_000


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return compiled(tmp_path_factory.mktemp("model"), MEMORY)


def violation(library: Library) -> str:
    return library.result("memory", MemoryResult, PORT).violation


@pytest.fixture
def image(library: Library, tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(random.Random(1).randbytes(SIZE))
    library.open(str(path))
    return path


def port(library: Library, behaviour: MemoryBehaviour) -> Port:
    library.start("memory", behaviour, PORT)
    made = Port(library)
    made.step(None)
    return made


def word(content: bytes, address: int) -> int:
    return int.from_bytes(content[address : address + 8], "little")


@pytest.mark.parametrize("latency", [1, 2, 40])
def test_latency_counts_from_acceptance_to_first_beat(
    library: Library, image: Path, latency: int
) -> None:
    p = port(library, MemoryBehaviour(latency=latency))
    p.send(Request(0x40, 1, 4))
    p.finish()
    assert [beat.cycle - p.accepted[0] for beat in p.taken] == [latency + i for i in range(4)]
    content = image.read_bytes()
    assert [beat.data for beat in p.taken] == [word(content, 0x40 + 8 * i) for i in range(4)]
    assert [beat.last for beat in p.taken] == [0, 0, 0, 1]
    assert {(beat.tag, beat.error * beat.last) for beat in p.taken} == {(1, 0)}


@pytest.mark.parametrize(("bandwidth", "cycles"), [(256, 1), (128, 2), (64, 4), (1, 256)])
@pytest.mark.parametrize("write", [False, True])
def test_bandwidth_limits_words_each_way(
    library: Library, image: Path, bandwidth: int, cycles: int, write: bool
) -> None:
    p = port(library, MemoryBehaviour(latency=1, bandwidth=bandwidth))
    count = 20
    for i in range(count):
        p.send(Request(32 * i, i, 4, (1, 2, 3, 4) if write else ()))
    p.finish()
    if write:
        assert p.accepted[-1] - p.accepted[0] == (count - 1) * 4 * cycles
    else:
        assert p.taken[-1].cycle - p.taken[0].cycle == (4 * count - 1) * cycles


def test_write_changes_the_file_by_its_strobes(library: Library, image: Path) -> None:
    before = image.read_bytes()
    p = port(library, MemoryBehaviour())
    p.send(Request(0x108, 5, 3, (0x1122334455667788, 0, 2**64 - 1), (0x0F, 0x00, 0x81)))
    p.finish()
    after = bytearray(before)
    after[0x108:0x10C] = bytes((0x88, 0x77, 0x66, 0x55))
    after[0x118] = after[0x11F] = 0xFF
    assert image.read_bytes() == bytes(after)
    assert [(beat.tag, beat.last, beat.error) for beat in p.taken] == [(5, 1, 0)]


def test_write_is_performed_no_earlier_than_answered(library: Library, image: Path) -> None:
    before = image.read_bytes()
    p = port(library, MemoryBehaviour(latency=30))
    p.send(Request(0, 0, 1, (123,)))
    for _ in range(28):
        p.step(None)
    assert image.read_bytes() == before
    p.finish()
    assert word(image.read_bytes(), 0) == 123


def response(p: Port) -> list[int]:
    """Values at the port of the response."""
    names = ("valid", "tag", "data", "last", "error")
    return [getattr(p.outputs, f"response_{name}") for name in names]


def test_response_waits_for_ready_and_holds_still(library: Library, image: Path) -> None:
    p = port(library, MemoryBehaviour(latency=1))
    p.send(Request(0, 9, 2))
    assert p.outputs.response_valid
    held = response(p)
    for _ in range(5):
        p.step(None, response_ready=False)
        assert response(p) == held
    assert not p.taken
    p.finish()
    assert len(p.taken) == 2


HOSTILE = MemoryBehaviour(
    latency=2, extra_latency=60, stall=0.3, gap=0.3, out_of_order=True, bandwidth=200, seed=7
)


@pytest.mark.parametrize("seed", range(5))
def test_columns_keep_order_while_tags_do_not(library: Library, image: Path, seed: int) -> None:
    """Random traffic to few columns: every read sees the writes before it, and no later one."""
    rng = random.Random(seed)
    model = bytearray(image.read_bytes())
    p = port(library, replace(HOSTILE, seed=seed))
    expected: dict[int, list[int]] = {}
    free = list(range(64))
    order: list[int] = []
    for _ in range(600):
        for beat in p.taken:
            if beat.last:
                free.append(beat.tag)
            if expected[beat.tag]:
                assert beat.data == expected[beat.tag].pop(0)
        p.taken.clear()
        if not free:
            p.step(None, rng.random() < 0.8)
            continue
        words = rng.randint(1, 4)
        address = 32 * rng.randrange(6) + 8 * rng.randint(0, 4 - words)
        tag = free.pop(rng.randrange(len(free)))
        order.append(tag)
        if rng.random() < 0.5:
            data = tuple(rng.getrandbits(64) for _ in range(words))
            strobes = tuple(rng.choice((ALL, 0, rng.getrandbits(8))) for _ in range(words))
            expected[tag] = []
            for i, (value, strobe) in enumerate(zip(data, strobes, strict=True)):
                for byte in range(8):
                    if strobe >> byte & 1:
                        model[address + 8 * i + byte] = value >> 8 * byte & 0xFF
            p.send(Request(address, tag, words, data, strobes))
        else:
            expected[tag] = [word(bytes(model), address + 8 * i) for i in range(words)]
            p.send(Request(address, tag, words))
    p.finish()
    assert not violation(library)
    assert image.read_bytes() == bytes(model)


def test_out_of_order_happens_and_responses_stay_whole(library: Library, image: Path) -> None:
    p = port(library, HOSTILE)
    for tag in range(64):
        p.send(Request(32 * tag, tag, 4))
    p.finish()
    tags = [beat.tag for beat in p.taken]
    runs = [tags[i : i + 4] for i in range(0, len(tags), 4)]
    assert all(len(set(run)) == 1 for run in runs)
    order = [run[0] for run in runs]
    assert sorted(order) == list(range(64))
    assert order != sorted(order)


def test_stalls_and_gaps_happen_as_often_as_asked(library: Library, image: Path) -> None:
    p = port(library, MemoryBehaviour(latency=1, stall=0.5, seed=3))
    for i in range(500):
        p.send(Request(32 * i, i))
    assert 850 < p.cycle < 1150
    p = port(library, MemoryBehaviour(latency=1, gap=0.5, seed=3))
    for i in range(250):
        p.send(Request(32 * i, i, 4))
    p.finish()
    assert 1850 < p.cycle < 2150


def test_errors_within_their_range_only(library: Library, image: Path) -> None:
    before = image.read_bytes()
    p = port(library, MemoryBehaviour(errors=(0x128, 0x130)))
    for tag, address in enumerate((0x120, 0x128, 0x130)):
        p.send(Request(address, tag))
    p.send(Request(0x130, 3, 2))
    p.send(Request(0x100, 4, 2, (1, 2)))
    p.send(Request(0x128, 5, 1, (3,)))
    p.send(Request(0x120, 6, 3))
    p.finish()
    errors = [beat.error for beat in p.taken if beat.last]
    assert errors == [0, 1, 0, 0, 0, 1, 1]
    after = image.read_bytes()
    assert (word(after, 0x100), word(after, 0x108)) == (1, 2)
    assert after[0x110:] == before[0x110:]


def test_a_read_that_fails_ends_after_any_of_its_beats(library: Library, image: Path) -> None:
    p = port(library, MemoryBehaviour(latency=1, errors=(0, SIZE), seed=3))
    lengths = set()
    for number in range(200):
        p.send(Request(0, number % 64, 1 + number % 4))
        p.finish()
        assert [beat.last for beat in p.taken] == [0] * (len(p.taken) - 1) + [1]
        assert p.taken[-1].error
        lengths.add((1 + number % 4, len(p.taken)))
        p.taken.clear()
    assert lengths == {(words, beats) for words in range(1, 5) for beats in range(1, words + 1)}


READ = (0, 1, 0, 0, 0, ALL, 1)
FIRST = (0x40, 1, 1, 1, 7, ALL, 0)


@pytest.mark.parametrize(
    ("name", "beats"),
    [
        ("TAG_REUSED", [READ, READ]),
        ("COLUMN_CROSSED", [(0x18, 0, 0, 1, 0, ALL, 1)]),
        ("READ_NOT_LAST", [(0, 0, 0, 0, 0, ALL, 0)]),
        ("READ_STROBE", [(0, 0, 0, 0, 0, 1, 1)]),
        ("ADDRESS_MISALIGNED", [(4, 0, 0, 0, 0, ALL, 1)]),
        ("ADDRESS_OUTSIDE", [(SIZE, 0, 0, 0, 0, ALL, 1)]),
        ("WRITE_LAST", [(0, 0, 1, 1, 0, ALL, 1)]),
        ("WRITE_LAST", [(0, 0, 1, 0, 0, ALL, 0)]),
        ("WRITE_INTERRUPTED", [FIRST, READ]),
        ("WRITE_INTERRUPTED", [FIRST, (0x48, 2, 1, 0, 7, ALL, 1)]),
        ("WRITE_ADDRESS", [FIRST, (0x50, 1, 1, 0, 7, ALL, 1)]),
        ("WRITE_WORDS", [(0x40, 1, 1, 2, 7, ALL, 0), (0x48, 1, 1, 0, 7, ALL, 1)]),
    ],
)
def test_wrong_beats_are_named(
    library: Library, image: Path, name: str, beats: list[tuple[int, ...]]
) -> None:
    p = port(library, MemoryBehaviour(latency=100))
    for beat in beats:
        assert not violation(library)
        p.step(beat)
    assert violation(library).startswith(f"{name}: ")
    p.step(None)
    assert not p.outputs.request_ready
    assert not p.outputs.response_valid


@pytest.mark.parametrize(
    ("name", "second"),
    [("REQUEST_WITHDRAWN", None), ("REQUEST_CHANGED", (8, 1, 0, 0, 0, ALL, 1))],
)
def test_offers_must_hold_still(
    library: Library, image: Path, name: str, second: tuple[int, ...] | None
) -> None:
    library.start("memory", MemoryBehaviour(stall=0.999, seed=1), PORT)
    p = Port(library)
    assert not p.step(READ)
    p.step(READ)
    assert not violation(library)
    p.step(second)
    assert violation(library).startswith(f"{name}: ")


def test_tag_is_free_in_the_cycle_after_its_response(library: Library, image: Path) -> None:
    p = port(library, MemoryBehaviour(latency=1))
    assert p.step(READ)
    assert p.step(None) is False
    assert p.step(READ)
    assert not violation(library)
    p.step(READ)
    assert violation(library).startswith("TAG_REUSED")


def test_missing_image_is_an_error(library: Library, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="cannot map the memory image"):
        library.open(str(tmp_path / "none"))


@pytest.mark.parametrize(
    "values",
    [
        {"latency": 0},
        {"extra_latency": -1},
        {"bandwidth": 257},
        {"stall": 1.0},
        {"gap": -0.1},
        {"errors": (8, 0)},
        {"seed": -1},
    ],
)
def test_behaviour_outside_its_range_is_refused(values: dict[str, object]) -> None:
    (name,) = values
    with pytest.raises(ValueError, match=name):
        MemoryBehaviour(**values)  # type: ignore[arg-type]
