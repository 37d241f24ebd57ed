"""Ranges and faults against unbounded integers."""

import pytest

from isa.faults import FaultCause
from isa.table import BY_KEY, FIELD_C, MAX_VL, Unit
from pe.codes import ControlOp, IssueClass
from pe.config import PeConfig
from pe.frontend.arc import UNIT_BYTES
from pe.frontend.range_check import RangeCheck, cause_of

M64 = (1 << 64) - 1


def _value(rng, config):
    """Values around every limit."""
    size = config.scratchpad_bytes
    base = rng.choice(
        (0, 1, size - 1, size, size // 2, 256, 1 << config.address_bits, 1 << 32, 1 << 63, M64)
    )
    return (base + rng.randrange(-9, 10)) & M64


def _held(value, bits):
    """Value of a 64-bit pattern in a register of so many bits, sign-extended again."""
    sign = 1 << (bits - 1)
    return ((value & (2 * sign - 1) ^ sign) - sign) & M64


def _small(rng, config):
    return rng.randrange(config.scratchpad_bytes)


def _vector_expectation(row, values, vl, mr):
    a, b, c = values
    size = row.width.bytes
    if row.reduction is not None:
        spans = [(a, mr * size), (b, mr * vl * size), (c, vl * size)]
    else:
        spans = [
            (a, vl * size),
            (b, vl * size),
            (c, size if row.key.startswith("v.s") else vl * size),
        ]
    return spans if FIELD_C in row.reads else spans[:2]


@pytest.mark.parametrize(
    "config",
    [
        PeConfig(),
        PeConfig(scratchpad_bytes=256, address_bits=12),
        # The sign is the only bit above the address's, or one of several.
        PeConfig(register_width=34),
        PeConfig(scratchpad_bytes=64, address_bits=12, register_width=20),
        *(PeConfig(scratchpad_alignment=alignment) for alignment in (2, 4, 8)),
    ],
)
def test_against_integers(simulate, rng, config):
    dut = RangeCheck(config)
    alignment = config.scratchpad_alignment
    built = [row for row in config.rows if row.unit in (Unit.VECTOR, Unit.LOAD_STORE)]
    seen = set()

    async def bench(ctx):
        d = dut.decoded
        for _ in range(2500):
            row = rng.choice(built)
            values = [rng.choice((_value, _small, _small))(rng, config) for _ in range(3)]
            if rng.random() < 0.8:
                values = [value & -alignment for value in values]
            values = [_held(value, config.register_width) for value in values]
            vl, mr = (rng.choice((1, 2, 16, 17, 255, MAX_VL)) for _ in range(2))
            ctx.set(d.unit, IssueClass[row.unit.name])
            ctx.set(d.kind, row.opcode & 3)
            ctx.set(d.width, row.width)
            ctx.set(d.reads_c, FIELD_C in row.reads)
            for port, value in zip((dut.a, dut.b, dut.c), values, strict=True):
                ctx.set(port, value % (1 << config.register_width))
            ctx.set(dut.vl, vl)
            ctx.set(dut.mr, mr)
            ctx.set(dut.elements, vl * mr)
            a, b, c = values
            cause = FaultCause.NONE
            spans = {}
            if row.unit is Unit.VECTOR:
                spans = dict(enumerate(_vector_expectation(row, values, vl, mr)))
            else:
                store = row.mnemonic.startswith("st")
                dram = a if store else b
                size = row.width.bytes
                if row.mnemonic.endswith("sram"):
                    size *= c
                    spans = {1: (b, size)} if store else {0: (a, size)}
                    if dram % alignment:
                        cause = FaultCause.MISALIGNED
                elif dram % row.width.bytes:
                    cause = FaultCause.MISALIGNED
                if dram + size > 1 << config.address_bits and not cause:
                    cause = FaultCause.DRAM_RANGE
            ragged = row.reduction is not None and vl * row.width.bytes % alignment
            if ragged or any(
                start + size > config.scratchpad_bytes or start % alignment
                for start, size in spans.values()
            ):
                cause = FaultCause.SCRATCHPAD_RANGE
            if cause is FaultCause.DRAM_RANGE and size > config.scratchpad_bytes:
                continue
            seen.add((row.unit, cause))
            assert ctx.get(cause_of(dut.faults)) == cause, (row.key, values, vl, mr)
            if cause:
                continue
            for number, r in enumerate(dut.ranges):
                start, span = spans.get(number, (0, 0))
                assert ctx.get(r.used) == (span > 0)
                if span:
                    assert ctx.get(r.start) == start
                    assert ctx.get(r.end) == -(-(start + span) // UNIT_BYTES)
                    assert ctx.get(r.writes) == (row.unit is Unit.VECTOR and number == 0)
            if row.unit is Unit.LOAD_STORE:
                assert ctx.get(dut.bytes) == size
                assert ctx.get(dut.dram) == dram % (1 << config.address_bits)
                if size:
                    assert ctx.get(dut.columns) == (dram + size - 1) // 32 - dram // 32 + 1

    simulate(dut, bench, combinational=True)
    assert {cause for _, cause in seen} == {
        FaultCause.NONE,
        FaultCause.SCRATCHPAD_RANGE,
        FaultCause.MISALIGNED,
        FaultCause.DRAM_RANGE,
    }
    assert BY_KEY["ld.sram[8]"] in built


@pytest.mark.parametrize(("vl", "mr"), [(1, 1), (17, 200), (64, 64), (255, 3)])
def test_lower_limits_of_settings(simulate, vl, mr):
    config = PeConfig(max_vl=vl, max_mr=mr, register_width=20, address_bits=12)
    dut = RangeCheck(config)

    async def bench(ctx):
        ctx.set(dut.decoded.unit, IssueClass.CONTROL)
        for control, most in ((ControlOp.SET_VL, vl), (ControlOp.SET_MR, mr)):
            ctx.set(dut.decoded.control, control)
            for value in (0, 1, most - 1, most, most + 1, 256, 257, 1 << 19, (1 << 20) - 1):
                ctx.set(dut.a, value)
                assert ctx.get(dut.bad_setting) == (not 1 <= value <= most), (control, value)

    simulate(dut, bench, combinational=True)


@pytest.mark.parametrize(
    ("control", "good", "bad"),
    [
        (ControlOp.SET_VL, (1, 16, 256), (0, 257, 512, 1 << 32, M64)),
        (ControlOp.SET_MR, (1, 16, 256), (0, 257, 512, 1 << 32, M64)),
        (ControlOp.SET_FX, (0, 1, 63), (64, 128, 1 << 32, M64)),
    ],
)
def test_settings(simulate, control, good, bad):
    dut = RangeCheck(PeConfig())

    async def bench(ctx):
        ctx.set(dut.decoded.unit, IssueClass.CONTROL)
        ctx.set(dut.decoded.control, control)
        for value in (*good, *bad):
            ctx.set(dut.a, value)
            assert ctx.get(dut.bad_setting) == (value in bad), value
            assert ctx.get(cause_of(dut.faults)) == FaultCause.NONE

    simulate(dut, bench, combinational=True)
