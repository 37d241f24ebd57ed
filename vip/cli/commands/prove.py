"""``vip prove``: proof that trimmed engines do what the full one does."""

from typing import Annotated

import typer

import vip
from vip.cli.console import shown
from vip.cli.groups import Answer
from vip.cli.tables.area import show_proofs
from vip.proofs import DEFAULT
from vip.trimming.models import work_files

from .option_groups.design import DesignOption
from .options import reading


def prove(
    design: DesignOption,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="Applications of the suite, or program files (default: the whole suite).",
            metavar="[APPLICATION|PROGRAM]...",
            callback=reading(work_files),
        ),
    ] = None,
) -> Answer:
    """Prove that engines trimmed to programs behave as the full one does.

    docs/proofs.md describes the proof and its assumptions. If a proof fails, the command prints the
    failing conditions and a counterexample, and the exit code is 1.

    Example: vip prove bp --json proof.json
    """
    with shown() as progress:
        report = vip.prove(what or DEFAULT, design, progress=progress)
    show_proofs(report.proofs)
    return Answer(report.to_json(), code=0 if report.holds else 1)
