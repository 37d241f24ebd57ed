"""Many turns of a loop at once leave the facts of turns one by one."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from isa.assembly.assembler import assemble
from isa.program import Declared, Numbers, Program, Span
from isa.table import BranchOp, ScalarOp
from pe.config import PeConfig
from synth.analysis import loops, values
from synth.analysis.contents import contents_of
from synth.analysis.interval import (
    ANY,
    Interval,
    Ramp,
    bounds,
    clip,
    evaluate,
    line_of,
    ramp,
    signed,
    step_of,
)
from synth.analysis.values import Study, analyse

SMALL = PeConfig(scratchpad_bytes=1024, address_bits=16, max_vl=64)
CONTENTS = contents_of(
    Declared(constants=(Span(0, 64),), numbers=(Numbers(Span(64, 16), 0, 9),)),
    bytes(range(0, 128, 2)) + bytes(16),
    1 << 16,
)
_KINDS = ("step", "step", "ring", "alu", "load", "own", "move", "branch", "loop")
TURNS = 20
LINES = st.builds(ramp, st.integers(-40, 40), st.integers(-9, 9), st.just(TURNS))


def at(value: int | Ramp, turn: int) -> int:
    base, slope = line_of(value)
    return base + slope * turn


def found(program: Program, *, skipping: bool = True, steps: int = 20_000) -> Study:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "_STEADY_STEPS", steps)
        patch.setattr(values, "_STEPS", steps)
        patch.setattr(values, "_ATTEMPTS", 1)
        if not skipping:
            patch.setattr(loops.Loops, "skip", lambda *_: {})
        return analyse(program, SMALL, {"parameters": (0, 0), "slot": (0, 0)}, CONTENTS)


@given(operation=st.sampled_from(BranchOp), a=LINES, b=LINES)
@settings(max_examples=300, deadline=None, derandomize=True)
def test_branches_go_the_same_way_for_so_many_turns(
    operation: BranchOp, a: int | Ramp, b: int | Ramp
) -> None:
    def taken(turn: int) -> bool:
        one, two = at(a, turn), at(b, turn)
        return {
            BranchOp.BLT: one < two,
            BranchOp.BGE: one >= two,
            BranchOp.BEQ: one == two,
            BranchOp.BNE: one != two,
        }[operation]

    if operation is BranchOp.JMP:
        return
    first, count = loops.outcome(operation, a, b)
    assert first == taken(0)
    assert all(taken(turn) == first for turn in range(min(count, 200)))
    assert count > 200 or taken(count) != first


@given(operation=st.sampled_from(ScalarOp), b=LINES, c=LINES, shift=st.sampled_from((0, 56, 58)))
@settings(max_examples=600, deadline=None, derandomize=True)
def test_results_are_those_of_each_turn(
    operation: ScalarOp, b: int | Ramp, c: int | Ramp, shift: int
) -> None:
    # Up to the ends of what a register can hold.
    b, c = (ramp(base << shift, slope << shift, TURNS) for base, slope in (line_of(b), line_of(c)))
    assume(all(clip(value, *bounds(ANY)) == value for value in (b, c)))
    result = evaluate(operation, b, c)
    low, high = bounds(result)
    mask = (1 << 64) - 1
    for turn in range(TURNS):
        value = signed(operation.evaluate(at(b, turn) & mask, at(c, turn) & mask))
        assert low <= value <= high
        assert value % step_of(result) == 0
        assert isinstance(result, Interval) or value == at(result, turn)


@st.composite
def bodies(draw: st.DrawFn, depth: int = 2) -> list[str]:
    """Statements of loops: r6 to r11 are numbers, r12 an address, r14 and r15 count."""

    def register() -> str:
        return f"r{draw(st.integers(6, 11))}"

    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(
            st.sampled_from(
                ("step", "step", "ring", "alu", "load", "own", "move", "branch", "loop")
            )
        )
        step = draw(st.integers(-24, 24))
        if kind == "step":
            name = register()
            lines.append(f"add {name}, {name}, #{step}")
        elif kind == "ring":
            name = register()
            lines += [f"add {name}, {name}, #8", f"and {name}, {name}, #{8 * 4 - 1}"]
        elif kind == "alu":
            name = draw(st.sampled_from(("sub", "add", "and", "xor", "sra", "sll")))
            lines.append(f"{name} {register()}, {register()}, {register()}")
        elif kind == "load":
            lines += [f"and r12, {register()}, #120", f"ld.reg [8-bit] {register()}, r12"]
        elif kind == "own":
            lines += [
                f"mov.imm r12, #{64 + 8 * draw(st.integers(0, 1))}",
                f"{draw(st.sampled_from(('ld', 'st')))}.reg [64-bit] "
                + draw(st.sampled_from(("r12, r6", "r6, r12"))),
            ]
        elif kind == "move":
            lines += [
                f"and r12, {register()}, #511",
                "add r12, r12, #256",
                f"ld.sram [8-bit] r0, r12, {register()}",
            ]
        elif kind == "branch":
            label = f"l{draw(st.integers(0, 10**9))}"
            name = draw(st.sampled_from(("blt", "bge", "beq", "bne")))
            lines += [f"{name} {register()}, {register()}, {label}"]
            lines += [f"add {register()}, {register()}, #{step}", f"{label}:"]
        elif depth:
            label = f"l{draw(st.integers(0, 10**9))}"
            counter = f"r{13 + depth}"
            lines += [f"mov.imm {counter}, #{draw(st.integers(1, 30))}", f"{label}:"]
            lines += draw(bodies(depth - 1))
            lines += [f"add {counter}, {counter}, #-1", f"bne {counter}, r0, {label}"]
    return lines


@given(lines=st.lists(bodies(), min_size=1, max_size=3))
@settings(max_examples=80, deadline=None, derandomize=True)
def test_facts_are_those_of_turns_one_by_one(lines: list[list[str]]) -> None:
    text = [f"mov.imm r{n}, #{8 * n}" for n in range(6, 12)]
    for number, body in enumerate(lines):
        text += [f"mov.imm r13, #{30 + 10 * number}", f"top{number}:", *body]
        text += ["add r13, r13, #-1", f"bne r13, r0, top{number}"]
    labels = [line for line in text if line.endswith(":")]
    if len(set(labels)) < len(labels):
        return
    program = assemble("\n".join([*text, "halt", ""]))
    try:
        slow = found(program, skipping=False)
    except Exception as error:
        with pytest.raises(type(error)):
            found(program)
        return
    if not slow.exact:
        return
    fast = found(program)
    assert fast.exact
    assert fast.facts == slow.facts
    assert (fast.varying, fast.unknown) == (slow.varying, slow.unknown)


@pytest.mark.parametrize(
    ("inner", "written"),
    [
        # A counter and two addresses that advance.
        ("add r6, r6, #16\nsub r8, r6, r7\nadd r7, r7, #15", {3: (16, 4_000_000)}),
        # A ring of five buffers.
        (
            "add r6, r6, #8\nblt r6, r9, on\nmov r6, r0\non: add r7, r6, #1",
            {3: (8, 40), 6: (1, 33)},
        ),
    ],
)
def test_long_loops_take_few_steps(inner: str, written: dict[int, tuple[int, int]]) -> None:
    text = "mov.imm r10, #500\nmov.imm r9, #40\nsll r10, r10, #0\n"
    body = f"{inner}\nadd r11, r11, #1\nbne r11, r10, top\n"
    program = assemble(f"{text}top: {body}mov r11, r0\nadd r12, r12, #1\nbne r12, r10, top\nhalt\n")
    proved = found(program, steps=150_000)
    assert proved.exact
    assert proved.steady
    for word, ends in written.items():
        assert proved.facts.written[word] == ends
