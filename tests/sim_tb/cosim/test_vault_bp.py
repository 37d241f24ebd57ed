"""Belief propagation on the variants of a vault's memory."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from microkernels.data.stereo import motorcycle
from sim_tb.cosim.engine import CosimError
from sim_tb.measure import vault_bp
from sim_tb.measure.vault import Variant
from sim_tb.measure.vault_bp import measure_bp
from soc.generate.presets import tile_preset

SMALL = tile_preset("vault-small")
BASE = Variant(name="base", what="as it is", config=SMALL.dram)


def test_row_a_variant_with_what_its_counters_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault_bp, "_WIDTH", 6)
    monkeypatch.setattr(vault_bp, "_HEIGHT", 4)
    crossbar = replace(BASE, name="crossbar", requesters=3)
    seen: list[str] = []
    found = measure_bp(SMALL, [BASE, crossbar], progress=lambda variant: seen.append(variant.name))
    assert seen == list(found) == ["base"]
    row = found["base"]
    served = row.counters["READS"] + row.counters["WRITES"]
    assert served >= 4 * motorcycle(6, 4, 16).problem.updates
    assert row.row_hits == pytest.approx(row.counters["ROW_HITS"] / served, abs=1e-4)
    assert 0 < row.gbs < 10
    assert row.cycles_per_update > 80
    assert 0 <= row.late < 0.5
    assert row.to_dict()["counters"] == row.counters


def test_wrong_message_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(job: object, config: object) -> SimpleNamespace:
        return SimpleNamespace(match=False, differing=3)

    monkeypatch.setattr(vault_bp, "run_on", wrong)
    with pytest.raises(CosimError, match=r"^base: 3 message elements differ"):
        measure_bp(SMALL, [BASE])
