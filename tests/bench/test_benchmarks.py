"""The figures of benchmarks have the names that README and guides use; nothing is measured."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from bench import applications, chips, engine, functional, memories, proofs, timing_model
from bench.benchmarks import BENCHMARKS
from bench.figures import read_spec
from bench.measurement import Measurement
from bench.policies import agents, schedulers
from bench.two_clocks import clocks, rates
from memory.agent.config import AgentConfig
from memory.agent.features import FEATURES
from microkernels.suite import suite
from pe.interface import PeCounter
from sim_tb.harness.network import Destinations
from sim_tb.measure.agents.feature_search import Generation
from sim_tb.measure.agents.learning import LENGTHS, MIXES_LEARNED
from sim_tb.measure.certificate import CertifiedRun
from sim_tb.measure.full_hd import Phase
from sim_tb.measure.kernel_rows import KernelRow
from sim_tb.measure.kernels import BATCHES, LSTM
from sim_tb.measure.network_cases import SIZES, stress_cases
from sim_tb.measure.scaling import Point
from sim_tb.measure.schedulers import ALL_MIXES
from sim_tb.measure.two_clocks.suite import BUS_LATENCIES
from sim_tb.measure.vault import TRAFFICS, VARIANTS
from sim_tb.measure.vgg import LAYERS
from soc.generate.generate import verilog
from soc.generate.presets import preset
from synth.physical.devices import find_device
from synth.physical.units import units

Set = Callable[[Any, str, Any], None]


class Anything(SimpleNamespace):
    """Has every attribute: the number 1."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return 1


def asked(record: str) -> set[str]:
    """Figures of ``record`` that the specifications of the guides name."""
    found = set()
    for spec in read_spec():
        templates = [spec.text, *(t for cells in spec.cells.values() for t in cells.values())]
        rows = set(spec.names.values()) or {"@"}
        templates += [
            template.replace("@", row) for template in spec.columns.values() for row in rows
        ]
        for template in templates:
            found |= set(re.findall(rf"{{{record}\[([^]]*)\]", template))
            found |= set(
                re.findall(rf"{{(?:percent|thousandth|thousandfold)\[{record}_([^]]*)\]", template)
            )
    # percent[vault_bp_late] is of vault_bp, not of vault.
    longer = [other[len(record) + 1 :] for other in BENCHMARKS if other.startswith(f"{record}_")]
    others = tuple(f"{rest}_" for rest in longer)
    return {name for name in found if "@" not in name and not name.startswith(others)}


def check(name: str, *others: str) -> dict[str, float]:
    """Figures of a benchmark by name: all that the guides name, each once."""
    wanted = asked(name)
    assert wanted, f"no guide names a figure of {name}"
    results = list(BENCHMARKS[name].run())
    assert all(isinstance(item, Measurement) for item in results)
    found = {item.name: item.value for item in results}
    assert len(found) == len(results)
    assert wanted - set(found) - set(others) == set()
    return found


def test_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    def row(name: str, batch: int, scaled: str = "") -> KernelRow:
        units = 7972 if scaled else 0
        return KernelRow(
            name=name,
            batch=batch,
            limit_ms=1,
            thesis_ms=1,
            ours_ms=1,
            match=True,
            cycles=0 if name.startswith("VGG") else 100,
            scaled=scaled,
            units=units,
            engines=4,
        )

    rows = [row(name, 1, "updates") for name in ("bp_m", "bp_coarse")]
    rows += [row(name, 1, "pixels") for name in ("bp_construct", "bp_copy")]
    names = [*(layer.name for layer in LAYERS), "VGG-16 convolutions", "VGG-16"]
    rows += [row(name, batch) for name in names for batch in BATCHES]
    rows.append(row(LSTM, 32))
    monkeypatch.setattr(applications, "measure_kernels", lambda config: rows)
    # Rows without updates have no rate, and the table of layers is named by its rows.
    check(
        "kernels",
        "bp_construct_batch_1_cycles_per_update",
        "bp_copy_batch_1_cycles_per_update",
    )


def test_vault_and_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {variant.name: dict.fromkeys(TRAFFICS, Anything()) for variant in VARIANTS}
    monkeypatch.setattr(memories, "measure", lambda *_, **__: SimpleNamespace(rows=rows))
    check("vault")
    found = {variant.name: Anything() for variant in VARIANTS if not variant.requesters}
    monkeypatch.setattr(memories, "measure_bp", lambda config: found)
    check("vault_bp")
    monkeypatch.setattr(memories, "run_stress", lambda **_: Anything())
    check("vault_stress")


