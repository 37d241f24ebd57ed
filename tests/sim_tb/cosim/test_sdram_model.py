"""The model of an SDRAM: it keeps what is written, and names each rule that is broken."""

import subprocess
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from sim_tb.cosim.board import BoardSimulation
from sim_tb.cosim.engine import CosimError
from soc.host.transport import HostError

MODELS = Path(__file__).resolve().parents[3] / "sim_tb" / "models"
#: Commands come with a clock of 10 ns: wait in cycles, name, bank, row or column, data, whether
#: these are driven, and their mask.
MAIN = """
#include "sdram.h"
int main() {
  Sdram sdram;
  int64_t now = 0;
  const auto clock = [&](SdramPins pins, bool given) {
    for (bool level : {true, false}) {
      pins.clk = level;
      if (given && level) std::printf("%x ", sdram.shown(now + 5000));
      sdram.see(now += 5000, pins);
    }
  };
  int wait, command, bank, row, data, drives, mask;
  while (std::scanf("%d%d%d%d%d%d%d", &wait, &command, &bank, &row, &data, &drives, &mask) > 0) {
    SdramPins idle{};
    idle.cke = idle.ras_n = idle.cas_n = idle.we_n = true;
    while (wait--) clock(idle, false);
    SdramPins pins{false, true, false, !(command & 4), !(command & 2), !(command & 1),
                   unsigned(mask), unsigned(bank), unsigned(row), unsigned(data),
                   drives ? 0xffffu : 0};
    clock(pins, command == 0 && !drives);
  }
  std::printf("%s", sdram.broken().c_str());
}
"""
NOP, WRITE, READ, ACTIVATE, PRECHARGE, REFRESH, MODE = 0, 3, 2, 4, 5, 6, 7
ALL = 1 << 10
START = [
    (20001, PRECHARGE, 0, ALL),
    (2, REFRESH),
    (7, REFRESH),
    (7, MODE, 0, 0x21),
    (2, ACTIVATE, 1, 5),
]
#: A burst of two words is written, its second without the low byte, and read; then the next row.
GOOD = [
    *START,
    (2, WRITE, 1, 4, 0x1234, 1),
    (0, NOP, 0, 0, 0x5678, 1),
    (0, WRITE, 1, 4, 0x1111, 1),
    (0, NOP, 0, 0, 0x9ABC, 1, 1),
    (0, READ, 1, 4),
    (1, NOP),
    (0, NOP),
    (0, PRECHARGE, 1, 0),
    (2, ACTIVATE, 1, 6),
    (3, ACTIVATE, 2, 6),
    (2, PRECHARGE, 1, 0),
    (4, PRECHARGE, 2, 0),
    (1, REFRESH),
]


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    """Gives commands to the model: the words that are read, and the rule that is broken."""
    folder = tmp_path_factory.mktemp("sdram")
    (folder / "main.cpp").write_text(MAIN)
    compiled = ["c++", "-std=c++20", f"-I{MODELS}", "main.cpp", "-o", "main"]
    subprocess.run(compiled, cwd=folder, check=True)

    def commands(rows):
        text = "\n".join(" ".join(map(str, (*row, *[0] * (7 - len(row))))) for row in rows)
        ended = subprocess.run([folder / "main"], input=text.encode(), capture_output=True)
        *words, rule = ended.stdout.decode().split(" ", maxsplit=rows.count((0, NOP)) + 1)
        return [int(word, 16) for word in words], rule.partition(",")[0]

    return commands


def test_it_keeps_what_is_written(play):
    assert play(GOOD) == ([0x1111, 0x9A78], "")


@pytest.mark.parametrize(
    ("place", "row", "rule"),
    [
        (0, (19000, PRECHARGE, 0, ALL), "a command before 200 us have passed"),
        (1, (0, REFRESH), "tRP before a REFRESH"),
        (2, (5, REFRESH), "tRFC"),
        (3, (5, MODE, 0, 0x21), "tRFC before a mode"),
        (3, (7, MODE, 0, 0x41), "a mode that it does not have"),
        (4, (0, ACTIVATE, 1, 5), "tMRD"),
        (5, (0, WRITE, 1, 4, 0x1234, 1), "tRCD"),
        (5, (2, WRITE, 0, 4, 0x1234, 1), "an access to a bank that is closed"),
        (5, (2, ACTIVATE, 1, 4), "an ACTIVATE of a bank that is open"),
        (5, (2, REFRESH), "a REFRESH with a bank that is open"),
        (6, (0, NOP), "data of a WRITE that nobody drives"),
        (9, (0, PRECHARGE, 1, 0), "tWR"),
        (11, (0, NOP, 0, 0, 0x1234, 1), "both sides drive the data"),
        (11, (0, WRITE, 1, 4, 0x1234, 1), "a WRITE while data are read"),
        (13, (0, ACTIVATE, 1, 6), "tRP before an ACTIVATE"),
        (14, (0, ACTIVATE, 2, 6), "tRRD"),
        (15, (0, PRECHARGE, 2, 0), "tRAS"),
        (15, (13000, PRECHARGE, 1, 0), "a refresh is late"),
    ],
)
def test_it_names_the_rule_that_is_broken(play, place, row, rule):
    rows = [*GOOD]
    rows[place] = row
    assert play(rows)[1] == rule


def test_a_rule_that_is_broken_ends_the_simulation():
    board = BoardSimulation.__new__(BoardSimulation)
    board._stack = ExitStack()
    board._process = SimpleNamespace(stdout=BytesIO(b"tRC, after 9 ns\n"), wait=lambda **_: 1)
    with pytest.raises(
        CosimError, match=r"^the SDRAM was used against its rules: tRC, after 9 ns$"
    ):
        board.__exit__(HostError, HostError("the line broke"), None)
