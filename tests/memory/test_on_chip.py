"""On-chip memory of several banks, and what lies beyond them."""

import pytest

from hdl.config import ConfigurationError
from memory.on_chip import OnChipConfig, OnChipMemory, RegisteredMemory
from tests.memory.port_play import fields

SIZE, ADDRESS_BITS, TAG_BITS = 7 * 32, 9, 3


@pytest.mark.parametrize("kind", [OnChipMemory, RegisteredMemory])
def test_each_bank_and_beyond(simulate, rng, kind):
    """Reads and writes of any length, one after the other, with pauses at both ends; 7 columns are
    banks of 4, 2 and 1."""
    dut = kind(size=SIZE, address_bits=ADDRESS_BITS, tag_bits=TAG_BITS, sram="behavioural")
    model = bytearray(SIZE)
    requests = []
    for number in range(300):
        column = rng.randrange(10)
        first = rng.randrange(4)
        count = rng.randrange(4 - first) + 1
        write = rng.random() < 0.5
        requests.append((number % 8, write, 32 * column + 8 * first, count))
    beats = []
    for tag, write, start, count in requests:
        for word in range(count if write else 1):
            beats.append(
                {
                    "address": start + 8 * word,
                    "tag": tag,
                    "write": write,
                    "words": count - 1 - word,
                    "data": rng.getrandbits(64),
                    "strobe": rng.getrandbits(8) if write else 0xFF,
                    "last": not write or word == count - 1,
                }
            )
    expected = []
    for beat in beats:
        start, fails = beat["address"], beat["address"] >= SIZE
        if beat["write"]:
            for place in range(8):
                if beat["strobe"] >> place & 1 and not fails:
                    model[start + place] = beat["data"] >> 8 * place & 0xFF
            if beat["last"]:
                expected.append((beat["tag"], None, True, fails))
            continue
        count = 1 if fails else beat["words"] + 1
        for word in range(count):
            at = start + 8 * word
            data = None if fails else int.from_bytes(model[at : at + 8], "little")
            expected.append((beat["tag"], data, word == count - 1, fails))

    async def offer(ctx):
        for beat in beats:
            while rng.random() < 0.3:
                await ctx.tick()
            ctx.set(dut.port.request.valid, 1)
            ctx.set(dut.port.request.payload, beat)
            await ctx.tick().until(dut.port.request.ready)
            ctx.set(dut.port.request.valid, 0)

    async def take(ctx):
        for tag, data, last, fails in expected:
            while rng.random() < 0.3:
                await ctx.tick()
            ctx.set(dut.port.response.ready, 1)
            (payload,) = (
                await ctx.tick().sample(dut.port.response.payload).until(dut.port.response.valid)
            )
            ctx.set(dut.port.response.ready, 0)
            answer = fields(payload)
            assert (answer["tag"], answer["last"], answer["error"]) == (tag, last, fails)
            assert data is None or answer["data"] == data

    simulate(dut, offer, take)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"bytes": 20_000}, r"^bytes must be a multiple of 16384, not 20000$"),
        ({"bytes": 0}, r"^bytes must be a whole number from 16384 to 16777216, not 0$"),
        ({"tag_bits": 17}, r"^tag_bits must be a whole number from 1 to 16, not 17$"),
        ({"sram": "flash"}, r"^sram must be "),
    ],
)
def test_wrong_values(values, message):
    with pytest.raises(ConfigurationError, match=message):
        OnChipConfig(**values)
