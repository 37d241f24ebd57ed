"""The counters of the controller against what its DRAM and its requester saw."""

from dataclasses import replace
from itertools import pairwise

from memory.config import VaultConfig
from memory.controller.controller import Controller
from memory.controller.counters import LAG_CYCLES, LATENCY_LIMITS, VaultCounter
from memory.timing import DramTiming
from tests.memory.dram_stub import Access, Dram, Requester, check, random_accesses

CONFIG = VaultConfig(
    banks=4,
    rows=16,
    row_bytes=128,
    timing=DramTiming(trfc_ns=40.0, trefi_ns=400.0),
    transaction_queue=8,
    command_queue=4,
    tag_bits=5,
)


def _run(simulate, dut, accesses):
    """Counters after ``accesses``, and the DRAM."""
    dram = Dram(dut.config)
    values = {}

    async def device(ctx):
        await dram.run(ctx, dut.dram)

    async def bench(ctx):
        await Requester(dut.config, accesses).run(ctx, dut.port)
        for _ in range(LAG_CYCLES):
            await ctx.tick()
        for index in range(32):
            ctx.set(dut.counter_index, index)
            await ctx.tick()
            values[index] = ctx.get(dut.counter_value)
        dram.stopped = True

    simulate(dut, device, bench)
    check(dut.config, accesses)
    return values, dram


def test_counters(simulate, rng):
    accesses = random_accesses(CONFIG, rng, 200, columns=10)
    values, dram = _run(simulate, Controller(CONFIG), accesses)

    kinds = [kind for _, kind, _ in dram.log]
    columns = [(now, kind) for now, kind, _ in dram.log if kind in ("READ", "WRITE")]
    assert values[VaultCounter.READS] == kinds.count("READ")
    assert values[VaultCounter.WRITES] == kinds.count("WRITE")
    assert values[VaultCounter.READS] + values[VaultCounter.WRITES] == len(accesses)
    last = max(now for now, *_ in dram.log)
    assert values[VaultCounter.CYCLES] >= last
    assert abs(values[VaultCounter.REFRESHES] - kinds.count("REFRESH")) <= 1

    # The first column command after an ACT found the bank closed or another row open, others hit.
    hits = opened = 0
    for bank in range(CONFIG.banks):
        fresh = False
        for kind in (kind for _, kind, number in dram.log if number == bank):
            if kind in ("READ", "WRITE"):
                hits += not fresh
                opened += fresh
            fresh = kind == "ACT"
    assert values[VaultCounter.ROW_HITS] == hits > 10
    misses, conflicts = values[VaultCounter.ROW_MISSES], values[VaultCounter.ROW_CONFLICTS]
    assert misses + conflicts == opened
    assert misses >= CONFIG.banks
    assert conflicts > 10

    turnarounds = sum(a[1] != b[1] for a, b in pairwise(columns))
    assert values[VaultCounter.TURNAROUNDS] == turnarounds + (columns[0][1] == "WRITE")
    assert values[VaultCounter.BUS_BUSY] == 4 * len(accesses)

    histogram = [values[VaultCounter.LATENCY_0 + n] for n in range(len(LATENCY_LIMITS) + 1)]
    assert sum(histogram) == len(accesses)
    assert sum(1 for value in histogram if value) >= 4
    assert values[VaultCounter.REFRESH_BLOCKED] > 0
    assert values[VaultCounter.OCCUPANCY] > values[VaultCounter.CYCLES]


def test_latency_is_counted_from_arrival_to_column_command(simulate):
    """One access at a time into a closed bank: ACT after 3 cycles, READ tRCD later."""
    # Bank 0 refreshes at once.
    accesses = [Access(CONFIG.row_bytes)]
    values, _ = _run(simulate, Controller(CONFIG), accesses)
    expected = 3 + CONFIG.timing.trcd
    bucket = sum(limit <= expected for limit in LATENCY_LIMITS)
    assert values[VaultCounter.LATENCY_0 + bucket] == 1


def test_counters_can_be_left_out(simulate, rng):
    accesses = random_accesses(CONFIG, rng, 20, columns=4)
    values, _ = _run(simulate, Controller(replace(CONFIG, counters=False)), accesses)
    assert set(values.values()) == {0}
