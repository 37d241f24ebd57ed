"""Jobs for one engine with plain arrays in memory as data."""

from collections.abc import Callable, Mapping

import numpy as np

from isa.program import Program
from isa.run import Launch
from microkernels.common.feature_map import ROW_BYTES, round_up
from microkernels.common.fixed_point import Elements
from microkernels.common.memory import Readable, Writable
from microkernels.runtime.job import Golden, KernelJob


def addresses(*sizes: int, align: int = ROW_BYTES) -> tuple[int, ...]:
    """Addresses of arrays with these sizes in bytes, one after the other from 0 on, each at a
    multiple of ``align`` (by default the start of a DRAM row), followed by the first such address
    after all arrays."""
    places = [0]
    for size in sizes:
        places.append(round_up(places[-1] + size, align))
    return tuple(places)


def array_job(
    name: str,
    program: Program,
    inputs: Mapping[int, Elements],
    target: int,
    model: Callable[[], Elements],
    operations: int,
) -> KernelJob:
    """A job for one engine, with all addresses built into its program.

    Parameters:
        name: for messages.
        inputs: address -> initial array. Its bytes are written unchanged, so its dtype must have
            the width of the program's elements.
        target: address of the result. model: the expected result
            (:class:`microkernels.runtime.job.Golden`).
        operations: see :class:`microkernels.runtime.job.KernelJob`.
    """
    golden = Golden(model)
    expected = golden.values
    ends = [address + array.nbytes for address, array in (*inputs.items(), (target, expected))]

    def prepare(memory: Writable) -> None:
        for address, array in inputs.items():
            memory.write(address, array.tobytes())

    def outputs(memory: Readable) -> Elements:
        data = memory.read(target, expected.nbytes)
        return np.frombuffer(data, expected.dtype).reshape(expected.shape)

    return KernelJob(
        name=name,
        launches=(Launch(program=program),),
        prepare=prepare,
        outputs=outputs,
        golden=golden,
        end=round_up(max(ends), ROW_BYTES),
        operations=operations,
    )
