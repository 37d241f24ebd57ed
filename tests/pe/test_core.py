"""The whole engine: launch, programs, their time, faults and ends."""

import pytest

from hdl.ports import COLUMN_BYTES
from isa.faults import FaultCause
from pe.interface import PeCounter, PeState
from pe.sequencer import overhead_cycles
from tests.pe.core_bench import CONFIG, IDENTITY, PARAMETERS, Bench

#: Stores registers 0 to 9 from the parameter block on.
DUMP = (
    "".join(f"st.reg [64-bit] r5, r{n}\nadd r5, r5, #8\n" for n in range(10) if n != 5) + "halt\n"
)


def test_a_launch_gives_registers_their_start_values_again_and_again():
    async def work(bench):
        assert bench.state is PeState.IDLE
        for parameters in (PARAMETERS, 0x400):
            state, cause, _, _ = await bench.do(DUMP, parameters)
            assert (state, cause) == (PeState.HALTED, FaultCause.NONE)
            found = [bench.word(parameters + 8 * n) for n in range(9)]
            assert found == [0, 11, 22, 33, 44, 0, 0, 0, 0]
            # Registers that a program leaves are gone.
            await bench.do("mov r6, #1\nmov r7, #2\nmov r1, #3\nhalt\n")

    Bench().run(work)


def test_loads_and_launches_wait_while_it_runs():
    async def work(bench):
        control = bench.dut.control
        await bench.launch("loop: jmp loop\n")
        for cycle in range(80):
            assert not bench.ctx.get(control.launch.ready)
            # While registers are cleared, nothing reads the program yet.
            assert cycle < overhead_cycles(CONFIG) or not bench.ctx.get(control.load.ready)
            await bench.tick()
        bench.ctx.set(control.stop, 1)
        state, cause, _, cycles = await bench.end()
        assert (state, cause) == (PeState.HALTED, FaultCause.NONE)
        assert cycles < overhead_cycles(CONFIG)
        bench.ctx.set(control.stop, 0)
        assert bench.ctx.get(control.launch.ready)
        assert bench.ctx.get(control.load.ready)

    Bench().run(work)


#: Programs and the cycles that they take, from the first fetch to the end.
HALT = "halt\n"
ONE = "add r6, r6, r6\n"


async def _cycles(bench, text):
    state, cause, _, _ = await bench.do(text)
    assert (state, cause) == (PeState.HALTED, FaultCause.NONE)
    return (await bench.counters())[PeCounter.CYCLES]


def test_how_long_scalar_instructions_and_branches_take():
    async def work(bench):
        base = await _cycles(bench, HALT)
        # Results are there for the next instruction.
        assert await _cycles(bench, 10 * ONE + HALT) == base + 10
        # A branch that is not taken takes a cycle, one that is taken three more.
        for branch, cost in (("bne r0, r0", 1), ("bne r0, r1", 4), ("jmp", 4)):
            comma = "," if "r" in branch else ""
            text = f"{branch}{comma} next\nnext: halt\n"
            assert await _cycles(bench, text) == base + cost, branch
        # One that jumps over instructions does none of them.
        text = "jmp next\n" + 5 * "mov r6, #7\n" + "next: st.reg [64-bit] r5, r6\nmemfence\nhalt\n"
        await _cycles(bench, text)
        assert bench.word(PARAMETERS) == 0

    Bench().run(work)


@pytest.mark.parametrize("latency", [1, 30])
def test_what_reads_a_loaded_register_waits_and_what_does_not_goes_on(latency):
    async def work(bench):
        bench.memory[PARAMETERS : PARAMETERS + 8] = (1234).to_bytes(8, "little")
        rest = "memfence\nhalt\n"
        load = "ld.reg [64-bit] r6, r5\n"
        free = await _cycles(bench, load + 5 * "add r7, r7, #1\n" + rest)
        alone = await _cycles(bench, load + rest)
        # Instructions that do not wait execute in the shadow of the load.
        if latency == 30:
            assert free == alone
        await _cycles(
            bench, load + "add r6, r6, r6\nadd r7, r5, #8\nst.reg [64-bit] r7, r6\n" + rest
        )
        assert bench.word(PARAMETERS + 8) == 2468
        # The load must not overwrite a younger result.
        await _cycles(bench, load + "mov r6, #9\nadd r7, r5, #16\nst.reg [64-bit] r7, r6\n" + rest)
        assert bench.word(PARAMETERS + 16) == 9

    Bench(latency).run(work)


