"""Programs as plain words, read back by what the formats are for."""

import re
import struct

from hypothesis import given
from hypothesis import strategies as st

from hdl.yosys import run_yosys
from isa.assembly.assembler import assemble
from isa.program import FORMATS, Program

PROGRAM = assemble("start:\n    mov r1, #7   ; seven: süß\n    add r2, r1, #1\nend:\n    halt\n")


@given(st.lists(st.integers(0, (1 << 32) - 1), min_size=1, max_size=50))
def test_words_come_back(words):
    program = Program(words=tuple(words))
    binary = FORMATS["bin"](program)
    assert struct.unpack(f"<{len(words)}I", binary) == program.words
    lines = FORMATS["hex"](program).decode().splitlines()
    assert tuple(int(line, 16) for line in lines) == program.words
    assert {len(line) for line in lines} == {8}


def test_a_memory_file_is_read_by_readmemh(tmp_path):
    (tmp_path / "program.mem").write_bytes(FORMATS["mem"](PROGRAM))
    size = len(PROGRAM.words)
    (tmp_path / "rom.v").write_text(
        f"module rom(input [1:0] at, output [31:0] word);\n"
        f"  reg [31:0] words [0:{size - 1}];\n"
        f'  initial $readmemh("program.mem", words);\n'
        f"  assign word = words[at];\nendmodule\n"
    )
    evaluations = [f"eval -set at {address} -show word" for address in range(size)]
    log = run_yosys(
        ["read_verilog rom.v", "prep -top rom", "memory_map", *evaluations],
        purpose="rom",
        folder=tmp_path,
    )
    shown = re.findall(r"result: \\word = (?:\d+'([01]+)|(\d+))\.", log)
    values = tuple(int(bits, 2) if bits else int(number) for bits, number in shown)
    assert values == PROGRAM.words


def test_a_memory_file_has_labels_and_sources():
    text = FORMATS["mem"](PROGRAM).decode("ascii")
    assert text.startswith("@0\n// start:\n")
    assert f"{PROGRAM.words[2]:08x} // halt" in text
