"""The host's control port and the control bus around tiles of engines that only pretend."""

import random
from dataclasses import replace

import pytest

from isa.assembly.assembler import assemble
from memory.axi.layout import AxiConfig
from noc.config import NetworkConfig
from pe.interface import PeState
from soc.chip import chip as chips
from soc.chip.config import ChipConfig
from soc.host.register_map import CHIP, PE, VAULT
from soc.tile.config import VaultTileConfig
from tests.soc.control_model import DECERR, OKAY, ControlRing, Engine, Expected
from tests.soc.host_dut import small
from tests.soc.lite_manager import LiteManager

WHOLE = 0xF


class Chip:
    """The ring in a simulation: ``access`` runs the engines along with the bus."""

    def __init__(self, config, rng, pause=0.0) -> None:
        self.dut = ControlRing(config)
        self.engines = [Engine(port) for port in self.dut.engines]
        self.manager = LiteManager(self.dut.axi, rng, pause=pause)

    async def engines_step(self, ctx):
        for engine in self.engines:
            engine.drive(ctx)
        await ctx.delay(0)
        for engine in self.engines:
            engine.see(ctx)

    async def access(self, ctx, *, writes=(), reads=()):
        """As :meth:`LiteManager.access`; writes are (address, value), with all strobes."""
        return await self.manager.access(
            ctx,
            writes=[(address, value, WHOLE) for address, value in writes],
            reads=reads,
            each=self.engines_step,
        )

    async def write(self, ctx, address, value):
        (response,), _ = await self.access(ctx, writes=[(address, value)])
        return response

    async def read(self, ctx, address):
        _, ((response, data),) = await self.access(ctx, reads=[address])
        assert response == OKAY
        return data

    async def idle(self, ctx, cycles):
        for _ in range(cycles):
            await self.engines_step(ctx)
            await ctx.tick()


def random_write(rng, expected):
    """Mostly to registers that exist, mostly with values that they take."""
    places = list(expected.places)
    commands = [CHIP.address(name) for name in ("START", "STOP", "SELECT_ALL", "PARAMETERS_LOW")]
    address = rng.choice(
        (
            rng.choice(commands),
            CHIP.address("SELECT", rng.randrange(2)),
            CHIP.address("PROGRAM", rng.choice((0, 1, 255, 256, 8191))),
            PE.address(rng.choice(("PARAMETERS_LOW", "STATUS")), page=rng.randrange(36)),
            rng.choice(places),
            rng.randrange(1 << 20),
        )
    )
    value = rng.choice(
        (
            0,
            1,
            rng.getrandbits(20) << 12,
            rng.randrange(256),
            rng.getrandbits(10),
            rng.getrandbits(32),
        )
    )
    return address, value, WHOLE if rng.random() < 0.95 else rng.randrange(15)


@pytest.mark.parametrize(("pause", "bases"), [(0.0, False), (0.6, True)], ids=["0.0", "0.6"])
def test_random_accesses_answer_and_act_as_the_map_says(simulate, rng, pause, bases):
    # 36 engines: a bitmap register ends in the middle of a tile, the last one in its own middle.
    config = replace(small(columns=3, rows=2, pes=6), bases=bases)
    chip = Chip(config, rng, pause)
    expected = Expected(config)
    other = random.Random(7)
    # One vault more than there are.
    base_registers = [CHIP.address(f"BASE_{half}", n) for n in range(7) for half in ("LOW", "HIGH")]

    async def bench(ctx):
        # The first program and launch need no luck.
        first = {"PROGRAM": 77, "SELECT": 0xF, "START": 5}
        writes = [(CHIP.address(name), value, WHOLE) for name, value in first.items()]
        for _ in range(5):
            writes += [random_write(rng, expected) for _ in range(25)]
            # Until a stop is seen, engines run to those that would launch or program them.
            writes.sort(key=lambda write: write[0] == CHIP.address("STOP"))
            for place in other.sample(base_registers, 6):
                writes.append((place, other.getrandbits(20) << other.choice((0, 12)), WHOLE))
            responses = [expected.write(*write) for write in writes]
            found, _ = await chip.manager.access(ctx, writes=writes, each=chip.engines_step)
            assert found == responses
            writes.clear()
            # A stop takes a few cycles to be seen.
            await chip.idle(ctx, 10)
            reads = [rng.choice(list(expected.places)) for _ in range(15)]
            reads += [CHIP.address("SELECT", 1), CHIP.address("RUNNING", 0), rng.randrange(1 << 20)]
            reads += [PE.address("STATUS", page=rng.randrange(36)), CHIP.address("STATE")]
            reads += other.sample(base_registers, 4)
            answers = [expected.read(address) for address in reads]
            _, found = await chip.manager.access(ctx, reads=reads, each=chip.engines_step)
            for address, (response, data), answer in zip(reads, answers, found, strict=True):
                assert answer[0] == response, hex(address)
                assert data in (None, answer[1]), hex(address)

    simulate(chip.dut, bench)
    for number, engine in enumerate(chip.engines):
        assert engine.program == expected.programs[number]
        assert engine.launches == expected.launches[number]
    assert any(expected.programs)
    assert any(expected.launches)


