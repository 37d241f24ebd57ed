"""Options of a run: the memory of an engine, what it holds before, what is read of it after."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vip.cli.commands.options import address, reading, writing
from vip.cli.errors import UserError
from vip.programs import Dump, DumpError

if TYPE_CHECKING:
    from sim_tb.cosim.engine import MemoryBehaviour

__all__ = ["BehaviourOption", "DumpOption", "MemoryOption", "dump_of", "naming_dump"]


def _dumped(dump: Any) -> list[Path]:
    return [Path(dump[2])] if dump else []


MemoryOption = Annotated[
    Path | None,
    typer.Option(
        help="File with the memory's contents from address 0.",
        metavar="FILE",
        callback=reading(),
    ),
]
DumpOption = Annotated[
    tuple[str, str, Path] | None,
    typer.Option(
        help="Write memory afterwards; address and bytes may be hexadecimal, after 0x.",
        metavar="ADDRESS BYTES FILE",
        callback=writing(paths=_dumped),
    ),
]


def dump_of(values: tuple[str, str, Path] | None) -> Dump | None:
    """The value of ``--dump``.

    Raises:
        typer.BadParameter: what is no number.
    """
    return None if values is None else Dump(address(values[0]), address(values[1]), values[2])


@contextmanager
def naming_dump() -> Iterator[None]:
    """Name the option in the error of bytes outside the memory."""
    try:
        yield
    except DumpError as error:
        raise UserError(f"--{error}") from None


def _behaviour(
    *,
    latency: Annotated[
        int, typer.Option(help="Memory latency in cycles.", min=1, max=1_000_000, metavar="CYCLES")
    ] = 20,
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
) -> "MemoryBehaviour":
    """Behaviour of the memory beside one engine, as a simulation takes it."""
    from sim_tb.cosim.engine import MemoryBehaviour

    return MemoryBehaviour(
        latency=latency,
        bandwidth=max(1, round(bandwidth * 32)),
        stall=stall,
        gap=stall,
        out_of_order=out_of_order,
        seed=seed,
    )


BehaviourOption = Annotated["MemoryBehaviour", _behaviour]
