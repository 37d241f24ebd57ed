"""The simulator counts values that vector instructions limit to the width of their element."""

import numpy as np
import pytest

from isa.assembly.assembler import assemble
from isa.image import DramImage
from isa.iss.simulator import Simulator

#: Two rows of four bytes, and a vector of four.
PAD = np.zeros(64, np.int8)
PAD[:8] = [100, 100, -100, 5, 1, 2, 3, 4]
PAD[16:20] = [100, 27, -100, 5]


def counted(instruction: str, fx: int = 0, width: int = 8) -> tuple[int, ...]:
    vl = 4 * 8 // width
    source = (
        f"mov r10, #{vl}\nset.vl r10\nmov r11, #2\nset.mr r11\nmov r12, #{fx}\nset.fx r12\n"
        f"mov r13, #32\nmov r14, #16\n{instruction}\nhalt\n"
    )
    with DramImage(64) as image:
        simulator = Simulator(
            assemble(source),
            image,
            scratchpad_bytes=64,
            scratchpad=PAD.tobytes(),
            count_saturation=True,
        )
        assert simulator.run(100).state == "halted"
    return simulator.saturated


@pytest.mark.parametrize(
    ("instruction", "fx", "values"),
    [
        # 200, 127, -200, 10
        ("v.v.add [8-bit] r13, r0, r14", 0, 2),
        ("v.v.sub [8-bit] r13, r0, r14", 0, 0),
        # 0, 0, -200, -95
        ("v.s.sub [8-bit] r13, r0, r14", 0, 1),
        # 10000, 2700, 10000, 25
        ("v.v.mul [8-bit] r13, r0, r14", 0, 3),
        # 39.06, 10.5, 39.06, 0.1
        ("v.v.mul [8-bit] r13, r0, r14", 8, 0),
        # 10000 + 2700 + 10000 + 25, and 100 + 54 - 300 + 20: limited once, when written.
        ("m.v.mul.add [8-bit] r13, r0, r14", 0, 1),
        ("m.v.mul.add [8-bit] r13, r0, r14", 8, 0),
        ("m.v.mul.max [8-bit] r13, r0, r14", 0, 1),
        # Sums of elements are limited before they are reduced, and so is the sum of a row:
        # 127* + 127 - 128* + 10 = 136*, and 101 + 29 - 97 + 9.
        ("m.v.add.add [8-bit] r13, r0, r14", 0, 3),
        ("m.v.add.min [8-bit] r13, r0, r14", 0, 2),
        ("m.v.nop.add [8-bit] r13, r0, r0", 0, 0),
        ("v.v.max [8-bit] r13, r0, r14", 0, 0),
    ],
)
def test_each_limited_value_counts_once(instruction: str, fx: int, values: int) -> None:
    found = counted(instruction, fx)
    assert found[8] == values
    assert sum(found) == values


def test_executions_add_up_and_nothing_is_counted_unasked() -> None:
    source = (
        "mov r10, #4\nset.vl r10\nmov r14, #16\nmov r13, #32\nmov r9, #3\n"
        "again: v.v.add [8-bit] r13, r0, r14\nadd r9, r9, #-1\nbne r9, r0, again\nhalt\n"
    ).replace("r9, r0, again", "r9, r2, again")
    program = assemble(source)
    with DramImage(64) as image:
        options = {"scratchpad_bytes": 64, "scratchpad": PAD.tobytes()}
        simulator = Simulator(program, image, **options, count_saturation=True)
        simulator.run(100)
        assert simulator.saturated[5] == 6
        silent = Simulator(program, image, **options)
        silent.run(100)
        assert silent.saturated == (0,) * len(program.words)


def test_64_bit_elements_are_counted_too() -> None:
    source = "mov r13, #32\nmov r1, #8\nv.v.add [64-bit] r13, r0, r0\nhalt\n"
    pad = bytearray(64)
    pad[:8] = (2**63 - 1).to_bytes(8, "little")
    with DramImage(64) as image:
        simulator = Simulator(
            assemble(source),
            image,
            scratchpad_bytes=64,
            scratchpad=bytes(pad),
            count_saturation=True,
        )
        simulator.run(100)
    assert simulator.saturated == (0, 0, 1, 0)
