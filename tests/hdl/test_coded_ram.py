"""The coded memory: random accesses on all ports, and the RAMs that it becomes."""

import json
import random
from pathlib import Path

import pytest

from hdl.coded_ram import CodedRam
from hdl.emission import emit
from hdl.yosys import run_yosys

CYCLES = 600


@pytest.mark.parametrize(
    ("width", "lanes", "read_ports", "write_ports"), [(32, 4, 2, 2), (10, 1, 1, 3), (8, 8, 1, 1)]
)
def test_reads_what_was_written(
    width: int, lanes: int, read_ports: int, write_ports: int, simulate, rng: random.Random
) -> None:
    depth = 8
    ram = CodedRam(
        width=width, lanes=lanes, depth=depth, read_ports=read_ports, write_ports=write_ports
    )
    size = width // lanes

    async def testbench(ctx) -> None:
        words = [[0] * lanes for _ in range(depth)]
        addresses = [0] * write_ports
        # Lanes (address and number) written in the last cycle, which other ports leave alone.
        before: dict[tuple[int, int], int] = {}
        shown: list[list[int | None]] = [[None] * lanes for _ in range(read_ports)]
        checked = 0
        for _ in range(CYCLES):
            written: dict[tuple[int, int], int] = {}
            values = {}
            for number, port in enumerate(ram.write):
                address, data = addresses[number], rng.getrandbits(width)
                mask = 0
                for lane in range(lanes):
                    place = (address, lane)
                    free = place not in written and before.get(place, number) == number
                    if free and rng.random() < 0.5:
                        mask |= 1 << lane
                        written[place] = number
                        values[place] = data >> lane * size & (1 << size) - 1
                addresses[number] = rng.randrange(depth)
                ctx.set(port.address, address)
                ctx.set(port.next_address, addresses[number])
                ctx.set(port.data, data)
                ctx.set(port.lanes, mask)
            for number, port in enumerate(ram.read):
                enable, address = rng.random() < 0.6, rng.randrange(depth)
                ctx.set(port.enable, enable)
                ctx.set(port.address, address)
                if enable:
                    shown[number] = [
                        None if (address, lane) in written else words[address][lane]
                        for lane in range(lanes)
                    ]
            await ctx.tick()
            for (address, lane), value in values.items():
                words[address][lane] = value
            before = written
            for port, expected in zip(ram.read, shown, strict=True):
                found = ctx.get(port.data)
                for lane, value in enumerate(expected):
                    if value is not None:
                        assert found >> lane * size & (1 << size) - 1 == value
                        checked += 1
        assert checked > CYCLES // 2

    simulate(ram, testbench)


@pytest.mark.parametrize(
    ("flow", "cell", "rams_a_word"),
    [
        pytest.param(
            *("synth_xilinx -family xc7 -noiopad -noclkbuf", "RAMB36E1", 1), marks=pytest.mark.slow
        ),
        # As the flow of engines: nothing is asked of what is read while it is written.
        ("synth_ecp5 -no-rw-check", "DP16KD", 2),
    ],
)
def test_maps_to_block_ram(flow: str, cell: str, rams_a_word: int, tmp_path: Path) -> None:
    ram = CodedRam(width=64, lanes=8, depth=256, read_ports=3, write_ports=2)
    source = tmp_path / "ram.v"
    source.write_text("\n".join(emit(ram, "ram").modules.values()))
    report = tmp_path / "stat.json"
    run_yosys(
        [f"read_verilog {source}", f"{flow} -top ram", f"tee -q -o {report} stat -json"],
        purpose="memory mapping",
    )
    found = json.loads(report.read_text())["modules"]["\\ram"]["num_cells_by_type"]
    # For each write port a copy for each of the three read ports and the other write port.
    assert found[cell] == 2 * 4 * rams_a_word
    assert not any(name.startswith(("FD", "TRELLIS_FF", "RAM64", "TRELLIS_DPR")) for name in found)
