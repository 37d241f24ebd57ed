"""Every name of a register, port or wire that proofs quote is one of the hardware's."""

from dataclasses import replace

import pytest

from isa.table import INSTRUCTIONS
from pe.config import STANDARD_INSTRUCTIONS, PeConfig
from pe.core import Pe
from pe.vector.unit import VectorUnit
from synth.formal.cut import CutDesign, cut
from synth.formal.front import PROBES
from synth.formal.pipeline import MADE
from synth.formal.prove import engine_relation
from synth.formal.relation import Relation
from synth.formal.sizes import SIZED_UNITS
from synth.formal.vector_unit import PRODUCTS, vector_unit_relation
from tests.synth.relation_names import unknown_names

#: Narrow registers, too, so that every check is built; small, as sizes have no names.
CONFIG = PeConfig(
    instructions=STANDARD_INSTRUCTIONS | {row.key for row in INSTRUCTIONS if row.special},
    register_width=40,
    registers=8,
    scratchpad_bytes=64,
    arc_entries=2,
    load_store_queue=2,
    instruction_words=16,
)


@pytest.fixture(scope="module")
def engine() -> CutDesign:
    return cut(Pe(CONFIG), "full", probes=PROBES)


def test_engine(engine: CutDesign) -> None:
    assert set(engine.probes) == set(PROBES)
    assert unknown_names(engine, engine_relation(CONFIG, CONFIG)) == []


def test_vector_unit() -> None:
    unit = cut(VectorUnit(CONFIG), "full")
    # A proof takes the unit apart at these registers, so that each has two ports.
    made = {MADE + name: unit.states[name].width for name in PRODUCTS}
    parted = replace(unit, outputs={**unit.outputs, **made})
    assert unknown_names(parted, vector_unit_relation(CONFIG, CONFIG)) == []


@pytest.mark.parametrize("name", SIZED_UNITS)
def test_units_with_sizes(name: str) -> None:
    unit, relation, _ = SIZED_UNITS[name]
    assert unknown_names(cut(unit(CONFIG), "full"), relation((CONFIG, CONFIG))) == []


def test_a_name_that_is_gone_is_found(engine: CutDesign) -> None:
    relation = engine_relation(CONFIG, CONFIG)
    relation.gates.append((r"issue\.later\..*", lambda v: v["issue.held_no_more"]))
    relation.ignored.append("dispatch.gone")
    assert unknown_names(engine, relation) == [
        r"issue\.later\..*",
        "dispatch.gone",
        "issue.held_no_more",
    ]
    assert unknown_names(engine, replace(Relation(), truncated=[r"a|arc\.late_arrived"])) == []
