"""What runs cost: bytes of DRAM, and energy of the parts of a machine."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, save

import vip
from isa.run import EngineEnd, RunResult
from microkernels.data.stereo import motorcycle
from sim_tb.cosim.kernels import bp_job_on, run_on
from soc.chip.config import ChipConfig
from soc.generate.presets import chip_preset, preset, tile_preset
from soc.tile.config import VaultTileConfig
from support.errors import VipError
from tests.onnx_models.graphs import model
from vip.energy import DRAM_PJ_PER_BIT, STATES, energy_uj, work

COUNTERS = {
    "CYCLES": 800,
    "VECTOR_BUSY": 500,
    "STALL_REGISTER": 200,
    "BYTES_LOADED": 96,
    "BYTES_STORED": 32,
}
VAULT = {"READS": 3, "WRITES": 1, "LINE_HITS": 5, "LINE_MERGED": 1, "LINE_FILLS": 2}


def launch(engines: int, **counters: int) -> RunResult:
    """A launch of 1,000 cycles."""
    end = EngineEnd(
        state="halted", cycles=800, elapsed_cycles=1000, counters={**COUNTERS, **counters}
    )
    return RunResult(engines=(end,) * engines, simulated_cycles=1000, seconds=1.0, vaults=(VAULT,))


@pytest.mark.parametrize(
    ("name", "products"), [("vault", "products"), ("vault-int8", "products_of_bytes")]
)
def test_every_cycle_of_every_engine_counts_once(name: str, products: str) -> None:
    """Those of engines that are not launched, and those in which programs are loaded, too."""
    config = tile_preset(name)
    done = work(config, launch(3), loading=100)
    cycles = {state: done.get(state, 0) for state in STATES}
    assert sum(cycles.values()) == config.engines * 1100
    assert cycles == dict.fromkeys(STATES, 0) | {
        products: 3 * 500,
        "waiting": 3 * 200,
        "moving": 3 * 100,
        "halted": 3 * 300 + 1100,
    }
    # A cycle in which the vector unit works costs its product alone.
    both = work(config, launch(4, VECTOR_BUSY=700))
    assert (both["waiting"], both["moving"]) == (4 * 100, 0)


def test_parts_of_a_machine() -> None:
    config = tile_preset("vault-int8")
    done = work(config, launch(4))
    assert (done["read_bytes"], done["written_bytes"]) == (96, 32)
    energy = energy_uj(config, done)
    assert set(energy) == {"engines", "DRAM"}
    assert energy["DRAM"] == pytest.approx(128 * 8 * DRAM_PJ_PER_BIT / 1e6)
    assert energy["engines"] > 0
    lines = replace(config, line_buffer=32)
    done = work(lines, launch(4))
    assert done["line_buffer_words"] == 4 * 8
    # Less than a thousandth of a column of DRAM for each word.
    assert 0 < energy_uj(lines, done)["line buffer"] < 32 * 2.56e-3
    # All that is loaded may come from a memory on the chip; an engine alone has no other figure.
    run = replace(launch(4), vaults=({**VAULT, "READS": 0, "WRITES": 0},))
    done = work(chip_preset("edge-int8"), run)
    assert (done["read_bytes"], done["written_bytes"]) == (0, 0)
    assert done["preload_words"] == 4 * (96 + 32) // 8
    done = work(preset("pe-int8"), replace(run, vaults=()))
    assert (done["read_bytes"], done["written_bytes"]) == (4 * 96, 4 * 32)
    chip = chip_preset("thesis")
    run = replace(launch(4), network=(dict.fromkeys(_LINKS, 1),))
    assert energy_uj(chip, work(chip, run))["network"] > 0


_LINKS = ("EAST_FLITS", "WEST_FLITS", "NORTH_FLITS", "SOUTH_FLITS")


@pytest.mark.parametrize("config", [tile_preset("vault-small"), chip_preset("fpga")])
def test_no_energy_without_power_data(config: VaultTileConfig | ChipConfig) -> None:
    done: Mapping[str, int] = dict.fromkeys((*STATES, "read_bytes", "written_bytes", "flits"), 1)
    with pytest.raises(VipError, match="no energy: power is recorded for engines of the presets"):
        energy_uj(config, done)


def test_a_chip_counts_the_words_of_its_line_buffers() -> None:
    tiny = chip_preset("tiny")
    config = replace(tiny, tile=replace(tiny.tile, line_buffer=8))
    job = bp_job_on(motorcycle(16, 16, 4).problem, 1, config)
    outcome = run_on(job, config, on="model", preload=True)
    assert outcome.match
    for run in outcome.results.values():
        assert work(config, run)["line_buffer_words"] >= 4 * run.vaults[0]["LINE_FILLS"] > 0


def test_a_models_layers_have_bytes_and_energy(tmp_path: Path) -> None:
    made = model([helper.make_node("Relu", ["x"], ["y"])], ("n", 64))
    save(made, tmp_path / "m.onnx")
    x = {"x": np.linspace(-1, 1, 64, dtype=np.float32)[None]}
    vip.compile_model(tmp_path / "m.onnx", x, tmp_path / "m")
    run = vip.run_model(tmp_path / "m", x, on="model")
    (figures,) = run.layers
    layer = figures.costs
    assert layer["read_bytes"] % 32 == 0
    assert layer["read_bytes"] >= 128
    assert layer["written_bytes"] >= 128
    assert not run.no_energy
    assert layer["dram_uj"] == pytest.approx(
        8e-6 * DRAM_PJ_PER_BIT * (layer["read_bytes"] + layer["written_bytes"])
    )
    assert run.to_json()["costs"] == layer
    assert not vip.run_model(tmp_path / "m", x, on="iss").layers
    vip.compile_model(tmp_path / "m.onnx", x, tmp_path / "tiny", preset="tiny")
    run = vip.run_model(tmp_path / "tiny", x, on="model")
    assert run.no_energy.startswith("no energy: ")
    assert set(run.costs) == {"read_bytes", "written_bytes"}
