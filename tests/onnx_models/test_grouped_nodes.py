"""Convolutions in groups and with dilation of ONNX models, in 16 bits and in bytes."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import vip
from microkernels.networks.network import Conv
from microkernels.runtime.ring import ChipEngines
from tests.onnx_models.graphs import model
from tests.onnx_models.test_mapping import check

FOUR = ChipEngines(columns=2, rows=2, address_bits=20, pes=2)


@pytest.mark.parametrize("preset", ["vault", "vault-int8"])
@pytest.mark.parametrize(
    ("channels", "filters", "groups", "dilation"),
    [
        # Bytes in pairs are of half as many channels; a group has three filters.
        (12, 9, 3, 1),
        # A group has an odd number of channels.
        (9, 12, 3, 1),
        (8, 16, 8, 1),
        (16, 16, 4, 3),
    ],
)
def test_first_layers_in_groups(
    channels: int, filters: int, groups: int, dilation: int, preset: str, tmp_path: Path
) -> None:
    random = np.random.default_rng(51)
    constants = {"w": random.normal(size=(filters, channels // groups, 3, 3)) / 3}
    more = {"group": groups, "dilations": [dilation] * 2, "pads": [dilation] * 4}
    node = helper.make_node("Conv", ["x", "w"], ["y"], **more)
    x = random.normal(size=(4, channels, 9, 8)).astype(np.float32)
    onnx.save(model([node], ("n", channels, 9, 8), constants), tmp_path / "m.onnx")
    vip.compile_model(tmp_path / "m.onnx", {"x": x}, tmp_path / "out", preset=preset)
    run = vip.run_model(tmp_path / "out", {"x": x[:1]}, on="model")
    products = filters * channels // groups * 9 * 72
    # A dense kernel would need as many times the cycles as there are groups.
    assert run.cycles < 5000 + products / 16 * 3
    assert vip.evaluate_model(tmp_path / "out", {"x": x}).error < (
        3e-3 if preset == "vault" else 0.1
    )


@pytest.mark.parametrize(("groups", "dilations"), [(1, [3, 2]), (3, [1, 1]), (2, [2, 3])])
def test_vaults_share_them(groups: int, dilations: list[int]) -> None:
    random = np.random.default_rng(52)
    inner, filters = 5, 4 * groups
    channels = inner * groups
    first = helper.make_node("Conv", ["x", "v"], ["m"], name="first")
    more = {"group": groups, "dilations": dilations, "pads": [2, 1, 3, 0], "strides": [1, 2]}
    node = helper.make_node("Conv", ["m", "w"], ["y"], name="conv", **more)
    constants = {
        "v": random.normal(size=(channels, 3, 1, 1)) / 2,
        "w": random.normal(size=(filters, inner, 3, 2)) / 5,
    }
    x = random.normal(size=(1, 3, 14, 13)).astype(np.float32)
    done = check(model([first, node], (1, 3, 14, 13), constants), x, engines=FOUR)
    conv = done.network.layers[-1]
    assert isinstance(conv, Conv)
    assert conv.inner == (inner if groups > 1 else None)
    assert conv.gaps == (dilations[1], dilations[0])


def test_a_large_depthwise_window_on_several_vaults() -> None:
    random = np.random.default_rng(53)
    first = helper.make_node("Conv", ["x", "v"], ["m"], name="first")
    node = helper.make_node("Conv", ["m", "w"], ["y"], group=6, pads=[3, 5, 2, 0])
    constants = {
        "v": random.normal(size=(6, 3, 1, 1)) / 2,
        "w": random.normal(size=(6, 1, 12, 11)) / 9,
    }
    x = random.normal(size=(1, 3, 14, 17)).astype(np.float32)
    check(model([first, node], (1, 3, 14, 17), constants), x, engines=FOUR)
