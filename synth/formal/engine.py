"""Correspondence of a full processing engine and a trimmed one."""

from pe.config import PeConfig

from .front import PROBES, front_relation
from .load_store import load_store_relation
from .relation import Relation
from .transfers import transfer_relation
from .vector import vector_relation

__all__ = ["PROBES", "engine_relation"]


def engine_relation(full: PeConfig, trimmed: PeConfig) -> Relation:
    """When the states of the two engines correspond."""
    relation = Relation()
    front_relation(relation, (full, trimmed))
    transfer_relation(relation, (full, trimmed))
    load_store_relation(relation, full, trimmed)
    vector_relation(relation, (full, trimmed))
    return relation
