"""The DRAM beside a plain model of it (reference_dram.cpp), under random commands."""

import ctypes
import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import memory
from memory.config import VaultConfig
from memory.controller.dram_port import DramCommand
from memory.model.device_model import DeviceModel, DeviceSetup, device_setup

CONFIG = VaultConfig(banks=4, rows=8, row_bytes=128)
ACT, READ, WRITE, PRE, REFRESH = (kind.value for kind in DramCommand)
BURST = 4
#: Rules, and none.
RULES = {
    "",
    "COMMAND",
    "RANGE",
    "ACT_OPEN",
    "CLOSED",
    "REFRESH_OPEN",
    "tRP",
    "tRC",
    "tRFC",
    "tRRD",
    "tFAW",
    "tRCD",
    "tWTR",
    "tCCD",
    "tRAS",
    "tRTP",
    "tWR",
    "DATA_OVERLAP",
    "DATA_TURNAROUND",
    "tREFI",
}
MODEL = Path(memory.__file__).parent / "model"
REFERENCE = Path(__file__).with_name("reference_dram.cpp")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> list[ctypes.CDLL]:
    found = []
    for source in (REFERENCE, MODEL / "dram.cpp"):
        target = tmp_path_factory.mktemp("device") / f"{source.stem}.so"
        command = [
            "g++",
            "-std=c++20",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-shared",
            "-fPIC",
            "-O1",
            f"-I{MODEL}",
        ]
        subprocess.run([*command, "-o", str(target), str(source)], check=True)
        found.append(ctypes.CDLL(str(target)))
    return found


def random_setup(rng: random.Random) -> DeviceSetup:
    setup = device_setup(CONFIG, noise=rng.randrange(1 << 32))
    setup.tcl, setup.tcwl = rng.randint(1, 20), rng.randint(1, 20)
    for name in ("tccd", "trcd", "trp", "tras", "twr", "trtp", "twtr"):
        setattr(setup, name, rng.randint(1, 12))
    setup.trc, setup.trfc = rng.randint(1, 30), rng.randint(1, 30)
    setup.trrd, setup.tfaw = rng.choice([0, 0, 4]), rng.choice([0, 60, 90])
    setup.turnaround, setup.postponed = rng.randint(0, 3), rng.randint(0, 2)
    setup.trefi = rng.choice([0, 150, 400])
    return setup


class Careful:
    """Proposes commands that keep most rules: those of banks by the rules' own times, those of the
    bus by a list of the cycles with data."""

    def __init__(self, rng: random.Random, setup: DeviceSetup) -> None:
        self.rng, self.setup = rng, setup
        self.punctual = rng.random() < 0.9
        self.open = [False] * setup.banks
        self.after = [dict.fromkeys((ACT, READ, WRITE, PRE, REFRESH), 0) for _ in self.open]
        self.refreshes = [0] * setup.banks
        self.acts: list[int] = []
        self.bursts: list[tuple[int, bool]] = []

    def command(self, now: int, early: bool) -> tuple[int, int, int, int] | None:
        """That of this cycle: kind, bank, row and column. `early`: perhaps before its time."""
        setup, rng = self.setup, self.rng
        bank = rng.randrange(setup.banks)
        owes = setup.trefi and self.punctual and self.refreshes[bank] < now // setup.trefi + 1
        if self.open[bank]:
            kind = PRE if owes or rng.random() < 0.2 else rng.choice((READ, WRITE))
        else:
            kind = REFRESH if owes else ACT
        place = (bank, rng.randrange(setup.rows), rng.randrange(setup.columns))
        return (kind, *place) if early or self.allowed(now, kind, bank) else None

    def allowed(self, now: int, kind: int, bank: int) -> bool:
        setup = self.setup
        if now < self.after[bank][kind]:
            return False
        if kind == ACT:
            near = self.acts and now - self.acts[-1] < setup.trrd
            return not near and not (len(self.acts) > 3 and now - self.acts[-4] < setup.tfaw)
        if kind not in (READ, WRITE):
            return True
        start = now + (setup.tcl if kind == READ else setup.tcwl)
        return all(
            abs(start - other) >= BURST + (setup.turnaround if write != (kind == WRITE) else 0)
            for other, write in self.bursts
        )

    def issued(self, now: int, kind: int, bank: int) -> None:
        setup = self.setup

        def wait(clocks: int, *kinds: int) -> None:
            for each in kinds:
                self.after[bank][each] = max(self.after[bank][each], now + clocks)

        if kind == ACT:
            wait(setup.trcd, READ, WRITE), wait(setup.tras, PRE), wait(setup.trc, ACT)
            self.acts.append(now)
            self.open[bank] = True
        elif kind in (READ, WRITE):
            written = setup.tcwl + BURST
            wait(setup.tccd, READ, WRITE)
            wait(setup.trtp if kind == READ else written + setup.twr, PRE)
            wait(0 if kind == READ else written + setup.twtr, READ)
            self.bursts.append((now + (setup.tcl if kind == READ else setup.tcwl), kind == WRITE))
            self.bursts = self.bursts[-12:]
        elif kind == PRE:
            wait(setup.trp, ACT, REFRESH)
            self.open[bank] = False
        else:
            wait(setup.trfc, ACT, REFRESH)
            self.refreshes[bank] += 1


