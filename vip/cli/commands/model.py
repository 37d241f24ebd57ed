"""``vip model``: the timing model."""

from typing import Annotated

import typer
from rich.table import Table

import vip
from sim_tb.measure.certificate import KINDS
from vip.cli.console import console, shown
from vip.output import write_json

from .options import JsonOption

__all__ = ["app"]

app = typer.Typer(help="Compare the timing model with the Verilog.", no_args_is_help=True)


@app.callback()
def _model() -> None:
    """Compare the timing model with the Verilog."""


@app.command()
def certify(
    kind: Annotated[
        list[str] | None,
        typer.Option(help=f"Machines to run on: {', '.join(KINDS)} (default: all)."),
    ] = None,
    layers: Annotated[
        bool, typer.Option("--layers", help="With the layers of VGG-16: 30 minutes more.")
    ] = False,
    json: JsonOption = None,
) -> None:
    """Run programs on the timing model and on the Verilog, and compare cycles and counters.

    Traffic runs on a vault's memory in its variants, the suite on one engine, belief propagation
    and the LSTM on a vault, belief propagation on two chips. Exit code 1 if the sum of one counter
    over all engines, vaults or nodes differs.

    Example: vip model certify --kind engine --kind vault --json certificate.json
    """
    with shown() as progress:
        found = vip.certify(kind or KINDS, layers=layers, progress=progress)
    table = Table(title=f"certificate {found.certificate.number}")
    for head in ("machine", "run", "timing model", "Verilog", "difference", "counters that differ"):
        right = head in ("timing model", "Verilog", "difference")
        table.add_column(head, justify="right" if right else "left")
    for row in found.certificate.rows:
        causes = ", ".join(f"{name} {value:+,}" for name, value in row.differing.items())
        table.add_row(
            row.kind,
            row.name,
            f"{row.model:,}",
            f"{row.verilog:,}",
            f"{row.percent:+.2f} %" if row.model != row.verilog else "0",
            causes or "none",
        )
    console.print(table)
    median, worst = found.certificate.errors
    console.print(
        f"{found.certificate.equal} of {len(found.certificate.rows)} runs are equal in every"
        f" counter; difference of cycles: median {median:.2f} %, largest {worst:.2f} %"
    )
    write_json(json, found.to_json())
    if not found.holds:
        raise typer.Exit(1)
