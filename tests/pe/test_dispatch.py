"""The dispatch stage between an issue stage, an ARC and units that the test plays."""

from dataclasses import replace

import pytest

from isa.faults import FaultCause
from isa.table import BY_KEY, Opcode, Unit
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.frontend.dispatch import Dispatch
from pe.interface import PeCounter

CONFIG = PeConfig()
PC = 77
VECTOR, LOAD, STORE = "v.v.add[16]", "ld.sram[16]", "st.sram[16]"
LOAD_REGISTER, STORE_REGISTER = "ld.reg[32]", "st.reg[64]"
TRANSFERS = (LOAD, STORE, LOAD_REGISTER, STORE_REGISTER)
#: Start and end (in units) of operands A, B and C.
PLACES = ((16, 3), (160, 21), (400, 51))
FAULTS = {
    "outside": FaultCause.SCRATCHPAD_RANGE,
    "misaligned": FaultCause.MISALIGNED,
    "dram": FaultCause.DRAM_RANGE,
}


def show(ctx, dut, key, *, faults=(), is_empty=False, pc=PC, dram=0x1234, vl=9):
    """Show the instruction ``key`` to the stage, with operands that can be distinguished."""
    row = BY_KEY[key]
    caps = Capabilities.of(dut.config)
    payload = dut.offer.payload
    vector = row.unit is Unit.VECTOR
    ctx.set(payload.vector, vector)
    ctx.set(payload.kind, caps.kind.code(row.opcode & 3))
    ctx.set(payload.vertical, caps.vertical.code(row.vertical or 0))
    ctx.set(payload.reduction, caps.reduction.code(row.reduction or 0))
    ctx.set(payload.width, caps.width.code(row.width))
    store = row.opcode == Opcode.ST_SRAM
    used = 7 if vector else 2 if store else 1
    ctx.set(payload.used, used if vector or row.opcode in (Opcode.LD_SRAM, Opcode.ST_SRAM) else 0)
    if row.opcode == Opcode.ST_REG:
        ctx.set(payload.operands.value, 0xFEDC_BA98_7654_3210)
    else:
        for place, (start, end) in zip(payload.operands.places, PLACES, strict=True):
            ctx.set(place.start, start)
            ctx.set(place.end, end)
    if vector:
        ctx.set(payload.settings.vector.vl, vl)
        ctx.set(payload.settings.vector.mr, 5)
        ctx.set(payload.settings.vector.fx, 12)
    else:
        ctx.set(payload.settings.dram, dram)
    ctx.set(payload.bytes, 0 if is_empty else 40)
    ctx.set(payload.columns, 2)
    ctx.set(payload.is_empty, is_empty)
    ctx.set(payload.index, 13)
    for name in FAULTS:
        ctx.set(getattr(payload.faults, name), name in faults)
    ctx.set(payload.pc, pc)
    ctx.set(dut.offer.valid, 1)


async def hand_over(ctx, dut, key, **options):
    """Put an instruction into the empty stage; now it is in its first cycle there."""
    ctx.set(dut.run, 1)
    show(ctx, dut, key, **options)
    assert ctx.get(dut.offer.ready)
    await ctx.tick()
    ctx.set(dut.offer.valid, 0)


def set_ready(ctx, dut, vector=1, load_store=1):
    ctx.set(dut.vector.ready, vector)
    ctx.set(dut.load_store.ready, load_store)


def goes(ctx, dut):
    """Whether an instruction goes in this cycle: to the vector unit, to the load-store unit."""
    return ctx.get(dut.vector.valid), ctx.get(dut.load_store.valid)


def test_a_vector_instruction_goes_in_its_second_cycle_with_all_it_needs(simulate):
    dut = Dispatch(CONFIG)

    async def bench(ctx):
        set_ready(ctx, dut)
        assert ctx.get(dut.empty)
        await hand_over(ctx, dut, VECTOR)
        assert goes(ctx, dut) == (0, 0)
        assert not ctx.get(dut.empty)
        assert not ctx.get(dut.offer.ready)
        for number, (r, (start, end)) in enumerate(zip(dut.ranges, PLACES, strict=True)):
            assert (ctx.get(r.used), ctx.get(r.start), ctx.get(r.end)) == (1, start, end)
            assert ctx.get(r.writes) == (number == 0)
        await ctx.tick()
        assert goes(ctx, dut) == (1, 0)
        assert not ctx.get(dut.allocate)
        command = dut.vector.payload
        places = [ctx.get(getattr(command, name)) for name in ("result", "first", "second")]
        assert places == [start for start, _ in PLACES]
        assert [ctx.get(getattr(command, name)) for name in ("vl", "mr", "fx")] == [9, 5, 12]
        caps = Capabilities.of(CONFIG).vector
        row = BY_KEY[VECTOR]
        assert ctx.get(command.kind) == caps.kind.code(row.opcode & 3)
        assert ctx.get(command.vertical) == caps.vertical.code(row.vertical)
        assert ctx.get(command.width) == caps.width.code(row.width)
        await ctx.tick()
        assert goes(ctx, dut) == (0, 0)
        assert ctx.get(dut.empty)

    simulate(dut, bench)


