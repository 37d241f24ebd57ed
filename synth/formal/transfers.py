"""Correspondence of the array range check, within whole engines."""

from collections.abc import Callable

from amaranth.hdl import Cat, Value

from pe.capabilities import Capabilities
from pe.config import PeConfig

from .relation import Invariant, Relation, View
from .rows import any_of

__all__ = ["ends", "transfer_relation"]


def ends(full: PeConfig, unit: str = "") -> Callable[[View, View], Value]:
    """Whether an arrival or release is that of a transfer, in the array range check of the engine
    ``full``, whose registers have names that begin with ``unit``."""

    def holds(f: View, t: View) -> Value:
        terms = []
        for name in ("arrived", "released"):
            entry = f[f"{unit}late_{name}_entry"]
            there = any_of(
                (entry == number) & (f[f"{unit}columns_{number}"] != 0)
                for number in range(full.arc_entries)
            )
            terms.append(~f[f"{unit}late_{name}"] | there)
        return Cat(terms).all()

    return holds


def transfer_relation(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    """Add the rules of the array range check of whole engines to ``relation``."""
    full, trimmed = configs
    relation.gates += [
        (rf"arc\.late_{kind}_entry", lambda v, kind=kind: v[f"arc.late_{kind}"])  # type: ignore[misc]
        for kind in ("arrived", "released")
    ]
    whole = Capabilities.of(full).transfers
    kinds = Capabilities.of(trimmed).transfers
    entries = range(full.arc_entries)
    if kinds and bool(kinds.loads) != bool(kinds.stores) and whole.loads and whole.stores:
        relation.assumptions.append(Invariant("only what is in transfer ends", ends(full, "arc.")))
        relation.invariants += [
            Invariant(
                f"what entry {number} moves goes the one way that is left",
                lambda f, t, n=number: (  # type: ignore[misc]
                    (f[f"arc.columns_{n}"] == 0) | (f[f"arc.store_{n}"] == int(not kinds.loads))
                ),
            )
            for number in entries
        ]
    if kinds or not whole:
        return

    def rests(f: View, t: View) -> Value:
        taken = [f[f"arc.columns_{number}"] for number in entries]
        return ~any_of((*taken, f["arc.late_arrived"], f["arc.late_released"]))

    relation.invariants.append(
        Invariant("nothing is in transfer without an instruction that moves vectors", rests)
    )
