"""Proofs of the vector unit: what is kept has the results of the full unit, what is broken not."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from amaranth.hdl import Const

from pe.config import PeConfig
from pe.vector import alu, vertical
from pe.vector.beat import ResultFields
from pe.vector.unit import VectorUnit
from synth.formal.cut import CutDesign, ProofError, cut
from synth.formal.induction import Proof, prove_relation
from synth.formal.vector_unit import prove_vector_unit, vector_pipeline, vector_unit_relation

pytestmark = pytest.mark.usefixtures("shared_results")

FULL = PeConfig(
    instructions=frozenset({"halt", "set.vl", "set.mr", "set.fx"})
    | {"v.v.add[16]", "v.v.sub[16]", "v.v.mul[8]", "m.v.mul.add[16]", "m.v.add.max[16]"},
    scratchpad_bytes=1024,
    registers=8,
    max_vl=16,
    max_mr=4,
)
#: Without products, which have most of the stages.
SUMS = replace(
    FULL,
    instructions=FULL.instructions - {"v.v.sub[16]", "v.v.mul[8]", "m.v.mul.add[16]"},
    scratchpad_bytes=256,
    max_vl=9,
    max_mr=3,
)
PRODUCTS = replace(FULL, instructions=frozenset({"halt", "set.vl", "set.fx", "v.v.mul[8]"}))
#: A row's largest value in as few bits as it has: the full unit's sums have more.
EXTREMES = replace(FULL, instructions=frozenset({"halt", "set.vl", "set.mr", "m.v.add.max[16]"}))


@cache
def unit(config: PeConfig, name: str) -> CutDesign:
    return cut(VectorUnit(config), name)


def proof(trimmed: CutDesign, config: PeConfig) -> Proof:
    """Of ``trimmed``, which is held to be that of ``config``."""
    return prove_relation(
        vector_pipeline(FULL, unit(FULL, "full")),
        vector_pipeline(config, trimmed),
        vector_unit_relation(FULL, config),
    )


def failed(found: Proof) -> set[str]:
    return {goal for goals, _ in found.failures for goal in goals}


@pytest.mark.parametrize(
    "config",
    [SUMS, *(pytest.param(config, marks=pytest.mark.slow) for config in (PRODUCTS, EXTREMES))],
)
def test_the_results_of_what_is_kept_are_the_same(config: PeConfig) -> None:
    found = prove_vector_unit(FULL, config)
    assert found.holds, failed(found)
    assert found.goals > 50


def test_absolute_differences_and_averages_are_the_same() -> None:
    kept = {"halt", "set.vl", "v.v.absdiff[8]", "v.v.avg[8]"}
    full = replace(
        FULL,
        instructions=frozenset(kept | {"v.v.add[16]", "v.v.max[8]", "v.v.absdiff[16]"}),
        scratchpad_bytes=64,
        max_vl=8,
        max_mr=2,
    )
    found = prove_vector_unit(full, replace(full, instructions=frozenset(kept)))
    assert found.holds, failed(found)


@pytest.mark.slow
def test_products_of_two_passes_may_differ_behind_the_last_element() -> None:
    kept = frozenset({"halt", "set.vl", "set.fx", "v.v.mul[32]"})
    full = replace(FULL, instructions=kept | {"v.v.add[16]"}, scratchpad_bytes=64, max_vl=8)
    found = prove_vector_unit(full, replace(full, instructions=kept))
    assert found.holds, failed(found)


PAIRS = replace(
    FULL,
    instructions=frozenset({"halt", "set.vl", "m.v.dot.add[16]", "m.v.mul.add[16]"}),
    scratchpad_bytes=64,
    max_vl=8,
)


@pytest.mark.slow
def test_products_of_pairs_are_the_same() -> None:
    kept = frozenset({"halt", "set.vl", "m.v.dot.add[16]"})
    found = prove_vector_unit(PAIRS, replace(PAIRS, instructions=kept))
    assert found.holds, failed(found)


@pytest.mark.slow
def test_pairs_that_are_taken_for_elements_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sound = vector_pipeline(PAIRS, cut(VectorUnit(PAIRS), "full"))
    monkeypatch.setattr(
        vertical, "numbers_of", lambda config, beat: ResultFields.of(config, beat.result).width
    )
    broken = vector_pipeline(PAIRS, cut(VectorUnit(PAIRS), "trimmed"))
    assert failed(prove_relation(sound, broken, vector_unit_relation(PAIRS, PAIRS)))


def test_logistic_functions_which_gather_elements_are_the_same() -> None:
    full = replace(FULL, instructions=SUMS.instructions | {"v.sigmoid[16]", "v.tanh[16]", "set.fx"})
    found = prove_vector_unit(
        full, replace(full, instructions=frozenset({"halt", "set.vl", "v.tanh[16]"}))
    )
    assert found.holds, failed(found)


def test_a_needed_operation_that_was_removed_is_found() -> None:
    without = replace(SUMS, instructions=SUMS.instructions - {"v.v.add[16]"} | {"v.v.sub[16]"})
    assert "byte 0 of results agrees" in failed(proof(unit(without, "trimmed"), SUMS))


@pytest.mark.parametrize(
    ("config", "stage", "cell", "broken", "goal"),
    [
        (SUMS, "horizontal.", "$lt", "$gt", "byte "),
        pytest.param(
            PRODUCTS,
            "vertical.",
            "$mul",
            "$add",
            "output made:vertical.partial",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_changed_stage_is_found(
    config: PeConfig, stage: str, cell: str, broken: str, goal: str
) -> None:
    sound = unit(config, "trimmed")
    place = sound.text.index(f"cell {cell} $flatten\\{stage}")
    text = sound.text[:place] + f"cell {broken}" + sound.text[place + 5 + len(cell) :]
    found = failed(proof(replace(sound, text=text), config))
    assert any(each.startswith(goal) for each in found)


ELEMENTS = replace(
    FULL,
    instructions=frozenset({"halt", "set.vl", "v.v.add[16]", "v.s.sub[16]", "v.v.min[8]"}),
    scratchpad_bytes=256,
    max_vl=9,
)
FULL_ELEMENTS = replace(ELEMENTS, instructions=ELEMENTS.instructions | {"v.v.max[8]"}, max_vl=16)


def _none(*_: object) -> Const:
    return Const(0, 1)


#: Unit, function of its module and what stands there instead.
SEEDED: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "a difference is one too low": (vertical, "carries", _none),
    "a difference is a sum": (vertical, "subtracts", _none),
    "a scalar is a vector": (vertical, "broadcast_of", _none),
    "elements are bytes": (vertical, "adder_joins", lambda *_: Const(0, 7)),
    "nothing saturates": (alu, "lane_tops", lambda flags, *_: [Const(0, 1) for _ in flags]),
    "bounds are of the other sign": (
        alu,
        "lane_bounds",
        lambda flags, *other: BOUNDS([~flag for flag in flags], *other),
    ),
}
BOUNDS = alu.lane_bounds


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(bug, marks=() if number == 4 else pytest.mark.slow)
        for number, bug in enumerate(SEEDED)
    ],
)
@pytest.mark.parametrize("both", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_bug_is_found_in_one_engine_and_in_both(
    monkeypatch: pytest.MonkeyPatch, bug: str, both: bool
) -> None:
    module, name, instead = SEEDED[bug]
    sound = vector_pipeline(FULL_ELEMENTS, cut(VectorUnit(FULL_ELEMENTS), "full"))
    monkeypatch.setattr(module, name, instead)
    broken = vector_pipeline(ELEMENTS, cut(VectorUnit(ELEMENTS), "trimmed"))
    if both:
        sound = vector_pipeline(FULL_ELEMENTS, cut(VectorUnit(FULL_ELEMENTS), "full"))
    found = prove_relation(sound, broken, vector_unit_relation(FULL_ELEMENTS, ELEMENTS))
    assert "elements are those of the instruction table" in failed(found)
    same = {goal for goal in failed(found) if goal.endswith("of results agrees")}
    assert bool(same) != both


@pytest.mark.parametrize(
    "both", [pytest.param(each, marks=pytest.mark.slow) for each in (False, True)]
)
def test_a_row_that_ends_early_is_found(both: bool) -> None:
    sound, broken = (
        cut(VectorUnit(config), name)
        for config, name in ((FULL_ELEMENTS, "full"), (ELEMENTS, "trimmed"))
    )

    def shorter(unit: CutDesign) -> CutDesign:
        cell = "cell $ge $flatten\\finish."
        assert cell in unit.text
        return replace(unit, text=unit.text.replace(cell, cell.replace("$ge", "$gt")))

    found = prove_relation(
        vector_pipeline(FULL_ELEMENTS, shorter(sound) if both else sound),
        vector_pipeline(ELEMENTS, shorter(broken)),
        vector_unit_relation(FULL_ELEMENTS, ELEMENTS),
    )
    assert "a row is written up to its last byte" in failed(found)


def test_a_stage_too_many_is_found() -> None:
    """An operand that comes a cycle early belongs to another beat."""
    early = replace(FULL, scratchpad_bytes=64)
    with pytest.raises(ProofError, match="different beats meet in"):
        vector_pipeline(early, unit(FULL, "full"))
