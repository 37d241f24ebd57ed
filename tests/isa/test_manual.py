import re
from pathlib import Path

import numpy as np
import pytest

from isa import manual as generator
from isa.assembly.assembler import assemble
from isa.faults import FaultCause
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.launch import START_REGISTERS
from isa.manual import MANUAL_PATH, manual
from isa.manual_text import FIRST
from isa.table import INSTRUCTIONS, Instruction, Origin, Width


@pytest.fixture(scope="module")
def text() -> str:
    return manual()


def _rows(text: str) -> list[list[str]]:
    """Cells of the rows of all tables."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_the_file_is_up_to_date(text: str) -> None:
    assert MANUAL_PATH.read_text() == text, "run python -m isa.manual"


def test_it_writes_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(generator, "MANUAL_PATH", tmp_path / "isa.md")
    generator.main()
    assert (tmp_path / "isa.md").read_text() == text


@pytest.mark.parametrize("row", INSTRUCTIONS, ids=lambda row: row.key)
def test_every_instruction_has_a_row_with_its_encoding(row: Instruction, text: str) -> None:
    """The bits shown are read back and compared with those of the table."""
    found = []
    for cells in _rows(text):
        word = cells[-1].strip("`").replace(" ", "")
        if len(word) != 32 or cells[0].strip("`").split()[0] != row.mnemonic.removesuffix(".imm"):
            continue
        width = row.width if row.width is not None else Width.W8
        bits = word.replace("ww", f"{width:02b}")
        mask = int("".join("1" if bit in "01" else "0" for bit in bits), 2)
        match = int("".join(bit if bit in "01" else "0" for bit in bits), 2)
        if (mask, match) == (row.mask, row.match):
            found.append(cells)
    assert len(found) == 1
    assert row.semantics in found[0][2].replace("\\|", "|")
    assert row.summary in found[0][1]
    assert ("Not in the thesis" in found[0][1]) == (row.origin is Origin.OURS)
    assert ("Optional" in found[0][1]) == row.optional


def test_it_begins_with_a_program_and_every_mnemonic(text: str) -> None:
    opening = text.partition("\n## State\n")[0]
    assert f"```text\n{FIRST}```" in opening
    listed = [cells[0].strip("`").removesuffix("*") for cells in _rows(opening)[2:]]
    assert len(listed) == len(set(listed)) < 32
    for row in INSTRUCTIONS:
        mnemonic = row.mnemonic.removesuffix(".imm")
        assert mnemonic in listed or mnemonic[:4] in listed, mnemonic


def test_its_assembly_assembles(text: str) -> None:
    (example,) = (
        block for block in re.findall(r"```text\n(.*?)```", text, re.DOTALL) if ".equ" in block
    )
    assert len(assemble(example).words) > 6


def test_start_registers_and_faults_are_listed(text: str) -> None:
    rows = _rows(text)
    for number, name in START_REGISTERS.items():
        assert any(cells[:2] == [f"`r{number}`", f"`{name}`"] for cells in rows)
    for cause in FaultCause:
        assert any(cells[:2] == [str(cause.value), f"`{cause.name}`"] for cells in rows)


def test_additions_are_listed_at_the_end(text: str) -> None:
    section = text.partition("## Additions to the thesis")[2]
    for row in INSTRUCTIONS:
        listed = re.search(rf"`{re.escape(row.mnemonic)}[ `]", section) is not None
        assert listed == (row.origin is Origin.OURS), row.key


def test_reductions_of_matrices_are_in_one_table(text: str) -> None:
    rows = {cells[0]: cells[1:] for cells in _rows(text)}
    assert rows["element-wise"] == ["reduced by add", "reduced by min", "reduced by max"]
    assert rows["`mul`"] == ["`m.v.mul.add`", "`m.v.mul.min`", "`m.v.mul.max`"]
    assert rows["`dot`"] == ["`m.v.dot.add`", "", ""]


def test_a_wider_sum_is_shifted_before_it_saturates() -> None:
    """The recipe of the manual: a sum beyond its 16 bits, by a vector of ones and FX = 4."""
    source = (
        "mov r10, #8\nset.vl r10\nmov r11, #4\nset.fx r11\nmov r21, #16\nmov r22, #32\n"
        "m.v.mul.add [16-bit] r22, r20, r21\nhalt"
    )
    data = np.array([30_000] * 8 + [1] * 8, "<i2").tobytes()
    with DramImage(4096) as memory:
        simulator = Simulator(assemble(source), memory, scratchpad=data.ljust(4096, b"\0"))
        assert simulator.run().state == "halted"
    (total,) = simulator.scratchpad[32:34].view("<i2")
    assert total == 8 * 30_000 >> 4
