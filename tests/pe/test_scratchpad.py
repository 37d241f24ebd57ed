"""The scratchpad against a byte array, on all ports at once."""

import random

import pytest
from amaranth.sim import Simulator

from hdl.config import PeConfig
from pe.scratchpad import READ_PORTS, Scratchpad

SIZE = 256


def _bytes(word: int) -> list[int]:
    return list(word.to_bytes(8, "little"))


@pytest.mark.parametrize("seed", [1, 2])
def test_random_accesses_on_every_port(seed: int) -> None:
    dut = Scratchpad(PeConfig(scratchpad_bytes=SIZE))
    rng = random.Random(seed)
    seen_wraps = seen_holds = 0

    async def bench(ctx) -> None:
        nonlocal seen_wraps, seen_holds
        model = [0] * SIZE
        expected = [[0] * 8 for _ in range(READ_PORTS)]
        checks = [False] * READ_PORTS
        for _ in range(1500):
            written: set[int] = set()
            updates = {}
            for port in dut.write:
                address = rng.choice([rng.randrange(SIZE), SIZE - rng.randrange(1, 8)])
                strobe = rng.choice([0, 0xFF, rng.randrange(256)])
                for i in range(8):
                    if (address + i) % SIZE in written:
                        strobe &= ~(1 << i)
                data = rng.getrandbits(64)
                ctx.set(port.address, address)
                ctx.set(port.data, data)
                ctx.set(port.strobe, strobe)
                for i, byte in enumerate(_bytes(data)):
                    if strobe >> i & 1:
                        written.add((address + i) % SIZE)
                        updates[(address + i) % SIZE] = byte
            for number, port in enumerate(dut.read):
                address = rng.choice([rng.randrange(SIZE), SIZE - rng.randrange(1, 8)])
                touched = {(address + i) % SIZE for i in range(8)}
                enable = rng.random() < 0.6 and not touched & written
                ctx.set(port.enable, enable)
                ctx.set(port.address, address)
                if enable:
                    seen_wraps += address > SIZE - 8
                    expected[number] = [model[(address + i) % SIZE] for i in range(8)]
                    checks[number] = True
                else:
                    seen_holds += checks[number]
            await ctx.tick()
            for address, byte in updates.items():
                model[address] = byte
            for number, port in enumerate(dut.read):
                if checks[number]:
                    assert _bytes(ctx.get(port.data)) == expected[number]

    sim = Simulator(dut)
    sim.add_clock(1e-9)
    sim.add_testbench(bench)
    sim.run()
    assert seen_wraps > 20
    assert seen_holds > 20
