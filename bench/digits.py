"""Networks for handwritten digits."""

from collections.abc import Iterator
from typing import Annotated

import numpy as np
import typer

from microkernels.apps.digits import (
    NETWORKS,
    DigitNetwork,
    Digits,
    accuracy,
    load_digits,
    trained,
)
from microkernels.common.fixed_point import Elements
from microkernels.runtime.job import KernelJob
from pe.config import PeConfig
from sim_tb.cosim.engine import CosimError, PeSimulation
from sim_tb.cosim.kernels import run_work
from sim_tb.runner.build import need_simulator
from soc.generate.presets import preset
from vip.cli.commands.options import PresetOption

from .harness.experiment import SIMULATION, Measurement, experiment


def known(network: DigitNetwork, data: Digits) -> tuple[float, float]:
    """Shares of the test's digits that floating point and the golden model recognise."""
    images, labels = data
    golden = network.fixed_scores(images, lambda job: job.expected)
    return accuracy(network.scores(images), labels), accuracy(golden, labels)


def engine_cycles(network: DigitNetwork, data: Digits, config: PeConfig, images: int) -> float:
    """Cycles per digit on the engine's Verilog, for the first ``images`` (at least 1) of the test.
    A layer gets only the memory contents that the previous layer left.

    Raises:
        CosimError: a score differs from the golden model's, or a program did not end.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    cycles: list[int] = []
    shown = data[0][:images]
    with PeSimulation(config) as simulation:

        def run(job: KernelJob) -> Elements:
            outcome = run_work(job, simulation)
            cycles.append(outcome.cycles)
            return outcome.outputs

        engine = network.fixed_scores(shown, run)
    if not np.array_equal(engine, network.fixed_scores(shown, lambda job: job.expected)):
        raise CosimError("digits: outputs differ from the golden model's")
    return sum(cycles) / len(engine)


@experiment(presets=("pe",), tools=(*SIMULATION, "scikit-learn"), minutes=5)
def digits(
    images: Annotated[
        int, typer.Option(help="Digits of the test that run on the engine.", min=1)
    ] = 100,
    preset_name: PresetOption = "pe",
) -> Iterator[Measurement]:
    """A CNN and an MLP for handwritten digits: accuracy in floating point and on the engine.

    The percentage of the test recognised in floating point and by the golden model, and cycles on
    the engine's Verilog, whose scores equal the golden model's. Needs scikit-learn (the extra
    "digits").

    Example: vip bench digits --images 500 --json digits.json
    """
    config = preset(preset_name)
    need_simulator()
    _, data = load_digits()
    for name in NETWORKS:
        network, key = trained(name), name.lower()
        real, golden = known(network, data)
        yield Measurement(f"{key}_float_known", 100 * real, "%", 0.01, True)
        yield Measurement(f"{key}_golden_known", 100 * golden, "%", 0.01, True)
        cycles = engine_cycles(network, data, config, images)
        yield Measurement(f"{key}_cycles", cycles, "cycles", 0.01)
