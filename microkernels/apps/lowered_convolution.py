"""A convolution as a matrix product (:mod:`microkernels.apps.matrix_multiply`).

The first matrix is the lowered image, with a row for each position of the kernel. It is not stored:
the program declares it as the window of a workspace (:mod:`isa.workspace`) and loads it from there.
Apart from ``set.ws`` the program is that of any product.

Image generators convolve upsampled images (transposed convolutions): upsampling inserts zeros
between the pixels. A workspace can't do this: a kernel row of its window is one piece of the image,
with zeros only before and after it. So there are two ways: store the image with its zeros and
convolve it as usual, or split the result into *phases*, pixels whose coordinates have the same
remainders modulo the factor. A phase is a convolution of the original image with those taps of the
filter that meet its pixels. The filters of all phases form one convolution, without products for
zeros.
"""

from dataclasses import replace

import numpy as np

from isa.workspace import DESCRIPTOR_BYTES, Workspace
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import (
    ELEMENT,
    ELEMENT_BYTES,
    HIGHEST,
    LOWEST,
    Elements,
    check_elements,
    clip,
    dot,
)
from microkernels.nn.product import ProductShape
from microkernels.runtime.job import Golden, KernelJob

from .array_job import addresses, array_job
from .matrix_multiply import matrix_multiply_program


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


#: Maximum factor of upsampling.
_MOST_FACTOR = 4


def upsampled(image: Elements, factor: int) -> Elements:
    """``image`` (height, width, channels) with ``factor - 1`` zeros after each pixel along both
    axes."""
    height, width, channels = image.shape
    result = np.zeros((height * factor, width * factor, channels), image.dtype)
    result[::factor, ::factor] = image
    return result


def phase_filters(filters: Elements, factor: int) -> Elements:
    """The ``filters`` of each phase, phases row by row. They are square, with the pixel itself in
    the middle; missing taps are 0."""
    count, kernel, _, channels = filters.shape
    middle = kernel // 2
    # A pixel at distance d meets tap `factor * d + middle - phase`.
    reach = (middle + factor - 1) // factor
    size = 2 * reach + 1
    result = np.zeros((factor, factor, count, size, size, channels), filters.dtype)
    for row, column, y, x in np.ndindex(factor, factor, size, size):
        tap_y = factor * (y - reach) + middle - row
        tap_x = factor * (x - reach) + middle - column
        if 0 <= tap_y < kernel and 0 <= tap_x < kernel:
            result[row, column, :, y, x] = filters[:, tap_y, tap_x]
    return result.reshape(-1, size, size, channels)


def transposed(image: Elements, filters: Elements, factor: int, fraction: int) -> Elements:
    """The convolution of the upsampled image (height, width, filters), by adding the products of
    each pixel of ``image`` to the results around it."""
    height, width, _ = image.shape
    count, kernel = filters.shape[:2]
    edge = kernel // 2
    sums = np.zeros((height * factor + 2 * edge, width * factor + 2 * edge, count), np.int64)
    for y, x, tap_y, tap_x in np.ndindex(height, width, kernel, kernel):
        place = (factor * y + kernel - 1 - tap_y, factor * x + kernel - 1 - tap_x)
        sums[place] += filters[:, tap_y, tap_x].astype(np.int64) @ image[y, x].astype(np.int64)
    inner = sums[edge : edge + height * factor, edge : edge + width * factor]
    return clip(inner + (1 << fraction >> 1) >> fraction, LOWEST, HIGHEST).astype(ELEMENT)


def upsampled_convolution_job(
    image: Elements, filters: Elements, *, fraction: int, factor: int = 2, phases: bool
) -> KernelJob:
    """A convolution of ``image`` (height, width, channels), upsampled by ``factor``, with
    ``filters`` (filters, height, width, channels), without bias. The result is as large as the
    upsampled image.

    Parameters:
        fraction: bits by which sums of products are shifted right, 0..15.
        factor: 2..4.
        phases: the result has a row for each pixel of the image, with the filters of each phase;
            otherwise a row for each pixel of the upsampled image, which is stored with its zeros.

    Raises:
        KernelError: as for :func:`lowered_convolution_job`; the kernel size is even, or the factor
            out of range.
        isa.workspace.WorkspaceError: sizes that no workspace has.
    """
    CHECK.within("factor", factor, 2, _MOST_FACTOR)
    if image.ndim != 3 or filters.ndim != 4:
        raise KernelError(f"filters of {filters.shape} do not fit an image of {image.shape}")
    count, kernel = filters.shape[:2]
    if kernel % 2 == 0:
        raise KernelError(f"the height of filters must be odd, not {kernel}")
    if filters.shape[2] != kernel:
        raise KernelError(f"filters must be square, not {kernel} x {filters.shape[2]}")
    if phases:
        used = phase_filters(filters, factor)
        job = lowered_convolution_job(image, used, fraction=fraction, padding=used.shape[1] // 2)
    else:
        job = lowered_convolution_job(
            upsampled(image, factor), filters, fraction=fraction, padding=kernel // 2
        )

    def golden() -> Elements:
        result = transposed(image, filters, factor, fraction)
        if not phases:
            return result.reshape(-1, count)
        height, width, _ = image.shape
        parts = result.reshape(height, factor, width, factor, count)
        return parts.transpose(0, 2, 1, 3, 4).reshape(height * width, -1)

    return replace(job, name="upsampled convolution", golden=Golden(golden))
