"""Handwritten digits on the Verilog of one engine, held against golden model and floating point."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from microkernels.apps.digits import DigitNetwork, Digits, accuracy
from microkernels.common.fixed_point import Elements
from microkernels.runtime.job import KernelJob
from pe.config import PeConfig

from .engine import MemoryBehaviour, PeSimulation
from .kernels import run_work

__all__ = ["DigitsOutcome", "cosim_digits"]


@dataclass(frozen=True, kw_only=True)
class DigitsOutcome:
    """Results of a network on digits.

    Attributes:
        images: digits of the test that ran on the engine, from the first on.
        match: every score on the engine equals the golden model's.
        real, golden, engine: share of these digits that floating point, the golden model and the
            engine classify correctly.
        all_real, all_golden: the same of all digits of the test.
        cycles: of the engine for a digit.
    """

    images: int
    match: bool
    real: float
    golden: float
    engine: float
    all_real: float
    all_golden: float
    cycles: float


def cosim_digits(
    network: DigitNetwork,
    digits: Digits,
    config: PeConfig,
    *,
    images: int,
    memory: MemoryBehaviour | None = None,
    progress: Callable[[int], None] | None = None,
) -> DigitsOutcome:
    """Run the first ``images`` digits of the test through ``network`` on one engine.

    The next layer gets only the contents of memory that the layer before left.

    Parameters:
        images: at least 1; more than there are mean all.
        memory: how the memory beside the engine answers.
        progress: called after each layer with how many have run.

    Raises:
        CosimError: a program faulted or did not end.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    labels = digits.test_labels
    real = network.scores(digits.test_images)
    golden = network.fixed_scores(digits.test_images, lambda job: job.expected)
    cycles: list[int] = []

    with PeSimulation(config) as simulation:

        def run(job: KernelJob) -> Elements:
            outcome = run_work(job, simulation, memory=memory)
            cycles.append(outcome.cycles)
            if progress is not None:
                progress(len(cycles))
            return outcome.outputs

        engine = network.fixed_scores(digits.test_images[:images], run)
    images = len(engine)
    return DigitsOutcome(
        images=images,
        match=bool(np.array_equal(engine, golden[:images])),
        real=accuracy(real[:images], labels[:images]),
        golden=accuracy(golden[:images], labels[:images]),
        engine=accuracy(engine, labels[:images]),
        all_real=accuracy(real, labels),
        all_golden=accuracy(golden, labels),
        cycles=sum(cycles) / images,
    )
