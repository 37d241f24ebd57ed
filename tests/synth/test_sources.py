"""Refusals and reports name the declarations that would help."""

import re
from dataclasses import replace

import pytest

from isa.assembly.assembler import assemble
from isa.program import Declared, Numbers, Span
from microkernels.suite import choose
from pe.config import PeConfig
from soc.generate.presets import preset
from synth.analysis.contents import contents_of
from synth.analysis.trim import report
from synth.analysis.values import StartRanges, analyse, remedy
from synth.errors import DeclarationError
from vip.trimming.runs import subjects_of

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


def helps(text: str, words: list[int], launch: StartRanges, *spans: Span) -> str:
    program = assemble(text)
    memory = bytes(BLOCK.start) + (0x100).to_bytes(8, "little")
    contents = contents_of(Declared(constants=spans), memory, 1 << SMALL.address_bits)
    return remedy(analyse(program, SMALL, launch, contents), words)


@pytest.mark.parametrize(
    ("words", "launch", "spans", "expected"),
    [
        (
            [3],
            {"parameters": (64, 64)},
            [],
            "0x40:8 or --range 0x40:8 for r6, which word 0",
        ),
        ([3], {"parameters": (64, 64)}, [BLOCK], "0x108:8 or --range 0x108:8 for r8"),
        ([5], {"parameters": (64, 64)}, [BLOCK], "0x108:8 or --range 0x108:8 for r8"),
        ([2], {"parameters": (64, 64)}, [BLOCK], "0x108:8 or --range 0x108:8 for r8"),
        ([4], {"parameters": (64, 64)}, [BLOCK], ""),
        (
            [3],
            {"parameters": (0, 1 << 33)},
            [BLOCK],
            "--parameters for r5, which the launch sets",
        ),
        ([1, 3], {"parameters": (64, 64)}, [BLOCK, Span(0x108, 8)], ""),
    ],
)
def test_unknown_numbers_are_traced_to_their_loads(
    words: list[int], launch: StartRanges, spans: list[Span], expected: str
) -> None:
    found = helps(CHAIN, words, launch, *spans)
    assert expected in found
    assert bool(found) == bool(expected)


def test_the_launch_is_an_origin_if_it_is_not_fixed() -> None:
    text = "add r6, r5, #1\nadd r7, r3, #1\nhalt\n"
    assert helps(text, [0], {}) == "--parameters for r5, which the launch sets"
    assert helps(text, [0], {"parameters": (8, 8)}) == ""
    assert helps(text, [1], {}) == "--slots for r3, which the launch sets"
    assert helps(text, [1], {"slot": (0, 0)}) == ""


def test_values_are_traced_along_all_ways() -> None:
    text = (
        "ld.reg [8-bit] r6, r0\nmov.imm r8, #16\nbeq r6, r0, other\nld.reg [16-bit] r7, r8\n"
        "jmp end\nother: mov.imm r9, #32\nld.reg [32-bit] r7, r9\nend: add r7, r7, #1\nhalt\n"
    )
    found = helps(text, [7], {})
    assert "0x10:2 or" in found
    assert "0x20:4 or" in found
    # The load that decides which way is taken.
    assert "0x0:1 or" in found


def test_long_lists_are_cut() -> None:
    loads = "".join(f"mov.imm r7, #{16 * n}\nld.reg [64-bit] r{8 + n}, r7\n" for n in range(5))
    sums = "".join(f"add r6, r6, r{8 + n}\n" for n in range(5))
    found = helps(f"{loads}{sums}halt\n", [14], {})
    assert found.count("--constant") == 3
    assert found.endswith(" and 2 more")


def test_loads_of_adjacent_bytes_and_of_branches_are_one_declaration() -> None:
    text = (
        "top: ld.reg [64-bit] r6, r5\nadd r7, r5, #8\nld.reg [64-bit] r8, r7\nadd r9, r9, #1\n"
        "blt r9, r8, top\nadd r6, r6, #1\nhalt\n"
    )
    found = helps(text, [5], {"parameters": (64, 64)})
    assert found == "--constant 0x40:16 for 2 loads, the first of r6 by word 0 (<assembly>:1)"


_DECLARATION = re.compile(r"--(constant|range) (0x[0-9a-f]+):([0-9]+)(=LOW)?")


@pytest.mark.parametrize("name", ["max-pooling", "lstm", "bp"])
def test_what_messages_propose_leads_to_proofs(name: str) -> None:
    """A user who knows nothing of a program but its parameters and its memory declares what
    messages name, until all sizes are proved."""
    (application,) = choose([name])
    config = preset(application.preset)
    (subject,) = subjects_of(application)
    constants: set[Span] = set()
    numbers: set[Numbers] = set()
    slots = 1 << 16
    for _ in range(16):
        declared = Declared(constants=tuple(constants), numbers=tuple(numbers), slots=slots)
        try:
            sizes = report(replace(subject, declared=declared), config).bounds
            texts = [bound.remedy for bound in sizes]
        except DeclarationError as error:
            texts = [str(error)]
        if not any(texts):
            break
        before = len(constants), len(numbers), slots
        for text in texts:
            for _, start, size, own in _DECLARATION.findall(text):
                span = Span(int(start, 16), int(size))
                if own:
                    constants = {each for each in constants if not each.overlaps(span)}
                    numbers.add(Numbers(span, 0, 1 << 18))
                elif not any(each.span.overlaps(span) for each in numbers):
                    constants.add(span)
            if "--slots" in text:
                slots = subject.declared.slots
        assert (len(constants), len(numbers), slots) != before, texts
    sized = {bound.name: bound for bound in sizes}
    assert sized["register_width"].size == 20
    assert sized["address_bits"].size < 20
    assert all(bound.basis == "proved" or "no run on the hardware" in bound.why for bound in sizes)
