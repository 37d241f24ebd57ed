"""The memory in its implementations: same behaviour, and RAM instead of flip-flops on an FPGA."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from hdl.config import ConfigurationError, SramKind
from hdl.emission import emit
from hdl.sram import SharedSram, Sram
from hdl.sram_fpga import DISTRIBUTED_DEPTH
from hdl.sram_macro import MacroError, SramGeometry, macro_model, macro_stub
from hdl.yosys import run_yosys

CYCLES = 400
GEOMETRIES = [
    # depth, width, reads, writes
    (4, 1, 1, 1),
    (8, 8, 3, 2),
    (DISTRIBUTED_DEPTH, 64, 3, 1),
    (DISTRIBUTED_DEPTH, 5, 2, 3),
    (2 * DISTRIBUTED_DEPTH, 8, 1, 1),
    (2 * DISTRIBUTED_DEPTH, 8, 3, 1),
    (1024, 32, 1, 1),
]


def drive_randomly(sram: Sram, rng: random.Random):
    """A testbench with random accesses, crowded on few words, that checks every word read."""
    hot = [rng.randrange(sram.depth) for _ in range(4)]

    def address() -> int:
        return rng.choice(hot) if rng.random() < 0.8 else rng.randrange(sram.depth)

    async def testbench(ctx) -> None:
        words = [0] * sram.depth
        #: Word that each read port must show; None where the contract leaves it open.
        shown: list[int | None] = [None] * sram.read_ports
        checked = 0
        for _ in range(CYCLES):
            written: dict[int, int] = {}
            for port in sram.write:
                target = address()
                enable = rng.random() < 0.6 and target not in written
                value = rng.getrandbits(sram.width)
                ctx.set(port.enable, enable)
                ctx.set(port.address, target)
                ctx.set(port.data, value)
                if enable:
                    written[target] = value
            for number, port in enumerate(sram.read):
                enable = rng.random() < 0.6
                source = address()
                ctx.set(port.enable, enable)
                ctx.set(port.address, source)
                if enable:
                    shown[number] = None if source in written else words[source]
            await ctx.tick()
            for target, value in written.items():
                words[target] = value
            for port, expected in zip(sram.read, shown, strict=True):
                if expected is not None:
                    assert ctx.get(port.data) == expected
                    checked += 1
        assert checked > CYCLES // 4

    return testbench


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
@pytest.mark.parametrize("kind", ["behavioural", "fpga"])
def test_reads_what_was_written(
    kind: SramKind, geometry: tuple[int, int, int, int], simulate, rng: random.Random
) -> None:
    depth, width, reads, writes = geometry
    sram = Sram(width=width, depth=depth, read_ports=reads, write_ports=writes, kind=kind)
    simulate(sram, drive_randomly(sram, rng))


def test_shared_ports_read_and_write(simulate, rng: random.Random) -> None:
    sram = SharedSram(width=8, depth=8, ports=2, kind="behavioural")

    async def testbench(ctx) -> None:
        words = [0] * sram.depth
        checked = 0
        for _ in range(CYCLES):
            expected: list[int | None] = [None, None]
            written: dict[int, int] = {}
            for number, port in enumerate(sram.port):
                target, value = rng.randrange(sram.depth), rng.getrandbits(sram.width)
                enable, write = rng.random() < 0.8, rng.random() < 0.5 and target not in written
                ctx.set(port.enable, enable)
                ctx.set(port.write, write)
                ctx.set(port.address, target)
                ctx.set(port.word, value)
                if enable and write:
                    written[target] = value
                elif enable:
                    expected[number] = target
            await ctx.tick()
            for port, place in zip(sram.port, expected, strict=True):
                if place is not None and place not in written:
                    assert ctx.get(port.data) == words[place]
                    checked += 1
            for target, value in written.items():
                words[target] = value
        assert checked > CYCLES // 4

    simulate(sram, testbench)


def test_behavioural_reads_the_old_word(simulate) -> None:
    sram = Sram(width=8, depth=8, read_ports=1, write_ports=1, kind="behavioural")

    async def testbench(ctx) -> None:
        for port in (sram.read[0], sram.write[0]):
            ctx.set(port.enable, 1)
            ctx.set(port.address, 3)
        ctx.set(sram.write[0].data, 0x5A)
        await ctx.tick()
        assert ctx.get(sram.read[0].data) == 0
        await ctx.tick()
        assert ctx.get(sram.read[0].data) == 0x5A

    simulate(sram, testbench)


def cells(sram: Sram, flow: str, folder: Path) -> dict[str, int]:
    """Cells of ``sram`` after synthesis with ``flow``: type -> number."""
    source = folder / "sram.v"
    source.write_text("\n".join(emit(sram, "sram").modules.values()))
    report = folder / "stat.json"
    run_yosys(
        [f"read_verilog {source}", f"{flow} -top sram", f"tee -q -o {report} stat -json"],
        purpose="memory mapping",
    )
    return json.loads(report.read_text())["modules"]["\\sram"]["num_cells_by_type"]


def count(found: dict[str, int], *prefixes: str) -> int:
    return sum(number for name, number in found.items() if name.startswith(prefixes))


FLOWS = [
    pytest.param("synth_xilinx -family xc7 -noiopad -noclkbuf", marks=pytest.mark.slow),
    "synth_ecp5",
]


@pytest.mark.parametrize("flow", FLOWS)
def test_deep_memory_maps_to_block_ram(flow: str, tmp_path: Path) -> None:
    sram = Sram(width=8, depth=512, read_ports=3, write_ports=1, kind="fpga")
    found = cells(sram, flow, tmp_path)
    assert count(found, "RAMB18", "DP16KD") == 3
    assert count(found, "RAMB36", "RAM64", "TRELLIS_DPR") == 0


@pytest.mark.parametrize("flow", FLOWS)
def test_shallow_memory_maps_to_distributed_ram(flow: str, tmp_path: Path) -> None:
    sram = Sram(width=8, depth=32, read_ports=3, write_ports=2, kind="fpga")
    found = cells(sram, flow, tmp_path)
    assert count(found, "RAM32", "RAM64", "TRELLIS_DPR") > 0
    assert count(found, "RAMB", "DP16KD") == 0
    # A register a read port.
    assert count(found, "FD", "TRELLIS_FF") == 24


@pytest.mark.parametrize(
    "shape",
    [SramGeometry(4, 3, 1, 1), SramGeometry(4, 2, 2, 2), SramGeometry(4, 2, 0, 0, 2)],
    ids=lambda shape: shape.name,
)
def test_macro_model_behaves_like_the_behavioural_memory(
    shape: SramGeometry, tmp_path: Path
) -> None:
    """For six cycles from the start and all inputs."""

    def sram(kind: SramKind) -> Sram | SharedSram:
        size: dict[str, Any] = {"width": shape.width, "depth": shape.depth, "kind": kind}
        if shape.shared_ports:
            return SharedSram(ports=shape.shared_ports, **size)
        return Sram(read_ports=shape.read_ports, write_ports=shape.write_ports, **size)

    emission = emit(sram("macro"), "gate")
    assert emission.black_boxes == (shape.name,)
    gate = tmp_path / "gate.v"
    gate.write_text(macro_model(shape) + "".join(emission.modules.values()))
    gold = tmp_path / "gold.v"
    gold.write_text("".join(emit(sram("behavioural"), "gold").modules.values()))
    # Two writes of one word are left open: each port keeps to its half.
    group = "in_port" if shape.shared_ports else "in_write"
    halves = range(shape.shared_ports or (shape.write_ports if shape.write_ports > 1 else 0))
    apart = " ".join(f"-set {group}__{port}__address[1] {port}" for port in halves)
    log = run_yosys(
        [
            f"read_verilog {gate} {gold}",
            "proc",
            "flatten gate",
            "memory",
            "miter -equiv -make_outputs -flatten gold gate miter",
            f"sat -verify -prove trigger 0 -set-init-zero -seq 6 {apart} miter",
        ],
        purpose="macro model",
    )
    assert "SUCCESS" in log


@pytest.mark.parametrize(
    ("shape", "name"),
    [
        (SramGeometry(512, 8, 3, 2), "vip_sram_512x8_3r2w"),
        (SramGeometry(512, 8, 0, 0, 2), "vip_sram_512x8_2rw"),
    ],
)
def test_macro_stub_is_a_black_box_with_the_ports_of_the_model(
    shape: SramGeometry, name: str
) -> None:
    assert shape.name == name
    assert SramGeometry.parse(name) == shape
    assert shape.bits == 4096
    ports = macro_model(shape).split(");")[0].splitlines()[1:]
    stub = macro_stub(shape).split(");")[0].splitlines()[2:]
    assert [line.replace("output reg", "output") for line in ports] == stub
    assert "(* blackbox *)" in macro_stub(shape)


def test_other_names_are_no_macros() -> None:
    with pytest.raises(MacroError, match="not the name of a memory macro"):
        SramGeometry.parse("vip_sram_64x64")


@pytest.mark.parametrize(
    "change",
    [
        {"width": 0},
        {"depth": 3},
        {"depth": 1},
        {"read_ports": 0},
        {"write_ports": 0},
        {"kind": "magic"},
        {"depth": 2 * DISTRIBUTED_DEPTH, "write_ports": 2},
    ],
    ids=str,
)
def test_bad_geometry_is_refused(change: dict[str, object]) -> None:
    good = {"width": 8, "depth": 8, "read_ports": 1, "write_ports": 1, "kind": "fpga"}
    with pytest.raises(ConfigurationError):
        Sram(**(good | change))


@pytest.mark.parametrize(
    "change",
    [{"width": 0}, {"depth": 3}, {"depth": 1}, {"ports": 0}, {"kind": "magic"}, {"kind": "fpga"}],
    ids=str,
)
def test_bad_geometry_of_shared_ports_is_refused(change: dict[str, object]) -> None:
    good = {"width": 8, "depth": 8, "ports": 2, "kind": "macro"}
    with pytest.raises(ConfigurationError):
        SharedSram(**(good | change))
