"""Measurements of belief propagation on whole chips, on small ones."""

from dataclasses import replace
from pathlib import Path

import pytest

from bench import belief as scaling
from bench import energies
from bench.belief import draw_scaling, measure_full_hd, measure_scaling
from bench.harness.runs import launch_runs
from bench.mrf import full_hd_energy, full_hd_shifts_job
from isa.image import MAX_IMAGE_BYTES
from soc.generate.presets import chip_preset

SMALL = chip_preset("small")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache of measurements."""
    monkeypatch.setattr("support.cache.build_folder", lambda: tmp_path)


def test_phases_of_full_hd_are_those_of_the_runs() -> None:
    ((name, flat),) = measure_full_hd("flat", SMALL, width=48, height=27).items()
    assert (name, flat.tck_ns) == ("fine", 0.8)
    assert 0 < flat.share("VECTOR_BUSY") < 1
    levels = measure_full_hd("levels", SMALL, width=48, height=27)
    assert list(levels) == ["construct", "coarse", "copy", "fine"]
    assert levels["fine"].cycles < 2 * flat.cycles
    # Measurements are cached, with their seconds.
    assert measure_full_hd("levels", SMALL, width=48, height=27) == levels


def test_blocks_with_an_objects_sides_hand_down_nearer_messages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(energies, "_ON_BLOCKS", 2)
    monkeypatch.setattr(energies, "_ON_PIXELS", 2)
    monkeypatch.setattr(energies, "_ABOVE", {2: 1, 4: 2})
    norm = {one.name: one.value for one in energies.block_alignment()}
    assert 0 < norm["aligned_2"] < norm["aligned_4"]
    assert norm["aligned_2"] < norm["unaligned_2"] < norm["unaligned_4"]


@pytest.mark.slow
def test_full_hd_by_shifts() -> None:
    engine = replace(SMALL.tile.pe, instruction_words=1024, scratchpad_bytes=4096)
    chip = replace(SMALL, tile=replace(SMALL.tile, pe=engine))
    jobs = {bits: full_hd_shifts_job(bits, chip, width=48, height=36) for bits in (16, 8)}
    wide, narrow = (launch_runs(job, chip, job.name) for job in jobs.values())
    assert narrow[""].cycles < wide[""].cycles
    assert 0 < wide[""].share("VECTOR_BUSY") < 1
    best, worse = (full_hd_energy(bits, width=48, height=36) for bits in jobs)
    assert best <= worse < 1.05 * best
    assert launch_runs(jobs[8], chip, "again") == narrow


def test_series_of_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "VAULTS", ((1, 1), (2, 1)))
    monkeypatch.setattr(scaling, "ENGINES", (1, 2))
    monkeypatch.setattr(scaling, "IMAGES", ((10, 10), (32, 18)))
    monkeypatch.setattr(scaling, "_IMAGE", (24, 16))
    monkeypatch.setattr(scaling, "SMALL", (16, 12))
    base = replace(SMALL, network=replace(SMALL.network, columns=2, rows=2))
    series = measure_scaling(base)
    engines = {name: {at: run.engines for at, run in runs.items()} for name, runs in series.items()}
    assert engines == {
        "vaults": {"1": 2, "2": 4},
        "small": {"1": 2, "2": 4},
        "engines": {"1": 4, "2": 8},
        "image": {"10x10": 8, "32x18": 8},
        "cut": {"10x10": 8, "32x18": 8},
    }
    assert series["cut"]["10x10"].cycles < series["image"]["10x10"].cycles
    assert series["vaults"]["1"].cycles > series["vaults"]["2"].cycles
    assert series["image"]["10x10"].updates == 4 * 90
    # So many vaults of the whole size would be more than an image has.
    large = scaling._scaling_chip(chip_preset("thesis"), 8, 8, 4)
    assert (large.vaults, large.memory_bytes) == (64, MAX_IMAGE_BYTES)
    for suffix in ("png", "svg"):
        draw_scaling(series, tmp_path / f"scaling.{suffix}")
        assert (tmp_path / f"scaling.{suffix}").stat().st_size > 1000
