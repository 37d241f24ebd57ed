"""Random programs: what they cover."""

from collections import Counter

import pytest

from isa.faults import FaultCause
from isa.image import DramImage
from isa.table import find
from pe.config import ALL_INSTRUCTIONS, PeConfig
from sim_tb.random.faults import FAULTS
from sim_tb.random.programs import random_config, random_program
from sim_tb.random.reference import run_reference

SMALL = PeConfig(registers=16, scratchpad_bytes=256, address_bits=12, instruction_words=128)


def test_every_instruction_and_every_fault_occurs() -> None:
    config = PeConfig(instructions=ALL_INSTRUCTIONS)
    used: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for seed in range(400):
        program = random_program(seed, config)
        faults[program.fault] += 1
        used.update(row.key for word in program.words if (row := find(word)))
    assert set(used) >= ALL_INSTRUCTIONS
    assert set(faults) == {"", "workspace", *FAULTS} - {"result too wide"}
    assert faults[""] > 200


def test_a_seed_is_a_program() -> None:
    config = PeConfig()
    assert random_program(5, config) == random_program(5, config)
    assert random_program(5, config).words != random_program(6, config).words


def test_small_engines_get_programs_that_fit() -> None:
    for seed in range(500):
        program = random_program(seed, SMALL)
        assert 0 < len(program.words) <= SMALL.instruction_words
        assert len(program.scratchpad) == SMALL.scratchpad_bytes
        end = max(start + len(content) for start, content in program.windows)
        assert end == 1 << SMALL.address_bits


def test_narrow_engines_get_programs_that_mostly_fit_and_results_that_do_not() -> None:
    config = PeConfig(register_width=24, address_bits=16, max_vl=33, max_mr=7)
    ends: Counter[tuple[str, FaultCause]] = Counter()
    with DramImage(1 << config.address_bits) as image:
        for seed in range(300):
            program = random_program(seed, config)
            for address, content in program.windows:
                image.write(address, content)
            ends[program.fault, run_reference(program, config, image).cause] += 1
    assert ends["", FaultCause.NONE] > 150
    assert ends["result too wide", FaultCause.REGISTER_RANGE] > 1
    assert ends["result too wide", FaultCause.NONE] == 0
    assert ends["vector setting", FaultCause.VECTOR_SETTING] > 1


def test_random_engines_are_small_and_differ() -> None:
    configs = [random_config(seed) for seed in range(40)]
    assert len(set(configs)) == len(configs)
    assert {config.narrow for config in configs} == {True, False}
    for number, config in enumerate(configs):
        assert len(random_program(number, config).words) <= config.instruction_words


def test_missing_basics_are_refused() -> None:
    config = PeConfig(instructions=ALL_INSTRUCTIONS - {"v.drain"})
    with pytest.raises(ValueError, match=r"need an engine with the instruction 'v\.drain'"):
        random_program(1, config)
