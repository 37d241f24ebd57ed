"""The schedule model finds what the contract of the vector unit forbids, and nothing else."""

import pytest

from isa.table import BY_KEY
from isa.timing import VECTOR_LATENCY
from microkernels.common.schedule import ScheduleModel

VL = 16  # elements of 16 bits: 4 beats


class Run:
    """Feeds instructions by key; vector and transfer operands are given as addresses."""

    def __init__(self, latency: int = 60, vl: int = VL, mr: int = VL) -> None:
        self.model = ScheduleModel(latency=latency)
        self.vl, self.mr = vl, mr
        self.pc = 0

    def do(self, key: str, *values: int, taken: bool = False) -> "Run":
        numbers = tuple(range(10, 10 + len(values)))
        self.model.step(self.pc, BY_KEY[key], numbers, values, self.vl, self.mr, taken)
        self.pc += 1
        return self

    def add(self, result: int, first: int, second: int) -> "Run":
        return self.do("v.v.add[16]", result, first, second)

    @property
    def found(self) -> list[tuple[int, str, int]]:
        return [(hazard.pc, hazard.what, hazard.distance) for hazard in self.model.hazards]


@pytest.mark.parametrize("between", [0, 1, 2])
def test_a_result_may_be_read_after_the_latency(between: int) -> None:
    run = Run().add(0, 100, 200)
    for _ in range(between):
        run.add(300, 100, 200)
    run.add(400, 0, 200)
    distance = 4 * (1 + between)
    late = distance >= VECTOR_LATENCY
    assert late == (between == 2)
    assert run.found == ([] if late else [(1 + between, "vector read", distance)])


def test_bytes_are_told_apart() -> None:
    # Reads the last word of the result in its first beat: 4 - 3 cycles after it was made.
    assert Run().add(0, 100, 200).add(400, 24, 200).found == [(1, "vector read", 1)]
    assert Run().add(0, 100, 200).add(400, 32, 200).found == []


def test_a_drain_clears_hazards() -> None:
    run = Run().add(0, 100, 200).do("v.drain").add(0, 0, 200)
    assert run.found == []
    run.do("v.drain").do("st.sram[16]", 4096, 0, VL).do("ld.sram[16]", 200, 4096, VL)
    assert run.found == []


def test_the_rows_of_a_matrix_are_produced_one_by_one() -> None:
    # The last element is made in the last of 64 beats and is read by the fourth beat.
    run = Run().do("m.v.add.min[16]", 0, 1000, 2000)
    run.add(400, 0, 200)
    assert run.found == [(1, "vector read", 4)]
    run = Run().do("m.v.add.min[16]", 0, 1000, 2000)
    for _ in range(2):
        run.add(500, 600, 700)
    assert run.add(400, 0, 200).found == []


def test_one_element_is_read_in_the_first_beat() -> None:
    run = Run().add(0, 100, 200).add(500, 600, 700).do("v.s.sub[16]", 400, 300, 24)
    assert run.found == [(2, "vector read", 5)]


@pytest.mark.parametrize(("behind", "safe"), [(1, False), (3, False), (4, False), (5, True)])
def test_a_store_waits_until_its_producer_must_have_ended(behind: int, safe: bool) -> None:
    # The last instruction may just have been taken and the one before just have begun.
    run = Run().add(0, 100, 200)
    for _ in range(behind):
        run.add(300, 100, 200)
    run.do("st.sram[16]", 4096, 0, VL)
    assert (run.found == []) is safe


@pytest.mark.parametrize(("behind", "safe"), [(0, False), (1, False), (2, True)])
def test_a_load_waits_until_operands_have_been_read(behind: int, safe: bool) -> None:
    run = Run().add(0, 100, 200)
    for _ in range(behind):
        run.add(300, 600, 700)
    run.do("ld.sram[16]", 200, 4096, VL)
    assert (run.found == []) is safe


def test_cycles_of_a_straight_line() -> None:
    run = Run()
    for _ in range(10):
        run.do("add.imm", 1, 1, 1)
    assert run.model.cycles == 9
    run.do("jmp", 0, taken=True).do("add.imm", 1, 1, 1)
    assert run.model.cycles == 14


def test_vector_instructions_follow_each_other_without_a_gap() -> None:
    run = Run()
    for _ in range(100):
        run.add(0, 100, 200)
    run.do("halt")
    assert run.model.vector_busy == 400
    assert 400 <= run.model.cycles <= 400 + VECTOR_LATENCY + 2


def test_a_reader_waits_for_its_load() -> None:
    run = Run(latency=100).do("ld.sram[16]", 100, 4096, VL).add(0, 100, 200)
    assert run.found == []
    assert 100 < run.model.cycles < 115
    run = Run(latency=100).do("ld.reg[64]", 5, 4096)
    run.model.step(1, BY_KEY["add.imm"], (11, 10, 1), (0, 0, 1), VL, VL, False)
    assert run.model.cycles > 100
