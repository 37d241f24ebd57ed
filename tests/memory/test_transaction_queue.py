"""The queues in front of the banks, against Python lists."""

from collections import deque

import pytest

from memory.config import VaultConfig
from memory.controller.queue import TransactionQueue
from memory.controller.request_decoder import RequestDecoder
from memory.fifo import Fifo

CONFIG = VaultConfig(
    banks=4, rows=4, row_bytes=64, transaction_queue=8, tag_bits=8, port_address_bits=12
)


@pytest.mark.parametrize("depth", [2, 8])
def test_fifo(simulate, rng, depth):
    dut = Fifo(width=8, depth=depth, sram="behavioural")

    async def bench(ctx):
        words = deque()
        full = 0
        taken = 0
        for cycle in range(800):
            busy = cycle // 100 % 2
            offer, take = rng.random() < (0.9 if busy else 0.3), rng.random() < 0.5
            word = rng.randrange(256)
            ctx.set(dut.input.valid, offer)
            ctx.set(dut.input.payload, word)
            ctx.set(dut.output.ready, take)
            assert ctx.get(dut.level) == len(words)
            assert ctx.get(dut.input.ready) == (len(words) < depth)
            full += len(words) == depth
            if ctx.get(dut.output.valid):
                assert ctx.get(dut.output.payload) == words[0]
                if take:
                    words.popleft()
                    taken += 1
            if offer and ctx.get(dut.input.ready):
                words.append(word)
            await ctx.tick()
        assert full > 50
        assert taken > 250

    simulate(dut, bench)


def test_fifo_moves_a_word_a_cycle_after_two(simulate):
    dut = Fifo(width=8, depth=4, sram="behavioural")

    async def bench(ctx):
        ctx.set(dut.output.ready, 1)
        ctx.set(dut.input.valid, 1)
        for cycle in range(20):
            ctx.set(dut.input.payload, cycle)
            assert ctx.get(dut.output.valid) == (cycle >= 2)
            if cycle >= 2:
                assert ctx.get(dut.output.payload) == cycle - 2
            await ctx.tick()

    simulate(dut, bench)


def test_transaction_queue(simulate, rng):
    """Random requests to few columns, picked at random among those on offer."""
    dut = TransactionQueue(CONFIG)
    size = CONFIG.transaction_queue

    async def bench(ctx):
        entries = {}  # entry -> (number, bank, row, column, write)
        last = dict.fromkeys(range(4), (0, False))
        held_back = 0
        for number in range(1500):
            await ctx.delay(0)
            for entry, (mine, bank, row, _, write) in entries.items():
                assert ctx.get(dut.banks[entry]) == bank
                assert (ctx.get(dut.row_hit) >> entry & 1) == (row == last[bank][0])
                assert (ctx.get(dut.turnaround) >> entry & 1) == (write != last[bank][1])
                older = sum(1 << e for e, other in entries.items() if other[0] < mine)
                occupied = sum(1 << e for e in entries)
                assert ctx.get(dut.older[entry]) & occupied == older
            assert ctx.get(dut.occupied) == sum(1 << entry for entry in entries)

            new = (rng.randrange(4), rng.randrange(2), rng.randrange(2), rng.random() < 0.5)
            offer = rng.random() < 0.7
            ctx.set(dut.input.valid, offer)
            for name, value in zip(("row", "column", "write"), new[1:], strict=True):
                ctx.set(dut.input.payload.entry[name], value)
            ctx.set(dut.input.payload.entry.tag, number & 0xFF)
            ctx.set(dut.input.payload.bank, new[0])
            ready = rng.randrange(16)
            ctx.set(dut.bank_ready, ready)
            # Eligible: the first request for each column, if the queue of its bank is ready.
            first = {}
            for entry, (mine, *place, _) in entries.items():
                key = tuple(place)
                if key not in first or entries[first[key]][0] > mine:
                    first[key] = entry
            held_back += len(entries) - len(first)
            eligible = [e for e in first.values() if ready >> entries[e][1] & 1]
            assert ctx.get(dut.eligible) == sum(1 << e for e in eligible)

            picked = rng.choice(eligible) if eligible and rng.random() < 0.6 else None
            ctx.set(dut.pick, 0 if picked is None else 1 << picked)
            accepted = offer and ctx.get(dut.input.ready)
            assert ctx.get(dut.input.ready) == (len(entries) < size)
            if picked is not None:
                mine, bank, row, column, write = entries.pop(picked)
                given = ctx.get(dut.picked)
                assert (given.bank, given.entry.row, given.entry.column) == (bank, row, column)
                assert (given.entry.write, given.entry.tag) == (write, mine & 0xFF)
                last[bank] = (row, write)
            before = ctx.get(dut.occupied)
            await ctx.tick()
            if accepted:
                gone = 0 if picked is None else 1 << picked
                (entry,) = [
                    e for e in range(size) if (ctx.get(dut.occupied) & ~(before & ~gone)) >> e & 1
                ]
                entries[entry] = (number, *new)
        assert held_back > 1000

    simulate(dut, bench)


