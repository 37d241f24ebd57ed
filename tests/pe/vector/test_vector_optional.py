"""Optional element-wise operations: the vector unit against the instruction set simulator."""

import random

import pytest

from isa.image import DramImage
from isa.iss.simulator import Simulator as InstructionSetSimulator
from isa.table import BY_KEY, INSTRUCTIONS, encode
from pe.config import ALL_INSTRUCTIONS, STANDARD_INSTRUCTIONS, PeConfig
from tests.pe.vector.vector_bench import Command, hostile_memory, random_command, run

KEYS = [row.key for row in INSTRUCTIONS if row.optional and row.vertical is not None]
HALF = 1024
RESULT, FIRST, SECOND, SETTING = 20, 21, 22, 23


def _simulated(command: Command, memory: bytes) -> bytes:
    """The scratchpad after ``command``."""
    constants = {
        "vl": command.vl,
        "mr": command.mr,
        "fx": command.fx,
    }
    words = []
    for name, value in constants.items():
        words += [
            encode(BY_KEY["mov.imm"], (SETTING, value)),
            encode(BY_KEY[f"set.{name}"], (SETTING,)),
        ]
    for register, address in (
        (RESULT, command.result),
        (FIRST, command.first),
        (SECOND, command.second),
    ):
        words.append(encode(BY_KEY["mov.imm"], (register, address)))
    words += [encode(command.row, (RESULT, FIRST, SECOND)), encode(BY_KEY["halt"], ())]
    with DramImage(64) as dram:
        simulator = InstructionSetSimulator(
            words, dram, scratchpad=memory, scratchpad_bytes=len(memory)
        )
        assert simulator.run().state == "halted"
        return simulator.scratchpad.tobytes()


def test_they_are_in_no_configuration_that_does_not_ask() -> None:
    assert not STANDARD_INSTRUCTIONS & set(KEYS)
    assert set(KEYS) < ALL_INSTRUCTIONS


@pytest.mark.parametrize("name", ["absdiff", "avg"])
def test_results_are_those_of_the_simulator(name: str) -> None:
    keys = [key for key in KEYS if f".{name}" in key]
    assert len(keys) == 20
    config = PeConfig(
        instructions=frozenset({*keys, "set.vl", "set.mr", "halt"}), scratchpad_bytes=2 * HALF
    )
    rng = random.Random(name)
    memory = hostile_memory(rng, 2 * HALF)
    commands = [random_command(rng, key, HALF, 0, 12) for key in keys]
    expected = bytes(memory)
    for command in commands:
        expected = _simulated(command, expected)
    run(config, commands, memory)
    assert bytes(memory) == expected
