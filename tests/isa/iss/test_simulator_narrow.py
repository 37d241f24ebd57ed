"""Engines with narrow registers and low limits: the same results as the full one, or a fault."""

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isa.faults import FaultCause
from isa.image import DramImage
from isa.instruction import ScalarOp
from isa.iss.simulator import Simulator
from isa.run import EngineEnd
from isa.table import BY_KEY, encode

HALT = encode(BY_KEY["halt"], ())
M64 = 2**64 - 1


@pytest.fixture
def memory() -> Iterator[DramImage]:
    with DramImage(8192) as image:
        yield image


def values(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    edges = st.sampled_from([low, low + 1, -1, 0, 1, bits, high - 1, high])
    return edges | st.integers(low, high) | st.integers(-100, 100)


@given(st.data(), st.sampled_from(ScalarOp), st.integers(24, 63))
def test_a_narrow_result_is_the_full_one_or_none(
    data: st.DataObject, op: ScalarOp, bits: int
) -> None:
    b, c = data.draw(values(bits)), data.draw(values(bits))
    result = op.evaluate_narrow(b & M64, c & M64, bits)
    full = op.evaluate(b & M64, c & M64)
    signed = full - (1 << 64) if full >> 63 else full
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if result is not None:
        assert result == full
        assert low <= signed <= high
    elif op is ScalarOp.SRL:
        assert b < 0
    elif op is ScalarOp.SLL:
        assert not low <= b << (c & 63) <= high
    else:
        assert not low <= signed <= high


@pytest.mark.parametrize(
    ("key", "b", "operand", "result"),
    [
        ("add.imm", 2**23 - 1, 0, 2**23 - 1),
        ("add.imm", 2**23 - 1, 1, None),
        ("sub.imm", -(2**23), 0, -(2**23)),
        ("sub.imm", -(2**23), 1, None),
        ("sll.imm", 1, 22, 2**22),
        ("sll.imm", 1, 23, None),
        ("sll.imm", -1, 23, -(2**23)),
        ("sll.imm", 0, 63, 0),
        ("sll.imm", 2, 63, None),
        ("srl.imm", 5, 1, 2),
        ("srl.imm", -1, 60, None),
        ("sra.imm", -5, 40, -1),
        ("xor.imm", 5, -1, -6),
    ],
)
def test_scalar_results_at_24_bits(
    memory: DramImage, key: str, b: int, operand: int, result: int | None
) -> None:
    program = [encode(BY_KEY[key], (20, 21, operand)), HALT]
    simulator = Simulator(program, memory, address_bits=13, register_width=24)
    simulator.registers[20:22] = [77, b & M64]
    outcome = simulator.run()
    if result is None:
        assert outcome == EngineEnd(
            state="faulted", cause=FaultCause.REGISTER_RANGE, pc=0, executed=0
        )
        assert simulator.registers[20] == 77
    else:
        assert outcome.state == "halted"
        assert simulator.registers[20] == result & M64


@pytest.mark.parametrize(
    ("width", "value", "fits"),
    [
        (8, -128, True),
        (16, -1, True),
        (32, 2**29, False),
        (32, -(2**29) - 1, False),
        (64, -(2**29), True),
        (64, 2**29 - 1, True),
        (64, 2**40, False),
    ],
)
def test_loads_that_do_not_fit(memory: DramImage, width: int, value: int, fits: bool) -> None:
    memory.write(64, value.to_bytes(width // 8, "little", signed=True))
    program = [encode(BY_KEY[f"ld.reg[{width}]"], (20, 21)), HALT]
    simulator = Simulator(program, memory, address_bits=13, register_width=30)
    simulator.registers[20:22] = [77, 64]
    outcome = simulator.run()
    if fits:
        assert outcome.state == "halted"
        assert simulator.registers[20] == value & M64
    else:
        assert outcome == EngineEnd(
            state="faulted", cause=FaultCause.REGISTER_RANGE, pc=0, executed=0
        )
        assert simulator.registers[20] == 77


@pytest.mark.parametrize("parameters", [0, 8191, 8192, M64])
def test_the_parameter_is_an_address(memory: DramImage, parameters: int) -> None:
    arguments = {"address_bits": 13, "parameters": parameters}
    assert Simulator([HALT], memory, **arguments).run().state == "halted"  # type: ignore[arg-type]
    narrow = Simulator([HALT], memory, register_width=32, **arguments)  # type: ignore[arg-type]
    if parameters < 8192:
        assert narrow.run().state == "halted"
    else:
        assert narrow.run() == EngineEnd(
            state="faulted", cause=FaultCause.REGISTER_RANGE, pc=0, executed=0
        )


@pytest.mark.parametrize(("key", "limit"), [("set.vl", "max_vl"), ("set.mr", "max_mr")])
def test_settings_beyond_the_limits(memory: DramImage, key: str, limit: str) -> None:
    most = Random(limit).randint(2, 255)
    for value in (0, 1, most, most + 1, 256):
        simulator = Simulator(
            [encode(BY_KEY[key], (20,)), HALT],
            memory,
            **{limit: most},  # type: ignore[arg-type]
        )
        simulator.registers[20] = value
        good = 1 <= value <= most
        cause = FaultCause.NONE if good else FaultCause.VECTOR_SETTING
        assert simulator.run().cause is cause, value
