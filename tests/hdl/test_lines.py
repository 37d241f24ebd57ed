"""Signals that tell which lines of the sources were executed."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib.wiring import In, Out

from hdl.component import Component
from hdl.elaborated import elaborated
from hdl.emission import emit
from hdl.lines import constant_lines, cover, marked_lines, marks_only
from support.coverage import VARIABLE
from tests.conftest import Simulate


class Chooser(Component):
    """Adds or subtracts one."""

    def __init__(self) -> None:
        super().__init__({"up": In(1), "value": In(8), "result": Out(8)})

    def elaborate(self, platform: object) -> Module:
        m = Module()
        with m.If(self.up):
            m.d.comb += self.result.eq(self.value + 1)
        with m.Else():
            m.d.comb += self.result.eq(self.value - 1)
        cover(m, "up at the end", self.up & (self.value == 255))
        return m


@pytest.fixture(autouse=True)
def nothing_elaborated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elaborated, "modules", {})


def emitted() -> str:
    return emit(Chooser(), "chooser").modules["chooser"]


def test_lines_under_a_condition_have_signals(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    text = emitted()
    lines, first = inspect.getsourcelines(Chooser)
    numbered = {line.strip(): first + number for number, line in enumerate(lines)}
    conditional = [
        "with m.If(self.up):",
        "m.d.comb += self.result.eq(self.value + 1)",
        "with m.Else():",
        "m.d.comb += self.result.eq(self.value - 1)",
    ]
    expected = {f"tests/hdl/test_lines.py:{numbered[line]}" for line in conditional}
    assert {*marked_lines(text).values()} == {*expected, "bin:up_at_the_end"}
    counted = text.replace("/*verilator coverage_on*/", "")
    assert counted != text
    for number, line in marked_lines(text).items():
        assert text.splitlines()[number - 1].strip().startswith(f"\\{line} ")


def test_lines_under_a_constant_condition_are_always_executed() -> None:
    text = "  assign \\pe/core.py:7  = 1'h1;\n  assign \\pe/core.py:9  = 1'h0;\n"
    assert constant_lines(text) == {"pe/core.py:7"}


def test_nothing_else_is_counted() -> None:
    text = "  always @* begin\n    {} = 1'h1;\n  end\n"
    other, mark = text.format("a"), text.format("\\pe/core.py:7 ")
    on, off = "/*verilator coverage_on*/\n", "/*verilator coverage_off*/\n"
    assert marks_only(other + mark + other) == off + other + on + mark + off + other


def test_without_a_folder_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert not marked_lines(emitted())
    assert "bin:" not in emitted()


@pytest.mark.parametrize("clocked", [False, True])
def test_the_simulator_of_amaranth_notes_what_it_executes(
    simulate: Simulate, clocked: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    dut, m = Chooser(), Module()
    m.submodules.dut = dut
    if clocked:
        m.d.sync += dut.value.eq(dut.result)

    async def bench(ctx: Any) -> None:
        ctx.set(dut.up, 1)
        if clocked:
            # Down again before the edge.
            ctx.set(dut.up, 0)
            ctx.set(dut.up, 1)
            await ctx.tick().repeat(256)
        assert ctx.get(dut.result) == 1

    simulate(m, bench, combinational=not clocked)
    (file,) = tmp_path.iterdir()
    found = {line[1:].rpartition(":")[2]: line[0] for line in file.read_text().splitlines()}
    first = inspect.getsourcelines(Chooser)[1]
    down = "-" if clocked else "+"
    expected = {8: "+", 9: "+", 10: down, 11: down}
    reached = {"up_at_the_end": "+" if clocked else "-"}
    assert found == {str(first + line): mark for line, mark in expected.items()} | reached
