"""The figures of benchmarks have the names that README and guides use; nothing is measured."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bench import (
    belief,
    chip,
    clocks,
    digits,
    engine,
    kernels,
    network,
    schedulers,
    speed,
    stereo,
    timing_model,
    trim,
    vault,
)
from bench.harness import parts
from bench.harness.experiment import Measurement, find
from bench.harness.figures import Figures, documents, render
from bench.harness.record import ROOT
from bench.harness.runs import LaunchRun
from bench.schedulers import ALL_MIXES, LENGTHS, MIXES_LEARNED
from microkernels.data.stereo import motorcycle
from microkernels.suite import suite
from pe.interface import PeCounter
from sim_tb.cosim.recorded import RecordedRun
from sim_tb.harness.network import Destinations
from sim_tb.workloads.certificate import CertifiedRun
from sim_tb.workloads.traffic import TRAFFICS
from soc.generate.generate import verilog
from soc.generate.presets import preset
from synth.physical.devices import find_device
from synth.physical.units import units
from vip.energy import STATES

Set = Callable[[Any, str, Any], None]


class Anything(SimpleNamespace):
    """Has every attribute: the number 1."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return 1


def asked(record: str) -> set[str]:
    """Figures of ``record`` that the sources in README and the guides name."""
    named: set[str] = set()

    class Named(Figures):
        def value(self, source: str) -> str:
            named.update(re.findall(rf"\b{record}\[([^*\]]+)\]", source))
            return ""

    for file in documents():
        render(file, (ROOT / file).read_text(encoding="utf-8"), Named())
    return named


def check(name: str, *others: str) -> dict[str, float]:
    """Figures of a benchmark by name: all that the guides name, each once."""
    wanted = asked(name)
    assert wanted, f"no guide names a figure of {name}"
    results = list(find(name).run())
    assert all(isinstance(item, Measurement) for item in results)
    found = {item.name: item.value for item in results}
    assert len(found) == len(results)
    assert wanted - set(found) - set(others) == set()
    return found


AREA = SimpleNamespace(
    values=dict.fromkeys(("luts", "ffs", "dsps", "brams", "logic_ge", "sram_bits"), 1.0)
)


@pytest.fixture(autouse=True)
def _no_synthesis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "measure_unit", lambda *_: AREA)
    monkeypatch.setattr(parts, "synthesise", lambda *_: SimpleNamespace(total=AREA))


def test_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(name: str, batch: int, *_: object) -> Anything:
        updates = int(name in ("bp_m", "bp_coarse"))
        return Anything(updates=updates, counters={"VECTOR_BUSY": 1})

    monkeypatch.setattr(kernels, "run_kernel", run)
    # The table is named by its rows, of which two have no updates.
    check(
        "kernels",
        "bp_construct_batch_1_cycles_per_update",
        "bp_copy_batch_1_cycles_per_update",
    )


def test_vault_and_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault, "run_variant", lambda *_, **__: dict.fromkeys(TRAFFICS, Anything()))
    check("vault")
    outcome = Anything(
        match=True,
        result=Anything(latencies=dict.fromkeys(range(20), 1), vaults=[defaultdict(int)]),
    )
    monkeypatch.setattr(vault, "run_on", lambda *_, **__: outcome)
    check("memory_variants")
    monkeypatch.setattr(vault, "run_stress", lambda **_: [])
    monkeypatch.setattr(vault, "stress_totals", lambda _: defaultdict(int))
    check("vault_stress")


def test_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "run_on", lambda *_, **__: Anything())
    monkeypatch.setattr(clocks, "run_stress", lambda **_: [])
    monkeypatch.setattr(clocks, "stress_totals", lambda _: defaultdict(int))
    assert "cnn_240_same_ns_4_gain" in check("clocks")


