"""The C++ model of the DRAM, command by command, without a simulator around it."""

import ctypes
import random
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import memory
from memory.address_map import DramAddress, join_address
from memory.config import VaultConfig
from memory.controller.dram_port import DramCommand
from memory.model import device_model
from memory.model.device_model import DeviceModel, DeviceSetup, device_setup
from memory.timing import DramTiming
from support.schema import declarations

DEVICE = 5
CONFIG = VaultConfig(banks=4, rows=16, row_bytes=128)
T = CONFIG.timing
ACT, READ, WRITE, PRE, REFRESH = (kind.value for kind in DramCommand)
ALL_BYTES = 0xFF


MODEL = Path(memory.__file__).parent / "model"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> DeviceModel:
    target = tmp_path_factory.mktemp("device") / "dram.so"
    command = ["g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-O1"]
    subprocess.run([*command, "-o", str(target), str(MODEL / "dram.cpp")], check=True)
    return DeviceModel(ctypes.CDLL(str(target)))


@dataclass
class Bench:
    """Drives the model; ``at`` holds what happens in which cycle."""

    model: DeviceModel
    now: int = 0
    bus: dict[int, int] = field(default_factory=dict)
    writes: dict[int, tuple[int, int]] = field(default_factory=dict)
    violations: dict[int, str] = field(default_factory=dict)

    def cycle(self, kind: int | None = None, bank: int = 0, row: int = 0, column: int = 0) -> None:
        """One cycle, with a command or without."""
        data, strobe = self.writes.get(self.now, (0xBAD, ALL_BYTES))
        out = ctypes.c_uint64()
        failed = self.model.library.vip_dram_cycle(
            DEVICE,
            ctypes.c_uint8(0),
            ctypes.c_uint8(kind is not None),
            kind or 0,
            bank,
            row,
            column,
            ctypes.c_uint64(data),
            strobe,
            ctypes.byref(out),
        )
        if failed and not self.violations:
            self.violations[self.now] = self.model.violation(DEVICE)
        self.now += 1
        self.bus[self.now] = out.value

    def until(self, cycle: int) -> None:
        """Idle cycles up to ``cycle``, which does not pass."""
        assert cycle >= self.now
        while self.now < cycle:
            self.cycle()

    def run(self, commands: list[tuple[int, ...]]) -> dict[int, str]:
        """Commands (cycle, kind, bank, row, column); the first violation by its cycle."""
        for at, kind, *place in commands:
            self.until(at)
            self.cycle(kind, *place)
        return self.violations


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(random.Random(1).randbytes(CONFIG.size_bytes))
    return path


def bench(model: DeviceModel, image: Path, setup: DeviceSetup | None = None) -> Bench:
    model.open(DEVICE, str(image), setup or device_setup(CONFIG))
    return Bench(model)


def changed(**values: int) -> DeviceSetup:
    setup = device_setup(CONFIG)
    for name, value in values.items():
        assert hasattr(setup, name)
        setattr(setup, name, value)
    return setup


C = T.trcd
W = T.write_to_precharge
P = T.tras
FOUR_ACTS = [(3 + bank, ACT, bank) for bank in range(4)]

