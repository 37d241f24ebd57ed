"""The load-store unit between a byte array as scratchpad and a hostile memory."""

from collections import Counter

import pytest

from hdl.ports import COLUMN_BYTES
from pe.capabilities import Capabilities
from pe.config import ALL_INSTRUCTIONS, STANDARD_INSTRUCTIONS, PeConfig
from pe.lsu.unit import LoadStore
from pe.ports import load_store_command
from tests.executed_lines import design_of

DRAM_BYTES = 4096


class Memory:
    """Performs requests in order of arrival, answers tags in random order, checks the protocol.

    Accesses to a column of ``failing`` do nothing but fail, a read after one beat or more.
    """

    def __init__(self, rng, data, delay, failing=frozenset()):
        self.rng = rng
        self.failing = failing
        self.data = data
        self.delay = delay
        self.open = None
        self.pending = []
        self.sending = None
        self.tags = set()
        self.requests = 0

    def accept(self, beat):
        address, strobe = beat.address, beat.strobe
        fails = address // COLUMN_BYTES in self.failing
        assert address % 8 == 0
        if beat.write:
            if self.open is None:
                assert beat.tag not in self.tags
                self.open = (beat.tag, address, beat.words)
            else:
                tag, previous, words = self.open
                assert (beat.tag, address, beat.words) == (tag, previous + 8, words - 1)
                assert address // COLUMN_BYTES == previous // COLUMN_BYTES
                self.open = (tag, address, beat.words)
            for byte in range(8):
                if strobe >> byte & 1 and not fails:
                    self.data[address + byte] = beat.data >> 8 * byte & 0xFF
            assert beat.last == (beat.words == 0)
            if not beat.last:
                return
            self.open = None
            answer = [0]
        else:
            assert self.open is None
            assert beat.last
            assert beat.tag not in self.tags
            assert address % COLUMN_BYTES + 8 * (beat.words + 1) <= COLUMN_BYTES
            answer = [
                int.from_bytes(self.data[address + 8 * i : address + 8 * i + 8], "little")
                for i in range(beat.words + 1)
            ]
            if fails:
                answer = [self.rng.getrandbits(64) for _ in answer[: self.rng.randint(1, 4)]]
        self.tags.add(beat.tag)
        self.requests += 1
        self.pending.append((beat.tag, answer, fails))

    def offer(self):
        """The beat to offer now, or None."""
        if self.sending is None and self.pending and self.rng.random() < self.delay:
            index = self.rng.randrange(min(len(self.pending), 8))
            tag, words, fails = self.pending.pop(index)
            self.sending = (tag, list(words), fails)
        if self.sending is None or self.rng.random() < 0.2:
            return None
        tag, words, fails = self.sending
        # An error counts on the last beat alone.
        last = len(words) == 1
        error = fails if last else words[0] & 1
        return {"tag": tag, "data": words[0], "last": last, "error": error}

    def taken(self):
        tag, words, _ = self.sending
        words.pop(0)
        if not words:
            self.tags.discard(tag)
            self.sending = None


