"""Emission: equal components are written once, others apart, and the Verilog does what they do."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hdl.elaborated import elaborated
from hdl.emission import emit, shared_instance
from hdl.parameters import component_parameters
from hdl.sram import Sram
from hdl.verilog import tidy
from hdl.yosys import run_yosys


@pytest.fixture(autouse=True)
def nothing_elaborated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elaborated, "modules", {})


@dataclass(frozen=True)
class Settings:
    step: int
    names: frozenset[str] = frozenset({"a", "b", "c"})


class StepCounter(wiring.Component):
    """Counts in steps. A second sentence."""

    elaborations = 0

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        super().__init__({"run": In(1), "value": Out(8)})

    def elaborate(self, platform: object) -> Elaboratable:
        StepCounter.elaborations += 1
        m = Module()
        with m.If(self.run):
            m.d.sync += self.value.eq(self.value + self.settings.step)
        return m


class FurtherCounter(StepCounter):
    """Its constructor is inherited."""


class Inverter(wiring.Component):
    """No clock."""

    def __init__(self) -> None:
        super().__init__({"value": In(8), "result": Out(8)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.d.comb += self.result.eq(~self.value)
        return m


class Wires(wiring.Component):
    """No logic at all."""

    def __init__(self) -> None:
        super().__init__({"value": In(8), "result": Out(8)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        m.d.comb += self.result.eq(self.value)
        return m


class Bank(wiring.Component):
    """Counters side by side, xored."""

    def __init__(self, steps: tuple[int, ...]) -> None:
        self.steps = steps
        super().__init__({"run": In(1), "value": Out(8)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        value = self.value
        total: object = 0
        for number, step in enumerate(self.steps):
            counter = StepCounter(Settings(step))
            inverter = Inverter()
            wires = Wires()
            m.submodules[f"counter_{number}"] = shared_instance(counter, platform)
            m.submodules[f"inverter_{number}"] = shared_instance(inverter, platform)
            m.submodules[f"wires_{number}"] = shared_instance(wires, platform)
            m.d.comb += [
                counter.run.eq(self.run),
                inverter.value.eq(counter.value),
                wires.value.eq(inverter.result),
            ]
            total = total ^ wires.result
        m.d.comb += value.eq(total)
        return m


def test_a_constructor_may_be_inherited() -> None:
    # Python 3.11.2 gave that of Amaranth's `__new__`, which takes anything.
    settings = Settings(step=3)
    assert component_parameters(FurtherCounter(settings)) == {"settings": settings}


def test_equal_components_are_elaborated_and_written_once() -> None:
    StepCounter.elaborations = 0
    emission = emit(Bank((3,) * 128), "bank")
    assert StepCounter.elaborations == 1
    assert list(emission.modules) == ["step_counter", "inverter", "wires", "bank"]
    assert emission.top == "bank"
    assert emission.black_boxes == ()
    assert emission.instances["bank"] == {"inverter": 128, "step_counter": 128, "wires": 128}
    assert len(re.findall(r"^  step_counter counter_\d+ \(", emission.modules["bank"], re.M)) == 128


def test_a_second_design_elaborates_only_what_differs() -> None:
    first = emit(Bank((1, 2)), "bank")
    StepCounter.elaborations = 0
    assert emit(Bank((1, 2)), "bank") == first
    assert StepCounter.elaborations == 0
    shared = emit(Bank((2, 1, 4)), "bank")
    assert StepCounter.elaborations == 1
    elaborated.modules.clear()
    assert emit(Bank((2, 1, 4)), "bank") == shared
    assert StepCounter.elaborations == 4


def test_what_was_elaborated_is_forgotten_between_designs(monkeypatch: pytest.MonkeyPatch) -> None:
    first = emit(Bank((1, 2)), "bank")
    assert len(elaborated.modules) == 5
    monkeypatch.setattr("hdl.elaborated._KEPT_BYTES", 0)
    assert emit(Bank((3, 3)), "bank").modules.keys() == {
        "step_counter",
        "inverter",
        "wires",
        "bank",
    }
    assert len(elaborated.modules) == 4
    assert emit(Bank((1, 2)), "bank") == first


def test_configurations_get_names_that_do_not_depend_on_order() -> None:
    forward = emit(Bank((1, 2, 3)), "bank")
    backward = emit(Bank((3, 1, 2)), "bank")
    counters = {name for name in forward.modules if name.startswith("step_counter_")}
    assert len(counters) == 3
    for name in counters:
        assert forward.modules[name] == backward.modules[name]


def test_names_stay_when_a_source_file_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    before = emit(Bank((1, 2, 3)), "bank")
    for kind in (StepCounter, Bank):
        monkeypatch.setattr(kind, "__module__", "somewhere.else_")
    after = emit(Bank((1, 2, 3)), "bank")
    assert list(after.modules) == list(before.modules)
    assert after.classes["bank"].startswith("somewhere.else_")


def test_module_that_is_called_like_the_top_gets_another_name() -> None:
    emission = emit(Bank((1,)), "inverter")
    assert list(emission.modules)[-1] == "inverter"
    assert len(emission.modules) == 4


def test_clock_and_reset_only_where_used() -> None:
    modules = emit(Bank((1,)), "bank").modules
    assert "clk" not in modules["inverter"]
    assert "input clk" in modules["step_counter"]
    assert "input rst" in modules["step_counter"]
    assert "input clk" in modules["bank"]
    memory = emit(Sram(width=4, depth=4, read_ports=1, write_ports=1, kind="behavioural"), "sram")
    assert "input clk" in memory.modules["sram"]
    assert "rst" not in memory.modules["sram"]


def test_header_says_what_and_how_configured() -> None:
    head = emit(Bank((7,)), "bank").modules["step_counter"].split("module")[0]
    assert head.startswith("// step_counter: Counts in steps.\n")
    assert "second" not in head
    assert "StepCounter" in head
    assert "settings.step = 7" in head
    assert "settings.names = 3 items" in head


def test_text_has_no_trace_of_tools_or_source_places() -> None:
    emission = emit(Bank((1, 2)), "bank")
    for text in emission.modules.values():
        assert "Yosys" not in text
        assert ".py:" not in text
        assert "verilog_backend" not in text
        assert "(*" not in text


def test_memory_is_cleared_by_a_loop() -> None:
    sram = Sram(width=8, depth=512, read_ports=1, write_ports=1, kind="behavioural")
    text = emit(sram, "sram").modules["sram"]
    assert "words[words_word] = 8'h00;" in text
    assert len(text.splitlines()) < 80


@pytest.mark.parametrize(("depth", "loops"), [(2048, 1), (4096, 0)])
def test_large_memory_is_not_cleared(depth: int, loops: int) -> None:
    sram = Sram(width=8, depth=depth, read_ports=1, write_ports=1, kind="behavioural")
    text = emit(sram, "sram").modules["sram"]
    assert text.count("words[words_word] = 8'h00;") == loops
    assert len(text.splitlines()) < 80


@pytest.mark.parametrize("steps", [(5,), (1, 2, 1)])
def test_verilog_equals_the_design(steps: tuple[int, ...], tmp_path: Path) -> None:
    """For eight cycles from reset and any input, against Amaranth's own back end."""
    design = tmp_path / "design.v"
    design.write_text("\n".join(emit(Bank(steps), "bank").modules.values()))
    flat = tmp_path / "flat.il"
    flat.write_text(rtlil.convert(Bank(steps), "original", emit_src=False))
    log = run_yosys(
        [
            f"read_verilog {design}",
            "hierarchy -check -top bank",
            "proc",
            "flatten",
            f"read_rtlil {flat}",
            "proc",
            "flatten original",
            "miter -equiv -make_outputs -flatten bank original miter",
            "sat -verify -prove trigger 0 -prove-skip 1 -set-at 1 in_rst 1 -seq 9 miter",
        ],
        purpose="equivalence",
    )
    assert "SAT proof finished - no model found: SUCCESS!" in log


