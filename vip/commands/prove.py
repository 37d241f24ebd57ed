"""``vip prove``: proof that trimmed engines do what the full one does."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from isa.program import Program
from sim_tb.applications import applications
from soc.presets import preset
from synth.prove import Proof, prove
from synth.trim import trim

from ..console import console, units_done
from ..errors import UserError
from ..output import check_outputs, write_json
from .assembly import read_program
from .options import JsonOption, PresetOption

__all__ = ["DEFAULT", "prove_command"]

#: Applications that are proved when none is named.
DEFAULT = ("matrix-addition", "image-convolution", "bp")


def _programs(names: Sequence[str]) -> dict[str, list[Program]]:
    """The programs of each application or file in ``names``."""
    known = {each.name: each for each in applications()}
    found: dict[str, list[Program]] = {}
    for name in names:
        if name in known:
            found[name] = [work.program for work in known[name].workloads]
        elif Path(name).is_file():
            found[name] = [read_program(Path(name))]
        else:
            raise UserError(f"{name}: no such file, and no application ({', '.join(known)})")
    return found


def _show(proofs: dict[str, Proof]) -> None:
    table = Table(title="Engines that do what the full one does")
    for column in ("for", "conditions", "seconds", "result"):
        table.add_column(column, justify="left" if column in ("for", "result") else "right")
    for name, proof in proofs.items():
        result = "proved" if proof.holds else "REFUTED"
        table.add_row(name, f"{proof.goals:,}", f"{proof.seconds:,.0f}", result)
    console.print(table)
    for name, proof in proofs.items():
        for failure in proof.failures:
            console.print(f"{name}: {', '.join(failure.goals)} fails", markup=False)
            if failure.inputs:
                console.print(f"  with {', '.join(failure.inputs)}", markup=False)


def prove_command(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"Applications of the suite, or program files (default: {', '.join(DEFAULT)}).",
            metavar="[APPLICATION|PROGRAM]...",
        ),
    ] = None,
    preset_name: PresetOption = "pe",
    json_path: JsonOption = None,
) -> None:
    """Prove that engines with the instructions and registers of programs do what the full one does.

    See docs/proofs.md for what is shown and what is assumed. Exit code 1 if a proof fails, with the
    conditions that fail and the values that show it.
    """
    check_outputs(json_path)
    full = preset(preset_name)
    proofs: dict[str, Proof] = {}
    for name, programs in _programs(what or DEFAULT).items():
        trimmed = trim(programs, full)
        with units_done(f"proof for {name}") as progress:
            proofs[name] = prove(full, trimmed, progress)
    _show(proofs)
    write_json(json_path, {name: proof.to_json() for name, proof in proofs.items()})
    if not all(proof.holds for proof in proofs.values()):
        raise typer.Exit(1)
