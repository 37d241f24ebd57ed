"""``vip power``: power of an engine that runs a kernel."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import vip
from synth.power.power import THESIS_MHZ, PowerReport
from vip.cli.console import console, shown, table
from vip.cli.groups import Answer
from vip.synthesis.power import KERNELS

from .option_groups.design import DesignOption, MemoryOption
from .options import (
    CellsOption,
    ParametersOption,
    ToolsOption,
    files_beside,
    reading,
)


def _own_program(kernel: str) -> list[Path]:
    return [Path(name) for name in files_beside("kernel", KERNELS, [kernel])]


def _table(title: str, report: PowerReport, mhz: float) -> Table:
    parts = ("mW", "%", "clock", "cells", "nets", "memories", "leakage")
    units = table("unit", *parts, left=("unit",), title=title)
    total = report.total.milliwatts(mhz)
    for row in (*report.rows, report.total):
        if row is report.total:
            units.add_section()
        shares = (row.clock, row.cells, row.nets, row.memories)
        units.add_row(
            row.unit,
            f"{row.milliwatts(mhz):.2f}",
            f"{row.milliwatts(mhz) / total:.1%}",
            *(f"{fj * mhz * 1e-6:.2f}" for fj in shares),
            f"{row.leakage * 1e-6:.2f}",
        )
    return units


def power(
    kernel: Annotated[
        str,
        typer.Argument(
            help="bp, conv, or a program file (.s or assembled).",
            metavar="KERNEL",
            callback=reading(_own_program),
        ),
    ],
    design: DesignOption,
    memory: MemoryOption = None,
    parameters: ParametersOption = 0,
    target: CellsOption = "nangate45",
    mhz: Annotated[
        float, typer.Option(help="Clock frequency.", min=1, max=10_000, metavar="MHZ")
    ] = 1000.0,
    limit: Annotated[
        int,
        typer.Option(help="Stop after this many cycles.", min=1, max=1_000_000, metavar="N"),
    ] = 50_000,
    jobs: ToolsOption = None,
) -> Answer:
    """Estimate the power of an engine that runs a kernel.

    The kernel runs on the Verilog. The mapped netlist is then simulated with the same inputs,
    compared with the Verilog in every cycle, and the activity of each cell, wire and memory is
    counted. The memory of a program holds zeros where --memory has no bytes.

    Example: vip power bp --json power.json

    Example: vip power kernel.s --memory image.bin
    """
    with shown() as progress:
        result = vip.power(
            kernel,
            design,
            memory=memory,
            parameters=parameters,
            target=target,
            mhz=mhz,
            max_cycles=limit,
            jobs=jobs,
            progress=progress,
        )
    thesis = result.at_thesis_node()
    title = f"{design} runs {kernel}: mW at {mhz:g} MHz, {result.library}"
    console.print(_table(title, result, mhz))
    for kind in result.work:
        console.print(f"{result.energy_pj(kind, mhz):,.2f} pJ per {kind}")
    console.print(
        f"{result.total.milliwatts(result.fmax_mhz):.1f} mW at {result.fmax_mhz:g} MHz, the"
        f" netlist's highest clock; {thesis.total.milliwatts(THESIS_MHZ):.1f} mW scaled to"
        f" {thesis.node_nm:g} nm, {thesis.volts:g} V and {THESIS_MHZ:g} MHz"
    )
    return Answer(result.to_json())
