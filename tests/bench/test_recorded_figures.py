"""What the guides and the readme say of kernels is what was recorded, and reaches the goals."""

import json
from pathlib import Path

import pytest

from bench.network_share import network_shares, read_rates
from bench.record import RESULTS
from sim_tb.vgg import LAYERS

ROOT = RESULTS.parents[1]
NEURAL = ROOT / "docs" / "neural_networks.md"
BELIEF = ROOT / "docs" / "belief_propagation.md"
README = ROOT / "README.md"
CYCLE_MS = 0.8e-6
#: Kernel of belief propagation -> its row, decimals, and runs of it in full HD on one vault.
BELIEF_ROWS = {
    "bp_m": ("BP-M iteration", 2, 32),
    "bp_construct": ("construct", 3, 8),
    "bp_coarse": ("quarter-size iteration", 3, 32),
    "bp_copy": ("copy", 3, 8),
}
TOTALS = {"VGG-16 convolutions": "**convolutions and pooling**", "VGG-16": "**VGG-16**"}
#: Most milliseconds: design.md, section 4.
GOALS = {
    "bp_m_batch_1": 4.4,
    "bp_construct_batch_1": 0.29,
    "bp_coarse_batch_1": 1.15,
    "bp_copy_batch_1": 1.1,
    "conv1_1_batch_1": 0.18,
    "conv3_2_batch_1": 3.05,
    "conv5_1_batch_1": 0.85,
    "fc6_batch_1": 0.72,
    "fc7_batch_1": 0.14,
    "fc8_batch_1": 0.05,
    "VGG-16 convolutions_batch_1": 26,
    "VGG-16_batch_1": 27,
    "lstm_batch_32": 0.23,
}


def recorded(key: str) -> float:
    results = json.loads((RESULTS / "kernels.json").read_text(encoding="utf-8"))["results"]
    value: float = results[key]["value"]
    return value


def row(path: Path, name: str) -> list[str]:
    """The cells behind the first of the one table row in ``path`` that begins with ``name``."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]
    (found,) = [cells[1:] for cells in rows if cells[0] == name]
    return found


@pytest.mark.parametrize("key", GOALS)
def test_goals_are_reached(key: str) -> None:
    assert recorded(key) <= GOALS[key]


@pytest.mark.parametrize("name", BELIEF_ROWS)
def test_belief_propagation(name: str) -> None:
    title, decimals, runs = BELIEF_ROWS[name]
    milliseconds = recorded(f"{name}_batch_1")
    _, cycles, _, shown, _ = row(BELIEF, title)
    assert cycles == f"{milliseconds / CYCLE_MS / runs:,.0f}"
    assert shown == f"{milliseconds:.{decimals}f} ms"


@pytest.mark.parametrize("name", [*(layer.name for layer in LAYERS), *TOTALS])
def test_layers(name: str) -> None:
    cells = row(NEURAL, TOTALS.get(name, name))
    assert [cells[2], cells[5]] == [f"{recorded(f'{name}_batch_{n}'):.3f}" for n in (1, 3)]


def test_lstm_and_the_network() -> None:
    shown = row(NEURAL, "a vault's part in RTL with real DRAM timing")
    assert shown == [f"{1000 * recorded('lstm_batch_32'):.1f}"]
    results = json.loads((RESULTS / "kernels.json").read_text(encoding="utf-8"))["results"]
    rates = read_rates(json.loads((RESULTS / "network.json").read_text(encoding="utf-8")))
    *layers, lstm = network_shares(rates, results)
    alone = sum(share.kernel_us for share in layers) / 1000
    most = alone + sum(share.network_us + share.barriers_us for share in layers) / 1000
    text = " ".join(NEURAL.read_text(encoding="utf-8").split())
    assert f"VGG-16 takes at most {most:.2f} ms in place of {alone:.2f}" in text
    assert f"a step takes {lstm.kernel_us + lstm.barriers_us:.1f} us" in text
    assert f"{lstm.kernel_us * (1 + lstm.added):.0f} us if no read were hidden" in text


def test_readme() -> None:
    vgg = row(README, "VGG-16, batch 1: convolutions and pooling / all")
    totals = [recorded("VGG-16 convolutions_batch_1"), recorded("VGG-16_batch_1")]
    assert vgg[0] == "{:.1f} / {:.1f} ms".format(*totals)
    title = "full HD: BP-M iteration; construct / quarter-size iteration / copy"
    flat, *phases = (recorded(f"{name}_batch_1") for name in BELIEF_ROWS)
    assert row(README, title)[0] == "{:.2f}; {:.3f} / {:.3f} / {:.3f} ms".format(flat, *phases)
    lstm = row(README, "LSTM of ESE, batch 32, a time step")
    assert lstm[0] == f"{1000 * recorded('lstm_batch_32'):.0f} us"
