"""A trimmed vector unit gives the same results in the same cycles, and is smaller."""

import random

import pytest
from amaranth.back import rtlil
from amaranth.sim import Simulator

from hdl.config import SramKind
from hdl.emission import emit
from isa.table import INSTRUCTIONS, VerticalOp, Width
from pe.config import PeConfig
from pe.vector.horizontal import VectorHorizontal
from pe.vector.unit import VectorUnit
from tests.pe.vector.vector_bench import hostile_memory, random_command, run

ROWS = [row for row in INSTRUCTIONS if row.vertical is not None]
HALF = 1024

GROUPS = {
    "belief propagation": {"m.v.add.min[16]", "v.v.add[16]", "v.s.sub[16]"},
    "convolution": {"m.v.mul.add[16]", "v.v.add[16]", "v.s.max[16]"},
    "bytes": {row.key for row in ROWS if row.width is Width.W8},
    "halves": {row.key for row in ROWS if row.width is Width.W16},
    "no products": {row.key for row in ROWS if row.vertical is not VerticalOp.MUL},
    "only products": {row.key for row in ROWS if row.vertical is VerticalOp.MUL},
    "only absolute differences": {row.key for row in ROWS if row.vertical is VerticalOp.ABSDIFF},
    "only averages": {row.key for row in ROWS if row.vertical is VerticalOp.AVG},
    "convolution of bytes": {"m.v.dot.add[16]", "v.v.add[16]", "v.s.max[16]", "m.v.mul.add[8]"},
    "only pairs": {"m.v.dot.add[16]"},
    "pairs and long products": {"m.v.dot.add[16]", "m.v.mul.min[32]", "v.s.mul[16]"},
    "no 64-bit": {row.key for row in ROWS if row.width is not Width.W64},
    "only wide": {row.key for row in ROWS if row.width in (Width.W32, Width.W64)},
    "element-wise": {row.key for row in ROWS if row.reduction is None},
    "sums and comparisons": {
        row.key for row in ROWS if row.reduction is None and row.vertical is not VerticalOp.MUL
    },
    "only matrix": {row.key for row in ROWS if row.reduction is not None},
    "long sums, short products": {"m.v.add.add[64]", "m.v.mul.max[8]", "v.v.mul[16]"},
    "long sums, short minima": {"m.v.sub.add[64]", "m.v.nop.min[8]"},
    "long products, short minima": {"m.v.mul.max[64]", "m.v.add.min[16]", "m.v.mul.max[8]"},
    "long products, short sums": {"v.v.mul[64]", "m.v.nop.add[8]"},
}


def _config(keys: set[str], sram: SramKind) -> PeConfig:
    return PeConfig(
        instructions=frozenset({*keys, "set.vl", "set.mr", "halt"}),
        scratchpad_bytes=2 * HALF,
        sram=sram,
    )


def _run(keys: set[str], sram: SramKind, seed: int, repeat: int) -> None:
    rng = random.Random(seed)
    chosen = sorted(keys) * repeat if repeat else rng.sample(sorted(keys), 12)
    rng.shuffle(chosen)
    commands = [random_command(rng, key, HALF, 0, 16) for key in chosen]
    run(_config(keys, sram), commands, hostile_memory(rng, 2 * HALF))


#: Their parts are those of other groups.
COVERED = {
    "halves",
    "no products",
    "element-wise",
    "pairs and long products",
    "long sums, short minima",
    "long products, short minima",
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name in COVERED else name for name in GROUPS],
)
def test_groups(name: str) -> None:
    """With macros: only they have gated clocks."""
    keys = GROUPS[name]
    _run(keys, "macro", len(name), 4 if len(keys) < 6 else 0)


def test_values_of_other_widths_are_written_once() -> None:
    """Verilog of a stage whose values have not all the bits of a narrow row."""
    stage = VectorHorizontal(_config(GROUPS["belief propagation"], "macro"))
    assert len(emit(stage, "stage").modules["stage"]) < 200_000


@pytest.mark.parametrize("row", random.Random(5).sample(ROWS, 16), ids=lambda row: row.key)
def test_alone(row) -> None:
    _run({row.key}, "behavioural", row.match, 6)


def test_without_vector_instructions() -> None:
    dut = VectorUnit(PeConfig(instructions=frozenset({"halt"})))

    async def bench(ctx) -> None:
        ctx.set(dut.command.valid, 1)
        assert not ctx.get(dut.command.ready)
        assert not ctx.get(dut.busy)
        assert not ctx.get(dut.write.strobe)

    sim = Simulator(dut)
    sim.add_testbench(bench)
    sim.run()


@pytest.mark.parametrize(
    ("name", "multiplies", "reduces"),
    [
        ("belief propagation", False, True),
        ("element-wise", True, False),
        ("only products", True, True),
    ],
)
def test_builds_only_what_is_needed(name: str, multiplies: bool, reduces: bool) -> None:
    config = _config(GROUPS[name], "behavioural")
    text = rtlil.convert(VectorUnit(config))
    assert ("cell $mul" in text) == multiplies
    assert ("replaces" in text) == reduces
    assert ("finish.coarse" in text) == multiplies
