"""Options of commands that run on several machines: ``--on``, and the memory of an engine."""

from typing import Annotated

import typer

from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.machine import On, Place, Timed

__all__ = ["BehaviourOption", "LatencyOption", "OnOption", "PlaceOption", "TimedOption"]

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
PlaceOption = Annotated[
    Place,
    typer.Option(
        "--on",
        help="The golden model, without cycles; the timing model or the Verilog, with cycles; or "
        "the instruction set simulator. All results are compared with the golden model's.",
    ),
]
LatencyOption = Annotated[
    int, typer.Option(help="Memory latency in cycles.", min=1, max=1_000_000, metavar="N")
]


def _behaviour(
    *,
    latency: LatencyOption = MemoryBehaviour.latency,
    bandwidth: Annotated[
        float, typer.Option(help="Memory bandwidth in bytes per cycle.", min=0.03125, max=8)
    ] = 8,
    stall: Annotated[
        float,
        typer.Option(help="Chance per cycle that the memory refuses a request.", min=0, max=0.99),
    ] = 0,
    out_of_order: Annotated[
        bool, typer.Option("--out-of-order", help="Answer requests in random order.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of everything random in the memory.", min=0)] = 1,
) -> MemoryBehaviour:
    """Behaviour of the memory beside one engine, as a simulation takes it."""
    return MemoryBehaviour(
        latency=latency,
        bandwidth=max(1, round(bandwidth * 32)),
        stall=stall,
        gap=stall,
        out_of_order=out_of_order,
        seed=seed,
    )


BehaviourOption = Annotated[MemoryBehaviour, _behaviour]
