"""``vip prove``: proof that trimmed engines do what the full one does."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from isa.program import Program
from sim_tb.cosim.applications import applications
from soc.generate.presets import preset
from synth.analysis.trim import trim
from synth.formal.prove import Proof, prove
from vip.cli.console import units_done
from vip.cli.errors import UserError
from vip.output import write_json
from vip.proofs import show_proofs

from .assembly import read_program
from .options import JsonOption, PresetOption, reading

__all__ = ["DEFAULT", "prove_command"]

#: Applications that are proved when none is named.
DEFAULT = ("matrix-addition", "image-convolution", "bp")


def _files(names: Sequence[str] | None) -> list[Path]:
    """Those of ``names`` that are files; what is neither is refused with the applications."""
    known = {each.name for each in applications()}
    return [Path(name) for name in names or () if name not in known and Path(name).exists()]


def _programs(names: Sequence[str], words: int) -> dict[str, list[Program]]:
    """The programs of each application or file in ``names``, of at most ``words`` words."""
    known = {each.name: each for each in applications()}
    found: dict[str, list[Program]] = {}
    for name in names:
        if name in known:
            found[name] = [work.program for work in known[name].workloads]
        elif Path(name).is_file():
            found[name] = [read_program(Path(name), words)]
        else:
            raise UserError(f"{name}: no such file, and no application ({', '.join(known)})")
    return found


def prove_command(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help=f"Applications of the suite, or program files (default: {', '.join(DEFAULT)}).",
            metavar="[APPLICATION|PROGRAM]...",
            callback=reading(_files),
        ),
    ] = None,
    preset_name: PresetOption = "pe",
    json_path: JsonOption = None,
) -> None:
    """Prove that engines trimmed to programs do what the full one does.

    See docs/proofs.md for what is shown and what is assumed. Exit code 1 if a proof fails, with the
    conditions that fail and the values that show it.
    """
    full = preset(preset_name)
    proofs: dict[str, Proof] = {}
    for name, programs in _programs(what or DEFAULT, full.instruction_words).items():
        trimmed = trim(programs, full)
        with units_done(f"proof for {name}") as progress:
            proofs[name] = prove(full, trimmed, progress)
    show_proofs(proofs)
    write_json(json_path, {name: proof.to_json() for name, proof in proofs.items()})
    if not all(proof.holds for proof in proofs.values()):
        raise typer.Exit(1)