def test_interrupts_tell_the_first_fault_and_the_last_end(simulate, rng):
    chip = Chip(small(columns=3), rng)
    status, enable = CHIP.address("INTERRUPT_STATUS"), CHIP.address("INTERRUPT_ENABLE")

    async def bench(ctx):
        interrupt = chip.dut.interrupt
        await chip.write(ctx, enable, 3)
        await chip.write(ctx, CHIP.address("START"), 5)
        # The effect of an acknowledged launch is visible to the next read.
        assert await chip.read(ctx, CHIP.address("STATE")) == 1
        chip.engines[5].end(cause=4, pc=-3, memory_error=1)
        await chip.idle(ctx, 8)
        assert ctx.get(interrupt)
        assert await chip.read(ctx, status) == 2
        assert await chip.read(ctx, CHIP.address("STATE")) == 3
        assert await chip.read(ctx, CHIP.address("FAULTED")) == 1 << 5
        word = await chip.read(ctx, PE.address("STATUS", page=5))
        values = {field.name: field.extract(word) for field in PE.register("STATUS").fields}
        state = PeState.FAULTED.value
        assert values == {"state": state, "memory_error": 1, "cause": 4, "pc": -3}
        await chip.write(ctx, status, 1)
        assert ctx.get(interrupt)
        await chip.write(ctx, status, 2)
        assert not ctx.get(interrupt)
        # Another fault is reported although the first is still pending.
        chip.engines[0].end(cause=2)
        await chip.idle(ctx, 8)
        assert ctx.get(interrupt)
        await chip.write(ctx, status, 3)
        for number in (1, 2, 3):
            chip.engines[number].end()
        await chip.idle(ctx, 8)
        assert not ctx.get(interrupt)
        chip.engines[4].end()
        await chip.idle(ctx, 8)
        assert ctx.get(interrupt)
        assert await chip.read(ctx, status) == 1
        await chip.write(ctx, enable, 2)
        assert not ctx.get(interrupt)
        # A relaunch forgets the fault.
        await chip.write(ctx, CHIP.address("START"), 5)
        assert await chip.read(ctx, CHIP.address("FAULTED")) == 0
        assert await chip.read(ctx, CHIP.address("STATE")) == 1

    simulate(chip.dut, bench)


def test_halves_of_a_counter_belong_together(simulate, rng):
    config = small(columns=3, pes=3)
    chip = Chip(config, rng, 0.3)

    async def bench(ctx):
        for _ in range(20):
            pe, index = rng.randrange(9), rng.randrange(16)
            low = await chip.read(ctx, PE.address("COUNTER_LOW", index, page=pe))
            await chip.idle(ctx, rng.randrange(20))
            high = await chip.read(ctx, PE.address("COUNTER_HIGH", index, page=pe))
            assert low & 0xF == index
            assert low >> 4 & 0xFFF == high
        for vault in range(3):
            assert await chip.read(ctx, VAULT.address("COUNTER_LOW", 31, page=vault)) == 31
            high = await chip.read(ctx, VAULT.address("COUNTER_HIGH", 31, page=vault))
            assert high == vault << 8
            assert await chip.read(ctx, VAULT.address("NETWORK_LOW", 4, page=vault)) == 4
            assert await chip.read(ctx, VAULT.address("NETWORK_HIGH", 4, page=vault)) == vault << 1

    simulate(chip.dut, bench)


