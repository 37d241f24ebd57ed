"""The preload memory between random requesters, through a crossbar, and a random memory."""

import random
from dataclasses import replace

import pytest

from hdl.config import ConfigurationError
from memory.axi.layout import AxiConfig
from memory.config import VaultConfig
from memory.preload import Preload, check_preload
from tests.memory.behind_crossbar import BehindCrossbar, run
from tests.memory.port_play import fields
from tests.memory.port_traffic import PortMemory, Requester

ADDRESS_BITS = 11
TAG_BITS = 3
SIZE, BASE = 512, 1024


def make(tag_bits):
    """The preload memory for a port with tags of ``tag_bits``."""
    return Preload(
        size=SIZE, base=BASE, address_bits=ADDRESS_BITS, tag_bits=tag_bits, sram="behavioural"
    )


RATES = [
    (1, 1, 1, 1, 1),
    (0.3, 1, 1, 1, 5),
    (1, 0.3, 1, 1, 20),
    (1, 1, 0.3, 1, 9),
    (0.7, 0.6, 0.7, 0.6, 30),
]


@pytest.mark.parametrize(("offer", "take", "accept", "answer", "latency"), RATES)
def test_each_requester_sees_its_own_accesses_in_order(
    simulate, offer, take, accept, answer, latency
):
    """Both sides start with zeros. The memory keeps what was not of the range, and no more. Some
    of its columns fail; those of the range can't."""
    count = 3
    columns = 1 << ADDRESS_BITS - 5
    inside = range(BASE // 32, (BASE + SIZE) // 32)
    failing = frozenset(range(0, columns, 5)) - {*inside}
    memory = PortMemory(
        random.Random(1),
        bytes(32 * columns),
        accept=accept,
        offer=answer,
        latency=latency,
        failing=failing,
    )
    requesters = [
        Requester(
            random.Random(f"{latency} {number}"),
            bytes(32 * columns),
            range(number, columns, count),
            accesses=250,
            tag_bits=TAG_BITS,
            offer=offer,
            take=take,
            failing=failing,
        )
        for number in range(count)
    ]
    vault = BehindCrossbar(count, make, address_bits=ADDRESS_BITS, tag_bits=TAG_BITS)
    run(simulate, vault, memory, requesters)
    written = 0
    for number, requester in enumerate(requesters):
        for column in range(number, columns, count):
            at = slice(32 * column, 32 * column + 32)
            if column in inside:
                written += requester.memory[at] != bytes(32)
                assert memory.memory[at] == bytes(32)
            else:
                assert memory.memory[at] == requester.memory[at]
    assert written > len(inside) // 2


def test_latency_and_rate(simulate):
    dut = make(tag_bits=4)

    async def bench(ctx):
        ctx.set(dut.port.response.ready, 1)
        seen = {}
        beats = [
            *((tag, True, word) for tag in range(2) for word in range(4)),
            *((tag, False, 0) for tag in range(2, 5)),
        ]
        taken = {}
        for cycle in range(30):
            if beats:
                tag, write, word = beats[0]
                ctx.set(dut.port.request.valid, 1)
                ctx.set(
                    dut.port.request.payload,
                    {
                        "address": BASE + 32 * (tag % 2) + 8 * word,
                        "tag": tag,
                        "write": write,
                        "words": 3 - word,
                        "data": 16 * tag + word,
                        "strobe": 0xFF,
                        "last": not write or word == 3,
                    },
                )
            else:
                ctx.set(dut.port.request.valid, 0)
            _, _, ready, valid, payload = await ctx.tick().sample(
                dut.port.request.ready, dut.port.response.valid, dut.port.response.payload
            )
            if beats and ready:
                taken[beats.pop(0)[0]] = cycle
            if valid:
                beat = fields(payload)
                seen.setdefault(beat["tag"], []).append((cycle, beat["data"]))
        assert [seen[tag][-1][0] - taken[tag] for tag in range(2)] == [2, 2]
        for tag in range(2, 5):
            assert [data for _, data in seen[tag]] == [16 * (tag % 2) + n for n in range(4)]
        assert seen[2][0][0] - taken[2] == 2
        # Three reads without a gap.
        cycles = [cycle for tag in range(2, 5) for cycle, _ in seen[tag]]
        assert cycles == list(range(cycles[0], cycles[0] + 12))

    simulate(dut, bench)


@pytest.mark.parametrize(
    ("size", "base", "message"),
    [
        (128, 0, "preload_bytes must be"),
        (384, 0, "preload_bytes must be"),
        (1 << 21, 0, "preload_bytes must be"),
        (True, 0, "preload_bytes must be"),
        (512, 256, "preload_base must be a multiple of preload_bytes"),
        (512, 2048, "from 0 to 1536"),
        (512, -512, "preload_base must be"),
        (512, 0.5, "preload_base must be"),
        (0, 512, "must be 0 without"),
    ],
)
def test_wrong_ranges(size, base, message):
    with pytest.raises(ConfigurationError, match=message):
        check_preload(size, base, 2048)


@pytest.mark.parametrize("back_end", [VaultConfig(), AxiConfig()])
def test_both_back_ends_check_the_range(back_end):
    with pytest.raises(
        ConfigurationError,
        match=r"^preload_bytes must be a power of two from 256 to 1048576, not 3$",
    ):
        replace(back_end, preload_bytes=3)
    end = back_end.size_bytes
    with pytest.raises(
        ConfigurationError,
        match=rf"^preload_base must be a multiple of preload_bytes \(512\) from 0 to {end - 512}, ",
    ):
        replace(back_end, preload_bytes=512, preload_base=end)