@pytest.mark.parametrize("key", TRANSFERS)
def test_a_load_or_store_goes_in_its_second_cycle_with_all_it_needs(simulate, key):
    dut = Dispatch(CONFIG)
    store = key.startswith("st")
    register = ".reg" in key

    async def bench(ctx):
        set_ready(ctx, dut)
        ctx.set(dut.entry, 11)
        await hand_over(ctx, dut, key)
        assert goes(ctx, dut) == (0, 0)
        # The ARC's free entry may change once this one has seen it.
        await ctx.tick()
        ctx.set(dut.entry, 4)
        assert goes(ctx, dut) == (0, 1)
        command = dut.load_store.payload
        assert ctx.get(command.store) == store
        assert ctx.get(command.register) == register
        assert ctx.get(command.dram) == 0x1234
        assert ctx.get(command.last) == (0x1234 + 40 - 1) % 32
        assert ctx.get(dut.allocate) == (not register)
        if register:
            if store:
                assert ctx.get(command.value) == 0xFEDC_BA98_7654_3210
            else:
                assert ctx.get(command.index) == 13
        else:
            start, end = PLACES[store]
            assert ctx.get(command.scratchpad) == start
            assert ctx.get(command.columns) == 2
            assert ctx.get(command.entry) == ctx.get(dut.allocated) == 11
            assert (ctx.get(dut.start), ctx.get(dut.end)) == (start, end)
            # A load or store waits for loads alone, so it is no vector result.
            assert not ctx.get(dut.ranges[0].writes)
            assert ctx.get(dut.columns) == (1 if store else 2)
            assert ctx.get(dut.store) == store
        assert ctx.get(dut.stored) == (40 if store else 0)
        assert ctx.get(dut.loaded) == (0 if store else 40)
        await ctx.tick()
        assert ctx.get(dut.empty)
        assert (ctx.get(dut.stored), ctx.get(dut.loaded)) == (0, 0)

    simulate(dut, bench)


#: What each waits for: blocking condition, kind of instruction, what it is counted as; None: it
#: does not wait for that.
WAITS = [
    ("conflict", VECTOR, PeCounter.STALL_ARC_CONFLICT),
    ("conflict", LOAD, PeCounter.STALL_ARC_CONFLICT),
    ("conflict", STORE, PeCounter.STALL_ARC_CONFLICT),
    ("conflict", LOAD_REGISTER, None),
    ("conflict", STORE_REGISTER, None),
    ("full", VECTOR, None),
    ("full", LOAD, PeCounter.STALL_ARC_FULL),
    ("full", STORE, PeCounter.STALL_ARC_FULL),
    ("full", LOAD_REGISTER, None),
    ("full", STORE_REGISTER, None),
    ("vector", VECTOR, PeCounter.STALL_VECTOR),
    ("vector", LOAD, None),
    ("load_store", VECTOR, None),
    ("load_store", LOAD, PeCounter.STALL_LOAD_STORE),
    ("load_store", STORE, PeCounter.STALL_LOAD_STORE),
    ("load_store", LOAD_REGISTER, PeCounter.STALL_LOAD_STORE),
    ("load_store", STORE_REGISTER, PeCounter.STALL_LOAD_STORE),
]


