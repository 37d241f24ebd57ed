"""Proofs of a small engine: they hold for what was kept, and fail for what is broken."""

from dataclasses import replace
from functools import cache

import pytest
from amaranth.lib import data

from pe.config import PeConfig
from pe.core import Pe
from synth.formal.cut import CutDesign, ProofError, cut
from synth.formal.front import PROBES
from synth.formal.induction import Proof, graph_of_cut, prove_relation
from synth.formal.miter import build_miter
from synth.formal.prove import engine_relation, prove
from synth.formal.relation import members

pytestmark = pytest.mark.usefixtures("shared_results")

FULL = PeConfig(
    instructions=frozenset(
        {"add", "sub", "xor", "mov.imm", "bne", "jmp", "halt", "memfence", "set.vl", "v.drain"}
        | {
            "ld.sram[16]",
            "st.sram[16]",
            "ld.reg[64]",
            "ld.reg[16]",
            "st.reg[64]",
            "v.v.add[16]",
            "v.v.min[16]",
        }
        | {"m.v.add.min[16]", "set.mr"}
    ),
    instruction_words=16,
    registers=16,
    scratchpad_bytes=256,
    arc_entries=2,
    load_store_queue=2,
    counters=False,
)
TRIMMED = replace(
    FULL,
    instructions=FULL.instructions
    - {"sub", "xor", "jmp", "ld.reg[16]", "st.reg[64]", "v.v.min[16]"},
    registers=8,
)


@cache
def engine(config: PeConfig, name: str) -> CutDesign:
    return cut(Pe(config), name, probes=PROBES)


def proof(trimmed: CutDesign) -> Proof:
    return prove_relation(engine(FULL, "full"), trimmed, engine_relation(FULL, TRIMMED))


def failed(found: Proof) -> set[str]:
    return {goal for goals, _ in found.failures for goal in goals}


# 40 seconds of a processor each. test_prove_sizes.py proves parts of such engines, and make prove
# whole ones.
@pytest.mark.slow
@pytest.mark.parametrize(
    "sizes", [{"register_width": 24, "scratchpad_bytes": 64, "address_bits": 12}, {}]
)
def test_what_is_kept_is_the_same(sizes: dict[str, int]) -> None:
    steps: list[str] = []
    full, trimmed = (replace(each, **sizes) for each in (FULL, TRIMMED))  # type: ignore[arg-type]
    found = prove(full, trimmed, lambda what, done, of: steps.append(what))
    assert found.holds, failed(found)
    assert found.goals > 100
    assert found.left_out == ()
    assert "goals" in steps
    # The second time it is known.
    assert prove(full, trimmed).seconds == 0


#: Programs that lack whole kinds of instructions, by those that they have.
KINDS = {
    "registers": {"ld.reg[64]", "st.reg[64]"},
    "loads of registers": {"ld.reg[16]"},
    "stores of registers": {"st.reg[64]"},
    "loads": {"ld.sram[16]"},
    "stores": {"st.sram[16]"},
    "loads of vectors, stores of registers": {"ld.sram[16]", "st.reg[64]"},
    "stores of vectors, loads of registers": {"st.sram[16]", "ld.reg[64]"},
    "vectors, no memory": {"set.vl", "v.v.add[16]"},
    "vectors of one length": {"v.v.add[16]", "ld.reg[64]", "st.reg[64]"},
    "neither vectors nor memory": {"bne"},
}


@pytest.mark.slow
@pytest.mark.parametrize("kinds", KINDS)
def test_what_is_kept_of_few_kinds_is_the_same(kinds: str) -> None:
    few = replace(FULL, instructions=frozenset({"add", "halt", *KINDS[kinds]}), registers=8)
    found = prove_relation(engine(FULL, "full"), engine(few, "trimmed"), engine_relation(FULL, few))
    assert found.holds, failed(found)


@pytest.mark.parametrize("kinds", ["registers", "stores"])
def test_a_cut_has_the_names_of_the_full_engine(kinds: str) -> None:
    """Whichever of its two names a register has that only drives a port; and memories that are
    never written have ports."""
    few = replace(FULL, instructions=frozenset({"add", "halt", *KINDS[kinds]}), registers=8)
    unit = engine(few, "trimmed")
    assert "load_store.request.sent" in unit.states
    assert unit.fields["load_store.request.sent.write"].parent == "load_store.request.sent"
    graph_of_cut(unit)


def test_members_without_bits_are_no_members() -> None:
    layout = data.StructLayout({"flag": 1, "none": 0, "inner": data.StructLayout({"place": 3})})
    assert members(layout) == {"flag": (0, 1, False), "inner.place": (1, 3, False)}


@pytest.mark.slow
def test_registers_of_one_width_have_no_width_to_compare() -> None:
    config = replace(FULL, instructions=FULL.instructions - {"ld.reg[16]"})
    unit = engine(config, "full")
    assert not any(name.endswith("work.width") for name in unit.fields)
    assert build_miter(unit, unit, engine_relation(config, config)).goals


@pytest.mark.slow
def test_a_needed_instruction_that_was_removed_is_found() -> None:
    without = replace(TRIMMED, instructions=TRIMMED.instructions - {"bne"})
    found = proof(engine(without, "trimmed"))
    assert "the trimmed decoder takes the instructions that were kept, no others" in failed(found)
    assert any("operands.word" in name for _, inputs in found.failures for name in inputs)


@pytest.mark.slow
def test_a_changed_unit_is_found() -> None:
    sound = engine(TRIMMED, "trimmed")
    place = sound.text.index("cell $add", sound.text.index("\\scalar."))
    broken = replace(
        sound, text=sound.text[:place] + "cell $sub" + sound.text[place + len("cell $add") :]
    )
    assert not proof(broken).holds


def test_what_is_not_proved_is_named() -> None:
    with pytest.raises(ProofError, match="has and, which the full one lacks"):
        prove(FULL, replace(FULL, instructions=FULL.instructions | {"and"}))
    with pytest.raises(ProofError, match="has 16 registers, the full one 8"):
        prove(replace(FULL, registers=8), FULL)