def test_preload(monkeypatch: pytest.MonkeyPatch) -> None:
    area = SimpleNamespace(values=dict.fromkeys(("luts", "ffs", "brams"), 1.0))
    monkeypatch.setattr(memories, "measure_unit", lambda *_: area)
    monkeypatch.setattr(memories, "synthesise", lambda *_: SimpleNamespace(total=area))
    filled = [Anything(name=each.name, cycles=(1, 1, 1), beside=(1, 1)) for each in suite()]
    monkeypatch.setattr(memories, "measure_preload", lambda **_: filled)
    check("preload")


def test_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        Anything(name=each.name, latency=latency, faster=(1, 1, 1), same_ns=(1, 1, 1))
        for each in suite()
        for latency in BUS_LATENCIES
    ]
    monkeypatch.setattr(clocks, "measure_clocks", lambda **_: rows)
    monkeypatch.setattr(clocks, "run_clock_stress", lambda **_: Anything())
    area = SimpleNamespace(values=dict.fromkeys(("luts", "ffs", "brams"), 1.0))
    monkeypatch.setattr(clocks, "measure_unit", lambda *_: area)
    assert "cnn_240_same_ns_4_gain" in check("clocks")


def test_policies_and_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {mix: Anything() for mix in ALL_MIXES}
    curves = {mix: [1.0 for _ in LENGTHS] for mix in MIXES_LEARNED}
    for module in (schedulers, agents):
        monkeypatch.setattr(module, "measure_alone", dict)
        monkeypatch.setattr(module, "measure_policy", lambda *_: rows)
        monkeypatch.setattr(module, "measure_bandwidth", lambda *_: curves)
        monkeypatch.setattr(module, "part_kge", lambda _: 1.0)
    assert check("schedulers")["learned_applications_gbs"] == 1
    ones = [Anything(agent=AgentConfig(seed=1 + number)) for number in range(4)]
    ranked = tuple((one, 1.0) for one in ones)
    past = [Generation(number, ranked, ranked) for number in range(agents.GENERATIONS)]
    monkeypatch.setattr(agents, "search", lambda *_, **__: past)
    monkeypatch.setattr(agents, "cost", lambda _: 1.0)
    monkeypatch.setattr(agents, "without_each_feature", lambda _: dict.fromkeys(FEATURES, 1.0))
    monkeypatch.setattr(agents, "engine_netlist", lambda *_: None)
    monkeypatch.setattr(agents, "longest_paths", lambda *_: {"output": Anything()})
    found = check("agents")
    assert found["winner_3_reads"] == 4
    assert found["winner_3_queue"] == 0
    assert "winner_4_reads" not in found


def test_clock_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    both = dict.fromkeys(("clk", "clk_mem"), Anything(fmax_mhz=1, ns=1))
    crossings = [Anything(path=Anything())]
    timed = SimpleNamespace(longest=both, crossings=crossings)
    monkeypatch.setattr(rates, "time_vault", lambda _: timed)
    each = SimpleNamespace(fmax_mhz=dict.fromkeys(both, 1.0), crossings=crossings)
    used = dict.fromkeys(("luts", "ffs", "brams"), 1.0)
    placed = SimpleNamespace(placements=[each], used=used, fmax_mhz=lambda _: 1.0)
    monkeypatch.setattr(rates, "place_vault", lambda *_, **__: placed)
    check("clock_rates")


def test_network(monkeypatch: pytest.MonkeyPatch) -> None:
    stress = [Anything(case=case.name) for case in stress_cases(SIZES, flits=1_000_000, seed=1)]
    curves = [
        Anything(columns=8, rows=4, destinations=kind.name.lower(), points=[Anything()])
        for kind in Destinations
    ]
    report = SimpleNamespace(stress=stress, curves=curves)
    monkeypatch.setattr(memories, "measure_network", lambda **_: report)
    names = {f"8x4_{kind}_answers_cycles" for kind in ("neighbour", "uniform", "hot_spot")}
    assert names <= set(check("network"))
    area = SimpleNamespace(values=dict.fromkeys(("logic_ge", "luts", "ffs"), 1.0))
    monkeypatch.setattr(memories, "measure_unit", lambda *_: area)
    check("network_area")


def test_stereo(monkeypatch: pytest.MonkeyPatch) -> None:
    cycles = dict.fromkeys(("construct", "coarse", "copy", "fine"), 1)
    figures = Anything(cycles=cycles, match=True)
    monkeypatch.setattr(applications, "measure_stereo", lambda *_, **__: (figures, None))
    monkeypatch.setattr(applications, "_STEREO", (24, 18, 8))
    check("stereo")


