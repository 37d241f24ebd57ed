"""Comparison of runs with the simulator: each kind of difference is found."""

from dataclasses import replace

import pytest

from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.run import EngineEnd
from pe.config import PeConfig
from sim_tb.cosim.difference import Comparison, compare_run

CONFIG = PeConfig(address_bits=20)
PROGRAM = assemble("mov r1, #4096\nst.reg [64-bit] r1, r1\nld.sram [64-bit] r0, r1, r4\nhalt\n")


def compared(memory: tuple[int, bytes] = (0, b""), **changes: object) -> Comparison:
    """A run that did what the simulator does, except for ``changes`` of its result and what is
    written to its ``memory`` after."""
    size = 1 << CONFIG.address_bits
    with DramImage(size) as image, DramImage(size) as start:
        simulator = Simulator(PROGRAM, image, **CONFIG.limits)
        assert simulator.run().state == "halted"
        end = EngineEnd(
            state="halted",
            elapsed_cycles=100,
            registers=list(simulator.registers),
            scratchpad=simulator.scratchpad.tobytes(),
        )
        image.write(*memory)
        return compare_run(PROGRAM, replace(end, **changes), image, start, config=CONFIG)


def test_equal_runs_match() -> None:
    found = compared()
    assert found.match
    assert found.hazards == ()


@pytest.mark.parametrize(
    ("memory", "changes", "line"),
    [
        (
            (4098, b"\x05"),
            {},
            "memory at 0x1002: engine 05 00 00 00 00 00 00 00, "
            "expected 00 00 00 00 00 00 00 00 (1 bytes differ)",
        ),
        (
            (0xF_FFFF, b"\x07"),
            {},
            "memory at 0xfffff: engine 07, expected 00 (1 bytes differ)",
        ),
        (
            (0, b""),
            {"registers": [0, 4096, 3, 0, 1, *[0] * 59]},
            "r2: engine 0x0000000000000003, expected 0x0000000000000000",
        ),
        (
            (0, b""),
            {"scratchpad": bytes(4096)},
            "scratchpad at 0x1: engine 00 00 00 00 00 00 00 00, "
            "expected 10 00 00 00 00 00 00 00 (1 bytes differ)",
        ),
        (
            (0, b""),
            {"state": "faulted", "cause": FaultCause.DRAM_RANGE, "pc": 2},
            "end: engine FAULTED DRAM_RANGE at 2, expected HALTED NONE at 3",
        ),
        (
            (0, b""),
            {"elapsed_cycles": 2},
            "end: engine HALTED NONE at 0, expected RUNNING NONE at 2",
        ),
    ],
)
def test_each_difference_is_found(
    memory: tuple[int, bytes], changes: dict[str, object], line: str
) -> None:
    found = compared(memory, **changes)
    assert not found.match
    assert found.differences[0] == line


def test_what_cannot_be_read_is_not_compared() -> None:
    assert compared(registers=[], scratchpad=b"").match
