"""Random programs: what they cover, and the hazards that they keep clear of."""

from collections import Counter

import pytest

from hdl.config import ALL_INSTRUCTIONS, PeConfig
from isa.faults import FaultCause
from isa.image import DramImage
from isa.table import BY_KEY, find
from isa.timing import VECTOR_LATENCY
from sim_tb.random_configs import random_config
from sim_tb.random_faults import FAULTS
from sim_tb.random_programs import random_program
from sim_tb.random_reference import run_reference
from sim_tb.vector_hazards import Span, VectorHazards, VectorOperation, overlap

SMALL = PeConfig(registers=16, scratchpad_bytes=256, address_bits=12, instruction_words=128)


def operation(
    key: str, result: int, first: int, second: int = 0, *, vl: int, mr: int = 1
) -> VectorOperation:
    return VectorOperation(BY_KEY[key], result, first, second, vl, mr)


@pytest.fixture
def hazards() -> VectorHazards:
    return VectorHazards(4096)


def test_every_instruction_and_every_fault_occurs() -> None:
    config = PeConfig(instructions=ALL_INSTRUCTIONS)
    used: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for seed in range(400):
        program = random_program(seed, config)
        faults[program.fault] += 1
        used.update(row.key for word in program.words if (row := find(word)))
    assert set(used) >= ALL_INSTRUCTIONS
    assert set(faults) == {"", *FAULTS} - {"result too wide"}
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
        end = max(window.start + len(window.content) for window in program.windows)
        assert end == 1 << SMALL.address_bits


def test_narrow_engines_get_programs_that_mostly_fit_and_results_that_do_not() -> None:
    config = PeConfig(register_width=24, address_bits=16, max_vl=33, max_mr=7)
    ends: Counter[tuple[str, FaultCause]] = Counter()
    with DramImage(1 << config.address_bits) as image:
        for seed in range(300):
            program = random_program(seed, config)
            for window in program.windows:
                image.write(window.start, window.content)
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


@pytest.mark.parametrize(
    ("vl", "allowed"), [(4 * VECTOR_LATENCY, True), (4 * VECTOR_LATENCY - 4, False)]
)
def test_same_places_follow_after_the_latency(
    hazards: VectorHazards, vl: int, allowed: bool
) -> None:
    hazards.issued(operation("v.v.add[16]", 0, 1000, 2000, vl=vl))
    assert hazards.allows(operation("v.v.sub[16]", 3000, 0, 2000, vl=vl)) is allowed
    assert hazards.allows(operation("v.v.sub[16]", 3000, 2000, 0, vl=vl)) is allowed
    assert hazards.allows(operation("v.v.sub[16]", 0, 1000, 2000, vl=vl))
    hazards.drained()
    assert hazards.allows(operation("v.v.sub[16]", 3000, 0, 2000, vl=vl))


def test_later_elements_read_first_are_not_there(hazards: VectorHazards) -> None:
    hazards.issued(operation("v.v.add[8]", 0, 1000, 2000, vl=8 * VECTOR_LATENCY))
    assert hazards.allows(operation("v.v.add[8]", 3000, 0, 2000, vl=8))
    assert not hazards.allows(operation("v.v.add[8]", 3000, 1, 2000, vl=8))
    assert not hazards.allows(operation("v.s.add[8]", 3000, 2000, 8, vl=8))
    assert hazards.allows(operation("v.s.add[8]", 3000, 2000, 7, vl=8))


def test_products_take_longer(hazards: VectorHazards) -> None:
    hazards.issued(operation("v.v.mul[64]", 0, 1000, 2000, vl=2))
    assert hazards.allows(operation("v.v.mul[64]", 3000, 8, 2000, vl=1)) is False
    assert not hazards.allows(operation("v.v.add[64]", 3000, 0, 2000, vl=2))
    hazards.issued(operation("v.v.mul[64]", 3000, 1000, 2000, vl=2))
    # Beats 0..3 made the first word, 4..7 the second; this one starts at 16.
    assert hazards.allows(operation("v.v.add[64]", 3000, 0, 2000, vl=1))
    assert not hazards.allows(operation("v.v.add[64]", 3000, 8, 2000, vl=1))


def test_rows_of_a_matrix_end_one_after_the_other(hazards: VectorHazards) -> None:
    # Rows of two beats: they end in beats 1, 3, ... 19; the next instruction starts in 20.
    hazards.issued(operation("m.v.add.min[16]", 0, 1000, 2000, vl=8, mr=10))
    assert hazards.allows(operation("v.v.add[16]", 3000, 0, 2000, vl=4))
    assert not hazards.allows(operation("v.v.add[16]", 3000, 2, 2000, vl=4))


def test_spans_follow_form_and_settings() -> None:
    matrix = operation("m.v.mul.add[32]", 0, 100, 900, vl=3, mr=5)
    assert matrix.spans == (Span(0, 20), Span(100, 60), Span(900, 12))
    assert operation("m.v.nop.max[8]", 0, 100, vl=3, mr=5).spans == (Span(0, 5), Span(100, 15))
    scalar = operation("v.s.add[64]", 0, 100, 900, vl=3)
    assert scalar.spans == (Span(0, 24), Span(100, 24), Span(900, 8))
    assert overlap(Span(0, 20), Span(19, 1))
    assert not overlap(Span(0, 20), Span(20, 1))
    assert not overlap(Span(5, 0), Span(0, 20))


@pytest.mark.parametrize(
    ("key", "places", "reads_itself"),
    [
        ("v.v.add[16]", (0, 0, 100), False),
        ("v.v.add[16]", (0, 100, 0), False),
        ("v.v.add[16]", (2, 0, 100), True),
        ("v.v.add[16]", (0, 0, 2), True),
        ("v.s.add[16]", (0, 0, 100), False),
        ("v.s.add[16]", (0, 100, 0), True),
        ("m.v.add.min[16]", (0, 100, 0), True),
        ("m.v.add.min[16]", (100, 100, 0), False),
        ("m.v.add.min[16]", (102, 100, 0), True),
        ("m.v.add.min[16]", (98, 100, 0), True),
        ("m.v.add.min[16]", (0, 0, 2), True),
    ],
)
def test_results_over_own_operands(
    key: str, places: tuple[int, int, int], reads_itself: bool
) -> None:
    assert operation(key, *places, vl=8, mr=2).reads_itself is reads_itself


def test_loads_and_stores_keep_clear(hazards: VectorHazards) -> None:
    hazards.issued(operation("v.v.add[16]", 0, 1000, 2000, vl=8))
    assert not hazards.allows_store(Span(15, 1))
    assert hazards.allows_store(Span(16, 100))
    assert hazards.allows_store(Span(1000, 16))
    for span in (Span(0, 1), Span(1015, 2), Span(2000, 1)):
        assert not hazards.allows_load(span)
    assert hazards.allows_load(Span(16, 900))
    for result in (100, 200):
        hazards.issued(operation("v.v.add[16]", result, 3000, 3000, vl=8))
    # Two more have been taken, so the first has read its operands; its result may be on its way.
    assert hazards.allows_load(Span(1000, 16))
    assert not hazards.allows_load(Span(0, 1))
    hazards.drained()
    assert hazards.allows_load(Span(0, 4096))
    assert hazards.allows_store(Span(0, 4096))
