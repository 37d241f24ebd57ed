"""``vip bench digits``: small networks trained on real digits, run on an engine's Verilog."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from microkernels.apps.digits import NETWORKS, load_digits, trained
from sim_tb.cosim.digits import cosim_digits
from sim_tb.runner.build import need_simulator
from soc.generate.generate import configuration_json
from soc.generate.presets import preset
from vip.cli.console import console, shown
from vip.output import write_json
from vip.progress import counting

from ..options import JsonOption, PresetOption

__all__ = ["digits"]


def digits(
    images: Annotated[
        int, typer.Option(help="Digits of the test that run on the engine.", min=1)
    ] = 50,
    preset_name: PresetOption = "pe",
    json: JsonOption = None,
) -> None:
    """A CNN and an MLP for handwritten digits: accuracy in floating point and on the engine.

    Needs scikit-learn (the extra "digits").

    Example: vip bench digits --images 500 --json digits.json
    """
    config = preset(preset_name)
    need_simulator()
    data = load_digits()
    outcomes = {}
    for name in NETWORKS:
        with shown() as progress:
            done = counting(progress, f"{name} (layers run)")
            outcomes[name] = cosim_digits(trained(name), data, config, images=images, progress=done)
    write_json(
        json,
        {
            "networks": {name: asdict(outcome) for name, outcome in outcomes.items()},
            "configuration": configuration_json(config),
        },
    )
    table = Table(title="Digits of the test that are known")
    table.add_column("network")
    for column in ("on the engine", "of", "golden", "float", "all: golden", "float", "cycles each"):
        table.add_column(column, justify="right")
    for name, outcome in outcomes.items():
        table.add_row(
            name,
            f"{outcome.engine:.1%}",
            str(outcome.images),
            f"{outcome.golden:.1%}",
            f"{outcome.real:.1%}",
            f"{outcome.all_golden:.1%}",
            f"{outcome.all_real:.1%}",
            f"{outcome.cycles:,.0f}",
        )
    console.print(table)
    if not all(outcome.match for outcome in outcomes.values()):
        raise typer.Exit(1)