#: Rule, setup, commands in legal places up to the last, which is legal in that cycle and not in the
#: cycle before it.
EARLIEST = [
    ("tRCD", {}, [(0, ACT, 0), (C, READ, 0)]),
    ("tRCD", {}, [(0, ACT, 0), (C, WRITE, 0)]),
    ("tRAS", {}, [(0, ACT, 0), (P, PRE, 0)]),
    ("tRP", {"trc": 0}, [(0, ACT, 0), (P, PRE, 0), (P + T.trp, ACT, 0)]),
    ("tRP", {}, [(0, ACT, 0), (P, PRE, 0), (P + T.trp, REFRESH, 0)]),
    ("tRC", {"trc": 70}, [(0, ACT, 0), (P, PRE, 0), (70, ACT, 0)]),
    ("tWR", {}, [(0, ACT, 0), (C, WRITE, 0), (C + W, PRE, 0)]),
    ("tRTP", {}, [(0, ACT, 0), (40, READ, 0), (40 + T.trtp, PRE, 0)]),
    ("tCCD", {}, [(0, ACT, 0), (C, READ, 0), (C + T.tccd, READ, 0)]),
    ("tCCD", {}, [(0, ACT, 0), (C, READ, 0), (C + T.tccd, WRITE, 0)]),
    ("tCCD", {}, [(0, ACT, 0), (C, WRITE, 0), (C + T.tccd, WRITE, 0)]),
    ("tCCD", {"tcwl": 1, "twtr": 0}, [(0, ACT, 0), (C, WRITE, 0), (C + T.tccd, READ, 0)]),
    ("tWTR", {}, [(0, ACT, 0), (C, WRITE, 0), (C + T.write_to_read, READ, 0)]),
    ("tRRD", {"trrd": 6}, [(0, ACT, 0), (6, ACT, 3)]),
    ("tFAW", {"tfaw": 60}, [*FOUR_ACTS, (40, PRE, 0), (63, ACT, 0)]),
    ("tRFC", {}, [(0, REFRESH, 0), (T.trfc, ACT, 0)]),
    ("tRFC", {}, [(0, REFRESH, 0), (T.trfc, REFRESH, 0)]),
    ("DATA_OVERLAP", {}, [(0, ACT, 0), (1, ACT, 1), (40, READ, 0), (44, READ, 1)]),
    ("DATA_OVERLAP", {}, [(0, ACT, 0), (1, ACT, 1), (40, WRITE, 0), (44, WRITE, 1)]),
    ("DATA_TURNAROUND", {}, [(0, ACT, 0), (1, ACT, 1), (40, READ, 0), (45, WRITE, 1)]),
    (
        "DATA_TURNAROUND",
        {"turnaround": 3},
        [(0, ACT, 0), (1, ACT, 1), (40, WRITE, 0), (47, READ, 1)],
    ),
    ("DATA_TURNAROUND", {"tcwl": 5}, [(0, ACT, 0), (1, ACT, 1), (40, READ, 0), (58, WRITE, 1)]),
]


@pytest.mark.parametrize(("rule", "values", "commands"), EARLIEST)
def test_earliest_cycle_of_each_rule(
    model: DeviceModel,
    image: Path,
    rule: str,
    values: dict[str, int],
    commands: list[tuple[int, ...]],
) -> None:
    *before, (last, kind, bank) = commands
    # Columns 0 and up, rows 0: places that exist.
    assert bench(model, image, changed(**values)).run(commands) == {}
    broken = bench(model, image, changed(**values)).run([*before, (last - 1, kind, bank)])
    assert list(broken) == [last - 1]
    assert broken[last - 1].startswith(f"{rule}: ")
    assert broken[last - 1].endswith(f"(bank {bank}, cycle {last - 1})")


def test_message_tells_what_how_late_and_the_limit(model: DeviceModel, image: Path) -> None:
    (text,) = bench(model, image).run([(7, ACT, 2), (20, READ, 2)]).values()
    assert text == "tRCD: READ 13 cycles after ACT, at least 18 (bank 2, cycle 20)"


def test_write_data_before_read_data_of_an_earlier_command(model: DeviceModel, image: Path) -> None:
    """With a short write latency, a write's data may come before that of a read before it."""
    opened = [(0, ACT, 0), (1, ACT, 1), (40, READ, 0)]
    setup = changed(tcwl=5)
    assert bench(model, image, setup).run([*opened, (48, WRITE, 1)]) == {}
    (violation,) = bench(model, image, setup).run([*opened, (49, WRITE, 1)]).values()
    assert violation.startswith(
        "DATA_TURNAROUND: 0 idle cycles of the data bus before reading in cycle 58"
    )
    (overlap,) = bench(model, image, setup).run([*opened, (50, WRITE, 1)]).values()
    assert overlap.startswith("DATA_OVERLAP: data from cycle 55 on")