@pytest.mark.parametrize(("what", "key", "counter"), WAITS)
def test_what_an_instruction_waits_for_and_how_that_counts(simulate, what, key, counter):
    dut = Dispatch(CONFIG)

    async def bench(ctx):
        def block(on):
            if what in ("conflict", "full"):
                ctx.set(getattr(dut, what), on)
            else:
                set_ready(ctx, dut, **{what: not on})

        set_ready(ctx, dut)
        block(True)
        await hand_over(ctx, dut, key)
        if counter is None:
            await ctx.tick()
            assert sum(goes(ctx, dut)) == 1
            return
        for _ in range(5):
            await ctx.tick()
            assert goes(ctx, dut) == (0, 0)
            assert not ctx.get(dut.allocate)
            assert not ctx.get(dut.offer.ready)
            assert ctx.get(dut.stall) == counter
        block(False)
        assert goes(ctx, dut) == (0, 0)
        await ctx.tick()
        assert sum(goes(ctx, dut)) == 1
        assert ctx.get(dut.offer.ready)

    simulate(dut, bench)


@pytest.mark.parametrize("key", [LOAD, STORE])
def test_a_transfer_of_nothing_is_done_without_the_unit(simulate, key):
    dut = Dispatch(CONFIG)

    async def bench(ctx):
        set_ready(ctx, dut, load_store=0)
        await hand_over(ctx, dut, key, is_empty=True)
        for _ in range(3):
            assert goes(ctx, dut) == (0, 0)
            assert not ctx.get(dut.allocate)
            assert (ctx.get(dut.stored), ctx.get(dut.loaded)) == (0, 0)
            await ctx.tick()
        assert ctx.get(dut.empty)

    simulate(dut, bench)


@pytest.mark.parametrize("key", [VECTOR, *TRANSFERS])
@pytest.mark.parametrize(
    "faults", [("outside",), ("misaligned",), ("dram",), tuple(FAULTS), ("misaligned", "dram")]
)
def test_an_instruction_with_a_fault_stays_until_the_engine_stops(simulate, key, faults):
    dut = Dispatch(CONFIG)

    async def bench(ctx):
        set_ready(ctx, dut)
        assert ctx.get(dut.cause) == FaultCause.NONE
        await hand_over(ctx, dut, key, faults=faults)
        for _ in range(4):
            # The one with the lowest number.
            assert ctx.get(dut.cause) == min(FAULTS[name] for name in faults)
            assert ctx.get(dut.pc) == PC
            assert goes(ctx, dut) == (0, 0)
            assert not ctx.get(dut.allocate)
            assert not ctx.get(dut.offer.ready)
            await ctx.tick()
        ctx.set(dut.run, 0)
        await ctx.tick()
        assert ctx.get(dut.empty)
        assert ctx.get(dut.cause) == FaultCause.NONE
        assert goes(ctx, dut) == (0, 0)
        # The next instruction has none of its state.
        await hand_over(ctx, dut, key)
        assert ctx.get(dut.cause) == FaultCause.NONE
        await ctx.tick()
        assert sum(goes(ctx, dut)) == 1

    simulate(dut, bench)


@pytest.mark.parametrize("key", [VECTOR, *TRANSFERS])
def test_a_sound_instruction_still_goes_after_the_program_has_ended(simulate, key):
    dut = Dispatch(CONFIG)

    async def bench(ctx):
        set_ready(ctx, dut, vector=0, load_store=0)
        await hand_over(ctx, dut, key)
        ctx.set(dut.run, 0)
        for _ in range(3):
            await ctx.tick()
            assert not ctx.get(dut.empty)
        set_ready(ctx, dut)
        await ctx.tick()
        assert sum(goes(ctx, dut)) == 1
        await ctx.tick()
        assert ctx.get(dut.empty)

    simulate(dut, bench)


@pytest.mark.parametrize("key", [VECTOR, *TRANSFERS])
@pytest.mark.parametrize("cycle", [0, 1, 4])
def test_what_memory_failed_to_bring_is_dropped(simulate, key, cycle):
    """In the first cycle, in the one in which it would go, and while it waits."""
    dut = Dispatch(CONFIG)

    async def bench(ctx):
        ready = cycle < 2
        set_ready(ctx, dut, vector=ready, load_store=ready)
        await hand_over(ctx, dut, key)
        for _ in range(cycle):
            await ctx.tick()
        ctx.set(dut.drop, 1)
        ctx.set(dut.run, 0)
        set_ready(ctx, dut)
        for _ in range(4):
            assert goes(ctx, dut) == (0, 0)
            assert not ctx.get(dut.allocate)
            assert (ctx.get(dut.stored), ctx.get(dut.loaded)) == (0, 0)
            await ctx.tick()
            assert ctx.get(dut.empty)
        ctx.set(dut.drop, 0)
        await ctx.tick().repeat(2)
        assert goes(ctx, dut) == (0, 0)

    simulate(dut, bench)