def test_policies(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {mix: [Measurement("gbs", 1, "GB/s", None)] for mix in ALL_MIXES}
    curves = {mix: [1.0 for _ in LENGTHS] for mix in MIXES_LEARNED}
    monkeypatch.setattr(schedulers, "measure_alone", dict)
    monkeypatch.setattr(schedulers, "measure_policy", lambda *_: rows)
    monkeypatch.setattr(schedulers, "measure_bandwidth", lambda *_: curves)
    assert check("schedulers")["learned_applications_gbs"] == 1


def test_clock_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    both = dict.fromkeys(("clk", "clk_mem"), Anything(fmax_mhz=1, ns=1))
    timed = both, {("clk", "clk_mem"): ((), Anything())}
    monkeypatch.setattr(clocks, "time_vault", lambda _: timed)
    each = SimpleNamespace(rates=dict.fromkeys(both, 1.0), crossings=[Anything()])
    used = dict.fromkeys(("luts", "ffs", "brams"), 1.0)
    placed = SimpleNamespace(placements=[each], used=used, rate_mhz=lambda _: 1.0)
    monkeypatch.setattr(clocks, "place_vault", lambda *_, **__: placed)
    check("clock_rates")


def test_boards(monkeypatch: pytest.MonkeyPatch) -> None:
    used = {"luts": 1.0, "brams": 1.0}
    board = SimpleNamespace(family=SimpleNamespace(name="ecp5"))
    design = SimpleNamespace(mhz=50.0, chip=SimpleNamespace(vault_bytes=1, pe=None), board=board)
    area = SimpleNamespace(flat=SimpleNamespace(values=used))
    built = SimpleNamespace(seeds={1: 60.0, 2: 75.0, 3: 55.0}, used=used)
    work = SimpleNamespace(jobs=(SimpleNamespace(end=7),))
    monkeypatch.setattr(trim, "_BOARDS", dict.fromkeys(trim._PLACED, ("", lambda: work, {})))
    monkeypatch.setattr(trim, "board_design", lambda *_, **__: design)
    monkeypatch.setattr(trim, "build_board", lambda *_, **__: built)
    monkeypatch.setattr(trim, "synthesise", lambda *_, **__: area)
    found = check("boards")
    assert found["bp_margin"] == pytest.approx(0.2)
    assert (found["bp_mhz"], found["digits_least_mhz"]) == (60, 55)


def test_network(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"flits": 1, "packets": 1, "cycles": 1, "longest": 1}
    monkeypatch.setattr(network, "_stress_row", lambda *_: row)
    monkeypatch.setattr(network, "_row_key", lambda *_: "")
    monkeypatch.setattr(network.ResultCache, "get", lambda self, key, make: make())

    def curve(size: tuple[int, int], kind: Destinations, seed: int) -> Anything:
        return Anything(
            columns=size[0], rows=size[1], destinations=kind.name.lower(), points=[(0.1, 0.1, 1.0)]
        )

    monkeypatch.setattr(network, "measure_curve", curve)
    names = {f"8x4_{kind}_answers_cycles" for kind in ("neighbour", "uniform", "hot_spot")}
    assert names <= set(check("network"))
    check("network_area")


def test_stereo(monkeypatch: pytest.MonkeyPatch) -> None:
    results = dict.fromkeys(("construct", "coarse", "copy", "fine"), Anything())
    monkeypatch.setattr(stereo, "run_on", lambda *_: SimpleNamespace(match=True, results=results))
    scene = motorcycle(24, 18, 8)
    monkeypatch.setattr(stereo, "motorcycle", lambda *_: scene)
    check("stereo")


def test_chip_and_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(number * number for number in range(1, 1000))
    for module in (chip, speed):
        monkeypatch.setattr(module, "cpu_seconds", lambda: next(seconds))
    monkeypatch.setattr(chip, "child_seconds", lambda: next(seconds))
    outcome = Anything(match=True, result=Anything())
    for name in ("generate", "chip_design", "build"):
        monkeypatch.setattr(chip, name, lambda *_, **__: Anything())
    monkeypatch.setattr(chip, "run_on", lambda *_, **__: outcome)
    check("chip")
    cycles = iter(range(1, 100))
    for name in ("run_on", "run_on"):
        monkeypatch.setattr(speed, name, lambda *_, **__: Anything(cycles=next(cycles)))
    check("speed")


def test_timing_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(run: CertifiedRun, on: str) -> tuple[int, dict[str, int]]:
        return 100 * len(run.jobs) if on == "model" else 200 * len(run.jobs), {}

    monkeypatch.setattr(timing_model, "run_certified", run)
    monkeypatch.setattr(timing_model, "values", lambda _: defaultdict(lambda: 100.0))
    bandwidths = [Measurement("one", 100.0, "GB/s"), Measurement("other", 99.0, "GB/s")]
    monkeypatch.setattr(timing_model, "vault", lambda on: {"model": bandwidths}[on])
    found = check("timing_model")
    # Six layers have a launch more, for their pooling.
    assert (found["vault_runs"], found["vault_equal_runs"]) == (24, 18)
    assert found["vault_largest_difference"] == 100
    assert (found["chip_runs"], found["chip_equal_runs"]) == (8, 0)
    assert (found["engine_runs"], found["engine_equal_runs"]) == (len(suite()) + 1, 0)
    assert found["engine_largest_difference"] == 50
    assert (found["memory_one"], found["memory_other"]) == (100, 99)
    assert (found["memory_runs"], found["memory_equal_runs"]) == (2, 1)
    assert found["memory_largest_difference"] == pytest.approx(1)


def test_chips(monkeypatch: pytest.MonkeyPatch) -> None:
    run = LaunchRun(
        cycles=1000,
        tck_ns=0.8,
        counters=dict.fromkeys(PeCounter.__members__, 100) | {"CYCLES": 1000},
        gbs=1.0,
        simulated=500,
        seconds=2.0,
        processors=2,
    )
    runs = {"construct": run, "fine": run}
    monkeypatch.setattr(belief, "measure_full_hd", lambda *_: runs)
    found = {item.name: item.value for item in belief.full_hd()}
    assert found["levels_five_fine_ms"] == pytest.approx(1000 / 5 * 0.8 / 1e6)
    assert found["levels_five_total_ms"] == pytest.approx(2 * 1000 * 0.8 / 1e6)
    assert found["levels_five_fine_vector_busy"] == pytest.approx(10)
    assert found["levels_five_kcycles_per_second"] == 0.125
    point = replace(
        run,
        cycles=2000,
        vaults={"BUS_BUSY": 1, "CYCLES": 10},
        counters=run.counters | {"CYCLES": 2000},
    )
    series = {"vaults": {"2": point}, "small": {"2": point}, "image": {"8x6": point}}
    monkeypatch.setattr(belief, "measure_scaling", lambda *_: series)
    found = {item.name: item.value for item in belief.scaling()}
    assert found["vaults_2_ms"] == pytest.approx(0.0016)
    assert found["small_2_cycles"] == 2000
    assert found["image_8x6_waits"] == 25
    assert found["image_8x6_bus_busy"] == 10


def test_digits_and_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digits, "load_digits", lambda: (None, None))
    monkeypatch.setattr(digits, "trained", lambda _: None)
    monkeypatch.setattr(digits, "known", lambda *_: (1.0, 1.0))
    monkeypatch.setattr(digits, "engine_cycles", lambda *_: 1.0)
    check("digits")
    found = {name: SimpleNamespace(holds=True, goals=1, seconds=1.0) for name in suite()}
    monkeypatch.setattr(trim, "prove", lambda **_: SimpleNamespace(proofs=found))
    check("proofs")


