"""Belief propagation and VGG-16 on the variants of a vault's memory."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import vault as experiments
from microkernels.nn.window_shape import PoolShape
from sim_tb.cosim.engine import CosimError
from sim_tb.workloads.tiles import TileLayer
from sim_tb.workloads.traffic import Variant
from soc.chip.config import ChipConfig
from soc.generate.presets import tile_preset

SMALL = tile_preset("vault-small")
BASE = Variant(name="base", text="as it is", config=SMALL.dram)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    crossbar = replace(BASE, name="crossbar", requesters=3)
    monkeypatch.setattr(experiments, "VARIANTS", [BASE, crossbar])
    monkeypatch.setattr(experiments, "_TILE", "vault-small")
    pool = TileLayer(name="pool", pool=PoolShape(width=8, height=4, channels=16))
    monkeypatch.setattr(experiments, "LAYERS", {"pool": pool})


def test_row_a_variant_with_what_its_counters_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "_WIDTH", 6)
    monkeypatch.setattr(experiments, "_HEIGHT", 4)
    figures = {item.name: item.value for item in experiments.memory_variants()}
    assert 0 < figures["bp_base_gbs"] < 10
    assert figures["bp_base_cycles_per_update"] > 80
    assert 0 < figures["bp_base_row_hits"] < 1
    assert 0 <= figures["bp_base_late"] < 0.5
    assert figures["vgg_base_pooling_cycles"] > 100
    # Data of a memory beyond a link come later, so nothing is faster.
    assert figures["bp_beyond_100_ns_cycles_per_update"] > figures["bp_base_cycles_per_update"]
    assert figures["vgg_beyond_100_ns_ms"] > figures["vgg_base_ms"]
    assert not any("crossbar" in name for name in figures)


def test_variants_of_a_chip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Figures of runs, which a picture shows; VGG-16 is run for some variants."""
    base = replace(BASE, config=tile_preset("vault").dram)
    other = replace(base, name="open-page", text="open")
    monkeypatch.setattr(experiments, "VARIANTS", [base, other])
    sizes: list[int] = []

    def full_hd(name: str, config: ChipConfig) -> dict[str, SimpleNamespace]:
        sizes.append(config.tile.dram.size_bytes)
        return {"fine": SimpleNamespace(gbs=200.0, cycles=5_000_000, tck_ns=0.8)}

    run = SimpleNamespace(gbs=150.0, ms=4.0)
    monkeypatch.setattr(experiments, "measure_full_hd", full_hd)
    monkeypatch.setattr(experiments, "measure_network", lambda *_: run)
    monkeypatch.setattr(experiments, "measure_by_vault", lambda *_: (151.0, 4.1))
    path = tmp_path / "chip.png"
    figures = {item.name: item.value for item in experiments.chip_variants(drawing=path)}
    assert path.stat().st_size > 1000
    assert figures["bp_base_ms"] == 4.0
    assert figures["vgg_open_page_gbs"] == 150.0
    assert "vgg_base_gbs" not in figures
    assert figures["vgg_by_vault_base_gbs"] == 151.0
    assert figures["vgg_by_vault_open_page_ms"] == 4.1
    assert sizes == [base.config.size_bytes] * 4


def test_networks_of_a_chip_by_vault(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = {("vgg19", 1): (120.0, 32.0), ("vgg16", 16): (110.0, 400.0)}
    monkeypatch.setattr(
        experiments, "measure_by_vault", lambda name, config, batch: runs[name, batch]
    )
    figures = {item.name: item.value for item in experiments.chip_networks()}
    assert figures["vgg16_batch_16_ms"] == 400.0
    assert figures["vgg19_batch_1_gbs"] == 120.0


def test_wrong_message_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "run_on", lambda job, config, on: SimpleNamespace(match=False))
    with pytest.raises(CosimError, match=r"^base: outputs differ"):
        list(experiments.memory_variants())


def test_a_batch_repeats_images_but_reads_weights_once(monkeypatch: pytest.MonkeyPatch) -> None:
    dense = TileLayer(name="fc8", dense=(64, 16))
    twice = TileLayer(name="conv3_2", pool=PoolShape(width=8, height=4, channels=16))
    monkeypatch.setattr(experiments, "_TILE", "vault")
    monkeypatch.setattr(experiments, "LAYERS", {one.name: one for one in (dense, twice)})
    figures = {item.name: item.value for item in experiments.vgg16_layers()}
    for unit in ("ms", "mib"):
        one, many = (figures[f"conv3_batch_{batch}_{unit}"] for batch in (1, 16))
        assert many == pytest.approx(16 * one)
        one, many = (figures[f"fc8_batch_{batch}_{unit}"] for batch in (1, 16))
        assert one < many < 12 * one
    assert figures["total_batch_1_ms"] == pytest.approx(
        figures["conv3_batch_1_ms"] + figures["fc8_batch_1_ms"]
    )
    assert figures["vgg19_ms"] == pytest.approx(
        figures["total_batch_1_ms"] + figures["conv3_batch_1_ms"]
    )
