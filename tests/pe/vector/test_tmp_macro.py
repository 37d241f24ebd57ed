"""Results and timing of every vector instruction, in long random sequences."""

import random

import pytest

from isa.table import INSTRUCTIONS
from pe.config import ALL_INSTRUCTIONS, STANDARD_INSTRUCTIONS, PeConfig
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
        sram="macro",
    )
    keys = KEYS if seed == 1 else STANDARD
    commands = _sequence(rng, keys if seed == 2 else keys * 2, 24)
    accepted = run(config, commands, hostile_memory(rng, 2 * HALF))
    assert len(accepted) == len(commands)
