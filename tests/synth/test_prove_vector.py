"""Proofs of the vector unit: what is kept has the results of the full unit, what is broken not."""

from dataclasses import replace
from functools import cache

import pytest

from pe.config import PeConfig
from pe.vector.unit import VectorUnit
from synth.formal.cut import Cut, cut
from synth.formal.induction import Proof, prove_relation
from synth.formal.prove import ProofError
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


@cache
def unit(config: PeConfig, name: str) -> Cut:
    return cut(VectorUnit(config), name)


def proof(trimmed: Cut, config: PeConfig) -> Proof:
    """Of ``trimmed``, which is held to be that of ``config``."""
    return prove_relation(
        vector_pipeline(FULL, unit(FULL, "full")),
        vector_pipeline(config, trimmed),
        vector_unit_relation(FULL, config),
    )


def failed(found: Proof) -> set[str]:
    return {goal for failure in found.failures for goal in failure.goals}


@pytest.mark.parametrize("config", [SUMS, PRODUCTS])
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
        (PRODUCTS, "vertical.", "$mul", "$add", "output made:vertical.partial"),
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


def test_a_stage_too_many_is_found() -> None:
    """An operand that comes a cycle early belongs to another beat."""
    early = replace(FULL, scratchpad_bytes=64)
    with pytest.raises(ProofError, match="meet different beats"):
        vector_pipeline(early, unit(FULL, "full"))
