"""Signals that tell which lines of the sources decide a design's values, for line coverage.

Each line that a condition guards (``with m.If``, ``m.Case``, ``m.State``, and what is assigned
there) has a signal in the module that is 1 while the condition holds. Nothing reads it, and its
name is the line: ``pe/frontend/arc.py:120``. A bin of a functional cross (:func:`cover`) likewise
has a signal, named ``bin:`` and the bin.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from amaranth.hdl import Instance, Module, Signal, ValueLike
from amaranth.hdl._ast import Assign, Switch

from support.coverage import coverage_folder

_ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^  always @\* begin\n.*?^  end\n", re.MULTILINE | re.DOTALL)
_BIN = "bin:"
_LINE = rf"\\([\w/]+\.py:\d+|{_BIN}\S+)  ?= 1'h1;"
_EXECUTED = re.compile(_LINE)
#: Of a condition that is constant in a configuration.
_ALWAYS = re.compile(rf"^  assign {_LINE}", re.MULTILINE)


def cover(m: Module, name: str, condition: ValueLike) -> None:
    """Count cycles with ``condition`` in the bin ``name`` of a cross, if coverage is measured."""
    if coverage_folder():
        signal = Signal(name=f"{_BIN}{name.replace(' ', '_')}", attrs={"keep": 1})
        with m.If(condition):
            m.d.comb += signal.eq(1)


def mark_lines(fragment: Any) -> list[Signal]:
    """Add these signals to ``fragment``, of Amaranth, and to the parts that belong to it alone.

    Returns them, and the bins of :func:`cover`."""
    signals: dict[str, Signal] = {}
    marks = [_marks(statements, None, signals) for statements in fragment.statements.values()]
    fragment.add_statements("comb", [list(one) for one in marks])
    parts = [part for part, *_ in fragment.subfragments if not isinstance(part, Instance)]
    return [*signals.values(), *(signal for part in parts for signal in mark_lines(part))]


def _marks(statements: Any, guard: Any, signals: dict[str, Signal]) -> Iterator[Any]:
    """Statements that set the signals of ``statements``, which are in the block ``guard``."""
    places = {guard} if guard else set()
    for statement in statements:
        if isinstance(statement, Switch):
            switch: Any = statement
            cases: Any = [
                (patterns, list(_marks(inner, place or switch.src_loc, signals)), place)
                for patterns, inner, place in switch.cases
            ]
            yield Switch(switch.test, cases, src_loc=switch.src_loc)
        elif isinstance(statement, Assign) and guard:
            assign: Any = statement
            places.add(assign.src_loc)
            if isinstance(assign.lhs, Signal) and assign.lhs.name.startswith(_BIN):
                signals[assign.lhs.name] = assign.lhs
    for file, line in places:
        path = Path(file)
        if path.is_relative_to(_ROOT) and ".venv" not in path.parts and path != Path(__file__):
            name = f"{path.relative_to(_ROOT).as_posix()}:{line}"
            if name not in signals:
                signals[name] = Signal(name=name, attrs={"keep": 1})
            yield signals[name].eq(1)


def marks_only(verilog: str) -> str:
    """``verilog``, of which Verilator counts nothing but these signals."""

    def counted(block: re.Match[str]) -> str:
        if not _EXECUTED.search(block[0]):
            return block[0]
        return f"/*verilator coverage_on*/\n{block[0]}/*verilator coverage_off*/\n"

    return f"/*verilator coverage_off*/\n{_BLOCK.sub(counted, verilog)}"


def marked_lines(verilog: str) -> dict[int, str]:
    """Lines of ``verilog`` that set such a signal: number, from 1 on -> line of a source."""
    return {
        number: match[1]
        for number, text in enumerate(verilog.splitlines(), 1)
        if (match := _EXECUTED.search(text))
    }


def constant_lines(verilog: str) -> set[str]:
    """Lines of sources whose condition is always true in ``verilog``."""
    return set(_ALWAYS.findall(verilog))
