"""Options of commands that run on several machines: ``--on``, and the memory of an engine."""

from typing import Annotated

import typer

from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.machine import On, Place, Timed
from vip.cli.commands.options import liberty_files, reading

OnOption = Annotated[
    On,
    typer.Option(
        "--on",
        help="Where to run: the Verilog, the timing model (the same cycle count, faster), the "
        "instruction set simulator (no cycle count), or the mapped netlist of an engine.",
    ),
]
TargetOption = Annotated[
    str | None,
    typer.Option(
        help="With --on netlist: what the engine is mapped to, as by vip synth (default: generic).",
        metavar="TARGET",
        callback=reading(liberty_files),
    ),
]
TimedOption = Annotated[
    Timed,
    typer.Option(
        "--on",
        help="Where to run: the Verilog, or the timing model (the same cycle count, faster).",
    ),
]
PlaceOption = Annotated[
    Place,
    typer.Option(
        "--on",
        help="Where to run: the golden model or the instruction set simulator (no cycle count), "
        "the timing model or the Verilog. All results are compared with the golden model's.",
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
        typer.Option(help="Probability per cycle that the memory stalls.", min=0, max=0.99),
    ] = 0,
    out_of_order: Annotated[
        bool, typer.Option("--out-of-order", help="Answer requests in random order.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Random seed of the memory.", min=0)] = 1,
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
