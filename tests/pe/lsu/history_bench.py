"""Bench for a load-store unit with a load history: a scratchpad that others write, too."""

from hdl.ports import COLUMN_BYTES
from isa.limits import RANGE_BYTES

from .test_load_store import Memory, _set_command
from .workspace_bench import lowered, random_span

#: Cycles from the dispatch of a vector instruction to its first write, at least.
_LEAST_VECTOR = 2


def _units(start, size):
    return set(range(start // RANGE_BYTES, (start + size - 1) // RANGE_BYTES + 1))


class Bench:
    """Drives the unit as dispatch, vector unit, scratchpad and memory do.

    Parameters:
        dut: :class:`pe.lsu.unit.LoadStore`. rng: random. space: bytes of memory, of which a store
            reaches the third quarter. delay: of answers, as of :class:`Memory`. busy: share of
            cycles in which memory takes no request.
    """

    def __init__(self, dut, rng, space, delay, busy):
        self.dut, self.rng, self.busy = dut, rng, busy
        self.memory = Memory(rng, bytearray(rng.randbytes(space)), delay)
        self.alignment = dut.config.scratchpad_alignment
        self.pad = bytearray(rng.randbytes(dut.config.scratchpad_bytes))
        self.written = {}
        self.cycle = 0
        self.read = None
        self.held = False
        # Of loads: arrivals to wait for, first byte, bytes. Of stores: range, bytes to be stored.
        self.open_loads, self.open_stores = {}, {}
        # Cycle, first byte and bytes of vector results.
        self.results = []
        # What stores have to leave in memory.
        self.expected = {}
        # Addresses and bytes of loads from the window.
        self.spans = []
        self.loads = self.columns = self.requested = 0

    def _read_data(self):
        """Each byte in the place of its bank; undefined if it is written now or was just."""
        word = []
        at, cycle = self.read
        for bank in range(8):
            place = (at + (bank - at) % 8) % len(self.pad)
            fresh = cycle - self.written.get(place, -9) <= 1
            word.append(self.rng.randrange(256) if fresh else self.pad[place])
        return int.from_bytes(bytes(word), "little")

    def _write(self, place, value):
        self.pad[place % len(self.pad)] = value
        self.written[place % len(self.pad)] = self.cycle

    async def step(self, ctx):
        """A cycle."""
        dut, memory = self.dut, self.memory
        ready = self.rng.random() >= self.busy
        ctx.set(dut.memory.request.ready, ready)
        if not self.held and (beat := memory.offer()) is not None:
            for name, value in beat.items():
                ctx.set(dut.memory.response.payload[name], value)
            self.held = True
        ctx.set(dut.memory.response.valid, self.held)
        if ctx.get(dut.memory.request.valid) and ready:
            request = ctx.get(dut.memory.request.payload)
            self.requested += not request.write
            memory.accept(request)
        if self.held and ctx.get(dut.memory.response.ready):
            self.held = False
            memory.taken()
        reads = ctx.get(dut.read.address) if ctx.get(dut.read.enable) else None
        strobe = ctx.get(dut.write.strobe)
        for byte in range(8):
            if strobe >> byte & 1:
                value = ctx.get(dut.write.data) >> 8 * byte & 0xFF
                self._write(ctx.get(dut.write.address) + byte, value)
        for item in [item for item in self.results if item[0] <= self.cycle]:
            self.results.remove(item)
            for byte in range(item[2]):
                self._write(item[1] + byte, self.rng.randrange(256))
        if ctx.get(dut.grown):
            self.open_loads[ctx.get(dut.grown_entry)][0] += 1
        if ctx.get(dut.arrived):
            self._arrived(ctx.get(dut.arrived_entry))
        if ctx.get(dut.released):
            del self.open_stores[ctx.get(dut.released_entry)]
        await ctx.tick()
        if reads is not None:
            self.read = (reads, self.cycle)
            ctx.set(dut.read.data, self._read_data())
        self.cycle += 1
        assert self.cycle < 60_000, "hangs"

    def _arrived(self, entry):
        self.open_loads[entry][0] -= 1
        if self.open_loads[entry][0] == 0:
            _, place, wanted = self.open_loads.pop(entry)
            assert self.pad[place : place + len(wanted)] == wanted or self.memory.failing

    async def declare(self, ctx, descriptor):
        """Declare the workspace of ``descriptor``."""
        while not ctx.get(self.dut.idle) or self.results:
            await self.step(ctx)
        # Others may have stored to the image.
        size = len(self.memory.data) // 2
        self.memory.data[:size] = self.rng.randbytes(size)
        ctx.set(self.dut.descriptor, descriptor // 32)
        ctx.set(self.dut.declare, 1)
        for _ in range(1000):
            done = ctx.get(self.dut.declared)
            await self.step(ctx)
            ctx.set(self.dut.declare, 0)
            if done:
                # The descriptor's column is no load's.
                self.requested -= 1
                return
        raise AssertionError("not declared")

    def _busy_units(self, *, with_stores):
        busy = set()
        for _, place, wanted in self.open_loads.values():
            busy |= _units(place, len(wanted))
        for _, place, size in self.results:
            busy |= _units(place, size)
        if with_stores:
            for place, size in self.open_stores.values():
                busy |= _units(place, size)
        return busy

    def _entry(self):
        used = {*self.open_loads, *self.open_stores}
        free = [n for n in range(self.dut.config.arc_entries) if n not in used]
        return free[0] if free else None

    def _aligned(self, value):
        return value // self.alignment * self.alignment

    def _place(self, size):
        return self._aligned(self.rng.randrange(len(self.pad) - size + 1))

    async def exchange(self, ctx, workspace, count):
        """``count`` transfers and vector results, and the end of all of them."""
        dut, rng = self.dut, self.rng
        self.spans = []
        for _ in range(count):
            kind = rng.random()
            if kind < 0.3:
                # In each cycle of a load's, in turn.
                for _ in range(rng.choice((1, 4, 12))):
                    await self._result(ctx)
                continue
            if kind < 0.35:
                # As `memfence`: nothing is under way.
                while not ctx.get(dut.idle):
                    await self.step(ctx)
                size = len(self.memory.data) // 2
                self.memory.data[:size] = self.rng.randbytes(size)
                ctx.set(dut.fenced, 1)
                await self.step(ctx)
                ctx.set(dut.fenced, 0)
                continue
            await (self._store(ctx) if kind < 0.45 else self._load(ctx, workspace))
        for _ in range(20_000):
            if ctx.get(dut.idle):
                break
            await self.step(ctx)
        assert not self.open_loads
        assert not self.open_stores
        for place, value in self.expected.items():
            assert self.memory.data[place] == value

    async def _result(self, ctx):
        size = self.rng.choice((1, 8, 40))
        place = self.rng.randrange(len(self.pad) - size + 1)
        if _units(place, size) & self._busy_units(with_stores=True):
            return
        self._overwrite(ctx, place, size)
        wait = _LEAST_VECTOR + self.rng.choice((0, 0, 3, 10))
        self.results.append((self.cycle + wait, place, size))
        await self.step(ctx)
        ctx.set(self.dut.overwrites, 0)

    def _overwrite(self, ctx, place, size):
        units = _units(place, size)
        ctx.set(self.dut.overwrites, 1)
        ctx.set(self.dut.first_unit, min(units))
        ctx.set(self.dut.end_unit, max(units) + 1)

    async def _give(self, ctx, command, *, overwrites):
        """Offer a command until it is taken; a load overwrites its range from then on."""
        dut = self.dut
        _set_command(ctx, dut, command)
        ctx.set(dut.command.payload.bytes, command["bytes"])
        ctx.set(dut.command.valid, 1)
        while not ctx.get(dut.command.ready):
            await self.step(ctx)
        if overwrites:
            self._overwrite(ctx, command["scratchpad"], command["bytes"])
        await self.step(ctx)
        ctx.set(dut.command.valid, 0)
        ctx.set(dut.overwrites, 0)

    async def _store(self, ctx):
        size = self.alignment * self.rng.choice((1, 3, 8))
        place = self._place(size)
        entry = self._entry()
        if entry is None or _units(place, size) & self._busy_units(with_stores=False):
            return
        space = len(self.memory.data)
        target = self._aligned(space // 2 + self.rng.randrange(space // 4 - size))
        self.open_stores[entry] = (place, size)
        expected = self.pad[place : place + size]
        for byte in range(size):
            self.expected[target + byte] = expected[byte]
        command = {"store": 1, "register": 0, "dram": target, "bytes": size}
        command |= {"scratchpad": place, "entry": entry, "lowered": 0, "recorded": 0}
        await self._give(ctx, command, overwrites=False)

    async def _load(self, ctx, workspace):
        rng = self.rng
        kind = rng.random()
        if kind < 0.6:
            start, size = random_span(rng, workspace, 100, self.alignment)
            # Most of the time again what was loaded not long ago.
            if self.spans and rng.random() < 0.7:
                start, size = rng.choice(self.spans[-3:])
            self.spans.append((start, size))
            await self.load(ctx, start, size, self._place(size), workspace)
        else:
            inside = kind < 0.85
            base, room = (
                (workspace.image, workspace.image_bytes) if inside else (0, workspace.image)
            )
            size = self._aligned(min(rng.choice((8, 40, 100)), room))
            if not size:
                return
            start = base + self._aligned(rng.randrange(min(room - size, 40) + 1))
            await self.load(ctx, start, size, self._place(size), recorded=inside)

    async def load(self, ctx, start, size, place, workspace=None, recorded=True):
        """Load when the ARC allows it: from the window of ``workspace``, or, without one, from
        memory, in the image if it is ``recorded``."""
        columns = (start % COLUMN_BYTES + size + COLUMN_BYTES - 1) // COLUMN_BYTES
        waits = columns
        wanted = bytes(self.memory.data[start : start + size])
        if workspace is not None:
            wanted = lowered(workspace, self.memory.data, start, size)
            columns, waits = self._columns(workspace, start, size), 1
        entry = self._entry()
        while entry is None or _units(place, size) & self._busy_units(with_stores=False):
            await self.step(ctx)
            entry = self._entry()
        self.open_loads[entry] = [waits, place, wanted]
        self.loads += 1
        self.columns += columns
        command = {"store": 0, "register": 0, "dram": start, "bytes": size}
        command |= {"scratchpad": place, "entry": entry, "lowered": int(workspace is not None)}
        command["recorded"] = int(recorded)
        await self._give(ctx, command, overwrites=True)

    def _columns(self, workspace, start, size):
        """DRAM columns of a load from the window, kernel row by kernel row."""
        found, end = 0, None
        for address, count in workspace.pieces(start, size):
            if address is None:
                end = None
                continue
            if address != end:
                found += (address + count - 1) // COLUMN_BYTES - address // COLUMN_BYTES + 1
            else:
                found += (address + count - 1) // COLUMN_BYTES - (address - 1) // COLUMN_BYTES
            end = address + count
        return found
