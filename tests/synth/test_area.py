"""Area reports: units that exist, correct sums, cached results."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

import synth.physical.yosys
from hdl.yosys import YosysError
from microkernels.bp.kernel import MatrixPlan
from pe.config import PeConfig
from soc.generate.generate import verilog
from soc.generate.presets import preset
from synth.errors import SynthesisError
from synth.physical.area import MEASURES, AreaComparison, compare_area, synthesise
from synth.physical.mapping import map_module
from synth.physical.targets import TARGETS, find_target
from synth.physical.units import units
from synth.physical.yosys import CellCount, Run, run
from tests.small_engine import TINY
from tests.synth.trimming import trim

SMALL = replace(preset("pe-small"), counters=False)


def test_units_in_gate_equivalents(no_results: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    report = synthesise(
        SMALL, "generic", ["fetch", "other"], progress=lambda *now: seen.append(now), jobs=1
    )
    assert [row.unit for row in report.rows] == ["fetch", "other"]
    assert seen == [("fetch", 1, 2), ("other", 2, 2)]
    fetch, other = report.rows
    # 256 words of 32 bits; program counter, next address and a valid bit.
    assert fetch.values["sram_bits"] == 256 * 32
    assert {geometry.name: n for geometry, n in fetch.srams.items()} == {"vip_sram_256x32_1r1w": 1}
    assert fetch.values["ffs"] == 19
    assert 200 < fetch.values["logic_ge"] < 500
    assert fetch.values["area_um2"] == pytest.approx(
        fetch.values["sram_um2"] + 0.5 * fetch.values["logic_ge"], abs=0.1
    )
    assert other.values["sram_bits"] == 0
    assert 0 < other.values["logic_ge"] < 1000
    for measure, value in report.total.values.items():
        assert measure in MEASURES
        assert value == pytest.approx(sum(row.values[measure] for row in report.rows), abs=0.2)
    data = report.to_json()
    assert data["logic_ge"] == report.total.values["logic_ge"]
    assert [unit["unit"] for unit in data["units"]] == ["fetch", "other"]
    assert data["units"][0]["srams"] == {"256x32_1r1w": 1}


@pytest.mark.slow
def test_memories_of_flip_flops_are_counted_as_such(no_results: Path) -> None:
    (macros,) = synthesise(TINY, "generic", ["register_file"]).rows
    (flops,) = synthesise(TINY, "flops:generic", ["register_file"]).rows
    bits = TINY.registers * TINY.register_width
    assert macros.values["sram_bits"] == bits
    assert flops.values["sram_bits"] == flops.values["sram_um2"] == 0
    # The words, and what each of three ports has read; a macro has that itself.
    assert flops.values["ffs"] - macros.values["ffs"] == bits + 3 * TINY.register_width
    assert flops.values["logic_ge"] > macros.values["logic_ge"] + 6 * bits


def test_unit_on_xc7(no_results: Path) -> None:
    report = synthesise(SMALL, "xc7", ["fetch"])
    values = report.total.values
    assert values["ffs"] == 19
    assert values["brams"] == 0.5
    assert values["dsps"] == 0
    assert values["sram_bits"] == 256 * 32
    assert 10 < values["luts"] < 100


def test_unit_on_ecp5(no_results: Path) -> None:
    report = synthesise(SMALL, "ecp5", ["fetch"])
    values = report.total.values
    # A flip-flop more would be logic around the block RAM for words read while they are written.
    assert (values["ffs"], values["brams"], values["dsps"]) == (19, 1, 0)
    assert 30 < values["luts"] < 100


def test_results_are_kept_and_damaged_ones_made_anew(
    no_results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[str] = []
    original = synth.physical.yosys.run_yosys

    def counted(commands: list[str], *, purpose: str, **options: Path) -> str:
        runs.append(purpose)
        return original(commands, purpose=purpose, **options)

    monkeypatch.setattr(synth.physical.yosys, "run_yosys", counted)
    first = synthesise(SMALL, "generic", ["decode"])
    assert runs == ["synthesis of decode for generic"]
    # A parameter that this unit does not see changes comments only.
    again = synthesise(replace(SMALL, arc_entries=5), "generic", ["decode"])
    assert len(runs) == 1
    assert again.rows == first.rows
    (kept,) = (no_results / "synthesis").iterdir()
    assert {path.name for path in kept.iterdir()} == {"cells.json", "yosys.log"}
    (kept / "cells.json").write_text("{")
    assert synthesise(SMALL, "generic", ["decode"]).rows == first.rows
    assert len(runs) == 2
    # Fewer instructions are another decoder.
    smaller = replace(SMALL, instructions=frozenset({"halt", "add"}))
    less = synthesise(smaller, "generic", ["decode"])
    assert len(runs) == 3
    assert less.total.values["logic_ge"] < first.total.values["logic_ge"] / 2


def test_comparison_of_areas(no_results: Path) -> None:
    smaller = replace(SMALL, instructions=frozenset({"halt", "add"}))
    full = synthesise(SMALL, "generic", ["decode", "sequencer"])
    trimmed = synthesise(smaller, "generic", ["decode", "sequencer"])
    data = AreaComparison(full, trimmed).to_json()
    assert data["saved_by_unit"]["sequencer"] == {"ff_saved": 0.0, "ge_saved": 0.0}
    assert data["saved_by_unit"]["decode"]["ge_saved"] > 0.5
    total = full.total.values["logic_ge"], trimmed.total.values["logic_ge"]
    assert data["ge_saved"] == pytest.approx(1 - total[1] / total[0], abs=1e-4)
    assert "lut_saved" not in data


@pytest.mark.parametrize(
    ("target", "units", "message"),
    [
        (
            "stratix",
            None,
            "unknown target 'stratix'; there are: generic, xc7, ecp5, gowin, nangate45, liberty",
        ),
        ("generic", ["fetch", "cache"], "unknown unit 'cache'; there are: .*fetch.*other"),
    ],
)
def test_unknown_names_are_refused(target: str, units: list[str] | None, message: str) -> None:
    with pytest.raises(SynthesisError, match=message) as error:
        synthesise(SMALL, target, units)
    assert "\n" not in str(error.value)


def test_memories_of_an_fpga_are_no_flip_flops() -> None:
    assert find_target("flops:generic").sram == "behavioural"
    with pytest.raises(SynthesisError, match="flops:xc7: memories of xc7 are not made of flip"):
        find_target("flops:xc7")


def test_design_that_yosys_refuses_is_one_line(no_results: Path) -> None:
    work = Run(top="a", sources={"a": "module a(input x, output y); assign y = ; endmodule\n"})
    with pytest.raises(SynthesisError, match=r"^reading a: Yosys failed in 'read_verilog") as error:
        run(work, what="reading a")
    assert "\n" not in str(error.value)
    assert isinstance(error.value.__cause__, YosysError)
    assert list((no_results / "synthesis").iterdir()) == []


def test_cell_that_nobody_counts_is_refused() -> None:
    for target in TARGETS.values():
        with pytest.raises(SynthesisError, match=r"\$_DLATCH_P_"):
            target.count(CellCount({"$_DLATCH_P_": 1}, 0.0), frozenset())


def test_carry_chains_and_small_rams_take_lookup_tables_of_ecp5() -> None:
    cells = {"LUT4": 5, "CCU2C": 3, "TRELLIS_DPR16X4": 2, "DP16KD": 7, "PFUMX": 4}
    counts = find_target("ecp5").count(CellCount(cells, 0.0), frozenset())
    assert counts == {"luts": 23, "ffs": 0, "dsps": 0, "brams": 7}


def test_block_rams_count_by_halves() -> None:
    counts = find_target("xc7").count(
        CellCount({"RAMB18E1": 3, "RAMB36E1": 1, "RAM64M": 2, "LUT6": 5, "CARRY4": 9}, 0.0),
        frozenset(),
    )
    assert counts == {"luts": 13, "ffs": 0, "dsps": 0, "brams": 2.5}


@pytest.mark.slow
def test_whole_engine_in_gate_equivalents() -> None:
    report = synthesise(preset("pe"), "generic")
    values = report.total.values
    assert values["logic_ge"] <= 60_000
    assert values["area_um2"] <= 145_000
    assert values["sram_bits"] == sum(row.values["sram_bits"] for row in report.rows)
    # Scratchpad, instruction buffer, registers, and the small ones of load-store and counters.
    assert 32768 + 32768 + 4096 < values["sram_bits"] < 75_000
    units = {row.unit for row in report.rows}
    assert {"fetch", "decode", "issue", "arc", "register_file", "scalar", "scratchpad"} <= units
    assert {"vector_control", "vector_vertical", "vector_horizontal", "load_store"} <= units
    assert not any(re.search("vector_unit|^pe$", unit) for unit in units)


def test_modules_that_differ_in_comments_alone_are_mapped_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    works: list[Run] = []
    monkeypatch.setattr("synth.physical.mapping.run", lambda work, what: works.append(work))
    for queue in (16, 8):
        emission = verilog(replace(preset("pe-small"), load_store_queue=queue))
        (unit,) = (unit for unit in units(emission) if unit.name == "fetch")
        assert f"load_store_queue = {queue}" in emission.modules[unit.modules[0][0]]
        map_module(unit, unit.modules[0][0], find_target("generic"), emission)
    assert works[0] == works[1]


@pytest.mark.parametrize("kept", [False, True])
def test_counters_are_no_saving(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[PeConfig] = []
    monkeypatch.setattr(
        "synth.physical.area.synthesise", lambda config, target, **_: measured.append(config)
    )
    full = preset("pe-small")
    trimmed = replace(full, registers=16, counters=kept)
    assert full.counters
    compare_area(full, trimmed, "xc7")
    assert measured == [replace(full, counters=kept), trimmed]


@pytest.mark.slow
def test_trimming_saves_on_xc7() -> None:
    full = preset("pe")
    comparison = compare_area(full, trim(MatrixPlan(labels=16).program(None), full), "xc7")
    values = comparison.full.total.values
    # The scratchpad's 16 memories of words, and the instruction buffer; registers are in
    # distributed RAM.
    assert values["brams"] == 17
    assert values["ffs"] < 8000
    assert comparison.saved("dsps") > 0.8
    assert comparison.saved("luts") > 0.15
    assert comparison.saved("ffs") > 0.05


def test_a_unit_with_nothing_in_it_takes_nothing() -> None:
    config = replace(preset("pe-small"), instructions=frozenset({"halt", "jmp"}))
    row = synthesise(config, "xc7", ["scratchpad"]).row("scratchpad")
    assert row is not None
    assert not any(row.values.values())
