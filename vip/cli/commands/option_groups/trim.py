"""Options of ``vip trim``: how programs run, and what is compared."""

from dataclasses import dataclass
from typing import Annotated

import typer

import vip
from sim_tb.cosim.engine import MemoryBehaviour
from vip.cli.commands.options import ParametersOption

__all__ = ["ComparisonOptions", "LaunchOptions"]


@dataclass(frozen=True, kw_only=True)
class LaunchOptions:
    """How the programs run."""

    parameters: ParametersOption = 0
    latency: Annotated[
        int, typer.Option(help="Memory latency in cycles.", min=1, max=1_000_000)
    ] = 20
    max_cycles: Annotated[int, typer.Option(help="Give up after so many.", min=1)] = 200_000_000
    allow_fault: Annotated[
        bool, typer.Option("--allow-fault", help="Compare up to the fault of a program.")
    ] = False

    def launches(self) -> vip.Launches:
        """The launches as the API takes them."""
        return vip.Launches(
            parameters=self.parameters,
            behaviour=MemoryBehaviour(latency=self.latency),
            max_cycles=self.max_cycles,
            allow_fault=self.allow_fault,
        )


@dataclass(frozen=True, kw_only=True)
class ComparisonOptions:
    """What is compared with the full engine."""

    check: Annotated[
        bool, typer.Option(help="Run the programs on the Verilog of both engines.")
    ] = True
    area: Annotated[bool, typer.Option(help="Synthesise both engines.")] = True
    prove: Annotated[
        bool,
        typer.Option(
            "--prove", help="Prove that the engine does what the full one does (docs/proofs.md)."
        ),
    ] = False
    fit: Annotated[
        str | None,
        typer.Option(
            help="Fill a device (xc7vx690t, ecp5-85k, asic:MM2 and so on) with full and with "
            "trimmed engines, and run the programs on all of them.",
            metavar="DEVICE",
        ),
    ] = None
