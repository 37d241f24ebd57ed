"""Refusals and reports name the declarations that would help."""

import pytest

from isa.assembly.assembler import assemble
from isa.declared import Declared, Span
from pe.config import PeConfig
from synth.analysis.contents import contents_of
from synth.analysis.sources import remedy
from synth.analysis.values import Launch, analyse

SMALL = PeConfig(scratchpad_bytes=1024, address_bits=14)
#: Word 2 follows a pointer of the parameter block; word 3 computes with data, word 4 with neither.
CHAIN = """
    ld.reg [64-bit] r6, r5
    add r7, r6, #8
    ld.reg [64-bit] r8, r7
    add r9, r8, r8
    mov.imm r10, #3
    ld.sram [8-bit] r10, r9, r10
    halt
"""
BLOCK = Span(0x40, 8)


def helps(text: str, words: list[int], launch: Launch, *spans: Span) -> str:
    program = assemble(text)
    memory = bytes(BLOCK.start) + (0x100).to_bytes(8, "little")
    contents = contents_of(Declared(constants=spans), memory, 1 << SMALL.address_bits)
    return remedy(program, analyse(program, SMALL, launch, contents), words)


@pytest.mark.parametrize(
    ("words", "launch", "spans", "expected"),
    [
        ([3], Launch(parameters=(64, 64)), [], "0x40:8 or --range 0x40:8 for r6, which word 0"),
        ([3], Launch(parameters=(64, 64)), [BLOCK], "0x108:8 or --range 0x108:8 for r8"),
        ([5], Launch(parameters=(64, 64)), [BLOCK], "0x108:8 or --range 0x108:8 for r8"),
        ([2], Launch(parameters=(64, 64)), [BLOCK], "0x108:8 or --range 0x108:8 for r8"),
        ([4], Launch(parameters=(64, 64)), [BLOCK], ""),
        (
            [3],
            Launch(parameters=(0, 1 << 33)),
            [BLOCK],
            "--parameters for r5, which the launch sets",
        ),
        ([1, 3], Launch(parameters=(64, 64)), [BLOCK, Span(0x108, 8)], ""),
    ],
)
def test_unknown_numbers_are_traced_to_their_loads(
    words: list[int], launch: Launch, spans: list[Span], expected: str
) -> None:
    found = helps(CHAIN, words, launch, *spans)
    assert expected in found
    assert bool(found) == bool(expected)


def test_the_launch_is_an_origin_if_it_is_not_fixed() -> None:
    text = "add r6, r5, #1\nadd r7, r3, #1\nhalt\n"
    assert helps(text, [0], Launch()) == "--parameters for r5, which the launch sets"
    assert helps(text, [0], Launch(parameters=(8, 8))) == ""
    assert helps(text, [1], Launch()) == ""


def test_values_are_traced_along_all_ways() -> None:
    text = (
        "ld.reg [8-bit] r6, r0\nmov.imm r8, #16\nbeq r6, r0, other\nld.reg [16-bit] r7, r8\n"
        "jmp end\nother: mov.imm r9, #32\nld.reg [32-bit] r7, r9\nend: add r7, r7, #1\nhalt\n"
    )
    found = helps(text, [7], Launch())
    assert "0x10:2 or" in found
    assert "0x20:4 or" in found
    assert "0x0:1" not in found


def test_long_lists_are_cut() -> None:
    loads = "".join(f"mov.imm r7, #{8 * n}\nld.reg [64-bit] r{8 + n}, r7\n" for n in range(5))
    sums = "".join(f"add r6, r6, r{8 + n}\n" for n in range(5))
    found = helps(f"{loads}{sums}halt\n", [14], Launch())
    assert found.count("--constant") == 3
    assert found.endswith(" and 2 more")