def test_constant_part_of_a_signal_is_assigned() -> None:
    """An ``always @*`` that reads nothing is never executed."""

    class PartlyConstant(wiring.Component):
        def __init__(self) -> None:
            super().__init__({"high": In(1), "value": Out(8)})

        def elaborate(self, platform: object) -> Elaboratable:
            m = Module()
            m.d.comb += self.value[4:].eq(0b0101)
            with m.If(self.high):
                m.d.comb += self.value[:4].eq(0b1010)
            return m

    text = emit(PartlyConstant(), "part").modules["part"]
    # In SystemVerilog a value in the declaration is no change, and would evaluate none.
    assert text.count("  reg at_start;\n  initial at_start <= 0;\n") == 1
    blocks = re.findall(r"always @\*(.*?)(?=  always|  assign|endmodule)", text, re.DOTALL)
    assert any("value[7:4] = 4'h5;" in block for block in blocks)
    for block in blocks:
        assert "if (at_start) begin end" in block


def test_same_text_in_every_run() -> None:
    assert emit(Bank((1, 2)), "bank") == emit(Bank((1, 2)), "bank")


def test_outside_emission_nothing_changes() -> None:
    inverter = Inverter()
    assert shared_instance(inverter, None) is inverter
    assert shared_instance(inverter, object()) is inverter


