"""``vip trim --device``: devices filled with full and trimmed engines."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from isa.assembly.assembler import assemble
from isa.run import Launch
from microkernels.suite import choose, suite
from soc.generate.generate import generate
from soc.generate.presets import configuration_text, preset, read_configuration
from synth.errors import TrimError
from synth.physical.area import AreaReport, AreaRow
from synth.physical.devices import find_device
from synth.physical.fit import Grid, chip_of
from vip.cli.tables.trim import show_fit
from vip.trimming.filling import (
    CHIP_FILE,
    WINDOW_BITS,
    Filled,
    fit_application,
    fit_both,
    fit_json,
)
from vip.trimming.trim import Sizes

SOURCE = """
    ld.reg [64-bit] r9, r5
    add r9, r9, #1
    st.reg [64-bit] r5, r9
    halt
"""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--device", "xc7vx1"), "unknown device 'xc7vx1'; there are: xc7a35t, xc7a100t"),
        (("--device", "asic:x"), "asic: needs square millimetres after it"),
        (
            ("--device", "xc7vx690t", "--no-check"),
            "--device runs the programs, so it can't be combined",
        ),
        (("--slower", "1", "--no-check"), "--slower measures the runs, so it can't be combined"),
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
    limit = find_device("xc7vx690t")
    full = replace(preset("pe-small"), address_bits=12, counters=False)
    trimmed = replace(full, instructions=frozenset({"halt"}))

    def one(pe, grid, cycles, differing=()):
        row = AreaRow("total", {"luts": 1000 * grid.total, "ffs": 500}, {})
        config = chip_of(pe, grid, limit, tag_bits=full.tag_bits)
        return Filled(
            config=config,
            device=limit,
            area=AreaReport("xc7", (row,), row),
            host_cycles=cycles,
            differing=differing,
            moved=50_000,
            demand=0.5,
        )

    after = one(trimmed, Grid(3, 3, 1), 1125, differing)
    return replace(after, full=one(full, Grid(2, 2, 1), 1000))


def test_gain_is_engines_over_cycles(capsys):
    found = _fitting()
    assert found.gain == pytest.approx(9 / 4 * 1000 / 1125)
    report = fit_json(found)
    assert report["throughput_gain"] == 2.0
    assert report["match"]
    assert (report["full"]["engines"], report["trimmed"]["engines"]) == (4, 9)
    assert report["trimmed"]["filled"]["luts"] == pytest.approx(9000 / 433_200, abs=1e-4)
    show_fit(found)
    shown = capsys.readouterr().out
    assert "2.00" in shown
    assert "luts of 433,200" in shown
    assert not _fitting(differing=(7,)).match


def test_a_board_bounds_what_needs_more_than_its_memory_gives():
    found = _fitting()
    # 4 engines move 50 kB each in 1,000 cycles of 10 ns.
    assert found.full.gigabytes == pytest.approx(20)
    assert found.gigabytes == pytest.approx(40)
    assert found.full.bus_gigabytes == pytest.approx(2 * 0.8)
    # Two modules of 64 bits at 1866 MT/s give 29.856 GB/s.
    assert found.board_gain == pytest.approx(29.856 / 20)
    report = fit_json(found)
    assert (report["board"], report["board_gigabytes_per_second"]) == ("VC709", 29.86)
    assert report["board_throughput_gain"] == 1.493
    assert report["trimmed"]["gigabytes_per_second"] == 40.0
    unbound = replace(found, moved=1000, full=replace(found.full, moved=1000))
    assert unbound.board_gain == unbound.gain
    unknown = replace(found.full, device=find_device("ecp5-85k"))
    assert replace(found, full=unknown).board_gain is None


def test_the_chip_is_a_file_of_the_directory_that_generate_takes(vip, tmp_path):
    chip = _fitting().config
    text = configuration_text(chip)
    for _ in range(2):
        # Its own earlier output is replaced.
        generate(chip.pe, tmp_path / "out", extra_files={CHIP_FILE: text})
    assert read_configuration(tmp_path / "out" / CHIP_FILE) == chip
    assert vip("generate", "--config", f"out/{CHIP_FILE}", "-o", "chip")[0] == 0
    assert (tmp_path / "chip" / "rtl" / "chip_tile.v").is_file()
    assert read_configuration(tmp_path / "chip" / "vip.json") == chip


def test_both_chips_run_the_work_in_windows(monkeypatch):
    known = _fitting()
    ran = []

    def fitted(pe, limit, *, tag_bits, demand, step):
        assert (demand, tag_bits) == (0.25, full.tag_bits)
        step("a step")
        filled = known if pe == trimmed else known.full
        return filled.config, filled.area

    def run(config, works, progress):
        ran.append((config, works))
        progress(100)
        filled = known if config.pe == trimmed else known.full
        return filled.host_cycles, filled.differing

    monkeypatch.setattr("vip.trimming.filling.fit", fitted)
    monkeypatch.setattr("vip.trimming.filling.run_copies", run)
    work = (Launch(program=assemble("halt")), b"data")
    steps = []
    full, trimmed = preset("pe-small"), known.config.pe
    counters = {"BYTES_LOADED": 20, "BYTES_STORED": 5, "CYCLES": 100}
    run_once = SimpleNamespace(
        launch=work[0], contents=work[1], result=SimpleNamespace(counters=counters)
    )
    found = fit_both(full, trimmed, known.full.device, [run_once], steps.append)
    assert found.demand == 0.25
    assert found.full.moved == found.moved == 25
    assert found.gain == known.gain
    assert [works for _, works in ran] == [[work], [work]]
    reference, small = (config for config, _ in ran)
    assert small == known.config
    # Full engines in the grid of their chip, each in a window as large as a trimmed one's.
    assert (reference.tile.pes, reference.vaults) == (2, 2)
    assert reference.tile.windows
    assert reference.pe.instructions == full.instructions
    assert not reference.pe.counters
    assert reference.pe.address_bits == trimmed.address_bits
    assert any("100 cycles" in step for step in steps)


def test_windows_hold_the_data_of_every_application():
    most = max(len(memory) for item in suite().values() for _, memory in item.workloads)
    assert (1 << (WINDOW_BITS - 1)) < most <= 1 << WINDOW_BITS


@pytest.mark.parametrize("slower", [-0.01, 0.51, float("nan")])
def test_more_cycles_than_can_be_allowed(slower):
    with pytest.raises(TrimError, match=r"slower must be a fraction from 0 to 0\.5"):
        Sizes(slower=slower)


def test_chips_of_the_suite_have_equal_engines_but_for_trimming(monkeypatch):
    (application,) = choose(["max-pooling"])
    known = _fitting()
    filled = []

    def fitted(pe, limit, *, tag_bits, demand, step):
        filled.append((pe, tag_bits))
        return known.full.config, known.full.area

    monkeypatch.setattr("vip.trimming.filling.fit", fitted)
    monkeypatch.setattr("vip.trimming.filling.run_copies", lambda *_: (1000, ()))
    counters = {"BYTES_LOADED": 20, "BYTES_STORED": 5, "CYCLES": 100}
    monkeypatch.setattr(
        "vip.trimming.filling.measure",
        lambda launch, memory, full, *, slower: SimpleNamespace(
            launch=launch,
            contents=memory,
            result=SimpleNamespace(counters=counters),
            in_flight=(3, 8),
        ),
    )
    fit_application(application, known.full.device, lambda step: None)
    (full, full_tags), (pe, tags) = filled
    assert tags == full_tags == full.tag_bits
    assert pe.address_bits == full.address_bits == WINDOW_BITS
    assert pe.counters is full.counters is False
    assert pe.instructions < full.instructions
    assert pe.arc_entries == 3
