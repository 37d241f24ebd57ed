"""What belief propagation is given to run."""

import pytest

from microkernels.bp.kernel import bp_program
from microkernels.common.errors import KernelError
from microkernels.data.stereo import motorcycle
from sim_tb.cosim.bp import BpJob


def test_the_kernel_is_made_for_the_engines_scratchpad() -> None:
    job = BpJob(problem=motorcycle(4, 4, 24).problem, iterations=1)
    assert job.assembled(4096).words == bp_program(24).words
    with pytest.raises(KernelError, match="1024 bytes"):
        job.assembled(1024)
