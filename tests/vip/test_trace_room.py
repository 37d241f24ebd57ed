"""Sizes of waveforms, traces and logs: estimated before a run, and checked against the disk."""

import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path

import pytest

import vip as api
from isa.run import RunResult
from sim_tb.waves.cycles import TraceError
from soc.generate.presets import preset
from vip.cosimulation import runs
from vip.cosimulation.runs import LOG, file_bytes

Usage = namedtuple("Usage", "total used free")
LOOP = "li r1, #200\nloop:\nsub r1, r1, #1\nbne r1, r0, loop\nhalt\n"
ENDLESS = "loop:\nbeq r0, r0, loop\nhalt\n"


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch):
    """``free(n)``: every disk has ``n`` bytes free."""

    def set_free(size: int) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 0, size))

    return set_free


def bp(design: str, **options: object) -> list[RunResult]:
    width, height = {"pe": (4, 3), "vault": (6, 4), "tiny": (16, 4)}[design]
    scene = api.stereo_pair(config=design, width=width, height=height)
    outcome = api.cosim_bp(design, scene, iterations=1, **options).outcome
    return list(outcome.results.values())


def loop(design: str, **options: object) -> list[RunResult]:
    return [api.cosim(api.assemble(LOOP), design, **options).result]


def size(path: Path) -> int:
    """Bytes of a file, without the names of signals at the head of waveforms."""
    return path.stat().st_size - max(0, path.read_bytes().find(b"$enddefinitions"))


@pytest.mark.parametrize("work", [bp, loop])
def test_estimates_are_right_within_a_factor_of_two(work, tmp_path):
    files = {ending: tmp_path / f"run{ending}" for ending in (".vcd", ".json", ".fst", LOG)}
    estimates = work("pe", on="model")
    ran = work("pe", trace=files[".vcd"], pipeline=files[LOG])
    work("pe", trace=files[".json"])
    work("pe", trace=files[".fst"])
    assert [one.cycles for one in ran] == [one.cycles for one in estimates]
    for ending, path in files.items():
        assert 1 / 2 < file_bytes(ending, estimates) / size(path) < 2, ending


@pytest.mark.slow
@pytest.mark.parametrize("design", ["vault", "tiny"])
@pytest.mark.parametrize("work", [bp, loop])
def test_estimates_of_vaults_and_chips_are_right(work, design, tmp_path):
    path = tmp_path / "run.vcd"
    # On the model with what the host of a chip does, too.
    host = {"preload": False} if work is bp and design == "tiny" else {}
    estimates = work(design, on="model", **host)
    work(design, trace=path)
    assert 1 / 2 < file_bytes(".vcd", estimates) / size(path) < 2


def test_a_large_trace_is_warned_of(vip, monkeypatch):
    monkeypatch.setattr(runs, "LARGE", 10**6)
    Path("loop.s").write_text(LOOP)
    with pytest.warns(match=r"loop.vcd: the file will take about 4.\d MB; a smaller problem"):
        code, _, _ = vip("cosim", "program", "loop.s", "--trace", "loop.vcd")
    assert code == 0


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--trace", "out.vcd"], "the file"),
        (["--trace", "out.json"], "the waveforms that it is made from"),
        (["--pipeline", "out.log"], "the waveforms that it is made from"),
    ],
)
def test_a_trace_larger_than_the_disk_is_refused(vip, free, options, what):
    free(100 * 10**6)
    code, out, err = vip("cosim", "bp", "--iterations", "1", *options)
    assert (code, out) == (2, "")
    assert err.startswith(f"vip: {options[1]}: {what} would take about 8.2 GB, and ")
    assert err.endswith(" has 0.1 GB free: run a smaller problem\n")
    assert not Path(options[1]).exists()


def test_two_outputs_are_two_files(vip):
    code, out, err = vip("cosim", "bp", "--json", "bp.json", "--trace", "bp.json")
    assert (code, out) == (2, "")
    assert err == "vip: bp.json: --json and --trace name the same file\n"


def test_a_program_that_does_not_end_is_refused_at_its_limit(vip, free):
    free(100 * 10**6)
    Path("endless.s").write_text(ENDLESS)
    words = ("cosim", "program", "endless.s", "--trace", "endless.vcd")
    code, _, err = vip(*words)
    assert code == 2
    assert "endless.vcd: the file would take about " in err
    assert err.endswith("free: run a smaller problem, or give --limit\n")
    code, _, err = vip(*words, "--limit", "1000")
    assert code == 2
    assert "still running after 1,000 cycles" in err


def test_an_engine_that_the_model_does_not_cover_is_estimated_by_the_full_one(free, tmp_path):
    narrow = replace(preset("pe-small"), register_width=32, counters=False)
    free(10**3)
    with pytest.raises(TraceError, match=r"x.vcd: the file would take about 4.\d MB"):
        api.cosim(api.assemble(LOOP), narrow, trace=tmp_path / "x.vcd")
