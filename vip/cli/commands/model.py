"""``vip model``: the timing model."""

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

import typer

import vip
from sim_tb.workloads.certificate import KINDS, Certified
from vip.cli.console import console, shown, table
from vip.cli.groups import Answer
from vip.cli.lazy import CommandGroup

app = typer.Typer(
    cls=CommandGroup, help="Compare the timing model with the Verilog.", no_args_is_help=True
)


@app.callback()
def _model() -> None:
    """Compare the timing model with the Verilog."""


def _show(machine: str, rows: Sequence[Certified]) -> None:
    heads = ("run", "model", "Verilog", "error", "counters")
    title = f"cycles on the machine: {machine}"
    text = ("run", "counters")
    cycles = table(*heads, left=text, title=title)
    for row in rows:
        causes = ", ".join(f"{name} {value:+,}" for name, value in row.differing.items())
        cycles.add_row(
            row.name,
            f"{row.model:,}",
            f"{row.verilog:,}",
            f"{row.percent:+.2f} %" if row.model != row.verilog else "0",
            causes or "equal",
        )
    console.print(cycles)


@app.command()
def certify(
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"Only this part: {', '.join(KINDS)}; may be repeated (default: all).",
        ),
    ] = None,
) -> Answer:
    """Run programs on the timing model and on the Verilog, and compare cycles and counters.

    The runs are: traffic on all variants of a vault's memory, the application suite on one engine,
    belief propagation and the LSTM on a vault, and belief propagation on two chips. The exit code
    is 1 if any counter, summed over all engines, vaults or nodes, differs.

    Example: vip model certify --only engine --only vault --json certificate.json
    """
    with shown() as progress:
        report = vip.certify(only or KINDS, progress=progress)
    for machine, rows in groupby(report.rows, lambda row: row.kind):
        _show(machine, list(rows))
    median, worst = report.errors
    console.print(
        f"certificate {report.number}: {report.equal} of "
        f"{len(report.rows)} runs are equal in every counter; difference of cycles: "
        f"median {median:.2f} %, largest {worst:.2f} %"
    )
    return Answer(report.to_json(), code=0 if report.holds else 1)
