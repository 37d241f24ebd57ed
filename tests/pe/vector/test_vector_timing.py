"""Timing that programs and the issue stage rely on, and the vector unit on a real scratchpad."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import connect
from amaranth.sim import Simulator

from isa.table import Opcode
from isa.timing import VECTOR_LATENCY
from pe.config import PeConfig
from pe.scratchpad import Scratchpad
from pe.vector.unit import VectorUnit
from tests.pe.vector.vector_bench import Command, expected_writes, hostile_memory, run

#: Keys of producers of one element or word, of every length of pipeline use.
PRODUCERS = ["v.v.add[8]", "v.s.mul[16]", "v.v.mul[64]", "m.v.mul.add[32]", "m.v.nop.max[16]"]


def test_one_beat_commands_run_one_a_cycle() -> None:
    rng = random.Random(1)
    keys = ["v.v.add[16]", "m.v.nop.min[8]", "v.s.mul[8]", "v.v.max[64]"]
    commands = [Command(keys[i % 4], 2048 + 8 * i, 8 * i, 8 * i + 3, 1) for i in range(40)]
    accepted = run(PeConfig(), commands, hostile_memory(rng, 4096))
    assert accepted == list(range(40))


def test_a_command_waits_behind_a_long_one_without_a_gap() -> None:
    rng = random.Random(2)
    commands = [
        Command("v.v.add[16]", 2048, 0, 512, 40),
        Command("v.v.sub[16]", 2200, 1, 77, 4),
        Command("v.v.min[16]", 2300, 5, 99, 4),
        Command("v.v.max[16]", 2400, 9, 55, 8),
    ]
    accepted = run(PeConfig(), commands, hostile_memory(rng, 4096))
    # The first starts in cycle 1 and has its last of ten beats in cycle 10; the second waits from
    # cycle 1 on and starts in cycle 11, which frees the place of the third.
    assert accepted == [0, 1, 11, 12]


@pytest.mark.parametrize("producer", PRODUCERS)
def test_a_result_can_be_read_after_the_latency(producer: str) -> None:
    rng = random.Random(3)
    make = Command(producer, 1024, 3, 11, 1, fx=5)
    filler = Command("v.v.add[64]", 2048, 100, 300, VECTOR_LATENCY - 1)
    use = Command("v.v.sub[64]", 3000, 1024, 500, 1)
    memory = hostile_memory(rng, 4096)
    memory[1024:1032] = bytes(8)
    run(PeConfig(), [make, filler, use], memory)
    wanted = bytearray(memory)
    (_, made), *_ = expected_writes(make, 0, memory, PeConfig()).values()
    assert memory[1024 : 1024 + len(made)] == made
    (_, used), *_ = expected_writes(use, 0, wanted, PeConfig()).values()
    assert memory[3000:3008] == used


def test_the_element_of_a_scalar_operation_may_be_overwritten() -> None:
    memory = bytearray()
    for value in range(100, 200):
        memory += value.to_bytes(2, "little")
    memory += bytes(4096 - len(memory))
    run(PeConfig(), [Command("v.s.sub[16]", 0, 0, 0, 100)], memory)
    assert [memory[2 * i] for i in range(100)] == list(range(100))


def test_on_the_scratchpad() -> None:
    config = PeConfig(scratchpad_bytes=512)
    rng = random.Random(4)
    memory = hostile_memory(rng, 512)
    commands = [
        Command("m.v.mul.add[16]", 401, 3, 151, 9, mr=8, fx=7),
        Command("v.v.add[8]", 300, 77, 123, 8 * VECTOR_LATENCY - 4),
        # Its first beat comes VECTOR_LATENCY after the one that made the first result above.
        Command("v.s.sub[8]", 443, 300, 20, 57),
        Command("v.v.mul[32]", 250, 33, 65, 5, fx=16),
    ]
    unit, pad = VectorUnit(config), Scratchpad(config)
    m = Module()
    m.submodules.unit = unit
    m.submodules.pad = pad
    for number in range(2):
        connect(m, unit.read[number], pad.read[number])
    connect(m, unit.write, pad.write[0])

    async def bench(ctx) -> None:
        for at in range(0, 512, 8):
            ctx.set(pad.write[1].address, at)
            ctx.set(pad.write[1].data, int.from_bytes(memory[at : at + 8], "little"))
            ctx.set(pad.write[1].strobe, 0xFF)
            await ctx.tick()
        ctx.set(pad.write[1].strobe, 0)
        for command in commands:
            for address, data in expected_writes(command, 0, memory, config).values():
                memory[address : address + len(data)] = data
            row = command.row
            ctx.set(
                unit.command.payload,
                {
                    "kind": row.opcode - Opcode.MATRIX_VECTOR,
                    "vertical": row.vertical,
                    "reduction": row.reduction or 0,
                    "width": row.width,
                    "result": command.result,
                    "first": command.first,
                    "second": command.second,
                    "vl": command.vl,
                    "mr": command.mr,
                    "fx": command.fx,
                },
            )
            ctx.set(unit.command.valid, 1)
            while not ctx.get(unit.command.ready):
                await ctx.tick()
            await ctx.tick()
        ctx.set(unit.command.valid, 0)
        while ctx.get(unit.busy):
            await ctx.tick()
        # In the very first cycle without busy, the last result is there; then all others.
        last = commands[-1].result + 4 * 4
        for at in [last, *range(0, 512, 8)]:
            ctx.set(pad.read[2].address, at)
            ctx.set(pad.read[2].enable, 1)
            await ctx.tick()
            # Each byte is in the place of its bank.
            word = ctx.get(pad.read[2].data).to_bytes(8, "little") * 2
            assert word[at % 8 : at % 8 + 8] == (memory + memory)[at : at + 8]

    sim = Simulator(m)
    sim.add_clock(1e-9)
    sim.add_testbench(bench)
    sim.run()