@pytest.mark.parametrize("stuck", ["b", "r"])
def test_answers_not_taken_hold_up_no_accesses_of_the_other_kind(simulate, rng, stuck):
    chip = Chip(small(), rng)
    axi = chip.dut.axi

    async def bench(ctx):
        # More of one kind than there is room for, and their answers left where they are.
        ctx.set(axi.awaddr, CHIP.address("INTERRUPT_ENABLE"))
        ctx.set(axi.wstrb, WHOLE)
        ctx.set(axi.araddr, CHIP.address("IDENTITY"))
        for name in ("aw", "w") if stuck == "b" else ("ar",):
            ctx.set(getattr(axi, f"{name}valid"), 1)
        await chip.idle(ctx, 100)
        ready = axi.awready if stuck == "b" else axi.arready
        assert not ctx.get(ready)
        valid, taken, other = (
            (axi.rvalid, axi.rready, axi.arvalid)
            if stuck == "b"
            else (axi.bvalid, axi.bready, axi.awvalid)
        )
        ctx.set(taken, 1)
        ctx.set(other, 1)
        ctx.set(axi.wvalid, 1)
        answers = 0
        for _ in range(100):
            await chip.engines_step(ctx)
            answers += (await ctx.tick().sample(valid))[2]
        assert answers > 10
        # Once taken, the others go on.
        ctx.set(axi.bready if stuck == "b" else axi.rready, 1)
        taken = 0
        for _ in range(60):
            await chip.engines_step(ctx)
            taken += (await ctx.tick().sample(ready))[2]
        assert taken > 10

    simulate(chip.dut, bench)


def test_a_program_is_loaded_at_nearly_a_word_a_cycle(simulate, rng):
    chip = Chip(small(columns=8, rows=4, pes=1), rng)

    async def bench(ctx):
        words = [rng.getrandbits(32) for _ in range(256)]
        writes = [(CHIP.address("PROGRAM", number), word) for number, word in enumerate(words)]
        began = chip.manager.cycle
        responses, _ = await chip.access(ctx, writes=writes)
        assert responses == [OKAY] * 256
        assert chip.manager.cycle - began == 256 + 37 - 1
        for engine in chip.engines:
            assert engine.program == dict(enumerate(words))

    simulate(chip.dut, bench)


def test_a_chip_without_counters_of_a_network_has_no_registers_for_them(simulate, rng):
    chip = Chip(replace(small(), network_counters=0), rng)

    async def bench(ctx):
        _, answers = await chip.access(ctx, reads=[VAULT.address("NETWORK_LOW", page=0)])
        assert answers == [(DECERR, 0)]
        assert await chip.read(ctx, CHIP.address("COUNTERS")) == 3

    simulate(chip.dut, bench)


def test_memories_begin_at_their_bases(simulate, rng):
    """Loads of a chip that the host's memory serves."""
    pe = replace(small().pe, address_bits=14, load_store_queue=8)
    vault = AxiConfig(address_bits=14, tag_bits=pe.tag_bits + 1, data_bits=64, outstanding=4)
    tile = VaultTileConfig(pe=pe, vault=vault, pes=1, extra_ports=1)
    network = NetworkConfig(columns=2, rows=1, address_bits=14, tag_bits=tile.port_tag_bits)
    dut = chips.Chip(ChipConfig(tile=tile, network=network, remote=False, host_data="none"))
    words = assemble("mov r1, #72\nld.reg [64-bit] r2, r1\nhalt\n").words
    bases = [0x1234_5678_9ABC_D000, 0xFFFF_F000]
    writes = [(CHIP.address("PROGRAM", n), word) for n, word in enumerate(words)]
    for number, base in enumerate(bases):
        writes += [
            (CHIP.address("BASE_LOW", number), base & 0xFFFF_FFFF),
            (CHIP.address("BASE_HIGH", number), base >> 32),
        ]
    seen = {}

    async def see(ctx):
        for number, bus in enumerate(dut.axi):
            if ctx.get(bus.arvalid):
                seen[number] = ctx.get(bus.araddr)

    async def bench(ctx):
        manager = LiteManager(dut.control, rng, pause=0.0)
        writes.append((CHIP.address("START"), len(words)))
        for write in writes:
            answers, _ = await manager.access(ctx, writes=[(*write, WHOLE)], each=see)
            assert answers == [OKAY]
        for _ in range(60):
            await see(ctx)
            await ctx.tick()

    simulate(dut, bench)
    # Requests are for the column of 32 bytes, or the word in it.
    assert {number: address >> 5 for number, address in seen.items()} == {
        number: base + 72 >> 5 for number, base in enumerate(bases)
    }
