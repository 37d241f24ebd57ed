"""Every vector instruction against a model that computes one element at a time, in plain Python."""

import random
from collections.abc import Sequence

import pytest

from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.table import BY_KEY, Instruction, ReductionOp, VerticalOp, encode

ROWS = [row for row in BY_KEY.values() if row.vertical is not None]
KEYS = [row.key for row in ROWS]
RESULT, FIRST, SECOND, SETTING = 20, 21, 22, 23
PAD = 65536


def number(pad: bytes, address: int, size: int) -> int:
    value = sum(pad[address + i] << (8 * i) for i in range(size))
    return value - (1 << (8 * size)) if value >> (8 * size - 1) else value


def saturated(value: int, size: int) -> int:
    highest = 2 ** (8 * size - 1) - 1
    return highest if value > highest else max(value, -highest - 1)


def rounded(value: int, fx: int) -> int:
    return value if fx == 0 else (value + (1 << (fx - 1))) >> fx


def vertical(op: VerticalOp, b: int, c: int, size: int) -> int:
    if op is VerticalOp.NOP:
        return b
    if op is VerticalOp.ADD:
        return saturated(b + c, size)
    if op is VerticalOp.SUB:
        return saturated(b - c, size)
    if op is VerticalOp.MIN:
        return b if b < c else c
    if op is VerticalOp.MAX:
        return b if b > c else c
    if op is VerticalOp.ABSDIFF:
        return saturated(b - c if b > c else c - b, size)
    if op is VerticalOp.AVG:
        return rounded(b + c, 1)
    assert op is VerticalOp.MUL, "the model does not know the operation"
    return b * c