@pytest.mark.parametrize("latency", [1, 40])
def test_vector_operands_wait_for_loads_and_results_reach_memory(latency):
    text = """
        mov r6, #30
        set.vl r6
        mov r7, #64
        mov r8, #128
        mov r10, #192
        ld.sram [16-bit] r7, r5, r6
        add r9, r5, #128
        v.v.add [16-bit] r10, r7, r7
        v.v.add [16-bit] r8, r7, r7
        v.drain
        st.sram [16-bit] r9, r8, r6
        halt
    """

    async def work(bench):
        values = [3 * n - 7 for n in range(30)]
        for n, value in enumerate(values):
            bench.memory[PARAMETERS + 2 * n : PARAMETERS + 2 * n + 2] = value.to_bytes(
                2, "little", signed=True
            )
        state, cause, _, _ = await bench.do(text)
        assert (state, cause) == (PeState.HALTED, FaultCause.NONE)
        # The end is reported when the last store is acknowledged.
        assert bench.outstanding == 0
        assert not bench.beats
        stored = bench.memory[PARAMETERS + 128 : PARAMETERS + 188]
        found = [
            int.from_bytes(stored[2 * n : 2 * n + 2], "little", signed=True) for n in range(30)
        ]
        assert found == [2 * value for value in values]
        counters = await bench.counters()
        assert counters[PeCounter.ISSUED_VECTOR] == 2
        assert counters[PeCounter.ISSUED_LOAD_STORE] == 2
        assert counters[PeCounter.ISSUED_CONTROL] == 3
        assert counters[PeCounter.ISSUED_SCALAR] == 5
        assert (counters[PeCounter.BYTES_LOADED], counters[PeCounter.BYTES_STORED]) == (60, 60)
        assert counters[PeCounter.VECTOR_BUSY] == 16
        told = [n for c, n in counters.items() if c.name.startswith(("ISSUED", "STALL"))]
        assert sum(told) == counters[PeCounter.CYCLES]
        waits = counters[PeCounter.STALL_ARC_CONFLICT] + counters[PeCounter.STALL_DRAIN]
        assert waits > latency

    Bench(latency).run(work)


def test_the_vector_length_of_a_program_ends_with_it():
    """Of eight elements, the second program adds only the first."""
    fill = """
        mov r6, #8
        set.vl r6
        mov r7, #64
        ld.sram [16-bit] r7, r5, r6
        halt
    """
    add = """
        mov r6, #8
        mov r7, #64
        v.v.add [16-bit] r7, r7, r7
        v.drain
        st.sram [16-bit] r5, r7, r6
        halt
    """

    async def work(bench):
        values = list(range(1, 9))
        for n, value in enumerate(values):
            bench.memory[PARAMETERS + 2 * n] = value
        await bench.do(fill)
        await bench.do(add)
        assert [bench.memory[PARAMETERS + 2 * n] for n in range(8)] == [2, *values[1:]]

    Bench().run(work)


def test_counters_begin_at_zero_with_each_launch():
    async def work(bench):
        await bench.do(10 * ONE + HALT)
        first = await bench.counters()
        assert first[PeCounter.ISSUED_SCALAR] == 10
        _, _, _, cycles = await bench.do(HALT)
        second = await bench.counters()
        assert second[PeCounter.ISSUED_SCALAR] == 0
        assert second[PeCounter.CYCLES] + overhead_cycles(CONFIG) == cycles

    Bench().run(work)


#: Programs, and the fault and the word at which each ends.
FAULTING = [
    ("mov r6, #1\n", FaultCause.PC_OUT_OF_PROGRAM, 1),
    ("mov r6, #1\n.word 0xffffffff\n", FaultCause.ILLEGAL_INSTRUCTION, 1),
    ("set.vl r0\n", FaultCause.VECTOR_SETTING, 0),
    ("mov r6, #255\nv.v.add [16-bit] r6, r0, r0\n", FaultCause.SCRATCHPAD_RANGE, 1),
    ("mov r6, #4\nst.reg [64-bit] r6, r6\n", FaultCause.MISALIGNED, 1),
    ("mov r6, #4096\nld.reg [64-bit] r7, r6\n", FaultCause.DRAM_RANGE, 1),
    # Of two instructions with a fault the older one counts, though it is found later.
    ("mov r6, #4\nst.reg [64-bit] r6, r6\n.word 0xffffffff\n", FaultCause.MISALIGNED, 1),
    ("mov r6, #4\nst.reg [64-bit] r6, r6\nset.vl r0\n", FaultCause.MISALIGNED, 1),
]


