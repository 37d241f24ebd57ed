"""Networks and data that can't be are refused with one line that names the cause."""

from dataclasses import replace

import numpy as np
import pytest

from microkernels.common.errors import KernelError
from microkernels.data.networks import usual_network_weights
from microkernels.networks.jobs import network_job
from microkernels.networks.network import KINDS, Conv, MapSize, Network, Pool
from microkernels.networks.parameters import Weights
from microkernels.networks.vgg16 import vgg16
from tests.microkernels.networks.test_networks import LITTLE, engines, job_of

WEIGHTS = usual_network_weights(LITTLE)
IMAGE = np.zeros((1, 18, 20, 3), np.int16)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"layers": ()}, "a network must have at least one layer"),
        ({"layers": [Pool(name="a")]}, r"layers must be a tuple, not \[.*\]"),
        (
            {"layers": ("a",)},
            rf"layers\[0\] must be an? {' or an? '.join(kind.__name__ for kind in KINDS)}, not 'a'",
        ),
        ({"input": MapSize(0, 4, 4)}, "width of the input must be at least 1, not 0"),
        (
            {"layers": (Pool(name="a", window=30),)},
            "a: a window of 30 does not fit a map of 20 x 18 pixels with 0 pixels around it",
        ),
        ({"layers": (Pool(name="a"), Pool(name="a"))}, "two layers have the name 'a'"),
        ({"layers": (Pool(name="a", source="b"),)}, "a: no earlier layer has the name 'b'"),
        (
            {"layers": (Pool(name="a"), Pool(name="b"), Pool(name="c", source="d"))},
            "c: no earlier layer has the name 'd'",
        ),
    ],
)
def test_networks_that_do_not_chain_are_refused(broken: dict[str, object], message: str) -> None:
    with pytest.raises(KernelError, match=f"^{message}$"):
        replace(LITTLE, **broken)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["", "input", "conv1 inputs", "conv1 2", " a", "a\n", "a\tb"])
def test_a_layer_needs_a_name(name: str) -> None:
    with pytest.raises(KernelError) as error:
        Pool(name=name)
    assert str(error.value) == (
        f"a layer can't have the name {name!r}: a name is not empty, has no white space, and is "
        f"not 'input'"
    )


@pytest.mark.parametrize(
    ("weights", "images", "message"),
    [
        ({}, IMAGE, "conv1: weights are missing"),
        (None, IMAGE, "weights must be a Mapping, not None"),
        (
            WEIGHTS | {"pool1": WEIGHTS["fc1"]},
            IMAGE,
            "weights: no layer with weights has the name 'pool1'",
        ),
        (WEIGHTS | {"conv2": 3}, IMAGE, "conv2: weights must be a Weights, not 3"),
        (
            WEIGHTS | {"conv2": Weights(weights=np.zeros((3, 3), int), bias=np.zeros(16, int))},
            IMAGE,
            r"conv2: weights must have the shape \(16, 3, 3, 16\), not \(3, 3\)",
        ),
        (
            WEIGHTS,
            IMAGE[0],
            r"images must have the shape batch x 18 x 20 x 3, not \(18, 20, 3\)",
        ),
        (WEIGHTS, None, r"images must have the shape batch x 18 x 20 x 3, not \(\)"),
        (
            WEIGHTS,
            [[[1, 2], [3]]],
            "images must have the shape batch x 18 x 20 x 3, not rows of different lengths",
        ),
        (WEIGHTS, IMAGE[:0], "batch must be at least 1, not 0"),
    ],
)
def test_data_that_do_not_fit_are_refused(
    weights: dict[str, Weights], images: np.ndarray, message: str
) -> None:
    with pytest.raises(KernelError, match=f"^{message}$"):
        network_job(LITTLE, weights, images)


def test_a_network_larger_than_the_vaults_is_refused_with_a_grid_that_may_do() -> None:
    with pytest.raises(
        KernelError,
        match=r"^the network needs (\d+) bytes in each vault \(2 vaults\), (\d+) bytes more "
        r"than it has; .* \d+ or more may do$",
    ):
        job_of(LITTLE, engines(2, 1, address_bits=14))
    wide = Network(
        input=MapSize(64, 64, 3),
        layers=tuple(Conv(name=name, filters=512, kernel=1, fraction=8) for name in "abcd"),
    )
    with pytest.raises(KernelError, match=r"^the network needs \d+ MiB .* \d+ MiB more than"):
        job_of(wide, engines(1, 1))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"narrower": 0}, "narrower must be one of 1, 2, 4, 8, not 0"),
        ({"narrower": 3}, "narrower must be one of 1, 2, 4, 8, not 3"),
        ({"side": 31}, "side must be at least 32, not 31"),
    ],
)
def test_sizes_that_vgg16_can_not_have(given: dict[str, int], message: str) -> None:
    with pytest.raises(KernelError, match=f"^{message}$"):
        vgg16(**given)
