"""Convolutions of upsampled images from a workspace: against ONNX's transposed convolution."""

import numpy as np
import onnx.parser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator

from microkernels.apps.lowered_convolution import transposed, upsampled_convolution_job
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements
from microkernels.runtime.job import STANDARD, simulate

from .test_suite_kernels import SEEDS, SOME, values


@SOME
@given(
    height=st.integers(1, 5),
    width=st.integers(1, 5),
    channels=st.integers(1, 4),
    count=st.integers(1, 5),
    kernel=st.sampled_from([1, 3, 5]),
    factor=st.integers(2, 4),
    phases=st.booleans(),
    seed=SEEDS,
)
def test_both_ways(
    height: int,
    width: int,
    channels: int,
    count: int,
    kernel: int,
    factor: int,
    phases: bool,
    seed: int,
) -> None:
    image = values(seed, height, width, channels, limit=300)
    filters = values(seed + 1, count, kernel, kernel, channels, limit=300)
    job = upsampled_convolution_job(image, filters, fraction=3, factor=factor, phases=phases)
    outputs, hazards = simulate(job, instructions=STANDARD | {"set.ws"})
    assert np.array_equal(outputs, job.expected)
    assert hazards == []


def _reference(image: Elements, filters: Elements, factor: int) -> Elements:
    """By ONNX's reference, whose filters are mirrored."""
    kernel = filters.shape[1]
    edge = kernel // 2
    model = onnx.parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : 20]>
        m (float[1, C, H, W] x, float[C, M, K, K] w) => (float[1, M, P, Q] y) {{
            y = ConvTranspose<strides = [{factor}, {factor}],
                pads = [{edge}, {edge}, {edge}, {edge}],
                output_padding = [{factor - 1}, {factor - 1}]>(x, w)
        }}"""
    )
    mirrored = filters[:, ::-1, ::-1].transpose(3, 0, 1, 2).astype(np.float32)
    inputs = {"x": image.transpose(2, 0, 1)[None].astype(np.float32), "w": mirrored}
    (result,) = ReferenceEvaluator(model).run(None, inputs)
    found: Elements = result[0].transpose(1, 2, 0).astype(np.int16)
    return found


@pytest.mark.parametrize(("kernel", "factor"), [(5, 2), (3, 2), (3, 3), (1, 2)])
def test_golden_model_is_the_transposed_convolution(kernel: int, factor: int) -> None:
    image, filters = values(1, 4, 3, 2, limit=20), values(2, 3, kernel, kernel, 2, limit=20)
    found = transposed(image, filters, factor, 0)
    assert np.array_equal(found, _reference(image, filters, factor))


@pytest.mark.parametrize(
    ("image", "filters", "factor", "message"),
    [
        ((4, 4, 2), (1, 3, 3, 2), 1, "factor must be a whole number from 2 to 4, not 1"),
        ((4, 4, 2), (1, 3, 3, 2), 5, "factor must be a whole number from 2 to 4, not 5"),
        ((4, 4, 2), (1, 4, 4, 2), 2, "the height of filters must be odd, not 4"),
        ((4, 4, 2), (1, 3, 5, 2), 2, "filters must be square, not 3 x 5"),
        ((4, 4), (1, 3, 3, 2), 2, "do not fit an image of"),
        ((4, 4, 2), (1, 3, 3, 3), 2, "do not fit an image of"),
        ((4, 4, 12), (1, 5, 5, 12), 2, "inner must be a whole number from 1 to 256, not 300"),
    ],
)
def test_bad_shapes(  # type: ignore[no-untyped-def]
    image, filters, factor, message
) -> None:
    with pytest.raises(KernelError, match=message):
        upsampled_convolution_job(
            values(1, *image), values(2, *filters), fraction=0, factor=factor, phases=False
        )
