"""Bandwidth over time: the numbers, and the picture of them."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from isa.faults import FaultCause
from isa.run import EngineEnd, RunResult
from sim_tb.cosim.vault import WINDOW_CYCLES
from vip.cosimulation.stereo import draw_bandwidth


def result(windows: list[tuple[int, int]], cycles: int) -> RunResult:
    pe = EngineEnd(
        slot=0,
        state="halted",
        cause=FaultCause.NONE,
        pc=0,
        elapsed_cycles=cycles,
        counters={"CYCLES": cycles},
    )
    moved = np.array(windows).sum(axis=0)
    return RunResult(
        engines=(pe,),
        vaults=({"READS": int(moved[0]), "WRITES": int(moved[1]), "ROW_HITS": 1},),
        windows=tuple(windows),
        window_cycles=WINDOW_CYCLES,
        tck_ns=0.8,
        simulated_cycles=cycles,
        seconds=1.0,
    )


def test_full_bus_is_the_limit_and_windows_after_the_end_are_left_out() -> None:
    full = WINDOW_CYCLES // 4
    found = result([(full, 0), (full // 2, full // 2), (0, full), (7, 7)], 3 * WINDOW_CYCLES)
    length, gbs = found.bandwidth()
    assert length == pytest.approx(WINDOW_CYCLES * 0.0008)
    assert gbs == pytest.approx(np.array([[10, 5, 0], [0, 5, 10]]))


def test_long_runs_are_shown_in_longer_intervals() -> None:
    found = result([(4, 0), (8, 0)] * 500 + [(0, 6)], 1001 * WINDOW_CYCLES)
    length, gbs = found.bandwidth()
    assert gbs.shape == (2, 334)
    assert length == pytest.approx(3 * WINDOW_CYCLES * 0.0008)
    # Nothing is lost: 6000 columns read, 6 written.
    assert gbs.sum(axis=1) * length * 1000 / 32 == pytest.approx([6000, 6])


def test_run_shorter_than_a_window_and_without_traffic() -> None:
    _, gbs = result([(0, 0)], 9).bandwidth()
    assert gbs.tolist() == [[0.0], [0.0]]


def test_picture_shows_reads_and_writes(tmp_path: Path) -> None:
    target = tmp_path / "bandwidth.png"
    draw_bandwidth(result([(32, 16)] * 40, 40 * WINDOW_CYCLES), target, caption="test")
    pixels = imread(target)[..., :3].reshape(-1, 3)
    read, written = (
        (np.abs(pixels - np.array(colour) / 255) < 0.02).all(axis=1).mean()
        for colour in ((0, 114, 178), (230, 159, 0))
    )
    assert 0.2 < read < 0.5
    assert written == pytest.approx(read / 2, rel=0.1)
    with pytest.raises(OSError, match="nowhere"):
        draw_bandwidth(result([(1, 1)], 9), tmp_path / "nowhere" / "x.png", caption="test")
