import pytest

from pe.config import PeConfig
from pe.frontend.arc import RANGES, UNIT_BYTES, Arc
from tests.executed_lines import design_of


def _range(rng, size):
    """First byte, and the unit after that of the last byte."""
    start = rng.randrange(size)
    return start, -(-min(size, start + rng.choice((1, 2, 8, 32, 300))) // UNIT_BYTES)


@pytest.mark.parametrize(
    ("entries", "gone", "share", "grows"),
    [
        (1, "", 0.3, 0),
        (3, "", 0.3, 0),
        (20, "", 0.3, 0),
        (3, "st.sram", 0.0, 0),
        (3, "ld.sram", 1.0, 0),
        (3, "", 0.3, 0.4),
    ],
)
def test_against_a_list_of_ranges(simulate, rng, entries, gone, share, grows):
    """``share`` of the transfers are stores. With a workspace, a load that has not ended gets one
    more column with the chance ``grows``."""
    keys = frozenset(row.key for row in PeConfig().rows if row.mnemonic != gone)
    keys |= {"set.ws"} if grows else set()
    config = PeConfig(instructions=keys, arc_entries=entries)
    dut = design_of(Arc, config)
    size = config.scratchpad_bytes

    async def bench(ctx):
        table = {}  # entry -> [start, end, columns, store]
        due = {}  # entry -> columns that have not been announced
        late = []  # entries of what was announced in the cycle before
        conflicts = 0
        for _ in range(2500):
            ranges = [(*_range(rng, size), rng.random() < 0.7) for _ in range(RANGES)]
            vector = rng.random() < 0.5
            for number, (r, (start, end, used)) in enumerate(zip(dut.ranges, ranges, strict=True)):
                ctx.set(r.start, start)
                ctx.set(r.end, end)
                ctx.set(r.used, used)
                ctx.set(r.writes, vector and number == 0)
            expected = any(
                used
                and start // UNIT_BYTES < other_end
                and other // UNIT_BYTES < end
                and not (store and not (vector and number == 0))
                for number, (start, end, used) in enumerate(ranges)
                for other, other_end, _, store in table.values()
            )
            conflicts += expected
            assert ctx.get(dut.conflict) == expected
            assert ctx.get(dut.full) == (len(table) == entries)
            entry = ctx.get(dut.entry)

            leaving = [number for number, left in due.items() if left]
            loads = [number for number in leaving if not table[number][3]]
            stores = [number for number in leaving if table[number][3]]
            arrived = rng.choice(loads) if loads and rng.random() < 0.4 else None
            released = rng.choice(stores) if stores and rng.random() < 0.2 else None
            ctx.set(dut.arrived, arrived is not None)
            ctx.set(dut.arrived_entry, arrived or 0)
            ctx.set(dut.released, released is not None)
            ctx.set(dut.released_entry, released or 0)
            for number in late:
                table[number][2] -= 1
            late = [number for number in (arrived, released) if number is not None]
            for number in late:
                due[number] -= 1
            if grows:
                loads = [number for number, left in due.items() if left and not table[number][3]]
                grown = rng.choice(loads) if loads and rng.random() < grows else None
                ctx.set(dut.grown, grown is not None)
                ctx.set(dut.grown_entry, grown or 0)
                if grown is not None:
                    table[grown][2] += 1
                    due[grown] += 1
            allocate = len(table) < entries and rng.random() < 0.5
            ctx.set(dut.allocate, allocate)
            if allocate:
                assert entry not in table
                store = rng.random() < share
                columns = 1 if store else rng.choice((1, 1, 2, 5))
                start, end = _range(rng, size)
                table[entry] = [start, end, columns, store]
                due[entry] = columns
                ctx.set(dut.allocated, entry)
                ctx.set(dut.start, start)
                ctx.set(dut.end, end)
                ctx.set(dut.columns, columns)
                ctx.set(dut.store, store)
            for number in [number for number, row in table.items() if row[2] == 0]:
                del table[number]
            await ctx.tick()
        assert conflicts > 30

    simulate(dut, bench)


def test_largest_transfer_counts_all_its_columns(simulate):
    config = PeConfig()
    dut = design_of(Arc, config)

    async def bench(ctx):
        columns = config.scratchpad_bytes // 32 + 1
        ctx.set(dut.allocate, 1)
        ctx.set(dut.start, 0)
        ctx.set(dut.end, config.scratchpad_bytes // UNIT_BYTES)
        ctx.set(dut.columns, columns)
        ctx.set(dut.ranges[0].used, 1)
        ctx.set(dut.ranges[0].start, config.scratchpad_bytes - 1)
        ctx.set(dut.ranges[0].end, config.scratchpad_bytes // UNIT_BYTES)
        await ctx.tick()
        ctx.set(dut.allocate, 0)
        ctx.set(dut.arrived, 1)
        for _ in range(columns):
            assert ctx.get(dut.conflict) == 1
            await ctx.tick()
        ctx.set(dut.arrived, 0)
        assert ctx.get(dut.conflict) == 1
        await ctx.tick()
        assert ctx.get(dut.conflict) == 0

    simulate(dut, bench)