def _commands(rng, config, count):
    """Random commands; stores read one half of the scratchpad and loads write the other."""
    commands = []
    for _ in range(count):
        store, register = rng.random() < 0.4, rng.random() < 0.3
        width = rng.randrange(4)
        if register:
            size = 1 << width
            dram = rng.randrange(DRAM_BYTES // size) * size
        else:
            size = rng.choice((1, 2, 7, 8, 9, 31, 32, 33, 64, 100))
            dram = rng.randrange(DRAM_BYTES - size)
            if rng.random() < 0.4:
                dram = min(dram // 32 * 32, DRAM_BYTES - size)
        # Stores read the lower half of the scratchpad, loads write the upper.
        half = config.scratchpad_bytes // 2
        commands.append(
            {
                "store": store,
                "register": register,
                "width": width,
                "dram": dram,
                "bytes": size,
                "scratchpad": rng.randrange(half - size) + (0 if store else half),
                "entry": rng.randrange(config.arc_entries),
                "index": rng.randrange(config.registers),
                "value": rng.getrandbits(64),
            }
        )
    return commands


@pytest.mark.parametrize(
    ("queue", "delay", "busy"), [(64, 0.9, 0.0), (64, 0.02, 0.3), (2, 0.3, 0.5), (8, 0.5, 0.8)]
)
def test_moves_the_right_bytes_through_a_hostile_memory(simulate, rng, queue, delay, busy):
    _exchange(simulate, rng, PeConfig(load_store_queue=queue), delay, busy, lambda command: True)


def _set_command(ctx, dut, command):
    """Offer a command, its bytes as the columns that they lie in."""
    given = dict(command)
    behind = given["dram"] + given.pop("bytes")
    given["columns"] = (behind - 1) // 32 - given["dram"] // 32 + 1
    given["last"] = (behind - 1) % 32
    layout = load_store_command(dut.config)
    for name, value in given.items():
        if layout[name].width:
            ctx.set(dut.command.payload[name], value)


def test_what_a_failed_access_leaves_is_its_own_bytes_alone(simulate, rng):
    failing = frozenset(rng.sample(range(DRAM_BYTES // COLUMN_BYTES), 40))
    _exchange(simulate, rng, PeConfig(), 0.5, 0.2, lambda command: True, failing)


@pytest.mark.parametrize("fails", [0, 40])
def test_shared_ports_are_asked_for_the_rows_of_each_word(simulate, rng, fails):
    failing = frozenset(rng.sample(range(DRAM_BYTES // COLUMN_BYTES), fails))
    config = PeConfig(scratchpad_banks=16, load_store_queue=8)
    _exchange(simulate, rng, config, 0.9, 0.1, lambda command: not command["register"], failing)


def _wait_for_port(ctx, dut, rng, failing):
    """Let the word go to the scratchpad or not; returns its strobes if it goes."""
    strobe, address = ctx.get(dut.write.strobe), ctx.get(dut.write.address)
    touched = {1 << (address + byte) // 8 % 2 for byte in range(8) if strobe >> byte & 1}
    asked = ctx.get(dut.write.rows)
    # An answer that fails may end early.
    assert asked & sum(touched) == sum(touched) if failing else asked == sum(touched)
    ready = not asked or rng.random() < 0.6
    ctx.set(dut.write.ready, ready)
    return strobe if ready else 0


def _exchange(simulate, rng, config, delay, busy, allowed, failing=frozenset()):
    """Random commands, of those allowed, between scratchpad and memory, of which columns fail."""
    dut = design_of(LoadStore, config)
    half = config.scratchpad_bytes // 2
    data = bytearray(rng.randbytes(DRAM_BYTES))
    scratchpad = bytearray(rng.randbytes(config.scratchpad_bytes))
    commands = [command for command in _commands(rng, config, 180) if allowed(command)]
    # The ARC keeps loads off each other's ranges; here a load that would overlap is a store.
    taken = set()
    for command in commands:
        if not command["store"] and not command["register"]:
            span = set(range(command["scratchpad"], command["scratchpad"] + command["bytes"]))
            if span & taken:
                command["store"] = True
                command["scratchpad"] -= half
            else:
                taken |= span
    commands = [command for command in commands if allowed(command)]
    expected_data, expected_pad = bytearray(data), bytearray(scratchpad)
    expected_loads, expected_arrived, expected_released = [], [], []
    unknown, unknown_loads = set(), 0
    for command in commands:
        dram, size, place = command["dram"], command["bytes"], command["scratchpad"]
        if command["register"]:
            if command["store"]:
                expected_data[dram : dram + size] = (command["value"] % (1 << 8 * size)).to_bytes(
                    size, "little"
                )
            else:
                value = int.from_bytes(expected_data[dram : dram + size], "little", signed=True)
                if dram // COLUMN_BYTES in failing:
                    unknown_loads += 1
                else:
                    expected_loads.append((command["index"], value % (1 << 64)))
        elif command["store"]:
            expected_data[dram : dram + size] = expected_pad[place : place + size]
            expected_released.append(command["entry"])
        else:
            expected_pad[place : place + size] = expected_data[dram : dram + size]
            columns = (dram % 32 + size + 31) // 32
            expected_arrived += [command["entry"]] * columns
            bad = [byte for byte in range(size) if (dram + byte) // COLUMN_BYTES in failing]
            unknown.update(place + byte for byte in bad)
        for column in failing:
            at = slice(column * COLUMN_BYTES, (column + 1) * COLUMN_BYTES)
            expected_data[at] = data[at]
    memory = Memory(rng, data, delay, failing)
    loads, arrived, released, errors = [], [], [], []

    async def bench(ctx):
        queue_of_commands = list(commands)
        command_held = response_held = False
        held_request = None
        read = None
        for cycle in range(60_000):
            if read is not None:
                # Each byte in the place of its bank.
                places = (read + (bank - read) % 8 for bank in range(8))
                word = bytes(scratchpad[place % len(scratchpad)] for place in places)
                ctx.set(dut.read.data, int.from_bytes(word, "little"))
            if not command_held and queue_of_commands and rng.random() > busy / 2:
                _set_command(ctx, dut, queue_of_commands[0])
                command_held = True
            ctx.set(dut.command.valid, command_held)
            ctx.set(dut.memory.request.ready, rng.random() >= busy)
            if not response_held and (beat := memory.offer()) is not None:
                for name, value in beat.items():
                    ctx.set(dut.memory.response.payload[name], value)
                response_held = True
            ctx.set(dut.memory.response.valid, response_held)
            ctx.set(dut.result_ready, rng.random() < 0.5)
            strobe = ctx.get(dut.write.strobe)
            if config.shared_ports:
                ctx.set(dut.read.ready, 1)
            if config.shared_ports and Capabilities.of(config).transfers.loads:
                strobe = _wait_for_port(ctx, dut, rng, failing)

            request = ctx.get(dut.memory.request.payload)
            if ctx.get(dut.memory.request.valid):
                if held_request is not None:
                    assert request == held_request, "payload changed while it waited"
                if ctx.get(dut.memory.request.ready):
                    memory.accept(request)
                    held_request = None
                else:
                    held_request = request
            else:
                assert held_request is None, "request withdrawn"
            if command_held and ctx.get(dut.command.ready):
                command_held = False
                queue_of_commands.pop(0)
            if response_held and ctx.get(dut.memory.response.ready):
                response_held = False
                memory.taken()
            if ctx.get(dut.result_valid) and ctx.get(dut.result_ready):
                loads.append((ctx.get(dut.result_index), ctx.get(dut.result)))
            if ctx.get(dut.arrived):
                arrived.append(ctx.get(dut.arrived_entry))
            if ctx.get(dut.released):
                released.append(ctx.get(dut.released_entry))
            if ctx.get(dut.error):
                errors.append(cycle)
            if ctx.get(dut.read.enable):
                read = ctx.get(dut.read.address)
            for byte in range(8):
                if strobe >> byte & 1:
                    place = (ctx.get(dut.write.address) + byte) % len(scratchpad)
                    scratchpad[place] = ctx.get(dut.write.data) >> 8 * byte & 0xFF
            idle = ctx.get(dut.idle)
            await ctx.tick()
            if not queue_of_commands and not command_held and idle and cycle > 10:
                break
        assert not memory.pending
        assert memory.sending is None

    simulate(dut, bench)
    assert data == expected_data
    assert all(scratchpad[at] == expected_pad[at] for at in {*range(2 * half)} - unknown)
    assert not Counter(expected_loads) - Counter(loads)
    assert len(loads) == len(expected_loads) + unknown_loads
    assert bool(errors) == bool(failing)
    assert sorted(arrived) == sorted(expected_arrived)
    assert released == expected_released
    assert memory.requests > len(commands)


def test_aligned_columns_leave_back_to_back(simulate):
    """A load of four columns asks for one column a cycle, from three cycles after its command."""
    dut = design_of(LoadStore, PeConfig())
    times = []

    async def bench(ctx):
        ctx.set(dut.command.payload.columns, 4)
        ctx.set(dut.command.payload.last, 31)
        ctx.set(dut.command.valid, 1)
        ctx.set(dut.memory.request.ready, 1)
        for cycle in range(12):
            if ctx.get(dut.memory.request.valid):
                times.append(cycle)
            await ctx.tick()
            ctx.set(dut.command.valid, 0)

    simulate(dut, bench)
    assert times == [3, 4, 5, 6]


@pytest.mark.parametrize(
    ("gone", "banks"),
    [("ld.reg", 8), ("st.reg", 8), ("ld.sram", 8), ("ld.sram", 16), ("st.sram", 8)],
)
def test_unit_without_some_transfers_still_moves_the_rest(simulate, rng, gone, banks):
    every = ALL_INSTRUCTIONS if banks == 8 else STANDARD_INSTRUCTIONS
    keys = frozenset(key for key in every if not key.startswith(gone))
    config = PeConfig(instructions=keys, load_store_queue=8, scratchpad_banks=banks)
    _exchange(simulate, rng, config, 0.5, 0.4, lambda command: not _is(command, gone))


@pytest.mark.parametrize("widths", [(3,), (2,), (1, 3)])
def test_narrow_registers_get_what_fits(simulate, rng, widths):
    """With elements of some widths alone; a misfit is reported, and does not arrive."""
    bits = 30
    keys = frozenset(
        {"halt", *(f"{name}[{8 << w}]" for w in widths for name in ("ld.reg", "st.reg"))}
    )
    config = PeConfig(instructions=keys, load_store_queue=8, address_bits=12, register_width=bits)
    dut = design_of(LoadStore, config)
    packing = Capabilities.of(config).registers.width
    limit = 1 << (bits - 1)
    loads = []
    for _ in range(120):
        width = rng.choice(widths)
        size = 1 << width
        value = rng.choice((limit - 1, -limit, limit, -limit - 1, -1, 3, rng.randrange(1 << 62)))
        top = 1 << (8 * size - 1)
        value = (value + top) % (2 * top) - top
        loads.append((width, rng.randrange(0, 64, size), value))
    found = []

    async def bench(ctx):
        port = dut.memory
        ctx.set(port.request.ready, 1)
        ctx.set(dut.result_ready, 1)
        for width, address, value in loads:
            command = {
                "width": packing.code(width),
                "dram": address,
                "last": (address + (1 << width) - 1) % 32,
                "index": 5,
            }
            for name, number in command.items():
                if load_store_command(config)[name].width:
                    ctx.set(dut.command.payload[name], number)
            ctx.set(dut.command.valid, 1)
            await ctx.tick()
            ctx.set(dut.command.valid, 0)
            while not ctx.get(port.request.valid):
                await ctx.tick()
            request = ctx.get(port.request.payload)
            assert (request.address, request.write) == (address & ~7, 0)
            await ctx.tick()
            data = rng.getrandbits(64)
            low = 8 * (address % 8)
            mask = ((1 << (8 << width)) - 1) << low
            ctx.set(port.response.payload.tag, request.tag)
            ctx.set(port.response.payload.data, data & ~mask | value << low & mask)
            ctx.set(port.response.payload.last, 1)
            ctx.set(port.response.valid, 1)
            await ctx.tick()
            ctx.set(port.response.valid, 0)
            overflow = ctx.get(dut.overflow)
            await ctx.tick()
            found.append((overflow, ctx.get(dut.result_valid) and ctx.get(dut.result)))
            await ctx.tick()

    simulate(dut, bench)
    for (_, _, value), (overflow, result) in zip(loads, found, strict=True):
        assert overflow == (not -limit <= value < limit)
        assert result == (0 if overflow else value % (2 * limit))


def _is(command, mnemonic):
    direction, place = mnemonic.split(".")
    return command["store"] == (direction == "st") and command["register"] == (place == "reg")


@pytest.mark.parametrize("widths", [(3,), (2, 3), (0,)])
@pytest.mark.parametrize("transfers", [False, True])
def test_narrow_registers_are_stored_with_their_sign(simulate, rng, widths, transfers):
    """A word of 64 bits repeats the sign; narrower elements are repeated over the word."""
    bits = 20
    keys = {f"st.reg[{8 << w}]" for w in widths}
    keys |= {"ld.sram[8]", "st.sram[8]"} if transfers else set()
    config = PeConfig(instructions=frozenset({"halt", *keys}), address_bits=12, register_width=bits)
    dut = design_of(LoadStore, config)
    packing = Capabilities.of(config).registers.width
    limit = 1 << (bits - 1)
    stores = [(rng.choice(widths), rng.randrange(-limit, limit)) for _ in range(20)]
    stores += [(widths[-1], value) for value in (-1, limit - 1, -limit)]
    found = []

    async def bench(ctx):
        ctx.set(dut.memory.request.ready, 1)
        for width, value in stores:
            command = {
                "store": 1,
                "register": 1,
                "width": packing.code(width),
                "columns": 1,
                "last": (1 << width) - 1,
                "value": value % (2 * limit),
            }
            for name, number in command.items():
                if load_store_command(config)[name].width:
                    ctx.set(dut.command.payload[name], number)
            ctx.set(dut.command.valid, 1)
            await ctx.tick()
            ctx.set(dut.command.valid, 0)
            while not ctx.get(dut.memory.request.valid):
                await ctx.tick()
            found.append(ctx.get(dut.memory.request.payload.data))
            await ctx.tick()

    simulate(dut, bench)
    for (width, value), word in zip(stores, found, strict=True):
        size = 8 << width
        element = value % (1 << size)
        assert word == sum(element << size * n for n in range(64 // size))
