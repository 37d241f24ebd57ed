"""What belief propagation is given to run."""

import pytest

from kernels.bp_kernel import bp_program
from kernels.errors import KernelError
from kernels.stereo import motorcycle
from sim_tb.bp_cosim import BpJob


def test_the_kernel_is_made_for_the_engines_scratchpad() -> None:
    job = BpJob(problem=motorcycle(4, 4, 24).problem, iterations=1)
    assert job.assembled(4096).words == bp_program(24).words
    with pytest.raises(KernelError, match="1024 bytes"):
        job.assembled(1024)
