"""What belief propagation is given to run."""

from kernels.bp_kernel import bp_program
from kernels.stereo import motorcycle
from sim_tb.bp_cosim import BpJob


def test_the_kernel_is_made_for_the_engines_scratchpad() -> None:
    problem = motorcycle(4, 4, 16).problem
    small, large = (BpJob(problem=problem, iterations=1).assembled(n) for n in (2048, 4096))
    assert small.words == bp_program(16, scratchpad_bytes=2048).words
    assert large.words == bp_program(16).words
    assert small.words != large.words