def test_instructions_go_in_order_each_once(simulate, rng):
    """A stream of instructions, with everything that makes them wait at random."""
    dut = Dispatch(CONFIG)
    keys = (VECTOR, *TRANSFERS)
    wanted = [(rng.choice(keys), number) for number in range(1, 250)]

    async def bench(ctx):
        ctx.set(dut.run, 1)
        found = []
        waiting = list(wanted)
        units = {"vector": True, "load_store": True}
        busy = 0
        while len(found) < len(wanted):
            if waiting:
                key, number = waiting[0]
                show(ctx, dut, key, dram=8 * number, vl=number)
            ctx.set(dut.offer.valid, bool(waiting))
            ctx.set(dut.conflict, rng.random() < 0.3)
            ctx.set(dut.full, rng.random() < 0.3)
            # A unit that is ready stays so until something goes to it.
            units = {name: ready or rng.random() < 0.4 for name, ready in units.items()}
            set_ready(ctx, dut, **units)
            taken = waiting and ctx.get(dut.offer.ready)
            vector, load_store = goes(ctx, dut)
            assert not vector & load_store
            if vector:
                assert units["vector"]
                found.append((VECTOR, ctx.get(dut.vector.payload.vl)))
                units["vector"] = False
            if load_store:
                assert units["load_store"]
                payload = dut.load_store.payload
                store, register = ctx.get(payload.store), ctx.get(payload.register)
                key = TRANSFERS[2 * register + store]
                found.append((key, ctx.get(payload.dram) // 8))
                units["load_store"] = False
            await ctx.tick()
            if taken:
                waiting.pop(0)
            busy += 1
            assert busy < 20 * len(wanted)
        assert found == wanted

    simulate(dut, bench)


def test_one_instruction_follows_the_other_every_second_cycle(simulate):
    dut = Dispatch(CONFIG)

    async def bench(ctx):
        ctx.set(dut.run, 1)
        set_ready(ctx, dut)
        went = []
        for number in range(1, 11):
            show(ctx, dut, VECTOR, vl=number)
            for _ in range(2):
                if ctx.get(dut.vector.valid):
                    went.append(ctx.get(dut.vector.payload.vl))
                if ctx.get(dut.offer.ready):
                    await ctx.tick()
                    break
                await ctx.tick()
        assert went == list(range(1, 10))

    simulate(dut, bench)


@pytest.mark.parametrize("key", [LOAD, STORE, LOAD_REGISTER, STORE_REGISTER])
def test_accesses_beside_and_across_the_edges_of_window_and_image(simulate, key):
    """Near each edge of either, every start and several lengths."""
    dut = Dispatch(replace(CONFIG, instructions=CONFIG.instructions | {"set.ws"}))
    ranges = {"window": range(0x1000, 0x1040), "image": range(0x2000, 0x2040)}
    edges = [edge for r in ranges.values() for edge in (r.start, r.stop)]
    spans = [
        range(edge + offset, edge + offset + size)
        for edge in edges
        for offset in (-9, -8, -2, -1, 0, 1)
        for size in (0, 1, 2, 8, 9, 80)
    ]

    async def bench(ctx):
        ctx.set(dut.known, 1)
        for name, place in ranges.items():
            ctx.set(getattr(dut, name), place.start)
            ctx.set(getattr(dut, f"{name}_end"), place.stop)
        seen = set()
        for span in spans:
            ctx.set(dut.drop, 0)
            show(ctx, dut, key, dram=span.start)
            ctx.set(dut.offer.payload.bytes, len(span))
            ctx.set(dut.offer.payload.end, span.stop)
            await ctx.tick()
            ctx.set(dut.offer.valid, 0)
            bytes_in = {name: len(set(span) & set(place)) for name, place in ranges.items()}
            lowered = key == LOAD and 0 < len(span) == bytes_in["window"]
            expected = FaultCause.NONE
            if key.startswith("st") and any(bytes_in.values()):
                expected = FaultCause.STORE_TO_WORKSPACE
            elif bytes_in["window"] and not lowered:
                expected = FaultCause.WORKSPACE_EDGE
            assert ctx.get(dut.cause) == expected, span
            assert ctx.get(dut.load_store.payload.lowered) == lowered, span
            seen.add((expected, lowered))
            ctx.set(dut.drop, 1)
            await ctx.tick()
        assert len(seen) == (3 if key == LOAD else 2)

    simulate(dut, bench)
