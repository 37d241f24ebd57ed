"""The table of proofs."""

from collections.abc import Mapping

from synth.formal.prove import Proof
from vip.cli.console import console, table


def show_proofs(proofs: Mapping[str, Proof]) -> None:
    """Print ``proofs`` by the engine's application or program, with counterexamples of failed
    ones."""
    heads = ("for", "conditions", "seconds", "result")
    title = "Trimmed engines that behave as the full one does"
    results = table(*heads, left=("for", "result"), title=title)
    for name, proof in proofs.items():
        result = "proved" if proof.holds else "REFUTED"
        results.add_row(name, f"{proof.goals:,}", f"{proof.seconds:,.0f}", result)
    console.print(results)
    for name, proof in proofs.items():
        for failure in proof.failures:
            console.print(f"{name}: {', '.join(failure.goals)} fails", markup=False)
            if failure.inputs:
                console.print(f"  with {', '.join(failure.inputs)}", markup=False)
