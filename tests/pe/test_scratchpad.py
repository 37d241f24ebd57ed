"""The scratchpad against a byte array, on all ports at once."""

import random

import pytest

from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.scratchpad import Scratchpad, read_roles, write_roles
from pe.vector.stages import read_cycles
from tests.executed_lines import design_of, simulator_of

NO_VECTOR = frozenset({"halt", "ld.sram[8]", "st.sram[8]"})
#: Accesses crowd on so many bytes, around the end.
HOT = 96


@pytest.mark.parametrize(
    ("keys", "reads", "writes"),
    [
        (set(), (), ()),
        ({"ld.sram[8]"}, (), ("load",)),
        ({"m.v.nop.add[8]", "st.sram[8]"}, ("first", "store"), ("result",)),
        ({"v.v.add[8]", "ld.sram[8]"}, ("first", "second"), ("result", "load")),
    ],
)
def test_ports_follow_the_instructions(
    keys: set[str], reads: tuple[str, ...], writes: tuple[str, ...]
) -> None:
    config = PeConfig(instructions=frozenset(keys | {"halt"}))
    assert (read_roles(config), write_roles(config)) == (reads, writes)


def _bytes(word: int) -> list[int]:
    return list(word.to_bytes(8, "little"))


@pytest.mark.parametrize(
    "config",
    [
        PeConfig(scratchpad_bytes=256),
        # In distributed RAM, and in block RAM.
        PeConfig(scratchpad_bytes=256, sram="fpga"),
        PeConfig(scratchpad_bytes=1024, sram="fpga"),
        # Fewer ports, and the smallest.
        PeConfig(
            scratchpad_bytes=1024, sram="fpga", instructions=frozenset({*NO_VECTOR, "v.v.add[16]"})
        ),
        PeConfig(scratchpad_bytes=64, instructions=NO_VECTOR),
        *(
            PeConfig(
                scratchpad_bytes=size,
                sram="fpga",
                scratchpad_alignment=alignment,
                instructions=frozenset({*NO_VECTOR, "v.v.add[16]"}),
            )
            for size, alignment in ((256, 8), (1024, 2), (1024, 8))
        ),
        # Elements that lie anywhere in a word.
        *(
            PeConfig(
                scratchpad_bytes=1024,
                sram=sram,
                scratchpad_alignment=alignment,
                instructions=frozenset({*NO_VECTOR, f"m.v.nop.add[{bits}]"}),
            )
            for sram, alignment, bits in (
                ("fpga", 8, 16),
                ("fpga", 8, 8),
                ("fpga", 4, 16),
                ("behavioural", 8, 32),
            )
        ),
    ],
    ids=lambda config: (
        f"{config.sram}-{config.scratchpad_bytes}-{len(config.instructions)}"
        f"-{config.scratchpad_alignment}"
    ),
)
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_random_accesses_on_every_port(config: PeConfig, seed: int) -> None:
    size = config.scratchpad_bytes
    dut = design_of(Scratchpad, config)
    rng = random.Random(seed)
    seen_wraps = seen_holds = 0
    reduced = Capabilities.of(config).reduced

    def spot() -> int:
        place = rng.choice([rng.randrange(-HOT // 2, HOT // 2), rng.randrange(-8, 0)])
        return place % size & -config.scratchpad_alignment

    async def bench(ctx) -> None:
        nonlocal seen_wraps, seen_holds
        model = [0] * size
        # Bytes of this and the last cycle's writes, which may be read old or new.
        written: set[int] = set()
        # Values that each port shows, the last one read first; None where it is undefined.
        shown: list[list[list[int | None]]] = []
        for role in read_roles(config):
            cycles = read_cycles(config) if role != "store" else 1
            shown.append([[0] * 8 for _ in range(cycles)])
        for _ in range(1500):
            before, written = written, set()
            updates = {}
            for role, port in zip(write_roles(config), dut.write, strict=True):
                address = spot()
                strobe = rng.choice([0, 0xFF, rng.randrange(256)])
                if role == "result" and reduced:
                    element = min(reduced.widths).bytes
                    address += rng.randrange(0, config.scratchpad_alignment, element)
                    strobe &= (1 << element) - 1
                for i in range(8):
                    if (address + i) % size in before | written:
                        strobe &= ~(1 << i)
                data = rng.getrandbits(64)
                ctx.set(port.address, address)
                ctx.set(port.data, data)
                ctx.set(port.strobe, strobe)
                for i, byte in enumerate(_bytes(data)):
                    if strobe >> i & 1:
                        written.add((address + i) % size)
                        updates[(address + i) % size] = byte
            for role, port, words in zip(read_roles(config), dut.read, shown, strict=True):
                address = spot()
                enable = rng.random() < 0.6
                ctx.set(port.enable, enable)
                ctx.set(port.address, address)
                words[1:] = words[:-1]
                if enable:
                    seen_wraps += address > size - 8
                    first = address if role == "store" else 0
                    places = [(address + (i - first) % 8) % size for i in range(8)]
                    words[0] = [None if p in before | written else model[p] for p in places]
                else:
                    seen_holds += 1
            await ctx.tick()
            for address, byte in updates.items():
                model[address] = byte
            for port, words in zip(dut.read, shown, strict=True):
                for found, expected in zip(_bytes(ctx.get(port.data)), words[-1], strict=True):
                    assert expected in (None, found)

    with simulator_of(dut) as simulator:
        simulator.add_clock(1e-9)
        simulator.add_testbench(bench)
        simulator.run()
    assert (seen_wraps > 20) == (config.scratchpad_alignment < 8)
    assert seen_holds > 20
