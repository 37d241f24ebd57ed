"""The issue stage on a decoder."""

import pytest

from isa.faults import FaultCause
from isa.launch import START_FX, START_MR, START_VL
from isa.limits import RANGE_BYTES
from isa.table import BY_KEY
from pe.config import PeConfig
from pe.interface import PeCounter
from tests.pe.issue_bench import PC, WIDE, Bench

NARROW = PeConfig(register_width=20, address_bits=16)
ILLEGAL = 0xFFFF_FFFF
VECTOR, LOAD, LOAD_REGISTER = "v.v.add[16]", "ld.sram[16]", "ld.reg[64]"
STORE_REGISTER, MATRIX = "st.reg[64]", "m.v.add.min[16]"
NONE = FaultCause.NONE


def test_a_scalar_instruction_executes_at_once_and_makes_room():
    async def work(bench):
        assert not bench.get("write")
        assert bench.get("event") == PeCounter.STALL_FETCH
        await bench.issue("add", 3, 4, 5, first=40, second=50)
        assert bench.get("write")
        assert bench.get("writes")
        assert not bench.get("loads")
        assert bench.ctx.get(bench.dut.decoded.a) == 3
        assert (bench.get("first"), bench.get("second")) == (40, 50)
        assert bench.get("cause") == NONE
        assert bench.get("event") == PeCounter.ISSUED_SCALAR
        assert not bench.offered
        assert bench.free
        await bench.tick()
        assert not bench.get("write")
        assert bench.get("event") == PeCounter.STALL_FETCH

    Bench().run(work)


def test_without_run_nothing_executes_and_what_is_there_is_lost():
    async def work(bench):
        for key, operands in (("add", (3, 4, 5)), (VECTOR, (3, 4, 5)), ("halt", ())):
            bench.set(run=1)
            await bench.issue(key, *operands)
            bench.set(run=0)
            assert not bench.get("write")
            assert not bench.get("halt")
            assert not bench.offered
            assert bench.get("cause") == NONE
            await bench.tick()
            bench.set(run=1)
            assert not bench.get("write")
            assert not bench.get("halt")
            assert not bench.offered

    Bench().run(work)


@pytest.mark.parametrize("taken", [False, True])
def test_a_taken_branch_redirects_and_discards_what_is_behind(taken):
    async def work(bench):
        await bench.issue("blt", 1, 2, 9, pc=PC, target=PC + 9)
        bench.set(taken=taken)
        assert not bench.get("write")
        assert not bench.get("redirect")
        bench.show("add", 3, 4, 5, pc=PC + 1)
        await bench.tick()
        bench.set(taken=0)
        assert bench.get("redirect") == taken
        if taken:
            assert bench.get("target") == PC + 9
        # The instruction after it, and the one that comes while it redirects.
        assert bench.get("write") == (not taken)
        bench.show("add", 3, 4, 5, pc=PC + 2)
        await bench.tick()
        assert bench.get("write") == (not taken)
        assert not bench.get("redirect")
        bench.show("add", 3, 4, 5, pc=PC + 9)
        await bench.tick()
        assert bench.get("write")

    Bench().run(work)


def test_halt_is_reported_for_one_cycle_and_discards_what_is_behind():
    async def work(bench):
        await bench.issue("halt")
        assert bench.get("halt")
        assert bench.get("event") == PeCounter.ISSUED_CONTROL
        bench.show("add", 3, 4, 5)
        await bench.tick()
        assert not bench.get("halt")
        assert bench.get("redirect")
        assert not bench.get("write")
        bench.show("add", 3, 4, 5)
        await bench.tick()
        assert not bench.get("write")

    Bench().run(work)


@pytest.mark.parametrize(
    ("what", "operands", "values", "cause"),
    [
        ("add", (3, 4, 5), {"outside": 1}, FaultCause.PC_OUT_OF_PROGRAM),
        (ILLEGAL, (), {"outside": 1}, FaultCause.PC_OUT_OF_PROGRAM),
        (ILLEGAL, (), {}, FaultCause.ILLEGAL_INSTRUCTION),
        ("set.vl", (3,), {"a": 0}, FaultCause.VECTOR_SETTING),
        ("set.vl", (3,), {"a": 257}, FaultCause.VECTOR_SETTING),
        ("set.mr", (3,), {"a": 1 << 32 | 1}, FaultCause.VECTOR_SETTING),
        ("set.fx", (3,), {"a": 64}, FaultCause.VECTOR_SETTING),
        ("set.vl", (3,), {"a": 0, "outside": 1}, FaultCause.PC_OUT_OF_PROGRAM),
        ("set.vl", (3,), {"a": 256}, NONE),
        ("set.mr", (3,), {"a": 1}, NONE),
        ("set.fx", (3,), {"a": 0}, NONE),
    ],
)
def test_faults_of_the_instruction_at_issue(what, operands, values, cause):
    async def work(bench):
        await bench.issue(what, *operands, **values)
        assert bench.get("cause") == cause
        if cause != NONE:
            assert bench.get("fault_pc") == PC
            assert not bench.get("write")
            assert not bench.offered
            assert not bench.get("halt")
            assert bench.get("event") == PeCounter.STALL_FENCE
        # The fault of an older instruction, at dispatch, comes first whatever it is.
        bench.set(dispatch_cause=FaultCause.DRAM_RANGE, dispatch_pc=PC - 3, dispatch_empty=0)
        assert bench.get("cause") == FaultCause.DRAM_RANGE
        assert bench.get("fault_pc") == PC - 3
        bench.set(dispatch_cause=NONE, dispatch_empty=1)
        bench.set(run=0)
        assert bench.get("cause") == NONE

    Bench().run(work)


