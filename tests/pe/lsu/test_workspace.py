"""The load-store unit's workspace, against its definition: declarations, loads from the window."""

import pytest

from isa.program import Span
from isa.table import BY_KEY, Unit
from isa.workspace import DESCRIPTOR_BYTES, WorkspaceError
from pe.config import STANDARD_INSTRUCTIONS, PeConfig
from pe.lsu.unit import LoadStore
from sim_tb.random.workspaces import random_workspace, spoiled_workspace

from .test_load_store import Memory, _set_command
from .workspace_bench import ADDRESS_BITS, lowered, random_span

SPACE = 1 << ADDRESS_BITS
ALL = Span(0, SPACE)


def _config(without: tuple[Unit, ...] = (), **changes) -> PeConfig:
    settings = {"scratchpad_bytes": 1024, "load_store_queue": 8, "address_bits": ADDRESS_BITS}
    # Vectors of bytes forbid alignment.
    absent = (Unit.VECTOR, *without)
    others = {key for key in STANDARD_INSTRUCTIONS if BY_KEY[key].unit not in absent}
    return PeConfig(instructions=frozenset(others | {"set.ws"}), **(settings | changes))


def _refused(workspace, alignment: int) -> bool:
    try:
        workspace.check(SPACE, alignment)
    except WorkspaceError:
        return True
    return False


async def _answer(ctx, dut, memory, rng, state) -> None:
    """The memory's part of a cycle before its edge."""
    ready = rng.random() < 0.8
    ctx.set(dut.memory.request.ready, ready)
    if not state["held"] and (beat := memory.offer()) is not None:
        for name, value in beat.items():
            ctx.set(dut.memory.response.payload[name], value)
        state["held"] = True
    ctx.set(dut.memory.response.valid, state["held"])
    if ctx.get(dut.memory.request.valid) and ready:
        memory.accept(ctx.get(dut.memory.request.payload))
    if state["held"] and ctx.get(dut.memory.response.ready):
        state["held"] = False
        memory.taken()


