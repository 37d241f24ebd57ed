"""Trimming: from a program and a configuration to a smaller configuration."""

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hdl.config import PeConfig
from isa.assembler import assemble
from isa.program import Program
from isa.table import BY_KEY, INSTRUCTIONS, Unit
from kernels.bp_kernel import bp_program
from soc.presets import preset
from synth.errors import TrimError
from synth.trim import report, trim

FULL = PeConfig()
#: What trimming may change; all else would change cycles or needs knowledge of the data.
CHANGES = {"instructions", "registers", "instruction_words"}


def test_bp_kernel_loses_what_it_does_not_use() -> None:
    trimmed = trim(bp_program(16), preset("pe"))
    rows = [BY_KEY[key] for key in trimmed.instructions]
    assert not any(row.vertical is not None and row.vertical.name == "MUL" for row in rows)
    assert {
        row.width.bits for row in rows if row.unit is Unit.VECTOR and row.width is not None
    } == {16}
    assert {"sll", "srl", "sra", "and", "or", "xor"}.isdisjoint(trimmed.instructions)
    # The barrier stores and loads flags of 64 bits; no other register leaves the engine.
    assert {"st.reg[8]", "st.reg[16]", "st.reg[32]"}.isdisjoint(trimmed.instructions)
    assert trimmed.instruction_words == 512


@given(st.lists(st.sampled_from([row for row in INSTRUCTIONS if not row.optional]), min_size=1))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_only_instructions_and_sizes_change(rows: list) -> None:
    # Without operands no branch leaves its word, so all words up to a jump or halt are reached.
    program = Program(tuple(row.match for row in rows))
    trimmed = trim(program, FULL)
    for field in fields(PeConfig):
        if field.name not in CHANGES:
            assert getattr(trimmed, field.name) == getattr(FULL, field.name)
    assert rows[0].key in trimmed.instructions
    assert trimmed.instructions <= {row.key for row in rows} | {"halt"}
    assert trimmed.registers == 8
    assert len(program.words) <= trimmed.instruction_words <= max(16, 2 * len(program.words))
    assert trim(program, trimmed) == trimmed


@pytest.mark.parametrize(("register", "registers"), [(6, 8), (7, 8), (8, 16), (31, 32), (32, 64)])
def test_registers_grow_with_the_highest(register: int, registers: int) -> None:
    trimmed = trim(assemble(f"mov.imm r{register}, #1\nhalt\n"), FULL)
    assert trimmed.registers == registers


@pytest.mark.parametrize(("words", "size"), [(1, 16), (16, 16), (17, 32), (1024, 1024)])
def test_instruction_buffer_holds_the_program(words: int, size: int) -> None:
    program = assemble("mov r6, r7\n" * (words - 1) + "halt\n")
    assert trim(program, FULL).instruction_words == size


def test_halt_stays() -> None:
    assert trim(assemble("top: jmp top\n"), FULL).instructions == {"jmp", "halt"}


@pytest.mark.parametrize(
    ("text", "config", "message"),
    [
        ("add r6, r6, r6\nhalt\n", {"instructions": frozenset({"halt"})}, "has no add"),
        ("mov r6, r40\nhalt\n", {"registers": 32}, "uses r40, the configuration ends at r31"),
        ("mov r6, r7\n" * 20, {"instruction_words": 16}, "20 words, the instruction buffer 16"),
    ],
)
def test_program_must_run_on_the_configuration(text: str, config: dict, message: str) -> None:
    with pytest.raises(TrimError, match=message):
        trim(assemble(text), replace(FULL, **config))


def test_report_names_what_went_and_why_the_rest_stays() -> None:
    result = report(assemble("add r6, r7, r8\nadd r6, r6, r6\nloop: jmp loop\n"), FULL)
    assert result.trimmed == trim(
        assemble("add r6, r7, r8\nadd r6, r6, r6\nloop: jmp loop\n"), FULL
    )
    assert result.kept[Unit.SCALAR] == ("add", "jmp")
    assert "sub" in result.removed[Unit.SCALAR]
    assert not result.kept[Unit.VECTOR]
    assert set(result.removed[Unit.LOAD_STORE]) == {
        row.key for row in FULL.rows_of(Unit.LOAD_STORE)
    }
    assert result.why("add") == "add is needed by 2 words, the first at 0"
    assert "without it" in result.why("halt")
    assert "gone" in result.why("sub")
    with pytest.raises(TrimError, match="no instruction 'fly'"):
        result.why("fly")
    data = result.to_json()
    assert data["registers"] == [64, 16]
    assert data["instruction_words"] == [1024, 16]
    assert data["removed"]["scalar"] == list(result.removed[Unit.SCALAR])
