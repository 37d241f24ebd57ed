"""Correspondence of the array range check, within whole engines."""

from collections.abc import Callable
from functools import partial

from amaranth.hdl import Cat, Value

from hdl.probes import Probes
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.core import Pe
from pe.frontend.arc import Arc

from .relation import Invariant, Relation, View
from .rows import any_of

__all__ = ["ends", "transfer_relation"]

_ARC = Pe.PROBES.arc


def ends(full: PeConfig, arc: Probes = Arc.PROBES) -> Callable[[View, View], Value]:
    """Whether an arrival or release is that of a transfer, in the array range check of the engine
    ``full``, which has the probes ``arc``."""

    def holds(f: View, t: View) -> Value:
        terms = []
        for event in (arc.late_arrived, arc.late_released):
            entry = f[f"{event}_entry"]
            busy = any_of(
                (entry == number) & (f[f"{arc.columns}_{number}"] != 0)
                for number in range(full.arc_entries)
            )
            terms.append(~f[event] | busy)
        return Cat(terms).all()

    return holds


def transfer_relation(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    """Add the rules of the array range check of whole engines to ``relation``."""
    full, trimmed = configs
    relation.when(lambda v: v[_ARC.late_arrived], f"{_ARC.late_arrived}_entry")
    relation.when(lambda v: v[_ARC.late_released], f"{_ARC.late_released}_entry")
    whole = Capabilities.of(full).transfers
    kinds = Capabilities.of(trimmed).transfers
    entries = range(full.arc_entries)
    if kinds and bool(kinds.loads) != bool(kinds.stores) and whole.loads and whole.stores:
        relation.assumptions.append(Invariant("only what is in transfer ends", ends(full, _ARC)))

        def one_way(number: int, f: View, t: View) -> Value:
            stores = f[f"{_ARC.store}_{number}"] == int(not kinds.loads)
            return (f[f"{_ARC.columns}_{number}"] == 0) | stores

        relation.invariants += [
            Invariant(
                f"what entry {number} moves goes the one way that is left",
                partial(one_way, number),
            )
            for number in entries
        ]
    if kinds or not whole:
        return

    def rests(f: View, t: View) -> Value:
        columns = [f[f"{_ARC.columns}_{number}"] for number in entries]
        return ~any_of((*columns, f[_ARC.late_arrived], f[_ARC.late_released]))

    relation.invariants.append(
        Invariant("nothing is in transfer without an instruction that moves vectors", rests)
    )
