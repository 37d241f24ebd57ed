"""``vip trim --fit``: devices filled with full and trimmed engines."""

from dataclasses import replace

import pytest
from rich.console import Console

from isa.assembler import assemble
from sim_tb.chip_copies import Copies
from sim_tb.trim_check import Workload
from soc.configuration_file import configuration_text, read_configuration
from soc.generate import generate
from soc.presets import preset
from synth.area import AreaRow
from synth.budget import find_budget
from synth.chip_area import ChipArea
from synth.fit import ChipFit, Grid, chip_of
from vip.fitting import CHIP_FILE, Fitting, fit_both, fit_json, show_fit

SOURCE = """
    ld.reg [64-bit] r9, r5
    add r9, r9, #1
    st.reg [64-bit] r5, r9
    halt
"""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--fit", "xc7vx1"), "unknown device 'xc7vx1'; there are: xc7vx690t, ecp5-25k"),
        (("--fit", "asic:x"), "asic: needs square millimetres after it"),
        (("--fit", "xc7vx690t", "--no-check"), "--fit runs the programs, so it can't go with"),
    ],
)
def test_what_can_not_be_fitted(vip, tmp_path, arguments, text):
    (tmp_path / "count.s").write_text(SOURCE)
    code, _, error = vip("trim", "count.s", "-o", "out", *arguments)
    assert code == 2
    assert error.startswith("vip: ")
    assert text in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def _fitting(differing=()):
    """A device with 4 full engines and with 9 trimmed ones, which ran with this outcome."""
    budget = find_budget("xc7vx690t")
    full = preset("pe-small")
    trimmed = replace(full, instructions=frozenset({"halt"}), counters=False)

    def one(pe, grid, *, small):
        row = AreaRow("total", {"luts": 1000 * grid.total, "ffs": 500}, {})
        config = chip_of(pe, grid, budget, trimmed=small)
        return ChipFit(config=config, budget=budget, area=ChipArea(rows=(row,), total=row))

    return Fitting(
        demand=0.5,
        full=one(full, Grid(2, 2, 1), small=False),
        trimmed=one(trimmed, Grid(3, 3, 1), small=True),
        copies_full=Copies(engines=4, cycles=1000, differing=()),
        copies_trimmed=Copies(engines=9, cycles=1125, differing=differing),
    )


def test_gain_is_engines_over_cycles(capsys):
    found = _fitting()
    assert found.gain == pytest.approx(9 / 4 * 1000 / 1125)
    report = fit_json(found)
    assert report["throughput_gain"] == 2.0
    assert report["match"]
    assert (report["full"]["engines"], report["trimmed"]["engines"]) == (4, 9)
    assert report["trimmed"]["filled"]["luts"] == pytest.approx(9000 / 433_200, abs=1e-4)
    Console(width=100).print(show_fit(found))
    shown = capsys.readouterr().out
    assert "2.00" in shown
    assert "luts of 433,200" in shown
    assert not _fitting(differing=(7,)).match


def test_the_chip_is_a_file_of_the_directory_that_generate_takes(vip, tmp_path):
    chip = _fitting().trimmed.config
    text = configuration_text(chip)
    for _ in range(2):
        # What it wrote is replaced, as it is its own.
        generate(chip.pe, tmp_path / "out", beside={CHIP_FILE: text})
    assert read_configuration(tmp_path / "out" / CHIP_FILE) == chip
    assert vip("generate", "--config", f"out/{CHIP_FILE}", "-o", "chip")[0] == 0
    assert (tmp_path / "chip" / "rtl" / "chip_tile.v").is_file()
    assert read_configuration(tmp_path / "chip" / "vip.json") == chip


def test_both_chips_run_the_work_in_windows(monkeypatch):
    known = _fitting()
    ran = []

    def fitted(pe, budget, *, trimmed, demand, step):
        assert demand == 0.25
        step("a step")
        return known.trimmed if trimmed else known.full

    def run(config, works, progress):
        ran.append((config, works))
        progress(100)
        return known.copies_trimmed if config == known.trimmed.config else known.copies_full

    monkeypatch.setattr("vip.fitting.fit", fitted)
    monkeypatch.setattr("vip.fitting.run_copies", run)
    work = Workload(program=assemble("halt"))
    steps = []
    full, trimmed = preset("pe-small"), known.trimmed.config.pe
    found = fit_both(full, trimmed, known.full.budget, [work], 0.25, steps.append)
    assert found.gain == known.gain
    assert [works for _, works in ran] == [[work], [work]]
    reference, small = (config for config, _ in ran)
    assert small == known.trimmed.config
    # Full engines in the grid of their chip, each in a window as large as a trimmed one's.
    assert (reference.tile.pes, reference.vaults) == (2, 2)
    assert reference.tile.windows
    assert reference.pe.instructions == full.instructions
    assert reference.pe.address_bits == trimmed.address_bits
    assert any("100 cycles" in step for step in steps)
