"""The option ``--on`` of commands that run on several machines."""

from typing import Annotated

import typer

from sim_tb.cosim.machine import On, Timed

__all__ = ["OnOption", "TimedOption"]

OnOption = Annotated[
    On,
    typer.Option(
        "--on",
        help="The Verilog; the timing model: as many cycles, in less time; or the instruction set "
        "simulator, without cycles.",
    ),
]
TimedOption = Annotated[
    Timed,
    typer.Option(
        "--on",
        help="The Verilog, or the timing model: as many cycles, in less time.",
    ),
]
