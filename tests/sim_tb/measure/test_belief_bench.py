"""Scaling of the time of belief propagation to full HD: rates and times must agree."""

from dataclasses import dataclass, replace

import pytest

from bench.record import values
from isa.faults import FaultCause
from isa.run import EngineEnd, RunResult
from sim_tb.measure import belief as belief_bench
from sim_tb.measure.belief import BELIEF, measure_belief
from soc.generate.presets import tile_preset

VAULT = tile_preset("vault")
TCK_MS = 0.8e-6
ENGINES = 4 * 32
PIXELS = 1920 * 1080
#: Message updates of an iteration on 1,920 x 1,080 pixels, and on a quarter of that.
UPDATES = {
    "bp_m": 2 * (1080 * 1919 + 1920 * 1079),
    "bp_coarse": 2 * (540 * 959 + 960 * 539),
}
CYCLES = 162_466


def result(cycles: int) -> RunResult:
    pe = EngineEnd(
        slot=0,
        state="halted",
        cause=FaultCause.NONE,
        pc=0,
        cycles=cycles,
        counters={"CYCLES": cycles, "VECTOR_BUSY": 1},
    )
    return RunResult(
        engines=tuple(replace(pe, slot=slot) for slot in range(4)),
        vaults=({"READS": 1, "WRITES": 0},),
        tck_ns=0.8,
        simulated_cycles=cycles,
        seconds=1.0,
    )


@dataclass
class Outcome:
    results: dict[str, RunResult]
    match: bool = True


@pytest.fixture(autouse=True)
def _no_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    results = {kernel.phase: result(CYCLES) for kernel in BELIEF.values()}
    monkeypatch.setattr(belief_bench, "run_on", lambda *_, **__: Outcome(results))


@pytest.mark.parametrize("name", UPDATES)
def test_time_is_updates_times_cycles_of_an_update(name: str) -> None:
    row = measure_belief(name, VAULT)
    assert row.scaled == "updates"
    assert row.ours_ms == pytest.approx(row.cycles_per_unit * UPDATES[name] / ENGINES * TCK_MS)
    small = (60, 34) if name == "bp_m" else (30, 17)
    iterations = {"bp_m": 1, "bp_coarse": 5}[name]
    run = iterations * 2 * (small[1] * (small[0] - 1) + small[0] * (small[1] - 1))
    assert row.cycles_per_unit == pytest.approx(4 * CYCLES / run)


@pytest.mark.parametrize("name", ["bp_construct", "bp_copy"])
def test_construct_and_copy_are_scaled_by_pixels(name: str) -> None:
    row = measure_belief(name, VAULT)
    assert row.scaled == "pixels"
    assert row.units == 4 * 60 * 34
    assert row.ours_ms == pytest.approx(CYCLES / row.units * PIXELS / 32 * TCK_MS)


def test_a_tile_scaled_by_updates_foretells_four_vaults() -> None:
    """2 x 2 vaults on 240 x 136 pixels took 659,438 cycles where a tile took 162,466; by tiles,
    four times that would be 1.5 % less."""
    row = measure_belief("bp_m", VAULT)
    updates = 2 * (136 * 239 + 240 * 135)
    assert row.cycles_per_unit * updates / 16 == pytest.approx(659_438, rel=0.005)
    assert 659_438 - 4 * CYCLES > 0.01 * 659_438


@pytest.mark.parametrize("name", UPDATES)
def test_recorded_rate_and_time_agree(name: str) -> None:
    recorded = values("kernels")
    key = f"{name}_batch_1"
    rate = recorded[f"{key}_cycles_per_update"]
    assert recorded[key] == pytest.approx(rate * UPDATES[name] / ENGINES * TCK_MS)
