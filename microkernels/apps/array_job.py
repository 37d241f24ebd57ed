"""Jobs of one processing engine whose data are plain arrays in memory."""

from collections.abc import Mapping

import numpy as np

from isa.image import DramImage
from isa.program import Program
from microkernels.common.errors import CHECK, KernelError
from microkernels.common.feature_map import ROW_BYTES, round_up
from microkernels.common.fixed_point import Elements
from microkernels.nn.job import NnJob

__all__ = ["addresses", "array_job", "check_array", "check_range"]


def check_range(name: str, value: int, low: int, high: int) -> None:
    """Make sure that ``value`` is a whole number from ``low`` to ``high``.

    Raises:
        KernelError: it is not.
    """
    CHECK.within(name, value, low, high)


def check_array(name: str, values: Elements, shape: tuple[int, ...], dtype: np.dtype) -> Elements:
    """``values`` as elements of ``dtype``, which must be whole numbers of it in this shape.

    Raises:
        KernelError: another shape, no whole numbers, or numbers beyond the element.
    """
    found = np.asarray(values)
    if found.shape != shape:
        raise KernelError(f"{name} must have the shape {shape}, not {found.shape}")
    if not np.issubdtype(found.dtype, np.integer):
        raise KernelError(f"{name} must be whole numbers, not {found.dtype}")
    limits = np.iinfo(dtype)
    if found.size and not limits.min <= found.min() <= found.max() <= limits.max:
        raise KernelError(
            f"{name} must be from {limits.min} to {limits.max}, but goes from {found.min()} to "
            f"{found.max()}"
        )
    return found.astype(dtype)


def addresses(*sizes: int, base: int = 0) -> tuple[int, ...]:
    """Where arrays of so many bytes lie one after the other from ``base`` on, each at the beginning
    of a DRAM row; and the first address behind them."""
    places = [base]
    for size in sizes:
        places.append(round_up(places[-1] + size, ROW_BYTES))
    return tuple(places)


def array_job(
    name: str,
    program: Program,
    inputs: Mapping[int, Elements],
    target: int,
    expected: Elements,
    operations: int,
) -> NnJob:
    """A job of one engine, whose program knows all addresses.

    Parameters:
        name: for messages.
        inputs: address -> array there at the start.
        target: address of the result. expected: what must be there at the end.
        operations: see :class:`microkernels.nn.job.NnJob`.
    """
    ends = [address + array.nbytes for address, array in (*inputs.items(), (target, expected))]

    def prepare(memory: DramImage) -> None:
        for address, array in inputs.items():
            memory.write(address, array.tobytes())

    def outputs(memory: DramImage) -> Elements:
        data = memory.read(target, expected.nbytes)
        return np.frombuffer(data, expected.dtype).reshape(expected.shape)

    return NnJob(
        name=name,
        program=program,
        parameters=0,
        sharers=1,
        end=round_up(max(ends), ROW_BYTES),
        prepare=prepare,
        outputs=outputs,
        expected=expected,
        operations=operations,
    )
