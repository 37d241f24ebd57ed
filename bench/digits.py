"""Networks for handwritten digits."""

from collections.abc import Iterator
from typing import Annotated

import typer

from microkernels.apps.digits import NETWORKS, load_digits, trained
from sim_tb.cosim.digits import cosim_digits
from sim_tb.runner.build import need_simulator
from soc.generate.presets import preset
from vip.cli.commands.options import PresetOption

from .harness.experiment import SIMULATION, Measurement, experiment
from .harness.runs import exact

__all__ = ["digits"]


@experiment(presets=("pe",), tools=(*SIMULATION, "scikit-learn"), minutes=5)
def digits(
    images: Annotated[
        int, typer.Option(help="Digits of the test that run on the engine.", min=1)
    ] = 100,
    preset_name: PresetOption = "pe",
) -> Iterator[Measurement]:
    """A CNN and an MLP for handwritten digits: accuracy in floating point and on the engine.

    Of the test, the percentage known in floating point and by the golden model, and cycles on the
    engine's Verilog, whose scores equal the golden model's. Needs scikit-learn (the extra
    "digits").

    Example: vip bench digits --images 500 --json digits.json
    """
    config = preset(preset_name)
    need_simulator()
    data = load_digits()
    for name in NETWORKS:
        scores = exact(cosim_digits(trained(name), data, config, images=images), name)
        key = name.lower()
        yield Measurement(f"{key}_float_known", 100 * scores.all_real, "%", 0.01, True)
        yield Measurement(f"{key}_golden_known", 100 * scores.all_golden, "%", 0.01, True)
        yield Measurement(f"{key}_cycles", scores.cycles, "cycles", 0.01)
