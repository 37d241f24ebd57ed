"""The load history: no copy ever gives other bytes than the memory's, whatever waits."""

import pytest

from hdl.ports import COLUMN_BYTES
from isa.program import Span
from isa.table import BY_KEY, Unit
from isa.workspace import DESCRIPTOR_BYTES, Workspace
from pe.config import STANDARD_INSTRUCTIONS, PeConfig
from pe.lsu.unit import LoadStore
from sim_tb.random.workspaces import random_workspace

from .history_bench import Bench
from .workspace_bench import ADDRESS_BITS

SPACE = 1 << ADDRESS_BITS


def _config(**changes) -> PeConfig:
    settings = {"scratchpad_bytes": 512, "load_store_queue": 8, "address_bits": ADDRESS_BITS}
    others = {key for key in STANDARD_INSTRUCTIONS if BY_KEY[key].unit is not Unit.VECTOR}
    return PeConfig(instructions=frozenset(others | {"set.ws"}), **(settings | changes))


@pytest.mark.parametrize(
    ("entries", "ways", "delay", "busy", "queue", "alignment"),
    [
        (8, 1, 0.9, 0.1, 8, 1),
        (32, 4, 0.5, 0.0, 2, 1),
        (16, 2, 0.2, 0.6, 2, 2),
        (8, 0, 0.9, 0.8, 8, 1),
        (64, 4, 0.9, 0.3, 8, 8),
    ],
)
def test_copies_are_what_memory_holds(simulate, rng, entries, ways, delay, busy, queue, alignment):
    """Loads from window and image among stores, vector results and loads that overwrite what is
    remembered, or what is being copied."""
    config = _config(
        load_history=entries,
        load_history_ways=ways,
        load_store_queue=queue,
        scratchpad_alignment=alignment,
    )
    bench = Bench(LoadStore(config), rng, SPACE, delay, busy)

    async def run(ctx):
        room = Span(0, SPACE // 2)
        for turn in range(6):
            # Each is declared twice.
            if turn % 2 == 0:
                workspace = random_workspace(rng, image=room, window=room, alignment=alignment)
            descriptor = SPACE - DESCRIPTOR_BYTES
            bench.memory.data[descriptor:] = workspace.pack()
            await bench.declare(ctx, descriptor)
            await bench.exchange(ctx, workspace, 60)

    simulate(bench.dut, run)
    # Copies were made, and some of their sources overwritten meanwhile.
    assert bench.loads > 100
    assert bench.requested < bench.columns - 10


def test_a_column_that_failed_to_load_is_not_known(simulate, rng):
    """Loads of it go to the memory again; only what they bring is copied."""
    bench = Bench(LoadStore(_config(load_history=8)), rng, SPACE, delay=0.9, busy=0.1)
    workspace = Workspace(
        image=0, window=1024, width=8, height=4, pixel_bytes=32, output_width=8, output_height=4,
        kernel=1,
    )  # fmt: skip
    bench.memory.data[SPACE - DESCRIPTOR_BYTES :] = workspace.pack()
    requested = {}

    async def run(ctx):
        await bench.declare(ctx, SPACE - DESCRIPTOR_BYTES)
        for _ in range(40):
            ctx.set(bench.dut.fenced, 1)
            await bench.step(ctx)
            ctx.set(bench.dut.fenced, 0)
            start, size = rng.randrange(800), rng.choice((8, 40, 100))
            for place in (0, 160, 320):
                failing = () if place else {start // COLUMN_BYTES, start // COLUMN_BYTES + 2}
                bench.memory.failing = failing
                before, errors = bench.requested, 0
                await bench.load(ctx, start, size, place)
                while bench.open_loads or not ctx.get(bench.dut.idle):
                    errors += ctx.get(bench.dut.error)
                    await bench.step(ctx)
                assert bool(errors) == bool(failing)
                requested.setdefault(place, []).append(bench.requested - before)

    simulate(bench.dut, run)
    assert min(requested[160]) > 0
    assert sum(requested[320]) == 0


def test_a_copy_that_ends_a_load_waits_for_what_the_load_asks_for(simulate, rng):
    """Until memory takes them, the load's other columns are not known to the ARC."""
    bench = Bench(LoadStore(_config(load_history=8)), rng, SPACE, delay=0.9, busy=0.0)
    # The lowered matrix is the image itself.
    workspace = Workspace(
        image=0, window=1024, width=4, height=4, pixel_bytes=32, output_width=4, output_height=4,
        kernel=1,
    )  # fmt: skip
    bench.memory.data[SPACE - DESCRIPTOR_BYTES :] = workspace.pack()

    async def run(ctx):
        await bench.declare(ctx, SPACE - DESCRIPTOR_BYTES)
        await bench.load(ctx, start=1024 + 96, size=32, place=256, workspace=workspace)
        while bench.open_loads:
            await bench.step(ctx)
        bench.busy = 1.0
        await bench.load(ctx, start=1024, size=128, place=0, workspace=workspace)
        for _ in range(60):
            await bench.step(ctx)
        assert bench.open_loads
        bench.busy = 0.0
        while bench.open_loads:
            await bench.step(ctx)

    simulate(bench.dut, run)
    assert (bench.columns, bench.requested) == (5, 4)
