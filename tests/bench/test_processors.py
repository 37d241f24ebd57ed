"""BP-M and networks on the processor of the machine compute what the golden models do."""

import platform
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from bench import processors as belief
from bench import processors as vgg
from bench.harness.experiment import BenchError
from microkernels.bp.golden import iterate
from microkernels.bp.problem import BpProblem
from microkernels.common.fixed_point import to_fixed
from microkernels.data.networks import usual_network_weights
from microkernels.networks.network import Conv, Dense, MapSize, Network, Pool

AVX2 = platform.machine() == "x86_64" and " avx2 " in Path("/proc/cpuinfo").read_text()


def problem(bits: int = 16) -> BpProblem:
    """Costs whose sums saturate now and then; the matrix is not symmetric."""
    random = np.random.default_rng(3)
    costs = random.integers(-20_000 >> 16 - bits, 20_000 >> 16 - bits, (19, 23, 16))
    return BpProblem(costs, random.integers(-30 << bits - 8, 90 << bits - 8, (16, 16)), bits)


@pytest.mark.skipif(not AVX2, reason="no AVX2")
@pytest.mark.parametrize("threads", [1, 3])
def test_messages_equal_the_golden_models(threads: int) -> None:
    found = problem().no_messages()
    for _ in range(2):
        assert belief.iterate_bp(problem(), found, threads=threads) > 0
    expected = iterate(problem(), 2)
    assert np.array_equal(found, expected)
    # Sums that do not saturate would be others.
    wide = BpProblem(problem().data_costs.astype(np.int64), problem().smoothness, 32)
    assert not np.array_equal(expected, iterate(wide, 2))


def test_another_problem_is_refused() -> None:
    with pytest.raises(BenchError, match="16 labels of 16 bits"):
        belief.iterate_bp(problem(8), problem(8).no_messages())


def test_a_network_in_float32_is_that_of_its_weights() -> None:
    pytest.importorskip("onnxruntime")
    network = Network(
        input=MapSize(8, 8, 3),
        layers=(
            Conv(name="conv1", filters=8, padding=1, fraction=12),
            Conv(name="conv2", filters=8, padding=1, fraction=12),
            Pool(name="pool"),
            Dense(name="fc1", outputs=32, fraction=12, relu=True),
            Dense(name="fc2", outputs=10, fraction=12, relu=False),
        ),
    )
    weights = usual_network_weights(network)
    image = to_fixed(np.random.default_rng(5).normal(0, 1, (1, 8, 8, 3)), 8)
    running = vgg.session(vgg.onnx_model(network, weights), 1)
    floats = (image / 256).astype(np.float32).transpose(0, 3, 1, 2)
    (found,) = running.run(None, {"x": np.ascontiguousarray(floats)})
    now = image[0] / 256
    for layer in network.layers:
        if isinstance(layer, Pool):
            now = now.reshape(now.shape[0] // 2, 2, now.shape[1] // 2, 2, -1).max((1, 3))
            continue
        kernel, bias = weights[layer.name].weights / 4096, weights[layer.name].bias / 256
        if isinstance(layer, Conv):
            windows = sliding_window_view(np.pad(now, ((1, 1), (1, 1), (0, 0))), (3, 3), (0, 1))
            now = np.einsum("yxcij,oijc->yxo", windows, kernel) + bias
        else:
            now = kernel @ now.ravel() + bias
        if layer.relu:
            now = np.maximum(now, 0)
    assert np.abs(now).max() > 0.2
    assert np.allclose(found[0], now, atol=1e-4)