@pytest.mark.parametrize(
    ("address", "cause"),
    [
        (1 << 16, FaultCause.DRAM_RANGE),
        (1 << 63, FaultCause.DRAM_RANGE),
        (1 << 16 | 8, FaultCause.MISALIGNED),
        ((1 << 16) - 32, NONE),
    ],
)
def test_a_descriptor_lies_on_columns_of_the_memory(address, cause):
    config = PeConfig(instructions=WIDE.instructions | {"set.ws"}, address_bits=16)

    async def work(bench):
        await bench.issue("set.ws", 3, a=address)
        assert bench.get("cause") == cause
        await bench.tick()

    Bench(config).run(work)


@pytest.mark.parametrize("config", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_result_too_large_for_a_register_faults_where_registers_are_narrow(config):
    async def work(bench):
        await bench.issue("add", 3, 4, 5)
        bench.set(overflow=1)
        assert bench.get("write") == (not config.narrow)
        expected = FaultCause.REGISTER_RANGE if config.narrow else NONE
        assert bench.get("cause") == expected
        await bench.tick()
        # An instruction that writes no register has no such fault.
        await bench.issue("blt", 1, 2, 3)
        assert bench.get("cause") == NONE
        await bench.tick()
        await bench.issue(VECTOR, 1, 2, 3)
        assert bench.get("cause") == NONE

    Bench(config).run(work)


def test_a_vector_instruction_is_offered_with_settings_ranges_and_address():
    async def work(bench):
        await bench.issue("set.vl", 3, a=9)
        assert bench.get("event") == PeCounter.ISSUED_CONTROL
        await bench.issue("set.fx", 3, a=11)
        await bench.issue(VECTOR, 3, 4, 5, a=64, first=512, second=1000)
        payload = bench.dut.offer.payload
        get = bench.ctx.get
        assert bench.offered
        assert get(payload.vector)
        assert get(payload.pc) == PC
        vector = payload.settings.vector
        assert (get(vector.vl), get(vector.fx)) == (9, 11)
        assert get(payload.used) == 7
        for place, start in zip(payload.operands.places, (64, 512, 1000), strict=True):
            assert get(place.start) == start
            assert get(place.end) == (start + 17) // RANGE_BYTES + 1
        assert not get(payload.faults.outside)
        assert bench.get("event") == PeCounter.ISSUED_VECTOR
        assert not bench.get("write")
        # One that leaves the scratchpad goes on all the same, with its fault.
        await bench.tick()
        await bench.issue(VECTOR, 3, 4, 5, a=4096 - 17, first=0, second=0)
        assert bench.offered
        assert get(payload.faults.outside)
        assert bench.get("cause") == NONE

    Bench().run(work)


def test_a_launch_resets_the_settings():
    async def work(bench):
        for key, value in (("set.vl", 200), ("set.mr", 100), ("set.fx", 33)):
            await bench.issue(key, 3, a=value)
        await bench.tick()
        bench.set(reset=1)
        await bench.tick()
        bench.set(reset=0)
        await bench.issue(VECTOR, 3, 4, 5)
        vector = bench.dut.offer.payload.settings.vector
        found = tuple(bench.ctx.get(getattr(vector, name)) for name in ("vl", "mr", "fx"))
        assert found == (START_VL, START_MR, START_FX)

    Bench().run(work)


@pytest.mark.parametrize("key", [VECTOR, LOAD, "st.sram[16]", LOAD_REGISTER, STORE_REGISTER])
def test_what_goes_to_dispatch_waits_for_it(key):
    async def work(bench):
        bench.set(**{"dispatch_stall": PeCounter.STALL_ARC_CONFLICT})
        bench.ctx.set(bench.dut.offer.ready, 0)
        await bench.issue(key, *range(3, 3 + len(BY_KEY[key].operands)))
        register_load = key == LOAD_REGISTER
        for _ in range(3):
            assert bench.offered
            assert not bench.free
            assert not bench.get("invalidate")
            assert bench.get("loads") == register_load
            assert not bench.get("writes")
            assert bench.get("event") == PeCounter.STALL_ARC_CONFLICT
            # An instruction offered after it does not overtake it.
            bench.show("add", 9, 9, 9)
            await bench.tick()
        bench.ctx.set(bench.dut.offer.ready, 1)
        assert bench.free
        assert bench.get("invalidate") == register_load
        issued_as = PeCounter.ISSUED_VECTOR if key == VECTOR else PeCounter.ISSUED_LOAD_STORE
        assert bench.get("event") == issued_as
        await bench.tick()
        assert not bench.offered
        assert not bench.get("invalidate")

    Bench().run(work)


def test_a_store_of_a_register_carries_its_value_and_a_load_its_number():
    async def work(bench):
        payload = bench.dut.offer.payload
        await bench.issue(STORE_REGISTER, 3, 4, a=0x40, first=(1 << 64) - 7)
        assert bench.ctx.get(payload.operands.value) == (1 << 64) - 7
        assert bench.ctx.get(payload.settings.dram) == 0x40
        await bench.issue(LOAD_REGISTER, 13, 4, first=0x1238)
        assert bench.ctx.get(payload.index) == 13
        assert bench.ctx.get(payload.settings.dram) == 0x1238
        assert not bench.ctx.get(payload.faults.misaligned)
        await bench.issue(LOAD_REGISTER, 13, 4, first=0x123C)
        assert bench.ctx.get(payload.faults.misaligned)

    Bench().run(work)


def test_a_matrix_waits_until_its_size_is_known_and_others_do_not():
    async def work(bench):
        await bench.issue("set.mr", 3, a=7)
        await bench.issue(VECTOR, 3, 4, 5)
        assert bench.offered
        await bench.issue(MATRIX, 3, 4, 5, a=0, first=100, second=2000)
        waited = 0
        while not bench.offered:
            assert bench.get("event") == PeCounter.STALL_VECTOR
            assert not bench.free
            waited += 1
            await bench.tick()
        assert 5 < waited < 10
        matrix = bench.dut.offer.payload.operands.places[1]
        size = 7 * START_VL * 2
        assert bench.ctx.get(matrix.end) == (100 + size - 1) // RANGE_BYTES + 1

    Bench().run(work)


def test_drain_waits_for_dispatch_and_the_vector_unit():
    async def work(bench):
        for dispatch_empty, vector_busy, idle in (
            (0, 0, 1),
            (1, 1, 1),
            (0, 1, 1),
            # Loads and stores are none of its business.
            (1, 0, 0),
        ):
            bench.set(dispatch_empty=dispatch_empty, vector_busy=vector_busy, load_store_idle=idle)
            await bench.issue("v.drain")
            waits = not dispatch_empty or bool(vector_busy)
            for _ in range(2 * waits):
                assert not bench.free
                assert bench.get("event") == PeCounter.STALL_DRAIN
                await bench.tick()
            bench.set(dispatch_empty=1, vector_busy=0)
            assert bench.free
            assert bench.get("event") == PeCounter.ISSUED_CONTROL
            await bench.tick()

    Bench().run(work)


def test_a_fence_waits_for_dispatch_and_memory():
    async def work(bench):
        # The vector unit is none of its business.
        bench.set(vector_busy=1)
        await bench.issue("memfence")
        assert bench.free
        await bench.tick()
        bench.set(load_store_idle=0)
        await bench.issue("memfence")
        for _ in range(3):
            assert not bench.free
            assert bench.get("event") == PeCounter.STALL_FENCE
            await bench.tick()
        bench.set(load_store_idle=1)
        await bench.tick()
        assert bench.free
        await bench.tick()
        # Dispatch is seen in the cycle itself: what went there just now is not complete.
        await bench.issue(STORE_REGISTER, 3, 4)
        assert bench.offered
        bench.show("memfence")
        await bench.tick()
        bench.set(dispatch_empty=0)
        assert not bench.free
        await bench.tick()
        # It goes to memory, which is busy from then on.
        bench.set(dispatch_empty=1, load_store_idle=0)
        assert not bench.free
        await bench.tick()
        assert not bench.free
        bench.set(load_store_idle=1)
        await bench.tick()
        assert bench.free

    Bench().run(work)


def test_the_oldest_that_waits_is_named():
    async def work(bench):
        bench.ctx.set(bench.dut.offer.ready, 0)
        await bench.issue(LOAD, 3, 4, 5, pc=40)
        bench.set(dispatch_empty=0, dispatch_pc=39)
        bench.set(next_waits=1, next_pc=41)
        assert bench.get("waiting_pc") == 39
        bench.set(dispatch_empty=1)
        assert bench.get("waiting_pc") == 40
        bench.ctx.set(bench.dut.offer.ready, 1)
        await bench.tick()
        assert bench.get("waiting_pc") == 41
        bench.set(next_waits=0)
        # Nothing waits: the one issued last.
        assert bench.get("waiting_pc") == 40
        await bench.tick()
        assert bench.get("waiting_pc") == 40

    Bench().run(work)
