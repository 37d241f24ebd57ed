"""The option ``--on`` of commands that run on the Verilog or on the timing model."""

from typing import Annotated

import typer

from sim_tb.cosim.machine import Machine

__all__ = ["OnOption"]

OnOption = Annotated[
    Machine,
    typer.Option(
        "--on",
        help="The Verilog, or the timing model: as many cycles, in less time.",
    ),
]