def test_parts_that_are_not_shared_stay_with_their_owner() -> None:
    class Owner(wiring.Component):
        def __init__(self) -> None:
            super().__init__({"o": Out(8)})

        def elaborate(self, platform: object) -> Elaboratable:
            m = Module()
            m.submodules.part = part = Module()
            count = Signal(8)
            part.d.sync += count.eq(count + 3)
            m.d.comb += self.o.eq(count)
            return m

    emission = emit(Owner(), "owner")
    assert list(emission.modules) == ["owner"]
    assert re.findall(r"^module (\w+)", emission.modules["owner"], re.M) == [
        "owner__part",
        "owner",
    ]


class Widened(wiring.Component):
    """Adds numbers of which one may have no bits."""

    def __init__(self, *, bits: int) -> None:
        self.bits = bits
        super().__init__({"a": In(bits), "b": In(3), "copy": Out(bits), "total": Out(4)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        held = Signal(self.bits)
        m.d.sync += held.eq(self.a)
        with m.If(self.b[0]):
            m.d.comb += self.copy.eq(held)
        m.d.comb += self.total.eq(self.b + self.a)
        return m


class WidenedUser(wiring.Component):
    """Uses it with and without bits."""

    def __init__(self) -> None:
        super().__init__({"b": In(3), "total": Out(5)})

    def elaborate(self, platform: object) -> Elaboratable:
        m = Module()
        none, some = Widened(bits=0), Widened(bits=2)
        m.submodules.none = shared_instance(none, platform)
        m.submodules.some = shared_instance(some, platform)
        m.d.comb += [
            none.b.eq(self.b),
            some.b.eq(self.b),
            some.a.eq(none.copy + 3),
            self.total.eq(none.total + some.total + some.copy),
        ]
        return m


def test_signals_without_bits_are_left_out(tmp_path: Path) -> None:
    emission = emit(WidenedUser(), "user")
    text = "".join(emission.modules.values())
    assert "-1:0]" not in text
    source = tmp_path / "user.v"
    source.write_text(text)
    commands = [f"read_verilog {source}", "hierarchy -check -top user", "proc", "check -assert"]
    assert "Found and reported 0 problems" in run_yosys(commands, purpose="reading")


def test_a_name_that_is_left_out_takes_its_attributes_along() -> None:
    start = "module m(a);\n  input a;\n  wire a;\n"
    spare = '  (* init = 2\'h0 *)\n  (* enum_value_01 = "RUNNING" *)\n  wire [1:0] \\state$7 ;\n'
    kept = "  (* keep = 1 *)\n  wire \\b$2 ;\n"
    uses = "  assign \\state$7  = { a, a };\n  assign \\b$2  = ~a;\n  assign \\c  = \\b$2 ;\n"
    text = tidy(start + spare + kept + uses + "endmodule\n")
    assert text == start + kept + "".join(uses.splitlines(keepends=True)[1:]) + "endmodule\n"


def test_two_clocks_come_in_one_order_whatever_the_hash_seed() -> None:
    script = (
        "import hashlib\n"
        "from hdl.emission import emit\n"
        "from memory.crossing import MemoryCrossing\n"
        "part = MemoryCrossing(address_bits=20, tag_bits=6, request_depth=4, response_depth=4)\n"
        "print(hashlib.sha256(''.join(emit(part, 'part').modules.values()).encode()).hexdigest())\n"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in range(4)
    }
    assert len(found) == 1
