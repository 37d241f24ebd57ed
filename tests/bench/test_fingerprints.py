"""Fingerprints: what changes them, and what does not."""

import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import synth.formal
from bench import fingerprints
from bench.benchmarks import BENCHMARKS
from sim_tb.runner.build import Design
from soc.generate.presets import preset
from synth.physical.targets import find_target

SOURCE = '''"""What it is."""

import os

LIMIT = 3


def first(value: int) -> int:
    """Says what."""
    # A comment.
    return value + LIMIT


def second() -> str:
    return os.sep
'''
Module = Callable[[str], ModuleType]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Module:
    """Makes modules of texts, each in a file and under a name of its own."""
    monkeypatch.syspath_prepend(tmp_path)
    count = 0

    def make(text: str) -> ModuleType:
        nonlocal count
        count += 1
        name = f"made_{tmp_path.name}_{count}".replace("-", "_")
        (tmp_path / f"{name}.py").write_text(text)
        try:
            return import_module(name)
        finally:
            sys.modules.pop(name, None)

    return make


def test_code_may_move_be_explained_and_be_split(module: Module) -> None:
    known = fingerprints.code(module(SOURCE))
    assert len(known) == 16
    assert fingerprints.code(module(SOURCE.replace("Says what", "Says more"))) == known
    assert fingerprints.code(module(SOURCE.replace("# A comment", "# Another"))) == known
    assert fingerprints.code(module(SOURCE.replace("import os", "import os, sys"))) == known
    head, tail = SOURCE.split("\n\n\ndef second")
    parts = module(head), module("import os\n\ndef second" + tail)
    assert fingerprints.code(*parts) == fingerprints.code(*reversed(parts)) == known


@pytest.mark.parametrize(("old", "new"), [("= 3", "= 4"), ("value +", "value -"), ("sep", "name")])
def test_code_that_computes_otherwise_differs(module: Module, old: str, new: str) -> None:
    assert fingerprints.code(module(SOURCE.replace(old, new))) != fingerprints.code(module(SOURCE))


def test_hardware_goes_by_what_is_emitted() -> None:
    small = preset("pe-small")
    assert fingerprints.hardware(small) == fingerprints.hardware(replace(small))
    assert fingerprints.hardware(small) != fingerprints.hardware(replace(small, arc_entries=7))


def test_simulators_differ_by_design_and_by_models() -> None:
    design = Design(
        top="t",
        verilog={"pe.v": "wire a; // b"},
        around={"t.sv": "x"},
        support=("pe_host.cpp",),
        behaviour=("memory_model.cpp",),
    )
    known = fingerprints.simulator("pe", design)
    assert set(known) == {"Verilog of pe", "models around pe"}
    commented = replace(design, verilog={"pe.v": "wire  a; /* c */"})
    assert fingerprints.simulator("pe", commented) == known
    # How models are connected and started does not count.
    connected = replace(design, around={"t.sv": "y"}, support=("tile_host.cpp",))
    assert fingerprints.simulator("pe", connected) == known
    changed = fingerprints.simulator("pe", replace(design, verilog={"pe.v": "wire b;"}))
    assert changed["Verilog of pe"] != known["Verilog of pe"]
    assert changed["models around pe"] == known["models around pe"]
    other = replace(design, behaviour=("network_traffic.cpp",))
    changed = fingerprints.simulator("pe", other)
    assert changed["Verilog of pe"] == known["Verilog of pe"]
    assert changed["models around pe"] != known["models around pe"]


def test_mappings_differ_by_commands() -> None:
    target = find_target("generic")
    other = replace(target, commands=(*target.commands, "opt"))
    assert fingerprints.mapping(other) != fingerprints.mapping(target)


def test_parts_of_a_package_are_all_its_modules() -> None:
    names = {part.__name__ for part in fingerprints.parts(synth.formal)}
    assert "synth.formal.induction" in names


def test_benchmarks_say_what_they_measure() -> None:
    for name, benchmark in BENCHMARKS.items():
        assert benchmark.run.__doc__, name
        assert benchmark.made_of.__doc__, name
        assert benchmark.minutes > 0
        assert set(benchmark.configurations()) == set(benchmark.presets)
    assert len({benchmark.made_of.__name__ for benchmark in BENCHMARKS.values()}) == len(BENCHMARKS)


def test_attributes_for_people_do_not_count() -> None:
    plain = '  wire active;\n  (* ram_style = "block" *)\n  reg [7:0] words [15:0];\n'
    attributes = '  (* init = 1\'h0 *)\n  (* enum_value_01 = "RUNNING" *)\n'
    assert fingerprints._bare(attributes + plain) == fingerprints._bare(plain)
    other = plain.replace("block", "distributed")
    assert fingerprints._bare(other) != fingerprints._bare(plain)
