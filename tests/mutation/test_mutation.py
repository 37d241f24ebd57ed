"""Mutants of a small design: one netlist, an index in it, and bad inputs."""

import pytest

from support.errors import VipError
from tests.forked import forked
from tests.mutation import netlist as mutants
from tests.mutation.netlist import MutantError, netlist

ADDER = """module adder(a, b, clk, sum);
  input [3:0] a;
  input [3:0] b;
  input clk;
  output reg [4:0] sum;
  always @(posedge clk) sum <= a + b;
endmodule
"""


def test_all_mutants_are_in_one_netlist() -> None:
    made = netlist("adder", ADDER, (), count=8, seed=3)
    assert [mutant.index for mutant in made.mutants] == list(range(1, 9))
    assert len({mutant.name for mutant in made.mutants}) == 8
    assert all(f"vip_mutant == 16'h{index:04x}" in made.verilog for index in range(1, 9))
    assert "module adder(a, b, clk, sum);" in made.verilog
    assert not any("CLK" in mutant.name for mutant in made.mutants)
    again = netlist("adder", ADDER, (), count=8, seed=3)
    assert again == made
    assert netlist("adder", ADDER, (), count=8, seed=4).mutants != made.mutants


def test_a_module_that_does_not_exist_is_refused() -> None:
    with pytest.raises(MutantError, match=r"^adder has no module multiplier$"):
        netlist("adder", ADDER, ("multiplier",), count=8, seed=3)


def test_a_yosys_without_mutate_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise mutants.YosysError("x: Yosys failed in 'mutate': No such command: mutate")

    monkeypatch.setattr(mutants, "run_yosys", refuse)
    with pytest.raises(VipError, match=r"^this Yosys has no command mutate; pyosys has one$"):
        netlist("adder", ADDER, (), count=8, seed=3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["motor"], "vip: no unit 'motor'; there are engine, "),
        (["--index", "3"], "vip: an index needs the name of one unit\n"),
        (["engine", "--record"], "vip: only all mutants of all units are recorded\n"),
    ],
)
def test_bad_inputs_are_one_line(words: list[str], message: str) -> None:
    done = forked(["python", "-m", "tests.mutation", *words], seconds=60, columns=200)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1