async def _declare(ctx, dut, memory, rng, state, descriptor: int) -> bool | None:
    """Declare; the result says that it is refused, or None: it came to nothing by an error."""
    ctx.set(dut.descriptor, descriptor // DESCRIPTOR_BYTES)
    ctx.set(dut.declare, 1)
    for _ in range(1000):
        await _answer(ctx, dut, memory, rng, state)
        done, refused, error = ctx.get(dut.declared), ctx.get(dut.refused), ctx.get(dut.error)
        await ctx.tick()
        ctx.set(dut.declare, 0)
        # The instruction may be gone.
        ctx.set(dut.descriptor, 0)
        if done or error:
            return None if error else bool(refused)
    raise AssertionError("not declared")


@pytest.mark.parametrize(("alignment", "without"), [(1, ()), (4, ()), (1, (Unit.LOAD_STORE,))])
def test_declares_what_the_definition_allows(simulate, rng, alignment, without):
    """Without loads and stores as well, and whatever reads of descriptors failed before."""
    dut = LoadStore(_config(without, scratchpad_alignment=alignment))
    data = bytearray(SPACE)
    memory = Memory(rng, data, 0.5)
    outcomes, failed = [], []

    async def bench(ctx):
        state = {"held": False}
        for _ in range(120):
            workspace = random_workspace(
                rng,
                image=Span(0, SPACE),
                window=Span(0, SPACE),
                alignment=rng.choice((1, alignment)),
            )
            if rng.random() < 0.5:
                workspace = spoiled_workspace(rng, workspace, SPACE)
            descriptor = rng.randrange(SPACE // 32) * 32
            packed = bytearray(workspace.pack())
            extra = rng.random() < 0.05
            if extra:
                packed[rng.randrange(29, 32)] = 1 << rng.randrange(8)
            data[descriptor : descriptor + 32] = packed
            memory.failing = {descriptor // 32} if rng.random() < 0.2 else set()
            refused = await _declare(ctx, dut, memory, rng, state, descriptor)
            assert (refused is None) == bool(memory.failing)
            if refused is None:
                failed.append(descriptor)
                assert not ctx.get(dut.known)
                continue
            assert refused == (extra or _refused(workspace, alignment)), workspace
            assert ctx.get(dut.known) == (not refused)
            outcomes.append(refused)
            if not refused:
                assert ctx.get(dut.window) == workspace.window
                assert ctx.get(dut.window_end) == workspace.window + workspace.window_bytes
                assert ctx.get(dut.image) == workspace.image
                assert ctx.get(dut.image_end) == workspace.image + workspace.image_bytes

    simulate(dut, bench)
    assert 30 < sum(outcomes) < 90
    assert len(failed) > 10


@pytest.mark.parametrize(("queue", "delay", "alignment"), [(8, 0.9, 1), (2, 0.1, 1), (8, 0.5, 2)])
def test_loads_from_the_window_are_the_lowered_matrix(simulate, rng, queue, delay, alignment):
    """Its columns arrive in any order, and the transfer ends when all its bytes are there."""
    config = _config(load_store_queue=queue, scratchpad_alignment=alignment)
    dut = LoadStore(config)
    data = bytearray(rng.randbytes(SPACE))
    memory = Memory(rng, data, delay)
    pad = bytearray(rng.randbytes(config.scratchpad_bytes))
    pieces = []

    async def cycle(ctx, state, open_entries):
        await _answer(ctx, dut, memory, rng, state)
        strobe = ctx.get(dut.write.strobe)
        for byte in range(8):
            if strobe >> byte & 1:
                place = (ctx.get(dut.write.address) + byte) % len(pad)
                pad[place] = ctx.get(dut.write.data) >> 8 * byte & 0xFF
        if ctx.get(dut.grown):
            open_entries[ctx.get(dut.grown_entry)][0] += 1
        if ctx.get(dut.arrived):
            entry = ctx.get(dut.arrived_entry)
            open_entries[entry][0] -= 1
            if open_entries[entry][0] == 0:
                _, place, wanted = open_entries.pop(entry)
                assert pad[place : place + len(wanted)] == wanted
        await ctx.tick()

    async def bench(ctx):
        state = {"held": False}
        room = Span(0, SPACE - DESCRIPTOR_BYTES)
        for _ in range(12):
            workspace = random_workspace(rng, image=room, window=room, alignment=alignment)
            descriptor = room.size
            data[descriptor:] = workspace.pack()
            assert not await _declare(ctx, dut, memory, rng, state, descriptor)
            open_entries = {}
            behind = None
            for turn in range(10):
                start, size = random_span(rng, workspace, 200, alignment)
                if behind is not None and rng.random() < 0.4:
                    size = min(size, workspace.window + workspace.window_bytes - behind)
                    start = behind if size else start
                    size = size or alignment
                is_lowered = rng.random() < 0.8
                if not is_lowered:
                    start = rng.randrange((SPACE - size) // alignment) * alignment
                else:
                    behind = start + size
                    if behind == workspace.window + workspace.window_bytes:
                        behind = None
                # Ranges of loads in flight never overlap; the ARC sees to that.
                entry = turn % config.arc_entries
                place = turn % 5 * 200
                while any(other[1] == place for other in open_entries.values()):
                    await cycle(ctx, state, open_entries)
                wanted = (
                    lowered(workspace, data, start, size)
                    if is_lowered
                    else bytes(data[start : start + size])
                )
                columns = (start % 32 + size + 31) // 32
                open_entries[entry] = [1 if is_lowered else columns, place, wanted]
                _set_command(
                    ctx,
                    dut,
                    {
                        "store": 0,
                        "register": 0,
                        "dram": start,
                        "bytes": size,
                        "scratchpad": place,
                        "entry": entry,
                        "lowered": is_lowered,
                    },
                )
                ctx.set(dut.command.payload.bytes, size)
                ctx.set(dut.command.valid, 1)
                for _ in range(5000):
                    accepted = ctx.get(dut.command.ready)
                    await cycle(ctx, state, open_entries)
                    if accepted:
                        break
                ctx.set(dut.command.valid, 0)
                pieces.append(is_lowered)
            for _ in range(20_000):
                if ctx.get(dut.idle):
                    break
                await cycle(ctx, state, open_entries)
            assert not open_entries

    simulate(dut, bench)
    assert sum(pieces) > 60