class Pair:
    """Both models, each with its own image; the first one is the plain one."""

    def __init__(self, libraries: list[ctypes.CDLL], folder: Path, setup: DeviceSetup) -> None:
        self.models = [DeviceModel(library) for library in libraries]
        self.images = [folder / name for name in ("plain", "fast")]
        content = random.Random(1).randbytes(CONFIG.size_bytes)
        for model, image in zip(self.models, self.images, strict=True):
            image.write_bytes(content)
            model.open(0, str(image), setup)
        self.failed = False

    def cycle(self, command: tuple[int, ...] | None, data: int, strobe: int) -> None:
        kind, *place = command or (0, 0, 0, 0)
        seen = []
        for model in self.models:
            out = ctypes.c_uint64()
            failed = model.library.vip_dram_cycle(
                0,
                ctypes.c_uint8(0),
                ctypes.c_uint8(command is not None),
                kind,
                *place,
                ctypes.c_uint64(data),
                strobe,
                ctypes.byref(out),
            )
            seen.append((failed, 0 if failed else out.value))
        assert seen[0] == seen[1]
        self.failed = bool(seen[0][0])

    def idle(self, cycles: int) -> None:
        """As many without commands, which the fast one takes at once."""
        out = [ctypes.c_uint64(), ctypes.c_uint64()]
        for _ in range(cycles):
            model = self.models[0].library
            failed = model.vip_dram_cycle(
                0, *(ctypes.c_uint8(0),) * 2, *(0,) * 6, ctypes.byref(out[0])
            )
        passed = self.models[1].library.vip_dram_pass(
            0, ctypes.c_uint64(cycles), ctypes.byref(out[1])
        )
        assert failed == passed
        assert failed or out[0].value == out[1].value
        self.failed = bool(failed)

    def check(self) -> str:
        """Both have seen and done the same; the violation."""
        first, second = self.models
        assert second.counts(0) == first.counts(0)
        assert second.recorded(0) == first.recorded(0)
        violation = first.violation(0)
        assert second.violation(0) == violation
        if not violation:
            assert self.images[0].read_bytes() == self.images[1].read_bytes()
        return violation


def wrong(rng: random.Random, setup: DeviceSetup) -> tuple[int, int, int, int]:
    """Any command, now and then one that doesn't exist."""
    more = rng.random() < 0.1
    return (
        rng.randrange(5 + more),
        rng.randrange(setup.banks + more),
        rng.randrange(setup.rows + more),
        rng.randrange(setup.columns + more),
    )


def play(pair: Pair, rng: random.Random, setup: DeviceSetup, mistakes: float) -> str:
    """Commands of which the share `mistakes` breaks rules, and a while more."""
    careful, now = Careful(rng, setup), 0
    end = 1500
    while now < end:
        if now == 200:
            for model in pair.models:
                model.record(0, 64)
        if rng.random() < 0.01 and now < 150:
            cycles = rng.randint(1, 60)
            pair.idle(cycles)
            now += cycles
            continue
        early = rng.random() < mistakes
        command = careful.command(now, early) if rng.random() < 0.7 else None
        if rng.random() < mistakes / 4:
            command = wrong(rng, setup)
        if command and command[0] < 5 and command[1] < setup.banks:
            careful.issued(now, command[0], command[1])
        pair.cycle(command, rng.randrange(1 << 64), rng.choice((0, 0xFF, 0xFF, rng.randrange(256))))
        now += 1
        if pair.failed:
            end = min(end, now + 40)
    return pair.check()


def test_equals_the_plain_model(libraries: list[ctypes.CDLL], tmp_path: Path) -> None:
    rng = random.Random(14)
    rules: Counter[str] = Counter()
    moved = 0
    for number in range(250):
        setup = random_setup(rng)
        pair = Pair(libraries, tmp_path, setup)
        violation = play(pair, rng, setup, 0 if number < 20 else 0.01)
        rules[violation.partition(":")[0]] += 1
        counts = pair.models[0].counts(0)
        moved += 0 if violation else counts["read"] + counts["write"]
    assert moved > 2000
    # Each rule is the first that some stream breaks.
    assert rules.keys() == RULES