def test_chip_and_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(number * number for number in range(1, 1000))
    monkeypatch.setattr(applications, "cpu_seconds", lambda: next(seconds))
    monkeypatch.setattr(applications, "child_seconds", lambda: next(seconds))
    outcome = Anything(match=True, result=Anything())
    for name in ("generate", "build_chip", "run_on", "run_on"):
        monkeypatch.setattr(applications, name, lambda *_, **__: Anything())
    monkeypatch.setattr(applications, "run_on", lambda *_, **__: outcome)
    check("chip")
    cycles = iter(range(1, 100))
    for name in ("run_on", "run_on"):
        monkeypatch.setattr(applications, name, lambda *_, **__: Anything(cycles=next(cycles)))
    check("speed")


def test_timing_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(run: CertifiedRun, on: str) -> tuple[int, dict[str, int]]:
        return 100 * len(run.jobs) if on == "model" else 200 * len(run.jobs), {}

    monkeypatch.setattr(timing_model, "run_certified", run)
    monkeypatch.setattr(timing_model, "values", lambda _: defaultdict(lambda: 100.0))
    bandwidths = [Measurement("one", 100.0, "GB/s"), Measurement("other", 99.0, "GB/s")]
    monkeypatch.setattr(timing_model, "vault_figures", lambda on: {"model": bandwidths}[on])
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
    phases = [
        Phase(
            name=name,
            iterations=iterations,
            cycles=1000,
            tck_ns=0.8,
            shares=dict.fromkeys(PeCounter.__members__, 0.1),
            gbs=1.0,
            flits=0,
            simulated=500,
            seconds=2.0,
            processors=2,
        )
        for name, iterations in (("construct", 1), ("fine", 5))
    ]
    monkeypatch.setattr(chips, "measure_full_hd", lambda *_: phases)
    found = {item.name: item.value for item in chips.full_hd()}
    assert found["levels_fine_ms"] == pytest.approx(1000 / 5 * 0.8 / 1e6)
    assert found["levels_total_ms"] == pytest.approx(2 * 1000 * 0.8 / 1e6)
    assert found["levels_kcycles_per_second"] == 0.125
    point = Point(
        vaults=2,
        engines=4,
        width=8,
        height=6,
        updates=100,
        cycles=2000,
        tck_ns=0.8,
        vector_busy=0.5,
        waits=0.25,
        bus_busy=0.1,
    )
    series = [("vaults", point), ("small", point), ("engines", point), ("image", point)]
    monkeypatch.setattr(chips, "measure_scaling", lambda *_: series)
    found = {item.name: item.value for item in chips.scaling()}
    assert found["vaults_2_ms"] == pytest.approx(0.0016)
    assert found["small_2_cycles"] == 2000
    assert found["image_8x6_waits"] == 25


def test_functional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functional, "_job", Anything)
    monkeypatch.setattr(functional, "execute", lambda _: Anything(match=True))
    monkeypatch.setattr(functional, "_SECONDS", 1e-9)
    monkeypatch.setattr(functional, "_LAUNCHES", 2)
    check("functional")
    rates = [item for item in functional.functional() if item.unit == "k/s"]
    assert len(rates) == len(suite())
    assert all(item.value > 0 for item in rates)


def test_digits_and_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(applications, "load_digits", lambda: None)
    monkeypatch.setattr(applications, "train", lambda *_, **__: None)
    monkeypatch.setattr(applications, "cosim_digits", lambda *_, **__: Anything(match=True))
    check("digits")
    found = {each.name: SimpleNamespace(holds=True, goals=1, seconds=1.0) for each in suite()}
    monkeypatch.setattr(proofs, "prove", lambda **_: SimpleNamespace(proofs=found))
    check("proofs")


def test_area_cells_placement_and_power(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("logic_ge", "area_um2", "sram_um2", "luts", "ffs", "dsps", "brams", "fmax_mhz")
    values = dict.fromkeys(names, 1.0)
    rows = [SimpleNamespace(unit=unit, values=values) for unit in _units()]
    report = SimpleNamespace(rows=rows, total=SimpleNamespace(unit="total", values=values))
    monkeypatch.setattr(engine, "synthesise", lambda *_: report)
    path = SimpleNamespace(fmax_mhz=1.0)
    corner = SimpleNamespace(pins=path, wires=path, open_sta_pins=None, open_sta_wires=None)
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

    def power(runs: list[str], config: object, target: str) -> Any:
        what = "message update" if runs == ["bp"] else "multiply-accumulate"

        class Power(Anything):
            work = (what,)
            rows = ()
            total = SimpleNamespace(milliwatts=lambda mhz: 1.0)

            def at_thesis_node(self) -> "Power":
                return self

            def energy_pj(self, what: str, mhz: float) -> float:
                return 1.0

        return SimpleNamespace(report=Power())

    monkeypatch.setattr(engine, "record", lambda kernel, config: kernel)
    monkeypatch.setattr(engine, "engine_power", power)
    check("power")


def _units() -> Iterator[str]:
    yield from (unit.name for unit in units(verilog(preset("pe"))))
