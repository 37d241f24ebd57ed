"""The kernel builder: names, places, loops, hazards; its examples run and equal NumPy."""

import re
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isa.assembly.assembler import AssemblyError, assemble
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.limits import RANGE_BYTES
from isa.program import Program
from isa.table import REGISTERS
from microkernels.common.builder import KernelBuilder
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import add

DOCS = Path(__file__).parents[2] / "docs"


def test_examples_of_the_guide_run() -> None:
    text = (DOCS / "networks.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    for block in blocks:
        names: dict[str, Any] = {}
        exec(block, names)
        assert np.array_equal(names["outputs"], names["job"].expected)
        assert names["job"].expected.any()


def test_a_constant_that_is_never_set_is_refused() -> None:
    k = KernelBuilder("Constants.")
    k.constant("one", 1, "a number")
    with pytest.raises(KernelError, match=r"one: set_constants\(\) is never called"):
        k.program("a.s")
    k.set_constants()
    k.variable("two", 2, "a number")
    with pytest.raises(KernelError, match=r"two: allocated after set_constants\(\), which sets"):
        k.program("a.s")


def test_the_example_of_the_docstring_adds_two_vectors() -> None:
    assert KernelBuilder.__doc__ is not None
    found = re.search(r"::\n\n(.*?)\n\n    ``docs", KernelBuilder.__doc__, re.DOTALL)
    assert found is not None
    names: dict[str, Any] = {"KernelBuilder": KernelBuilder}
    exec(textwrap.dedent(found[1]), names)
    program = names["program"]
    assert isinstance(program, Program)
    values = np.random.default_rng(1).integers(-30000, 30000, (2, 64)).astype("<i2")
    with DramImage(4096) as memory:
        memory.write(1024, values.tobytes())
        assert Simulator(program, memory, parameters=1024).run().state == "halted"
        found_sum = np.frombuffer(memory.read(1024 + 256, 128), "<i2")
    assert np.array_equal(found_sum, add(values[0], values[1]))


def test_a_program_is_what_the_assembler_makes_of_its_text() -> None:
    k = KernelBuilder("Many forms.", launch=("parameters",))
    count = k.constant("count", 1 << 40, "more than an immediate")
    left = k.register("left", "turns")
    k.set_constants()
    k.note("A note that ends like a label:")
    k.op("mov", left, 3)
    with k.loop("turn", left), k.unless("beq", left, k.zero):
        k.op("add", count, count, left, note="a note")
        k.seldom("bge", count, left, lambda: k.op("srl", count, count, 63))
    k.op("halt")
    k.emit_detours()
    program = k.program("forms.s")
    assert program == assemble(k.text(), name="forms.s")
    assert {"turn", "skip_1"} < program.symbols.keys()
    assert len(program.words) > len({line.line for line in program.source.values()})


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (("v.q.add [16-bit]", "zero", "zero"), r"a\.s:5:5: unknown instruction 'v\.q\.add'"),
        (("add", "zero", "zero", 1 << 20), "must be from -8192 to 8191, not 1048576"),
        (("jmp", "nowhere"), "label 'nowhere' is not defined"),
        (("set.vl", "nobody"), "'nobody' is not a register"),
    ],
)
def test_the_assembler_names_mistakes(operation: tuple[Any, ...], message: str) -> None:
    k = KernelBuilder("Wrong.")
    k.label("here")
    k.op(*operation)
    with pytest.raises(AssemblyError, match=message):
        k.program("a.s")


def test_an_error_lists_who_holds_the_registers() -> None:
    k = KernelBuilder("none left")
    for number in range(1, REGISTERS):
        k.register(f"r_{number}", f"purpose {number}")
    with pytest.raises(KernelError, match=r"no scalar register is left for one more") as error:
        k.register("one more", "what for")
    assert "r_1 (purpose 1); r_2 (purpose 2)" in str(error.value)
    assert "\n" not in str(error.value)
    k.release("r_7")
    assert k.register("again", "r_7's register") == "again"
    assert f"{'.reg again, r7':<28}; r_7's register" in k.text()


def test_names_are_taken_once() -> None:
    k = KernelBuilder("names")
    with k.temporary("scratch", "for a moment"), pytest.raises(KernelError, match="'scratch' is"):
        k.register("scratch", "again")
    k.register("scratch", "after the first was released")
    with pytest.raises(KernelError, match="no register or place called 'nobody'"):
        k.release("nobody")


def test_places_are_the_lowest_that_are_free() -> None:
    k = KernelBuilder("places", scratchpad_bytes=256)
    assert k.place("a", 20) == 0
    assert k.place("b", 64) == 2 * RANGE_BYTES
    assert k.place("c", 1) == 6 * RANGE_BYTES
    k.release("b")
    assert k.place("d", 64) == 2 * RANGE_BYTES
    with pytest.raises(KernelError, match=r"no room for e \(200 bytes\) in a") as error:
        k.place("e", 200)
    assert "a (20 from 0); c (1 from 96); d (64 from 32)" in str(error.value)
    with pytest.raises(KernelError, match="'a' is taken"):
        k.place("a", 1)