@pytest.mark.parametrize(("text", "cause", "pc"), FAULTING)
def test_a_fault_ends_the_program_and_earlier_stores_are_done(text, cause, pc):
    async def work(bench):
        store = "add r8, r5, #8\nst.reg [64-bit] r8, r1\n"
        rest = "add r8, r5, #16\nst.reg [64-bit] r8, r1\nhalt\n"
        if cause is FaultCause.PC_OUT_OF_PROGRAM:
            rest = ""
        found = await bench.do(store + text + rest)
        assert found[:3] == (PeState.FAULTED, cause, pc + 2)
        assert bench.outstanding == 0
        assert bench.word(PARAMETERS + 8) == IDENTITY["pe_index"]
        assert bench.word(PARAMETERS + 16) == 0
        # The next launch is none the worse for it.
        state, cause_now, _, _ = await bench.do(store + HALT)
        assert (state, cause_now) == (PeState.HALTED, FaultCause.NONE)

    Bench().run(work)


def test_a_loop_of_stores_stops_between_two_of_them_and_all_are_complete():
    text = "loop: st.reg [64-bit] r5, r6\nadd r6, r6, #1\nadd r5, r5, #8\njmp loop\n"

    async def work(bench):
        for after in (0, 10, *range(40, 49), 120):
            bench.writes.clear()
            await bench.launch(text)
            for _ in range(after):
                await bench.tick()
            bench.ctx.set(bench.dut.control.stop, 1)
            state, cause, _, _ = await bench.end()
            bench.ctx.set(bench.dut.control.stop, 0)
            assert (state, cause) == (PeState.HALTED, FaultCause.NONE)
            assert bench.outstanding == 0
            count = len(bench.writes)
            expected = [(PARAMETERS + 8 * n, n.to_bytes(8, "little")) for n in range(count)]
            assert bench.writes == expected
            # Nothing comes after the end.
            for _ in range(40):
                await bench.tick()
            assert len(bench.writes) == count
            assert (count > 0) == (after >= 40)

    Bench(latency=12).run(work)


@pytest.mark.parametrize("latency", [1, 4, 12])
@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("halt\n", FaultCause.MEMORY_ERROR),
        ("memfence\nadd r8, r5, #64\nst.reg [64-bit] r8, r1\n", FaultCause.MEMORY_ERROR),
        # A store that waits in dispatch for a load that fails.
        (
            "mov r6, #4\nadd r8, r5, #64\nld.sram [16-bit] r0, r5, r6\n"
            "st.sram [16-bit] r8, r0, r6\nhalt\n",
            FaultCause.MEMORY_ERROR,
        ),
        ("set.vl r0\n", FaultCause.VECTOR_SETTING),
        ("", FaultCause.PC_OUT_OF_PROGRAM),
    ],
)
def test_a_memory_error_is_never_lost(text, cause, latency):
    async def work(bench):
        bench.errors = {PARAMETERS // COLUMN_BYTES}
        found = await bench.do("st.reg [64-bit] r5, r1\n" + text)
        assert bench.ctx.get(bench.dut.control.status.memory_error)
        assert found[0] is PeState.FAULTED
        # It comes before the other fault, or after it.
        assert found[1] in (cause, FaultCause.MEMORY_ERROR)
        if latency == 12:
            assert found[1] is cause
        # Nothing that waited is done.
        assert [address for address, _ in bench.writes] == [PARAMETERS]
        bench.errors = set()
        await bench.launch("st.reg [64-bit] r5, r1\nhalt\n")
        assert not bench.ctx.get(bench.dut.control.status.memory_error)
        assert (await bench.end())[0] is PeState.HALTED
        assert bench.word(PARAMETERS) == IDENTITY["pe_index"]
        assert not bench.ctx.get(bench.dut.control.status.memory_error)

    Bench(latency).run(work)
