"""``vip bench vault``: bandwidth and latency of a vault's memory in its variants."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

from sim_tb.measure.vault import TRAFFICS, VARIANTS, Variant, VaultReport, measure
from sim_tb.measure.vault_bp import BpFigures, measure_bp
from soc.generate.presets import tile_preset
from vip.cli.console import console, shown
from vip.cli.errors import UserError
from vip.output import write_json
from vip.progress import by_part

from ..option_groups.machine import TimedOption
from ..options import JsonOption

__all__ = ["vault"]

#: Whose engines run the kernels.
_TILE = "vault"


def _chosen(names: list[str]) -> list[Variant]:
    """The variants called ``names``, all without any, in the order of :data:`VARIANTS`."""
    known = [variant.name for variant in VARIANTS]
    for name in names:
        if name not in known:
            raise UserError(f"--variant {name}: there are {', '.join(known)}")
    return [variant for variant in VARIANTS if not names or variant.name in names]


def _counting(
    done: Callable[[str, int, int], None], variants: list[Variant]
) -> Callable[[Variant], None]:
    """A callback for the start of each variant."""
    return lambda variant: done(variant.name, variants.index(variant), len(variants))


def _show_traffic(report: VaultReport) -> None:
    table = Table(
        title="GB/s of 10, and cycles of a random read alone",
        box=box.SIMPLE,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("variant", no_wrap=True)
    for traffic in TRAFFICS:
        table.add_column(traffic.replace("_", "\n"), justify="right")
    for name, row in report.rows.items():
        cells = [
            f"{found.mean:.0f}" if traffic == "idle_random_read" else f"{found.gbs:.2f}"
            for traffic, found in row.items()
        ]
        table.add_row(name, *cells)
    console.print(table)


def _show_bp(found: Mapping[str, BpFigures]) -> None:
    table = Table(title="Belief propagation, four engines on a 60 x 34 tile")
    table.add_column("variant")
    for column in ("GB/s", "cycles an update", "row hits", "wait 128+", "blocked by refresh"):
        table.add_column(column, justify="right")
    for name, row in found.items():
        table.add_row(
            name,
            f"{row.gbs:.2f}",
            f"{row.cycles_per_update:.2f}",
            f"{row.row_hits:.1%}",
            f"{row.late:.1%}",
            f"{row.refresh_blocked:.2f}",
        )
    console.print(table)


def _report(traffic: VaultReport, kernels: Mapping[str, BpFigures]) -> dict[str, Any]:
    """The report as plain data, a kernel's figures beside the traffic of its variant."""
    report = traffic.to_dict()
    for row in report["variants"]:
        if row["name"] in kernels:
            row["bp"] = kernels[row["name"]].to_dict()
    return report


def vault(
    accesses: Annotated[
        int, typer.Option(help="32-byte accesses of each traffic.", min=1000, max=100_000_000)
    ] = 200_000,
    seed: Annotated[int, typer.Option(help="Of everything random.", min=0, max=2**62)] = 1,
    variant: Annotated[
        list[str] | None,
        typer.Option(help="Measure this variant alone; may be repeated.", metavar="NAME"),
    ] = None,
    on: TimedOption = "rtl",
    bp: Annotated[
        bool,
        typer.Option("--bp", help="Run belief propagation on each Verilog too (minutes each)."),
    ] = False,
    json: JsonOption = None,
) -> None:
    """Bandwidth and latency of a vault's memory, and of the variants of thesis section 7.2.3.

    32-byte accesses go straight into the controller of a DRAM that checks every command. The JSON
    report also has the figures of the thesis's vault, open-page, at its top level.

    Example: vip bench vault --variant open-page --variant closed-page --json vault.json
    """
    chosen = _chosen(variant or [])
    if bp and on == "model":
        raise UserError("--bp runs on the Verilog alone: leave --on model away")
    with shown() as progress:
        done = by_part(progress, "traffic")
        report = measure(
            chosen, accesses=accesses, seed=seed, on=on, progress=_counting(done, chosen)
        )
    kernels: Mapping[str, BpFigures] = {}
    if bp:
        with shown() as progress:
            done = by_part(progress, "belief propagation")
            kernels = measure_bp(tile_preset(_TILE), chosen, progress=_counting(done, chosen))
    write_json(json, _report(report, kernels))
    _show_traffic(report)
    if kernels:
        _show_bp(kernels)
