"""The moving average of a signal, with the kernel builder.

An operand of a vector instruction may begin at any element of the scratchpad. So the samples beside
all samples of a block are the same bytes, from two bytes further on.

``python examples/moving_average.py`` runs it on the timing model of an engine, which takes the
cycles of the Verilog; ``run_on(..., on="rtl")`` runs the Verilog.
"""

import numpy as np

from microkernels.apps.array_job import addresses, array_job
from microkernels.common.builder import KernelBuilder
from microkernels.common.fixed_point import ELEMENT, multiply
from sim_tb.cosim.kernels import run_on
from soc.generate.presets import preset

TAPS, FRACTION = 4, 8
BLOCK, BLOCKS = 128, 8
SIZE, WORD = BLOCK * ELEMENT.itemsize, ELEMENT.itemsize
HALO = (TAPS - 1) * WORD  # bytes of the next block that a block's averages need
FACTOR_AT, SIGNAL_AT, RESULT_AT, _ = addresses(WORD, BLOCKS * SIZE + HALO, BLOCKS * SIZE)


def program():
    """Blocks of the signal from memory to the scratchpad, and their averages back."""
    k = KernelBuilder(f"Moving average of {TAPS} samples.", place_drains=True)
    block = k.place("block", SIZE + HALO)
    taps = [k.constant(f"tap{n}", block + n * WORD, f"block from sample {n}") for n in range(TAPS)]
    result = k.constant("result", k.place("averages", SIZE), "averages")
    factor = k.constant("factor", k.place("factor", WORD), "the factor 1 / 4")
    one = k.constant("one", 1, "1")
    count = k.constant("count", BLOCK, "averages of a block")
    loaded = k.constant("loaded", BLOCK + TAPS - 1, "samples that they need")
    source = k.variable("source", SIGNAL_AT, "address of the next block")
    target = k.variable("target", RESULT_AT, "address of its averages")
    left = k.variable("left", BLOCKS, "blocks left")
    k.set_constants()
    with k.temporary("scratch", "a setting; an address") as scratch:
        k.op("li", scratch, FRACTION)
        k.op("set.fx", scratch)
        k.op("li", scratch, FACTOR_AT)
        k.load(factor, scratch, one)
    k.op("set.vl", count)
    with k.loop("block", left):
        k.load(taps[0], source, loaded)
        k.vector("v.v.add", result, taps[0], taps[1])
        for tap in taps[2:]:
            k.vector("v.v.add", result, result, tap)
        k.vector("v.s.mul", result, result, factor)
        k.store(target, result, count)
        k.op("add", source, source, SIZE)
        k.op("add", target, target, SIZE)
    k.op("halt")
    return k.program("moving_average.s")


def job(signal):
    """The program with its data, and the averages that NumPy computes."""
    factor = np.array([(1 << FRACTION) // TAPS], ELEMENT)
    sums = np.lib.stride_tricks.sliding_window_view(signal, TAPS).sum(axis=1).astype(ELEMENT)
    return array_job(
        "moving average",
        program(),
        {FACTOR_AT: factor, SIGNAL_AT: signal},
        RESULT_AT,
        lambda: multiply(sums, factor, FRACTION),
        TAPS * BLOCK * BLOCKS,
    )


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    signal = rng.integers(-4000, 4000, BLOCK * BLOCKS + TAPS - 1).astype(ELEMENT)
    run = run_on(job(signal), preset("pe"), on="model")
    print(f"{BLOCK * BLOCKS} averages, equal to NumPy's: {run.match}, {run.cycles} cycles")