def test_intake(simulate, rng):
    """Beats in, transactions out; the words of a write are in its slot before anyone may ask."""
    dut = RequestDecoder(CONFIG)
    requests = []
    for tag in range(200):
        words = rng.randint(1, 4)
        outside = rng.random() < 0.2
        address = 32 * rng.randrange(32) + 8 * rng.randint(0, 4 - words) + 1024 * outside
        data = [rng.getrandbits(64) for _ in range(words)] if rng.random() < 0.6 else []
        requests.append((tag, address, words, data, outside))
    assert CONFIG.address_bits == 10

    beats = deque(
        {
            "address": address + 8 * n,
            "tag": tag,
            "write": bool(data),
            "words": words - 1 - n,
            "data": word,
            "strobe": tag if data else 0xFF,
            "last": not data or n == words - 1,
        }
        for tag, address, words, data, _ in requests
        for n, word in enumerate(data or [0])
    )

    async def bench(ctx):
        store = {}
        used = []
        inside = deque(r for r in requests if not r[4])
        outside = deque(r for r in requests if r[4])
        numbers = 0
        filled = 0
        offered = False
        while inside or outside:
            offered = bool(beats) and (offered or rng.random() < 0.8)
            ctx.set(dut.request.valid, offered)
            if offered:
                ctx.set(dut.request.payload, beats[0])
            ctx.set(dut.transaction.ready, rng.random() < 0.8)
            ctx.set(dut.rejected.ready, rng.random() < 0.5)
            free = bool(used) and rng.random() < 0.05
            ctx.set(dut.freed, free)
            if free:
                ctx.set(dut.freed_slot, used.pop(rng.randrange(len(used))))
            if ctx.get(dut.store.enable):
                store[ctx.get(dut.store.address)] = ctx.get(dut.store.data)
            if ctx.get(dut.rejected.valid) and ctx.get(dut.rejected.ready):
                assert ctx.get(dut.rejected.payload) == outside.popleft()[0]
            if ctx.get(dut.transaction.valid) and ctx.get(dut.transaction.ready):
                made = ctx.get(dut.transaction.payload)
                entry = made.entry
                tag, address, words, data, _ = inside.popleft()
                assert entry.tag == tag
                assert entry.stamp == numbers
                numbers += 1
                assert entry.write == bool(data)
                assert entry.row * 8 + made.bank * 2 + entry.column == address // 32
                first = address // 8 % 4
                assert (entry.words.first, entry.words.last) == (first, first + words - 1)
                if data:
                    assert entry.slot not in used
                    used.append(entry.slot)
                    for n, word in enumerate(data):
                        assert store[entry.slot * 4 + first + n] == word | tag << 64
            if offered and ctx.get(dut.request.ready):
                beats.popleft()
                offered = False
            filled = max(filled, len(used))
            await ctx.tick()
        assert filled == CONFIG.write_slots

    simulate(dut, bench)
