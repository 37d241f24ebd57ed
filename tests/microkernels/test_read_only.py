"""Jobs that declare a part of their memory: the same outputs, or a refusal."""

from dataclasses import replace

import numpy as np
import pytest

from isa.assembly.assembler import assemble
from isa.workspace import Workspace
from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements
from microkernels.nn.jobs import conv_job
from microkernels.nn.window_shape import ConvShape
from microkernels.runtime.job import STANDARD, KernelJob, simulate
from microkernels.runtime.read_only import read_only_job

from .test_suite_kernels import values

SHAPE = ConvShape(width=6, height=5, channels=16, filters=4, padding=1)


def _job() -> KernelJob:
    bias: Elements = np.zeros(SHAPE.filters, np.int16)
    filters = values(2, SHAPE.filters, 3, 3, SHAPE.channels, limit=50)
    image = values(1, SHAPE.height, SHAPE.width, SHAPE.channels, limit=50)
    return conv_job(SHAPE, image, filters, bias, fraction=4)


def test_a_job_that_declares_its_image_gives_the_same() -> None:
    job = read_only_job(_job(), 0, 1024)
    outputs, hazards = simulate(job, instructions=STANDARD | {"set.ws"})
    assert np.array_equal(outputs, _job().expected)
    assert hazards == []
    (content,) = (data for address, data in job.segments() if address == job.end - 32)
    found = Workspace.unpack(bytes(content))
    assert (found.image, found.image_bytes) == (0, 1024)
    found.check(1 << 33)


def test_a_program_that_uses_the_last_register_is_refused() -> None:
    job = _job()
    launch = replace(job.launches[0], program=assemble("add r63, r1, #1\nhalt\n"))
    with pytest.raises(KernelError, match="the program uses r63, which the descriptor needs"):
        read_only_job(replace(job, launches=(launch,)), 0, 1024)


@pytest.mark.parametrize(
    ("start", "size", "message"),
    [
        (16, 1024, "16 and 1024 must be multiples of 32 bytes"),
        (0, 1000, "0 and 1000 must be multiples of 32 bytes"),
        (0, 0, "0 and 0 must be multiples of 32 bytes"),
        (-32, 64, "the part must lie within the job's"),
        (0, 1 << 30, "the part must lie within the job's"),
    ],
)
def test_parts_that_can_not_be_declared_are_refused(start: int, size: int, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        read_only_job(_job(), start, size)
