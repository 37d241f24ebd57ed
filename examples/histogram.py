"""The histogram of an image, with the kernel builder: a reduction of ones.

Values at or above a lower bound become 1, others 0; one matrix instruction counts the ones of all
bins. A bin has the difference of its count and the next one's, which is the same vector read one
element further on. ``python examples/histogram.py`` runs it on the timing model of an engine.
"""

import numpy as np

from microkernels.apps.array_job import addresses, array_job
from microkernels.common.builder import KernelBuilder
from microkernels.common.fixed_point import ELEMENT
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import preset

BINS, WIDTH = 16, 16  # bins, and values in each: 8-bit pixels
BLOCK, BLOCKS = 64, 64
WORD = ELEMENT.itemsize
SIZE, ROW = BLOCK * WORD, BINS * WORD
IMAGE_AT, BOUNDS_AT, RESULT_AT, _ = addresses(BLOCKS * SIZE, ROW + 2 * WORD, ROW)


def program():
    """Bounds to the scratchpad; then blocks of the image, counted bin by bin."""
    k = KernelBuilder(f"Histogram of {BINS} bins.", place_drains=True)
    bounds = k.place("bounds, 0 and 1", ROW + 2 * WORD)
    ones, counts = k.place("ones of each bin", BINS * SIZE), k.place("counts", ROW + WORD)
    pixels = k.constant("pixels", k.place("block", SIZE), "block of the image")
    part = k.constant("part", k.place("counts of a block", ROW), "counts of a block")
    table = k.constant("table", bounds, "bounds")
    matrix = k.constant("matrix", ones, "ones, a row per bin")
    total = k.constant("total", counts, "counts of all blocks")
    following = k.constant("following", counts + WORD, "counts from the second bin on")
    zero = k.constant("none", bounds + ROW, "the number 0")
    one = k.constant("one", bounds + ROW + WORD, "the number 1")
    bins = k.constant("bins", BINS, "bins")
    count = k.constant("count", BLOCK, "pixels of a block")
    source = k.variable("source", IMAGE_AT, "address of the next block")
    left = k.variable("left", BLOCKS, "blocks left")
    bound = k.register("bound", "bound of a bin")
    row = k.register("row", "ones of a bin")
    k.set_constants()
    with k.temporary("scratch", "a number; an address") as scratch:
        k.op("li", scratch, BINS + 2)
        k.op("li", bound, BOUNDS_AT)
        k.load(table, bound, scratch)
        k.op("li", scratch, BINS + 1)
        k.op("set.vl", scratch)
    k.vector("v.v.sub", total, total, total, note="0, whatever was there")
    k.op("set.mr", bins)
    k.op("set.vl", count)
    with k.loop("block", left):
        k.load(pixels, source, count)
        for operation, operand in (("sub", bound), ("max", zero), ("min", one)):
            k.op("mov", bound, table)
            k.op("mov", row, matrix)
            for _ in range(BINS):
                k.vector(f"v.s.{operation}", row, pixels if operand is bound else row, operand)
                k.op("add", bound, bound, WORD)
                k.op("add", row, row, SIZE)
        k.vector("m.v.nop.add", part, matrix, matrix)
        k.op("set.vl", bins)
        k.vector("v.v.add", total, total, part)
        k.op("set.vl", count)
        k.op("add", source, source, SIZE)
    k.op("set.vl", bins)
    k.vector("v.v.sub", part, total, following)
    k.op("li", bound, RESULT_AT)
    k.store(bound, part, bins)
    k.op("halt")
    return k.program("histogram.s")


def job(image):
    """The program with its data, and the histogram that NumPy computes."""
    edges = np.arange(0, BINS * WIDTH + 1, WIDTH)
    # A value is at or above a bound if it is 1 or more above the number before.
    bounds = np.array([*(edges[:-1] - 1), 0, 1], ELEMENT)
    return array_job(
        "histogram",
        program(),
        {IMAGE_AT: image, BOUNDS_AT: bounds},
        RESULT_AT,
        lambda: np.histogram(image, edges)[0].astype(ELEMENT),
        image.size * BINS,
    )


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    image = rng.normal(128, 40, BLOCK * BLOCKS).clip(0, 255).astype(ELEMENT)
    run = run_on(job(image), preset("pe"), on="model")
    print(run.outputs)
    print(f"equal to NumPy's: {run.match}, {run.cycles} cycles for {image.size} pixels")
