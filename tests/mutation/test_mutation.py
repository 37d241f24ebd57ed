"""Mutants of a small design: one netlist, an index in it, and bad inputs."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from support.errors import VipError
from tests.forked import forked
from tests.mutation import netlist as mutants
from tests.mutation.__main__ import EQUIVALENT
from tests.mutation.netlist import MutantError, netlist
from tests.mutation.order import Likely
from tests.mutation.proof import equal_everywhere
from tests.mutation.sources import source_mutants
from tests.mutation.units import UNITS

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
    ],
)
def test_bad_inputs_are_one_line(words: list[str], message: str) -> None:
    done = forked(["python", "-m", "tests.mutation", *words], seconds=60, columns=200)
    assert done.returncode == 2
    assert done.stderr.startswith(message)
    assert done.stderr.count("\n") == 1


COMPONENT = """class Half(Component):
    def __init__(self):
        self.depth = 3 + 1

    def elaborate(self, platform):
        m: Module | None = Module()
        with m.If(self.a & ~self.b):
            m.d.sync += self.sum.eq(Mux(self.a == 1, self.b, self.c))
        m.d.comb += [self.carry.eq(self.a < 2)]
        return m
"""


def test_sources_are_changed_where_they_describe_hardware(tmp_path: Path) -> None:
    for room in ("hdl", "pe"):
        (tmp_path / room).mkdir()
    (tmp_path / "hdl" / "half.py").write_text(COMPONENT)
    (tmp_path / "pe" / "plain.py").write_text("LIMIT = 3 + 1\n")
    made = source_mutants(tmp_path, count=8, seed=1)
    assert {mutant.path for mutant in made} == {"hdl/half.py"}
    assert {f"{mutant.before} -> {mutant.after}" for mutant in made} == {
        "self.a & ~self.b -> (self.a & ~self.b) == 0",
        "self.a & ~self.b -> (self.a | (~self.b))",
        "~self.b -> (self.b)",
        "self.sum.eq(Mux(self.a == 1, self.b, self.c)) -> []",
        "Mux(self.a == 1, self.b, self.c) -> Mux(self.a == 1, self.c, self.b)",
        "self.a == 1 -> (self.a != 1)",
        "self.carry.eq(self.a < 2) -> []",
        "self.a < 2 -> (self.a <= 2)",
    }
    for mutant in made:
        assert mutant.text.count("\n") == COMPONENT.count("\n")
        assert compile(mutant.text, mutant.path, "exec")


def test_equivalent_mutants_are_of_units_and_have_reasons() -> None:
    for unit, reasons in json.loads(EQUIVALENT.read_text()).items():
        assert unit in {*UNITS, "sources"}
        assert all(len(reason.split()) > 3 for reason in reasons.values())


def test_a_change_that_no_state_shows_is_proved_to_be_none() -> None:
    # Yosys makes a memory of so many cases.
    codes = " ".join(f"{number}: code = {number * 7 % 16};" for number in range(16))
    text = f"""module masked(a, b, clk, q);
  input [3:0] a, b;
  input clk;
  output reg [3:0] q;
  wire [3:0] both = a & b;
  wire [3:0] either = both | a;
  reg [3:0] code;
  always @* case (b) {codes} endcase
  always @(posedge clk) q <= either ^ code;
endmodule
"""
    made = netlist("masked", text, (), count=60, seed=1)
    proved = equal_everywhere(made, made.mutants)
    silent = {mutant.name for mutant in made.mutants if " and " in mutant.name}
    harmful = {mutant.name for mutant in made.mutants if "or Y" in mutant.name}
    # a & b | a is a, whatever a zero does to the first part.
    assert {name for name in silent if "const0" in name} <= proved
    assert harmful
    assert not harmful & proved


def test_likely_and_short_tests_come_first(tmp_path: Path) -> None:
    times = tmp_path / "times.json"
    times.write_text(json.dumps({"tests/pe/test_a.py::long": 90, "tests/pe/test_b.py::one": 4}))
    likely = Likely(times, {"tests/pe/test_a.py": 0.5, "tests/pe/": 0.1})
    fixture = SimpleNamespace(scope="module")
    names = [
        *("test_a.py::long", "test_b.py::one", "test_b.py::two", "test_a.py::short"),
        *("test_c.py::other", "test_c.py::another"),
    ]
    items = [
        SimpleNamespace(
            nodeid=f"tests/pe/{name}",
            _fixtureinfo=SimpleNamespace(
                name2fixturedefs={"design": [fixture]} if "test_b" in name else {}
            ),
        )
        for name in names
    ]
    likely.pytest_collection_modifyitems(items)  # type: ignore[arg-type]
    assert [item.nodeid.removeprefix("tests/pe/") for item in items] == [
        *("test_a.py::short", "test_c.py::other", "test_c.py::another"),
        *("test_b.py::one", "test_b.py::two", "test_a.py::long"),
    ]
