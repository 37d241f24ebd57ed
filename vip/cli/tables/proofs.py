"""The table of proofs."""

from collections.abc import Mapping

from rich.table import Table

from synth.formal.prove import Proof
from vip.cli.console import console

__all__ = ["show_proofs"]


def show_proofs(proofs: Mapping[str, Proof]) -> None:
    """Show ``proofs`` by the application or program of the engine, and the counterexamples of those
    that fail."""
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