def test_area_cells_placement_and_power(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("logic_ge", "area_um2", "sram_um2", "luts", "ffs", "dsps", "brams", "fmax_mhz")
    values = dict.fromkeys(names, 1.0)
    rows = [SimpleNamespace(unit=unit, values=values) for unit in _units()]
    report = SimpleNamespace(rows=rows, total=SimpleNamespace(unit="total", values=values))
    monkeypatch.setattr(engine, "synthesise", lambda *_: report)
    path = SimpleNamespace(fmax_mhz=1.0)
    corner = SimpleNamespace(pins=path, wires=path)
    timed = SimpleNamespace(logic_ge=1.0, corners=(corner,))
    monkeypatch.setattr(engine, "timing", lambda *_: timed)
    check("area")
    check("standard_cells")

    def place(config: object, device: str, *, seeds: int) -> Any:
        used = dict.fromkeys(("luts", "ffs", "dsps", "brams"), 1.0)
        return SimpleNamespace(
            fmax_mhz=1.0,
            placements=[path] * seeds,
            used=used,
            device=find_device(device),
        )

    monkeypatch.setattr(engine, "place", place)
    check("placement")

    def power(runs: list[Any], config: object, target: str) -> Any:
        what = "message update" if runs == ["bp"] else "multiply-accumulate"

        class Power(Anything):
            work = (what,)
            rows = tuple(
                SimpleNamespace(unit=unit, milliwatts=lambda mhz: 1.0)
                for unit in ("counters", "scratchpad")
            )
            total = SimpleNamespace(milliwatts=lambda mhz: 1.0)

            def at_thesis_node(self) -> "Power":
                return self

            def energy_pj(self, what: str, mhz: float) -> float:
                return 1.0

        return Power()

    recorded = RecordedRun({"port": [0, 0, 1]}, (0, 1), {})
    outcome = Anything(
        match=True, results={"": Anything(engine=Anything(counters={"VECTOR_BUSY": 1}))}
    )
    monkeypatch.setattr(engine, "record", lambda kernel, config: kernel)
    monkeypatch.setattr(engine, "record_program", lambda *_, **__: recorded)
    monkeypatch.setattr(engine, "record_job", lambda *_: recorded)
    monkeypatch.setattr(engine, "run_on", lambda *_: outcome)
    monkeypatch.setattr(engine, "engine_power", power)
    found = check("power")
    # Of each cycle the power is the same: 1 mW at 1,250 MHz.
    assert {found[f"{state}_pj_per_cycle"] for state in STATES} == {0.8}


def _units() -> Iterator[str]:
    yield from (unit.name for unit in units(verilog(preset("pe"))))
