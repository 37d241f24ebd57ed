"""Results and timing of every vector instruction, in long random sequences."""

import random
from itertools import pairwise
from pathlib import Path

import pytest

from isa.table import INSTRUCTIONS
from pe.config import ALL_INSTRUCTIONS, STANDARD_INSTRUCTIONS, PeConfig
from pe.vector.beat import narrow_bits
from sim_tb.waves.cycles import read_cycles
from tests.pe.vector.vector_bench import hostile_memory, random_command, run

KEYS = [row.key for row in INSTRUCTIONS if row.vertical is not None]
STANDARD = [key for key in KEYS if key in STANDARD_INSTRUCTIONS]
HALF = 2048


def _sequence(rng: random.Random, keys: list[str], longest: int) -> list:
    keys = list(keys)
    rng.shuffle(keys)
    return [random_command(rng, key, HALF, 0, longest) for key in keys]


@pytest.mark.parametrize("seed", range(3))
def test_every_instruction_on_random_operands(seed: int) -> None:
    rng = random.Random(seed)
    # The second with optional operations, the last with multipliers from gates.
    config = PeConfig(
        instructions=ALL_INSTRUCTIONS if seed == 1 else STANDARD_INSTRUCTIONS,
        sram="macro" if seed == 2 else "behavioural",
    )
    keys = KEYS if seed == 1 else STANDARD
    commands = _sequence(rng, keys if seed == 2 else keys * 2, 20)
    accepted = run(config, commands, hostile_memory(rng, 2 * HALF))
    assert len(accepted) == len(commands)


def test_results_say_which_rows_they_ask_for() -> None:
    rng = random.Random(5)
    keys = ["v.v.mul[16]", "v.s.add[8]", "m.v.mul.add[16]", "m.v.nop.max[64]", "v.v.sub[32]"]
    run(PeConfig(scratchpad_banks=16), _sequence(rng, keys, 20), hostile_memory(rng, 2 * HALF))


def test_gates_move_only_with_what_a_beat_needs(tmp_path: Path) -> None:
    """Registers of products with products, the place of a result with its write, and no bits
    beyond a narrow row's value."""
    rng = random.Random(4)
    config = PeConfig(sram="macro")
    keys = ["m.v.mul.add[16]", "m.v.add.min[16]", "v.v.sub[16]", "m.v.mul.add[8]", "v.v.mul[32]"]
    trace = tmp_path / "beats.vcd"
    run(config, _sequence(rng, keys, 12), hostile_memory(rng, 2 * HALF), trace)
    vertical, horizontal = "bench.top.vertical.", "bench.top.horizontal."
    names = (
        vertical + "carries",
        vertical + "partial",
        vertical + "\\beat_1.value.result.product",
        horizontal + "\\beat.result.address",
        horizontal + "pair_write",
        horizontal + "value",
        horizontal + "narrow",
        horizontal + "complete",
    )
    products = places = rows = 0
    cycles = read_cycles(trace, "bench.top.clk", names)
    for (carries, partial, product, place, write, *_), now in pairwise(cycles):
        later_carries, later_partial, _, later_place, _, value, narrow, complete = now
        moves = carries != later_carries or partial >> 64 != later_partial >> 64
        assert product or not moves
        assert write or place == later_place
        assert not narrow or value >> narrow_bits(config) == 0
        products, places = products + moves, places + (place != later_place)
        rows += narrow & complete
    assert min(products, places, rows) > 10
