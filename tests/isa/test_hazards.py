"""Hazards of the vector unit: what the model forbids, and what it lets pass."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isa.assembly.assembler import assemble
from isa.hazards import HazardLog
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.program import Span
from isa.table import BY_KEY
from isa.timing import VECTOR_LATENCY, Hazard, HazardKind, HazardModel, VectorOperation

LOAD, STORE = BY_KEY["ld.sram[8]"], BY_KEY["st.sram[8]"]


def operation(
    key: str, result: int, first: int, second: int = 0, *, vl: int, mr: int = 1
) -> VectorOperation:
    return VectorOperation(BY_KEY[key], result, first, second, vl, mr)


@pytest.fixture
def hazards() -> HazardModel:
    return HazardModel()


@pytest.mark.parametrize(
    ("vl", "allowed"), [(4 * VECTOR_LATENCY, True), (4 * VECTOR_LATENCY - 4, False)]
)
def test_same_places_follow_after_the_latency(hazards: HazardModel, vl: int, allowed: bool) -> None:
    hazards.issued(operation("v.v.add[16]", 0, 1000, 2000, vl=vl))
    assert (not hazards.before_vector(operation("v.v.sub[16]", 3000, 0, 2000, vl=vl))) is allowed
    assert (not hazards.before_vector(operation("v.v.sub[16]", 3000, 2000, 0, vl=vl))) is allowed
    assert not hazards.before_vector(operation("v.v.sub[16]", 0, 1000, 2000, vl=vl))
    hazards.drained()
    assert not hazards.before_vector(operation("v.v.sub[16]", 3000, 0, 2000, vl=vl))


def test_later_elements_read_first_are_not_there(hazards: HazardModel) -> None:
    hazards.issued(operation("v.v.add[8]", 0, 1000, 2000, vl=8 * VECTOR_LATENCY))
    assert not hazards.before_vector(operation("v.v.add[8]", 3000, 0, 2000, vl=8))
    assert hazards.before_vector(operation("v.v.add[8]", 3000, 1, 2000, vl=8))
    assert hazards.before_vector(operation("v.s.add[8]", 3000, 2000, 8, vl=8))
    assert not hazards.before_vector(operation("v.s.add[8]", 3000, 2000, 7, vl=8))


def test_products_take_longer(hazards: HazardModel) -> None:
    hazards.issued(operation("v.v.mul[64]", 0, 1000, 2000, vl=2))
    assert hazards.before_vector(operation("v.v.mul[64]", 3000, 8, 2000, vl=1))
    assert hazards.before_vector(operation("v.v.add[64]", 3000, 0, 2000, vl=2))
    hazards.issued(operation("v.v.mul[64]", 3000, 1000, 2000, vl=2))
    # Beats 0..3 made the first word, 4..7 the second; this one starts at 16.
    assert not hazards.before_vector(operation("v.v.add[64]", 3000, 0, 2000, vl=1))
    assert hazards.before_vector(operation("v.v.add[64]", 3000, 8, 2000, vl=1))


def test_rows_of_a_matrix_end_one_after_the_other(hazards: HazardModel) -> None:
    # Rows of two beats: they end in beats 1, 3, ... 19; the next instruction starts in 20.
    hazards.issued(operation("m.v.add.min[16]", 0, 1000, 2000, vl=8, mr=10))
    assert not hazards.before_vector(operation("v.v.add[16]", 3000, 0, 2000, vl=4))
    assert hazards.before_vector(operation("v.v.add[16]", 3000, 2, 2000, vl=4))


def test_spans_follow_form_and_settings() -> None:
    matrix = operation("m.v.mul.add[32]", 0, 100, 900, vl=3, mr=5)
    assert matrix.spans == (Span(0, 20), Span(100, 60), Span(900, 12))
    assert operation("m.v.nop.max[8]", 0, 100, vl=3, mr=5).spans == (Span(0, 5), Span(100, 15))
    scalar = operation("v.s.add[64]", 0, 100, 900, vl=3)
    assert scalar.spans == (Span(0, 24), Span(100, 24), Span(900, 8))
    assert Span(0, 20).overlaps(Span(19, 1))
    assert not Span(0, 20).overlaps(Span(20, 1))
    assert not Span(5, 0).overlaps(Span(0, 20))


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


def test_loads_and_stores_keep_clear(hazards: HazardModel) -> None:
    hazards.issued(operation("v.v.add[16]", 0, 1000, 2000, vl=8))
    assert hazards.before_store(STORE, Span(15, 1))
    assert not hazards.before_store(STORE, Span(16, 100))
    assert not hazards.before_store(STORE, Span(1000, 16))
    for span in (Span(0, 1), Span(1015, 2), Span(2000, 1)):
        assert hazards.before_load(LOAD, span)
    assert not hazards.before_load(LOAD, Span(16, 900))
    for result in (100, 200):
        hazards.issued(operation("v.v.add[16]", result, 3000, 3000, vl=8))
    # Two more have been taken, so the first has read its operands; its result may be on its way.
    assert not hazards.before_load(LOAD, Span(1000, 16))
    assert hazards.before_load(LOAD, Span(0, 1))
    hazards.drained()
    assert not hazards.before_load(LOAD, Span(0, 4096))
    assert not hazards.before_store(STORE, Span(0, 4096))


def test_nothing_to_transfer_is_no_hazard(hazards: HazardModel) -> None:
    hazards.issued(operation("v.v.add[16]", 0, 1000, 2000, vl=8))
    assert not hazards.before_load(LOAD, Span(4, 0))
    assert not hazards.before_store(STORE, Span(4, 0))


_KEYS = ("v.v.add[16]", "v.s.mul[32]", "v.v.mul[64]", "m.v.nop.max[8]", "m.v.mul.add[16]")
_PLACES = st.integers(0, 40)
_VECTOR = st.tuples(
    st.sampled_from(_KEYS), _PLACES, _PLACES, _PLACES, st.integers(1, 20), st.integers(1, 5)
)
_TRANSFER = st.tuples(st.sampled_from(("load", "store")), _PLACES, st.integers(0, 16))
_STEPS = st.lists(st.one_of(_VECTOR, _VECTOR, _TRANSFER, st.just(("drain",))), max_size=20)


class ByteByByte:
    """The rules once more, as plainly as they can be said: for each byte, the beats in which it was
    made and read last."""

    def __init__(self) -> None:
        self.now = 0
        self.starts: list[int] = []
        self.made: dict[int, int] = {}
        self.read: dict[int, int] = {}
        self.found: dict[tuple[int, str], int | None] = {}

    def met(self, pc: int, what: HazardKind, distance: int, needed: int) -> None:
        if distance < needed:
            known = self.found.get((pc, what), distance)
            assert known is not None
            self.found[pc, what] = min(known, distance)

    def vector(self, pc: int, op: VectorOperation) -> None:
        row, vl, mr = op.row, op.vl, op.mr
        assert row.width is not None
        w = row.width.bytes
        matrix, product = row.reduction is not None, row.key.split(".")[2].startswith("mul")
        each = {8: 1, 16: 1, 32: 2, 64: 4}[row.width.bits] if product else 1
        of_row = -(-vl * w // 8) * each
        reads: list[tuple[int, int]] = []
        made: list[tuple[int, int]] = []
        for i in range(mr if matrix else 1):
            start = self.now + i * of_row
            for byte in range(vl * w):
                beat = start + byte // 8 * each
                reads.append((op.first + i * vl * w + byte, beat))
                if ".nop." not in row.key and not row.key.startswith("v.s"):
                    reads.append((op.second + byte, beat))
                if not matrix:
                    made.append((op.result + byte, beat + each - 1))
            if matrix:
                made += [(op.result + i * w + b, start + of_row - 1) for b in range(w)]
        if row.key.startswith("v.s"):
            reads += [(op.second + b, self.now) for b in range(w)]
        for byte, beat in reads:
            if byte in self.made:
                self.met(pc, HazardKind.VECTOR_READ, beat - self.made[byte], VECTOR_LATENCY)
        if op.reads_itself:
            self.found[pc, HazardKind.OWN_OPERAND] = None
        for byte, beat in reads:
            self.read[byte] = max(beat, self.read.get(byte, beat))
        self.made |= dict(made)
        self.starts.append(self.now)
        self.now += of_row * (mr if matrix else 1)

    def transfer(self, pc: int, load: bool, span: Span) -> None:
        # The last instruction is taken, so the one before it has begun at the earliest.
        earliest = self.starts[-2] if len(self.starts) > 1 else 0
        for byte in range(span.start, span.start + span.size):
            if byte in self.made:
                what = HazardKind.LOAD_OVER_RESULTS if load else HazardKind.STORE
                self.met(pc, what, earliest - self.made[byte], VECTOR_LATENCY)
            if load and byte in self.read:
                self.met(pc, HazardKind.LOAD_OVER_OPERANDS, earliest - self.read[byte], 1)

    def drained(self) -> None:
        self.now += VECTOR_LATENCY
        self.starts = [self.now, self.now]


@settings(max_examples=300, deadline=None)
@given(_STEPS)
def test_the_model_is_what_the_rules_say_byte_by_byte(steps: list[tuple]) -> None:
    log, plain = HazardLog(), ByteByByte()
    for pc, step in enumerate(steps):
        if step[0] == "drain":
            log.drained()
            plain.drained()
        elif step[0] in ("load", "store"):
            kind, start, size = step
            row = LOAD if kind == "load" else STORE
            log.transfer(row, start, size, pc)
            plain.transfer(pc, kind == "load", Span(start, size))
        else:
            key, *places, vl, mr = step
            op = operation(key, *places, vl=vl, mr=mr)
            log.vector(op, pc)
            plain.vector(pc, op)
    assert {(h.pc, h.what): h.distance for h in log.hazards} == plain.found


def run(source: str) -> list[Hazard]:
    log = HazardLog()
    with DramImage(1 << 16) as image:
        simulator = Simulator(assemble(source), image, observer=log.observer())
        assert simulator.run(10_000).state == "halted"
    return log.hazards


SET = "mov r10, #16\nset.vl r10\nmov r11, #512\nmov r12, #1024\n"


def test_a_run_is_followed_along_its_path() -> None:
    late = "v.v.add [16-bit] r11, r12, r12\nst.sram [16-bit] r0, r11, r10\nhalt\n"
    (hazard,) = run(SET + late)
    assert (hazard.pc, hazard.key, hazard.what) == (5, "st.sram[16]", "store")
    assert (hazard.other, hazard.other_key, hazard.address) == (4, "v.v.add[16]", 543)
    assert (hazard.distance, hazard.needed, hazard.times) == (-3, VECTOR_LATENCY, 1)
    # A drain that the path skips is none, one on the path is.
    assert run(SET + late.replace("st.sram", "jmp over\nv.drain\nover: st.sram"))
    assert not run(SET + late.replace("st.sram", "jmp over\nnop: halt\nover: v.drain\nst.sram"))


def test_what_faults_does_nothing() -> None:
    log = HazardLog()
    source = SET + "mov r13, #4090\nv.v.add [16-bit] r13, r13, r12\nhalt\n"
    with DramImage(1 << 16) as image:
        simulator = Simulator(assemble(source), image, observer=log.observer())
        assert simulator.run(100).state == "faulted"
    assert log.hazards == []


def test_a_hazard_in_a_loop_is_one_with_its_smallest_distance() -> None:
    loop = (
        "mov r20, #3\nloop: v.v.add [16-bit] r11, r12, r12\nst.sram [16-bit] r0, r11, r10\n"
        "add r20, r20, #-1\nbne r20, r0, loop\nhalt\n"
    )
    (hazard,) = run(SET + loop)
    assert hazard.times == 3
    assert hazard.distance == -7
    assert "(3 times)" in str(hazard)


def test_a_hazard_names_its_lines() -> None:
    program = assemble(
        SET + "v.v.add [16-bit] r11, r12, r12\nst.sram [16-bit] r0, r11, r10\nhalt\n"
    )
    (hazard,) = run(SET + "v.v.add [16-bit] r11, r12, r12\nst.sram [16-bit] r0, r11, r10\nhalt\n")
    line = program.source[5]
    assert hazard.describe(program.source) == (
        f"st.sram[16] at word 5 ({line.file}:6) reads scratchpad byte 0x21f, which v.v.add[16] at "
        f"word 4 ({line.file}:5) makes: distance -3 cycles, 12 needed; put a v.drain between "
        "them"
    )


def test_a_result_over_its_own_operand() -> None:
    (hazard,) = run(SET + "mov r13, #1026\nv.v.add [16-bit] r13, r12, r12\nhalt\n")
    assert hazard.what is HazardKind.OWN_OPERAND
    assert (hazard.distance, hazard.needed, hazard.address) == (None, None, 1026)
    assert str(hazard) == (
        "v.v.add[16] at word 5 writes scratchpad byte 0x402, an operand that it still has to read"
    )
