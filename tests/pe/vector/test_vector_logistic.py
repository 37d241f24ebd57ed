"""The logistic unit: every table entry, beside every other instruction, alone and left out."""

import random

import numpy as np
import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

from isa.logistic import LIMIT_BITS, MOST_FRACTION, U_FRACTION, LogisticOp, logistic
from isa.logistic import LOGISTIC as UNIT
from isa.table import BY_KEY, INSTRUCTIONS, Unit
from pe.config import LOGISTIC_INSTRUCTIONS, STANDARD_INSTRUCTIONS, PeConfig
from pe.vector.logistic import VectorLogistic
from pe.vector.unit import VectorUnit
from tests.pe.vector.vector_bench import Command, hostile_memory, random_command, run

LOGISTIC = ["v.sigmoid[16]", "v.tanh[16]"]
OTHERS = [row.key for row in INSTRUCTIONS if row.unit is Unit.VECTOR and not row.special]
HALF = 1024


def config(keys: list[str]) -> PeConfig:
    return PeConfig(
        instructions=frozenset({*keys, "set.vl", "set.mr", "halt"}), scratchpad_bytes=2 * HALF
    )


@pytest.mark.parametrize("keys", [LOGISTIC, LOGISTIC[:1], LOGISTIC[1:]], ids="-".join)
def test_elements_of_every_segment_and_size(keys: list[str]) -> None:
    """The unit alone, an element a cycle: the ends of every segment and random elements."""
    dut = VectorLogistic(config(keys))
    functions = [UNIT.function_of(BY_KEY[key]) for key in keys]
    rng = random.Random(len(keys))
    step = 1 << U_FRACTION - 4
    cases = []
    for u in range(0, (1 << LIMIT_BITS) + step, step):
        for x in {min(u + near >> 4, (1 << 15) - 1) for near in (-16, -1, 0, 16)}:
            # With 12 fraction bits x is u / 16 for tanh, and u / 8 for the sigmoid.
            cases += [(rng.choice(functions), rng.choice([1, -1]) * x, 12)]
    edges = [0, 1, -1, (1 << 15) - 1, -(1 << 15)]
    for fx in (*range(MOST_FRACTION + 3), 63):
        for function in functions:
            cases += [(function, x, fx) for x in edges]
            cases += [(function, rng.randrange(-(1 << 15), 1 << 15), fx) for _ in range(16)]
    rng.shuffle(cases)
    cases = cases[: len(cases) // 4 * 4]
    latency = 6

    async def bench(ctx) -> None:
        found: list[int] = []
        for number in range(len(cases) + latency):
            if number >= latency:
                assert ctx.get(dut.valid)
                if number % 4 == (latency + 3) % 4:
                    word = ctx.get(dut.result).to_bytes(8, "little")
                    found += np.frombuffer(word, "<i2").tolist()
            active = number < len(cases)
            if active:
                function, x, fx = cases[number]
                others = [rng.getrandbits(16) for _ in range(4)]
                others[number % 4] = x & 0xFFFF
                ctx.set(dut.word, sum(other << 16 * n for n, other in enumerate(others)))
                fields = {"function": function, "lane": number % 4}
                fields["missing"] = MOST_FRACTION - min(fx, MOST_FRACTION)
                ctx.set(dut.beat, fields | {"active": 1})
            else:
                ctx.set(dut.beat.active, 0)
            await ctx.tick()
        assert not ctx.get(dut.valid)
        for (function, x, fx), result in zip(cases, found, strict=True):
            assert result == logistic(function, np.array([x], "<i2"), fx)[0], (function, x, fx)

    sim = Simulator(dut)
    sim.add_clock(1e-9)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize(
    "others",
    [
        [],
        OTHERS,
        ["v.v.mul[16]"],
        ["m.v.mul.add[8]"],
        ["v.v.max[64]", "v.s.add[8]"],
        ["v.v.mul[64]"],
    ],
    ids=lambda others: str(len(others)) if len(others) != 1 else others[0],
)
def test_among_other_instructions(others: list[str]) -> None:
    rng = random.Random(len(others))
    keys = LOGISTIC * 4 + (rng.sample(others, 8) if len(others) > 8 else others * 3)
    rng.shuffle(keys)
    commands = [random_command(rng, key, HALF, 0, 24) for key in keys]
    run(config([*LOGISTIC, *others]), commands, hostile_memory(rng, 2 * HALF))


@pytest.mark.parametrize("key", LOGISTIC)
def test_alone(key: str) -> None:
    rng = random.Random(key)
    commands = [random_command(rng, key, HALF, 0, 32) for _ in range(6)]
    run(config([key]), commands, hostile_memory(rng, 2 * HALF))


def test_results_may_replace_their_operands() -> None:
    memory = bytearray(np.arange(-300, 300, dtype="<i2").tobytes())
    memory += bytes(2 * HALF - len(memory))
    wanted = logistic(LogisticOp.TANH, np.arange(-300, -100).astype("<i2"), 8)
    run(config(LOGISTIC), [Command("v.tanh[16]", 0, 0, 0, 200, fx=8)], memory)
    assert memory[:400] == wanted.tobytes()


def test_there_only_if_asked_for() -> None:
    assert set(LOGISTIC) == LOGISTIC_INSTRUCTIONS - STANDARD_INSTRUCTIONS
    assert "logistic" not in rtlil.convert(VectorUnit(PeConfig()))
    assert "logistic" in rtlil.convert(VectorUnit(config(["v.tanh[16]"])))
