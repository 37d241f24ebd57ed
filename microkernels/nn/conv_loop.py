"""The inner loop of a convolution (thesis Figure 6.5) by itself: it takes most of an engine's time.

One filter of three columns slides over a row of input columns of 192 elements of 16 bits (64
features, three rows high). For each position the three columns are multiplied and reduced, while
the next column of the window is loaded; then the three sums are added.
"""

import numpy as np

from isa.program import Program
from isa.run import Launch
from microkernels.common.builder import KernelBuilder
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.fixed_point import ELEMENT, HIGHEST, LOWEST, Elements, clip, dot
from microkernels.runtime.job import Golden, KernelJob

#: Elements of a column, columns of the filter, fraction bits of elements.
COLUMN, TAPS, FRACTION = 192, 3, 8
_BYTES = 2 * COLUMN
#: Columns in the scratchpad: those of the window and one in flight.
_RING = TAPS + 1
_SUMS = (TAPS + _RING) * _BYTES
_RESULTS = _SUMS + 16
_MOST_POSITIONS = 512
#: Address of the data.
_DATA = 4096


def conv_loop_data(positions: int, seed: int = 1) -> tuple[Elements, Elements]:
    """Realistic data: weights around 0, ``TAPS x COLUMN``, and inputs after ReLU, half of them 0,
    ``(positions + TAPS) x COLUMN``; the last column is loaded but not used. They depend only on the
    seed."""
    random = np.random.default_rng(seed)
    weights = random.normal(0, 12, (TAPS, COLUMN))
    inputs = np.maximum(0, random.normal(0, 200, (positions + TAPS, COLUMN)))
    return weights.astype(ELEMENT), inputs.astype(ELEMENT)


def conv_loop_golden(weights: Elements, inputs: Elements) -> Elements:
    """The results, bit-exact."""
    positions = len(inputs) - TAPS
    sums = [
        dot(inputs[tap : tap + positions], column, FRACTION).astype(np.int64)
        for tap, column in enumerate(weights)
    ]
    return clip(np.sum(sums, axis=0), LOWEST, HIGHEST).astype(ELEMENT)


def conv_loop_job(weights: Elements, inputs: Elements) -> KernelJob:
    """The loop on the data from :func:`conv_loop_data`.

    Raises:
        KernelError: a number of positions that :func:`conv_loop_program` does not support.
    """
    positions = len(inputs) - TAPS
    data = weights.tobytes() + inputs.tobytes()
    results = _DATA + len(data)
    return KernelJob(
        name="convolution loop",
        launches=(Launch(program=conv_loop_program(positions), parameters=_DATA),),
        prepare=lambda memory: memory.write(_DATA, data),
        outputs=lambda memory: np.frombuffer(memory.read(results, 2 * positions), ELEMENT),
        golden=Golden(lambda: conv_loop_golden(weights, inputs)),
        end=results + 2 * positions,
        operations=2 * positions * TAPS * COLUMN,
    )


@CHECK.arguments
def conv_loop_program(positions: int) -> Program:
    """The loop for ``positions`` results, a multiple of 4 from 4 to 512.

    The parameter block's address is that of the weights; inputs and results follow them.

    Raises:
        KernelError: another number of positions.
    """
    if positions % _RING or not _RING <= positions <= _MOST_POSITIONS:
        raise KernelError(
            f"positions must be a multiple of {_RING} from {_RING} to {_MOST_POSITIONS},"
            f" not {positions}"
        )
    w = KernelBuilder(
        f"Convolution: {TAPS} columns of {COLUMN} elements, {positions} positions.",
        launch=("parameters",),
    )
    source = "parameters"
    taps = [w.register(f"weights{n}", "column of the filter") for n in range(TAPS)]
    ring = [w.register(f"input{n}", "column of inputs") for n in range(_RING)]
    sums = [w.register(f"sum{n}", "sum of one column") for n in range(TAPS)]
    length = w.register("length", "elements of a column")
    three = w.register("three", "sums of a position")
    result = w.register("result", "scratchpad address of the next result")
    end = w.register("end", "scratchpad address after the last")
    temporary = w.register("held", "value on its way to a setting")
    for number, name in enumerate((*taps, *ring)):
        w.op("mov", name, number * _BYTES)
    for number, name in enumerate(sums):
        w.op("mov", name, _SUMS + 2 * number)
    for name, value in ((length, COLUMN), (three, TAPS), (result, _RESULTS)):
        w.op("mov", name, value)
    w.op("mov", end, _RESULTS + 2 * positions)
    for register, setting in ((1, "set.mr"), (FRACTION, "set.fx")):
        w.op("mov", temporary, register)
        w.op(setting, temporary)
    for name in (*taps, *ring[:TAPS]):
        w.op("ld.sram [16-bit]", name, source, length)
        w.op("add", source, source, _BYTES)
    w.op("set.vl", length)
    w.label("next")
    for position in range(_RING):
        w.note(f"window of columns {position} to {position + TAPS - 1} of the ring")
        for tap in range(TAPS):
            w.op("m.v.mul.add [16-bit]", sums[tap], taps[tap], ring[(position + tap) % _RING])
            if tap == 0:
                w.op("ld.sram [16-bit]", ring[(position + TAPS) % _RING], source, length)
                w.op("add", source, source, _BYTES)
        w.op("set.vl", three)
        w.op("v.drain")
        w.op("m.v.nop.add [16-bit]", result, sums[0], sums[0])
        w.op("set.vl", length)
        w.op("add", result, result, 2)
    w.op("bne", result, end, "next")
    w.op("v.drain")
    w.op("mov", temporary, _RESULTS)
    w.op("sub", end, end, temporary)
    w.op("srl", end, end, 1)
    w.op("st.sram [16-bit]", source, temporary, end)
    w.op("halt")
    return w.program("conv_loop.s")