def model(
    row: Instruction, pad: bytes, addresses: Sequence[int], vl: int, mr: int, fx: int
) -> bytes:
    """The scratchpad after the instruction."""
    assert row.width is not None
    assert row.vertical is not None
    size = row.width.bytes
    result, first, second = addresses
    product = row.vertical is VerticalOp.MUL
    written = []
    if row.reduction is None:
        one = row.mnemonic.startswith("v.s")
        for j in range(vl):
            b = number(pad, first + j * size, size)
            c = number(pad, second if one else second + j * size, size)
            value = vertical(row.vertical, b, c, size)
            written.append(saturated(rounded(value, fx) if product else value, size))
    else:
        for i in range(mr):
            values = []
            for j in range(vl):
                b = number(pad, first + (i * vl + j) * size, size)
                if row.pairs:
                    at, other = first + (i * vl + j) * size, second + j * size
                    values += [
                        number(pad, at + k, size // 2) * number(pad, other + k, size // 2)
                        for k in (0, size // 2)
                    ]
                    continue
                nop = row.vertical is VerticalOp.NOP
                c = 0 if nop else number(pad, second + j * size, size)
                values.append(vertical(row.vertical, b, c, size))
            value = {
                ReductionOp.ADD: lambda v: sum(v),
                ReductionOp.MIN: lambda v: sorted(v)[0],
                ReductionOp.MAX: lambda v: sorted(v)[-1],
            }[row.reduction](values)
            written.append(saturated(rounded(value, fx) if product else value, size))
    after = bytearray(pad)
    for i, value in enumerate(written):
        for k in range(size):
            after[result + i * size + k] = (value >> (8 * k)) & 255
    return bytes(after)


def simulate(
    row: Instruction, pad: bytes, addresses: Sequence[int], vl: int, mr: int, fx: int
) -> bytes:
    words = []
    for key, value in (("set.vl", vl), ("set.mr", mr), ("set.fx", fx)):
        words += [
            encode(BY_KEY["mov.imm"], (SETTING, value)),
            encode(BY_KEY[key], (SETTING,)),
        ]
    for register, address in zip((RESULT, FIRST, SECOND), addresses, strict=True):
        words.append(encode(BY_KEY["mov.imm"], (register, address)))
    words += [encode(row, (RESULT, FIRST, SECOND)), encode(BY_KEY["halt"], ())]
    with DramImage(64) as memory:
        simulator = Simulator(words, memory, scratchpad=pad, scratchpad_bytes=len(pad))
        outcome = simulator.run()
        assert outcome.state == "halted", outcome
        assert simulator.executed[row.key] == 1
        return simulator.scratchpad.tobytes()


def hostile(rng: random.Random, size: int, count: int) -> bytes:
    """``count`` elements, most of them at or near the ends of their range, or near 0."""
    bits = 8 * size
    ends = [
        0,
        1,
        -1,
        2 ** (bits - 1) - 1,
        -(2 ** (bits - 1)),
        2 ** (bits // 2),
        -(2 ** (bits // 2)),
    ]
    kind = rng.randrange(4)
    values = []
    for _ in range(count):
        if kind == 0:
            value = rng.choice(ends) + rng.randint(-2, 2)
        elif kind == 1:
            value = rng.getrandbits(bits)
        elif kind == 2:
            value = rng.choice(ends[3:5])
        else:
            value = rng.randint(-3, 3)
        values.append((value & (2**bits - 1)).to_bytes(size, "little"))
    return b"".join(values)


def case(rng: random.Random, row: Instruction, vl: int, mr: int) -> tuple[bytes, list[int]]:
    """A scratchpad and addresses, at any alignment, that do not overlap."""
    assert row.width is not None
    size = row.width.bytes
    parts = [mr * size if row.reduction else vl * size]
    parts += [(mr if row.reduction else 1) * vl * size, vl * size]
    pad, addresses = bytearray(), []
    for length in parts:
        pad += rng.randbytes(rng.randrange(9))
        addresses.append(len(pad))
        pad += hostile(rng, size, length // size)
    pad += rng.randbytes(max(256 - len(pad), 0) + 8)
    return bytes(pad), addresses


@pytest.mark.parametrize("key", KEYS)
def test_matches_the_model(key: str) -> None:
    row, rng = BY_KEY[key], random.Random(key)
    for trial in range(32):
        vl, mr = rng.choice([1, 2, 3, 5, 8, 16, 17]), rng.choice([1, 2, 3, 7])
        fx = rng.choice([0, 1, 7, 8, 15, 16, 31, 32, 62, 63]) if trial % 2 else rng.randrange(64)
        pad, addresses = case(rng, row, vl, mr)
        expected = model(row, pad, addresses, vl, mr, fx)
        assert simulate(row, pad, addresses, vl, mr, fx) == expected, (vl, mr, fx)


@pytest.mark.parametrize("key", [key for key in KEYS if ".mul" in key or ".dot" in key])
def test_every_shift(key: str) -> None:
    row, rng = BY_KEY[key], random.Random(key)
    for fx in range(64):
        pad, addresses = case(rng, row, 4, 2)
        expected = model(row, pad, addresses, 4, 2, fx)
        assert simulate(row, pad, addresses, 4, 2, fx) == expected, fx


@pytest.mark.parametrize("key", [row.key for row in ROWS if row.reduction is ReductionOp.ADD])
@pytest.mark.parametrize("low", [False, True])
def test_longest_sums_are_exact(key: str, low: bool) -> None:
    """256 elements at one end of their range: sums of products need 2 * bits + 7 bits."""
    row = BY_KEY[key]
    assert row.width is not None
    size = row.width.bytes
    end = -(2 ** (8 * size - 1)) if low else 2 ** (8 * size - 1) - 1
    vectors = (end & (2 ** (8 * size) - 1)).to_bytes(size, "little") * 512
    pad = bytes(16) + vectors
    for fx in (0, min(63, 8 * size - 1), min(63, 8 * size + 7), 63):
        expected = model(row, pad, (0, 16, 16 + 256 * size), 256, 1, fx)
        assert simulate(row, pad, (0, 16, 16 + 256 * size), 256, 1, fx) == expected, fx


@pytest.mark.parametrize("key", ["m.v.add.min[8]", "m.v.mul.add[8]", "m.v.nop.max[8]"])
def test_largest_matrix(key: str) -> None:
    """256 rows of 256 bytes do not fit beside their results, so these go over the matrix."""
    row, rng = BY_KEY[key], random.Random(key)
    pad = rng.randbytes(PAD)
    expected = model(row, pad, (0, 0, 512), 256, 256, 3)
    assert simulate(row, pad, (0, 0, 512), 256, 256, 3) == expected


@pytest.mark.parametrize("key", ["v.v.add[16]", "v.v.mul[64]", "v.s.sub[32]", "v.v.max[8]"])
@pytest.mark.parametrize("shift", [0, 1, -1, 4])
def test_operands_are_read_before_the_result_is_written(key: str, shift: int) -> None:
    row, rng = BY_KEY[key], random.Random(key)
    pad = hostile(rng, 8, 64)
    expected = model(row, pad, (64 + shift, 64, 128), 16, 1, 5)
    assert simulate(row, pad, (64 + shift, 64, 128), 16, 1, 5) == expected


def test_the_model_itself() -> None:
    """Numbers worked out by hand, so that model and simulator can't share a misreading."""
    pad = bytes([127, 128, 2, 253, 0, 0, 0, 0]) + bytes(248)  # 127 -128 2 -3
    assert model(BY_KEY["v.v.add[8]"], pad, (8, 0, 0), 4, 1, 9)[8:12] == bytes([127, 128, 4, 250])
    assert model(BY_KEY["v.s.sub[8]"], pad, (8, 0, 2), 4, 1, 9)[8:12] == bytes([125, 128, 0, 251])
    assert model(BY_KEY["v.s.mul[8]"], pad, (8, 3, 3), 1, 1, 1)[8] == 5  # 9 / 2 = 4.5 -> 5
    assert model(BY_KEY["v.v.mul[8]"], pad, (8, 3, 2), 1, 1, 2)[8] == 255  # -6 / 4 = -1.5 -> -1
    # 127*127 + 128*128 + 4 + 9 = 32526; >> 8 = 127.05
    assert model(BY_KEY["m.v.mul.add[8]"], pad, (8, 0, 0), 4, 1, 8)[8] == 127
    assert model(BY_KEY["m.v.mul.add[8]"], pad, (8, 0, 0), 4, 1, 9)[8] == 64  # 63.53
    # As two pairs: 127*127 + 128*128 and 4 + 9.
    assert model(BY_KEY["m.v.dot.add[16]"], pad, (8, 0, 0), 2, 1, 0)[8:10] == bytes([14, 127])
    assert model(BY_KEY["m.v.dot.add[16]"], pad, (8, 0, 2), 1, 2, 0)[8:12] == bytes(
        [126, 2, 13, 0]  # 127*2 + 128*3 and 13
    )
    assert model(BY_KEY["m.v.mul.min[8]"], pad, (8, 0, 0), 4, 1, 1)[8] == 2
    assert model(BY_KEY["m.v.add.add[8]"], pad, (8, 0, 0), 4, 1, 5)[8] == 253  # 127-128+4-6
    assert model(BY_KEY["m.v.nop.add[8]"], pad, (8, 0, 9999), 4, 1, 5)[8] == 254  # 127-128+2-3
    assert model(BY_KEY["m.v.nop.min[8]"], pad, (8, 0, 9999), 2, 2, 5)[8:10] == bytes([128, 253])
