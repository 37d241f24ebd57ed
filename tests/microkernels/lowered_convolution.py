"""A convolution as a matrix product (:mod:`microkernels.apps.matrix_multiply`).

The first matrix is the lowered image, with a row for each position of the kernel. It is not stored:
the program declares it as the window of a workspace (:mod:`isa.workspace`) and loads it from there.
Apart from ``set.ws`` the program is that of any product.
"""

import numpy as np

from isa.workspace import DESCRIPTOR_BYTES, Workspace
from microkernels.apps.array_job import addresses, array_job
from microkernels.apps.matrix_multiply import matrix_multiply_program
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import (
    ELEMENT_BYTES,
    Elements,
    check_elements,
    dot,
)
from microkernels.nn.product import ProductShape
from microkernels.runtime.job import KernelJob


def _workspace(image: Elements, kernel: int, stride: int, padding: int) -> Workspace:
    height, width, channels = image.shape
    outputs = [(size + 2 * padding - kernel) // stride + 1 for size in (width, height)]
    if min(outputs) < 1:
        raise KernelError(
            f"a kernel of {kernel} pixels does not fit an image of {width} x {height}"
        )
    return Workspace(
        image=0,
        window=0,
        width=width,
        height=height,
        pixel_bytes=channels * ELEMENT_BYTES,
        output_width=outputs[0],
        output_height=outputs[1],
        kernel=kernel,
        stride=stride,
        padding=padding,
    )


def lowered(image: Elements, kernel: int, stride: int, padding: int) -> Elements:
    """The lowered matrix of ``image`` (height, width, channels)."""
    padded = np.pad(image, ((padding, padding), (padding, padding), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(0, 1))
    rows = windows[::stride, ::stride].transpose(0, 1, 3, 4, 2)
    return rows.reshape(-1, kernel * kernel * image.shape[2])


def lowered_convolution_job(
    image: Elements, filters: Elements, *, fraction: int, stride: int = 1, padding: int = 0
) -> KernelJob:
    """A convolution of ``image`` (height, width, channels) with square ``filters`` (filters,
    height, width, channels), without bias. The result has a row for each position.

    Parameters:
        fraction: bits by which sums of products are shifted right, 0..15.
        stride: pixels between positions, 1..15. padding: pixels of zeros around the image, 0..15.

    Raises:
        KernelError: the arrays don't fit each other or the kernel, there are more than 256 products
            per element of the result, or a value exceeds 16 bits.
        isa.workspace.WorkspaceError: sizes that no workspace has.
    """
    if image.ndim != 3 or filters.ndim != 4 or filters.shape[3] != image.shape[2]:
        raise KernelError(f"filters of {filters.shape} do not fit an image of {image.shape}")
    count, kernel, across, channels = filters.shape
    if kernel != across:
        raise KernelError(f"filters must be square, not {kernel} x {across}")
    image = check_elements("image", image, image.shape)
    filters = check_elements("filters", filters, filters.shape)
    plan = _workspace(image, kernel, stride, padding)
    positions = plan.output_width * plan.output_height
    inner = kernel * kernel * channels
    shape = ProductShape(groups=1, rows=positions, inner=inner, columns=count, fraction=fraction)
    image_at, filters_at, target, descriptor, window = addresses(
        image.nbytes, filters.nbytes, positions * count * ELEMENT_BYTES, DESCRIPTOR_BYTES
    )
    workspace = Workspace(**{**vars(plan), "image": image_at, "window": window})
    workspace.check(window + workspace.window_bytes)
    return array_job(
        "convolution by a product",
        matrix_multiply_program(shape, places=(window, filters_at, target), descriptor=descriptor),
        {
            image_at: image,
            filters_at: filters.reshape(count, -1),
            descriptor: np.frombuffer(workspace.pack(), np.int16),
        },
        target,
        lambda: dot(
            lowered(image, kernel, stride, padding), filters.reshape(count, -1).T, fraction
        ),
        2 * positions * shape.inner * count,
    )
