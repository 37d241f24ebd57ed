"""Belief propagation on the variants of a vault's memory."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from bench import vault as experiments
from sim_tb.cosim.engine import CosimError
from sim_tb.workloads.traffic import Variant
from soc.generate.presets import tile_preset

SMALL = tile_preset("vault-small")
BASE = Variant(name="base", text="as it is", config=SMALL.dram)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    crossbar = replace(BASE, name="crossbar", requesters=3)
    monkeypatch.setattr(experiments, "VARIANTS", [BASE, crossbar])
    monkeypatch.setattr(experiments, "_TILE", "vault-small")


def test_row_a_variant_with_what_its_counters_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "_WIDTH", 6)
    monkeypatch.setattr(experiments, "_HEIGHT", 4)
    figures = {item.name: item.value for item in experiments.vault_bp()}
    assert all(name.startswith("base_") for name in figures)
    assert 0 < figures["base_gbs"] < 10
    assert figures["base_cycles_per_update"] > 80
    assert 0 < figures["base_row_hits"] < 1
    assert 0 <= figures["base_late"] < 0.5


def test_wrong_message_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "run_on", lambda job, config: SimpleNamespace(match=False))
    with pytest.raises(CosimError, match=r"^base: outputs differ"):
        list(experiments.vault_bp())
