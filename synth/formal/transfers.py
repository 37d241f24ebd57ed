"""Correspondence of the array range check, within whole engines."""

from collections.abc import Callable
from functools import partial

from amaranth.hdl import Cat, Value

from hdl.component import Probes
from pe.capabilities import Capabilities
from pe.config import PeConfig
from pe.frontend.arc import Arc

from .probes import ARC
from .relation import Invariant, Relation, View
from .rows import any_of

__all__ = ["ends", "transfer_relation"]


def ends(full: PeConfig, arc: Probes = Arc.probes) -> Callable[[View, View], Value]:
    """Whether an arrival or release is that of a transfer, in the array range check of the engine
    ``full``, which has the probes ``arc``."""

    def holds(f: View, t: View) -> Value:
        terms = []
        for event in (arc.late_arrived, arc.late_released):
            entry = f[f"{event}_entry"]
            busy = any_of(
                (entry == number) & (f[_numbered(arc.columns_0, number)] != 0)
                for number in range(full.arc_entries)
            )
            terms.append(~f[event] | busy)
        return Cat(terms).all()

    return holds


def transfer_relation(relation: Relation, configs: tuple[PeConfig, PeConfig]) -> None:
    """Add the rules of the array range check of whole engines to ``relation``."""
    full, trimmed = configs
    relation.when(lambda v: v[ARC.late_arrived], f"{ARC.late_arrived}_entry")
    relation.when(lambda v: v[ARC.late_released], f"{ARC.late_released}_entry")
    full_kinds = Capabilities.of(full).transfers
    kinds = Capabilities.of(trimmed).transfers
    entries = range(full.arc_entries)
    if kinds and bool(kinds.loads) != bool(kinds.stores) and full_kinds.loads and full_kinds.stores:
        relation.assumptions.append(Invariant("only what is in transfer ends", ends(full, ARC)))

        def one_way(number: int, f: View, t: View) -> Value:
            stores = f[_numbered(ARC.store_0, number)] == int(not kinds.loads)
            return (f[_numbered(ARC.columns_0, number)] == 0) | stores

        relation.invariants += [
            Invariant(
                f"what entry {number} moves goes the one way that is left",
                partial(one_way, number),
            )
            for number in entries
        ]
    if kinds or not full_kinds:
        return

    def rests(f: View, t: View) -> Value:
        columns = [f[_numbered(ARC.columns_0, number)] for number in entries]
        return ~any_of((*columns, f[ARC.late_arrived], f[ARC.late_released]))

    relation.invariants.append(
        Invariant("nothing is in transfer without an instruction that moves vectors", rests)
    )


def _numbered(first: str, number: int) -> str:
    """The name of entry ``number``, after that of entry 0."""
    return f"{first.removesuffix('0')}{number}"
