"""Proofs of units whose sizes are trimmed, and what they say of units that are too permissive."""

from dataclasses import replace

import pytest

from pe.config import PeConfig
from synth.formal.cut import ProofError, cut
from synth.formal.induction import prove_relation
from synth.formal.prove import prove
from synth.formal.sizes import SIZED_UNITS, prove_sizes

pytestmark = pytest.mark.usefixtures("shared_results")

FULL = PeConfig(
    instructions=frozenset({"halt", "set.vl", "set.mr", "add", "sub", "sll.imm", "blt"})
    | {"ld.sram[16]", "st.sram[16]", "ld.reg[32]", "v.v.add[16]", "v.v.min[16]", "m.v.nop.max[16]"},
    arc_entries=3,
)
TRIMMED = replace(
    FULL,
    instructions=FULL.instructions - {"sub", "v.v.min[16]"},
    register_width=30,
    registers=8,
    max_vl=20,
    max_mr=7,
    scratchpad_bytes=512,
    scratchpad_alignment=2,
    arc_entries=2,
    address_bits=19,
)


def failed(name: str, config: PeConfig, change: tuple[str, str] = ("", "")) -> set[str]:
    """Goals that fail for unit ``name`` of ``config``, with a text changed in its gates, when it is
    held to be that of ``TRIMMED``."""
    unit, relation, _ = SIZED_UNITS[name]
    trimmed = cut(unit(config), "trimmed")
    assert change[0] in trimmed.text
    trimmed = replace(trimmed, text=trimmed.text.replace(*change, 1))
    found = prove_relation(cut(unit(FULL), "full"), trimmed, relation((FULL, TRIMMED)))
    return {goal for goals, _ in found.failures for goal in goals}


def test_what_passes_the_smaller_unit_is_the_same() -> None:
    found = prove_sizes(FULL, TRIMMED)
    assert found.keys() == SIZED_UNITS.keys()
    assert all(proof.holds for proof in found.values()), found


@pytest.mark.parametrize(
    ("sizes", "goal"),
    [
        ({"scratchpad_bytes": 1024}, "what passes lies in the trimmed engine's memories"),
        pytest.param(
            {"address_bits": 20},
            "what passes lies in the trimmed engine's memories",
            marks=pytest.mark.slow,
        ),
        ({"max_vl": 21}, "settings fault where they are beyond limits, nowhere else"),
        pytest.param(
            {"max_mr": 6},
            "settings fault where they are beyond limits, nowhere else",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_check_for_another_size_is_found(sizes: dict[str, int], goal: str) -> None:
    assert goal in failed("range check", replace(TRIMMED, **sizes))  # type: ignore[arg-type]


@pytest.mark.slow
def test_rows_of_matrices_are_checked() -> None:
    """The instructions let them begin at every second byte."""
    rows = replace(TRIMMED, scratchpad_alignment=8)
    unit, relation, _ = SIZED_UNITS["range check"]
    found = prove_relation(
        cut(unit(FULL), "full"), cut(unit(rows), "trimmed"), relation((FULL, rows))
    )
    assert found.holds, found.failures
    assert "faults are those of the instruction table" in failed("range check", rows)


@pytest.mark.parametrize(
    ("unit", "change", "goal"),
    [
        ("scalar unit", ("cell $add ", "cell $sub "), "a result is the same or faults"),
        ("settings", ("cell $add ", "cell $sub "), "elements"),
        ("array range check", ("cell $lt ", "cell $gt "), "an access to what is in transfer"),
    ],
)
def test_a_changed_unit_is_found(unit: str, change: tuple[str, str], goal: str) -> None:
    assert any(each.startswith(goal) for each in failed(unit, TRIMMED, change))


@pytest.mark.parametrize("removed", ["ld.sram[16]", "st.sram[16]"])
def test_transfers_that_go_one_way_conflict_as_in_the_full_engine(removed: str) -> None:
    one_way = replace(TRIMMED, instructions=TRIMMED.instructions - {removed})
    unit, relation, _ = SIZED_UNITS["array range check"]
    found = prove_relation(
        cut(unit(FULL), "full"), cut(unit(one_way), "trimmed"), relation((FULL, one_way))
    )
    assert found.holds, found.failures


#: Unit, text of its gates and what stands there instead, and which of its places is changed.
SEEDED = [
    # Rounding of a range's end; its end; the scratchpad's and the memory's end, one byte too far.
    ("range check", "4'1111", "4'1101", 0),
    ("range check", "cell $add ", "cell $sub ", 0),
    ("range check", "cell $add ", "cell $sub ", 2),
    ("range check", "cell $gt ", "cell $ge ", 0),
    ("range check", "cell $gt ", "cell $ge ", 3),
    # Columns of a transfer; bytes of elements.
    ("range check", "cell $add ", "cell $sub ", 7),
    ("range check", "cell $shl ", "cell $shr ", 0),
    ("range check", "cell $shl ", "cell $shr ", 1),
    # Largest VL or MR.
    ("range check", "cell $gt ", "cell $ge ", 5),
    # Functions and conditions of the scalar unit.
    ("scalar unit", "cell $add ", "cell $sub ", 0),
    ("scalar unit", "cell $xor ", "cell $or ", 0),
    ("scalar unit", "cell $and ", "cell $or ", 3),
    # The product of VL and MR.
    ("settings", "cell $add ", "cell $sub ", 0),
    ("settings", "cell $shl ", "cell $shr ", 0),
    ("settings", "cell $shl ", "cell $shr ", 1),
    # Comparison of ranges, and the count of columns in transfer.
    ("array range check", "cell $lt ", "cell $le ", 0),
    ("array range check", "cell $lt ", "cell $le ", 1),
    ("array range check", "cell $lt ", "cell $gt ", 2),
    ("array range check", "cell $ne ", "cell $eq ", 0),
    ("array range check", "cell $sub ", "cell $add ", 0),
]


def seeded(text: str, old: str, new: str, place: int) -> str:
    parts = text.split(old)
    assert len(parts) > place + 1
    return old.join(parts[: place + 1]) + new + old.join(parts[place + 1 :])


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(bug, marks=() if number in (0, 9) else pytest.mark.slow)
        for number, bug in enumerate(SEEDED)
    ],
)
@pytest.mark.parametrize("both", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_bug_is_found_in_one_engine_and_in_both(
    bug: tuple[str, str, str, int], both: bool
) -> None:
    name, *change, place = bug
    unit, relation, _ = SIZED_UNITS[name]
    full, trimmed = cut(unit(FULL), "full"), cut(unit(TRIMMED), "trimmed")
    trimmed = replace(trimmed, text=seeded(trimmed.text, *change, place))
    if both:
        full = replace(full, text=seeded(full.text, *change, place))
    assert prove_relation(full, trimmed, relation((FULL, TRIMMED))).failures


def test_a_larger_engine_is_refused() -> None:
    with pytest.raises(
        ProofError, match="arc_entries of the trimmed engine is 4, of the full one 3"
    ):
        prove(FULL, replace(TRIMMED, arc_entries=4))


def test_registers_may_end_with_the_sign_of_an_address() -> None:
    narrow = replace(TRIMMED, register_width=TRIMMED.address_bits + 1)
    unit, relation, _ = SIZED_UNITS["range check"]
    found = prove_relation(
        cut(unit(FULL), "full"), cut(unit(narrow), "trimmed"), relation((FULL, narrow))
    )
    assert found.holds, found.failures