@pytest.mark.parametrize(
    ("rule", "commands"),
    [
        ("ACT_OPEN", [(0, ACT, 1), (100, ACT, 1)]),
        ("CLOSED", [(0, READ, 1)]),
        ("CLOSED", [(0, ACT, 1), (50, PRE, 1), (100, WRITE, 1)]),
        ("REFRESH_OPEN", [(0, ACT, 1), (100, REFRESH, 1)]),
        ("COMMAND", [(0, 5, 1)]),
        ("RANGE", [(0, ACT, 1, 16)]),
        ("RANGE", [(0, PRE, 4)]),
        ("RANGE", [(0, ACT, 1), (50, READ, 1, 0, 4)]),
    ],
)
def test_commands_that_no_time_makes_legal(
    model: DeviceModel, image: Path, rule: str, commands: list[tuple[int, ...]]
) -> None:
    broken = bench(model, image).run(commands)
    assert list(broken) == [commands[-1][0]]
    assert broken[commands[-1][0]].startswith(f"{rule}: ")


def test_banks_do_not_bind_each_other_but_on_the_bus(model: DeviceModel, image: Path) -> None:
    commands = [(i, ACT, i) for i in range(4)] + [(40 + 4 * i, READ, i) for i in range(4)]
    commands += [(60 + i, PRE, i) for i in range(4)] + [(80 + i, REFRESH, i) for i in range(4)]
    assert bench(model, image).run(commands) == {}


def test_precharge_of_a_closed_bank_changes_nothing(model: DeviceModel, image: Path) -> None:
    commands = [(0, ACT, 0), (P, PRE, 0), (P + T.trp - 1, PRE, 0), (P + T.trp, ACT, 0)]
    assert bench(model, image).run(commands) == {}


@pytest.mark.parametrize("postponed", [0, 8])
def test_refreshes_may_be_late_by_as_many_as_permitted(
    model: DeviceModel, image: Path, postponed: int
) -> None:
    trefi = 200
    setup = changed(trefi=trefi, trfc=20, postponed=postponed)
    last = (postponed + 1) * trefi
    late = bench(model, image, setup)
    for bank in (0, 1, 3):
        late.cycle(REFRESH, bank)
    late.until(last)
    assert late.violations == {}
    late.until(last + 5)
    expected = f"tREFI: 0 refreshes done, at least 1 (bank 2, cycle {last})"
    assert late.violations == {last: expected}

    timely = bench(model, image, setup)
    for bank in (0, 1, 3):
        timely.cycle(REFRESH, bank)
    timely.until(last)
    timely.cycle(REFRESH, 2)
    # All four are now one further: the next is due a tREFI later.
    timely.until(last + trefi)
    assert timely.violations == {}
    timely.cycle()
    assert list(timely.violations) == [last + trefi]


def words(content: bytes, address: int) -> list[int]:
    return [
        int.from_bytes(content[at : at + 8], "little") for at in range(address, address + 32, 8)
    ]


@pytest.mark.parametrize("address_map", ["row-bank-column", "bank-row-column", "row-column-bank"])
@pytest.mark.parametrize(("tcl_ns", "tcwl_ns"), [(13.75, 13.75), (0.8, 8.0), (4.0, 1.6)])
def test_data_comes_and_goes_in_its_cycles(
    model: DeviceModel, image: Path, address_map: str, tcl_ns: float, tcwl_ns: float
) -> None:
    config = VaultConfig(
        banks=4,
        rows=16,
        row_bytes=128,
        address_map=address_map,  # type: ignore[arg-type]
        timing=DramTiming(tcl_ns=tcl_ns, tcwl_ns=tcwl_ns),
    )
    timing = config.timing
    before = image.read_bytes()
    at = join_address(config, DramAddress(row=9, bank=2, column=3))
    b = bench(model, image, device_setup(config))
    read = 30
    write = read + timing.tcl + 10
    new = (0x1122334455667788, 0, 2**64 - 1, 0xA5A5A5A5A5A5A5A5)
    strobes = (0x0F, ALL_BYTES, 0x81, 0)
    for i in range(4):
        b.writes[write + timing.tcwl + i] = (new[i], strobes[i])
    again = write + timing.write_to_read
    assert b.run([(0, ACT, 2, 9), (read, READ, 2, 0, 3), (write, WRITE, 2, 0, 3)]) == {}
    b.run([(again, READ, 2, 0, 3)])
    b.until(again + timing.tcl + 8)
    assert b.violations == {}
    assert [b.bus[read + timing.tcl + i] for i in range(4)] == words(before, at)
    expected = bytearray(before)
    for i in range(4):
        for byte in range(8):
            if strobes[i] >> byte & 1:
                expected[at + 8 * i + byte] = new[i] >> 8 * byte & 0xFF
    assert image.read_bytes() == bytes(expected)
    assert [b.bus[again + timing.tcl + i] for i in range(4)] == words(bytes(expected), at)
    # Outside its cycles the bus holds nothing that could be taken for the data.
    around = [read + timing.tcl - 1, read + timing.tcl + 4]
    assert len({b.bus[cycle] for cycle in around} | set(words(before, at))) == 6