def chain(*, place_drains: bool, between: int = 0) -> KernelBuilder:
    """An instruction that reads the result of another, after others; vectors of 4 beats."""
    k = KernelBuilder("chain", place_drains=place_drains)
    count = k.constant("count", 16, "elements")
    a, b, c, d = (k.constant(name, k.place(name, 32), name) for name in "abcd")
    k.set_constants()
    k.op("set.vl", count)
    k.vector("v.v.add", b, a, a)
    for _ in range(between):
        k.vector("v.v.add", d, a, a)
    k.vector("v.v.add", c, b, a)
    k.op("halt")
    return k


def test_a_hazard_names_both_calls() -> None:
    with pytest.raises(KernelError) as error:
        chain(place_drains=False, between=1)
    assert re.fullmatch(
        r"v\.v\.add \[16-bit\] c, b, a \(test_builder\.py:\d+\) reads what "
        r"v\.v\.add \[16-bit\] b, a, a \(test_builder\.py:\d+\) makes: distance 8 cycles, "
        r"12 needed; put a v\.drain between them",
        str(error.value),
    )


@pytest.mark.parametrize(("between", "drains"), [(0, 1), (1, 1), (2, 0)])
def test_a_drain_is_placed_where_one_is_needed(between: int, drains: int) -> None:
    text = chain(place_drains=True, between=between).text()
    assert text.count("v.drain") == drains
    if drains:
        assert text.index("v.drain") > text.index("v.v.add [16-bit] b, a, a")


def looped(*, place_drains: bool) -> KernelBuilder:
    """The first instruction of a turn reads the result of the last one of the turn before."""
    k = KernelBuilder("loop", place_drains=place_drains)
    count = k.constant("count", 16, "elements")
    a, b, c = (k.constant(name, k.place(name, 32), name) for name in "abc")
    left = k.variable("left", 3, "turns")
    k.set_constants()
    k.op("set.vl", count)
    with k.loop("again", left):
        k.vector("v.v.add", b, a, a)
        k.vector("v.v.add", a, c, c)
    k.op("halt")
    return k


def test_a_hazard_between_turns_is_found() -> None:
    with pytest.raises(KernelError, match=r"b, a, a .* reads what .* a, c, c .* makes"):
        looped(place_drains=False)
    lines = [line.strip() for line in looped(place_drains=True).text().splitlines()]
    assert lines[lines.index("again:") + 1 :][:3] == [
        "v.drain",
        "v.v.add [16-bit] b, a, a",
        "v.v.add [16-bit] a, c, c",
    ]


def test_loads_stores_and_own_operands_are_checked() -> None:
    k = KernelBuilder("transfers")
    count = k.constant("count", 16, "elements")
    a, b = (k.constant(name, k.place(name, 32), name) for name in "ab")
    inside = k.constant("inside", 8, "the second word of a")
    k.op("set.vl", count)
    k.vector("v.v.add", b, a, a)
    with pytest.raises(KernelError, match="reads what"):
        k.store("zero", b, count)
    with pytest.raises(KernelError, match="overwrites what"):
        k.load(a, "zero", count)
    k.op("v.drain")
    k.store("zero", b, count)
    with pytest.raises(KernelError, match="overwrites one of its own operands"):
        k.vector("v.v.add", inside, a, b)


def test_what_is_known_of_a_register_ends_where_ways_join() -> None:
    """Past the label ``x`` may be ``b`` or not, and an address that is not known is distinct."""
    k = KernelBuilder("join")
    count = k.constant("count", 16, "elements")
    a, b, c = (k.constant(name, k.place(name, 32), name) for name in "abc")
    x = k.register("x", "an address")
    k.op("set.vl", count)
    k.op("mov", x, a)
    with k.unless("beq", count, k.zero):
        k.op("mov", x, b)
    k.vector("v.v.add", b, a, a)
    k.vector("v.v.add", c, x, x)
    k.assume(x, b)
    with pytest.raises(KernelError, match=r"c, x, x .* reads what"):
        k.vector("v.v.add", c, x, x)


def test_scalar_instructions_move_between_vector_instructions() -> None:
    """Up to one that uses their registers, and not over a branch."""
    k = KernelBuilder("Spread.")
    for name in "abxy":
        k.variable(name, 64 * ord(name), "an address")
    k.set_constants()
    k.op("v.drain")
    with k.spread():
        k.vector("v.v.add", "x", "a", "a")
        k.vector("v.v.add", "b", "a", "a")
        k.vector("v.v.add", "b", "a", "a")
        k.op("mov", "x", 8)
        k.op("mov", "y", 16)
        k.vector("v.v.add", "b", "a", "a")
        k.vector("v.v.add", "b", "a", "a")
        k.op("beq", k.zero, k.zero, "end")
        k.op("mov", "x", 24)
        k.op("mov", "y", 32)
        k.vector("v.v.add", "b", "a", "a")
    k.label("end")
    k.op("halt")
    written = re.findall(r"(?:v.v.add|mov|beq)", k.text().split("v.drain")[1])
    vector = "v.v.add"
    order = [vector, vector, "mov", vector, "mov", vector, vector, "beq", "mov", "mov", vector]
    assert written == order