def test_reset_starts_anew_and_keeps_the_contents(model: DeviceModel, image: Path) -> None:
    before = image.read_bytes()
    b = bench(model, image)
    b.run([(0, ACT, 1), (30, READ, 1), (31, PRE, 0)])
    assert model.counts(DEVICE) == {
        "cycles": 32,
        "act": 1,
        "read": 1,
        "write": 0,
        "pre": 1,
        "refresh": 0,
    }
    out = ctypes.c_uint64()
    model.library.vip_dram_cycle(DEVICE, ctypes.c_uint8(1), *(0,) * 7, ctypes.byref(out))
    assert set(model.counts(DEVICE).values()) == {0}
    b.now = 0
    assert b.run([(0, ACT, 1)]) == {}
    assert image.read_bytes() == before


def test_what_moves_is_recorded_in_windows(model: DeviceModel, image: Path) -> None:
    b = bench(model, image)
    b.run([(0, ACT, 1), (18, READ, 1)])
    b.until(20)
    assert model.recorded(DEVICE) == ()
    model.record(DEVICE, 10)
    # Windows from cycle 20 on; a command counts in its own cycle.
    assert b.run([(25, READ, 1), (32, READ, 1), (39, WRITE, 1), (50, WRITE, 1)]) == {}
    b.until(65)
    assert model.recorded(DEVICE) == ((1, 0), (1, 1), (0, 0), (0, 1), (0, 0))
    model.record(DEVICE, 100)
    assert model.recorded(DEVICE) == ()


def test_image_is_checked(model: DeviceModel, image: Path, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="cannot map the memory image"):
        model.open(DEVICE, str(tmp_path / "none"), device_setup(CONFIG))
    with pytest.raises(OSError, match="smaller than the vault"):
        model.open(DEVICE, str(image), device_setup(CONFIG, base=32))


def test_base_moves_the_vault_within_the_image(model: DeviceModel, tmp_path: Path) -> None:
    path = tmp_path / "two"
    content = random.Random(2).randbytes(2 * CONFIG.size_bytes)
    path.write_bytes(content)
    b = bench(model, path, device_setup(CONFIG, base=CONFIG.size_bytes))
    b.run([(0, ACT, 0), (18, READ, 0)])
    b.until(50)
    assert [b.bus[18 + T.tcl + i] for i in range(4)] == words(content, CONFIG.size_bytes)


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("Setup", device_model.DeviceSetup),
        ("Counts", device_model._Counts),
        ("Window", device_model._Window),
    ],
)
def test_a_structure_of_the_header_is_that_of_python(name: str, record: type) -> None:
    header = (MODEL / "device_model.h").read_text()
    body = re.findall(rf"struct VipDram{name} {{\n(.*?)}};", header, re.S)[0]
    members = re.findall(r"^    (\w[^;]+;)", body, re.M)
    assert members == re.findall(r"^    (\w[^;]+;)", declarations(record), re.M)


def test_a_setup_says_where_the_parts_of_an_address_are() -> None:
    setup = device_setup(CONFIG)
    address = join_address(CONFIG, DramAddress(row=3, bank=2, column=1))
    parts = (3 << setup.row_shift, 2 << setup.bank_shift, 1 << setup.column_shift)
    assert address == sum(parts)
