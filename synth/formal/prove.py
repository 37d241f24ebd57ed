"""Proof that a trimmed processing engine behaves like the full one, for the instructions it keeps.

``docs/proofs.md`` states the theorem, the assumptions, and how the parts combine.
"""

from dataclasses import fields, replace
from functools import cache

from hdl.config import ConfigurationError
from isa.table import Unit
from pe.config import PeConfig
from pe.core import Pe

from .cut import CutDesign, ProofError, cut
from .front import PROBES, front_relation
from .induction import Progress, Proof, joined, prove_relation, silent
from .load_store import load_store_relation, transfer_relation
from .relation import Relation
from .sizes import prove_sizes
from .vector import vector_relation
from .vector_unit import prove_vector_unit

#: Fields of a configuration whose trimming is proved for the whole engine at once.
_ENGINE_FIELDS = ("instructions", "registers")
#: Sizes proved unit by unit; those of the trimmed engine are not larger.
_SIZES = (
    "register_width",
    "max_vl",
    "max_mr",
    "scratchpad_bytes",
    "arc_entries",
    "address_bits",
)
#: Fields whose trimming is proved; the proof ignores the others.
PROVED_FIELDS = (*_ENGINE_FIELDS, *_SIZES, "scratchpad_alignment")


def engine_relation(full: PeConfig, trimmed: PeConfig) -> Relation:
    """The correspondence of the two engines' states."""
    relation = Relation()
    front_relation(relation, (full, trimmed))
    transfer_relation(relation, (full, trimmed))
    load_store_relation(relation, full, trimmed)
    vector_relation(relation, (full, trimmed))
    return relation


def provable(full: PeConfig, trimmed: PeConfig) -> PeConfig:
    """``full`` with those fields of ``trimmed`` whose trimming is proved for the whole engine at
    once, and behavioural memories, whose contents are not part of it."""
    trimmed_fields = {name: getattr(trimmed, name) for name in _ENGINE_FIELDS}
    return replace(full, sram="behavioural", **trimmed_fields)


def check_full(full: PeConfig) -> None:
    """Refuse a full engine of which no proof exists.

    Raises:
        hdl.config.ConfigurationError: ``full`` can declare a workspace or has shared ports.
    """
    if full.workspace:
        raise ConfigurationError(
            "no proof covers set.ws: leave it out of the full engine's instructions"
        )
    if full.shared_ports:
        raise ConfigurationError(
            "no proof covers accesses that wait for ports: scratchpad_banks must be 8"
        )


def prove(full: PeConfig, trimmed: PeConfig, progress: Progress = silent) -> Proof:
    """Prove that ``trimmed`` behaves like ``full``, as far as ``docs/proofs.md`` says.

    Parameters:
        full, trimmed: configurations. progress: see :data:`synth.formal.induction.Progress`.

    Raises:
        ProofError: ``trimmed`` has a part that ``full`` lacks, or a proof can't be set up.
        hdl.config.ConfigurationError: as of :func:`check_full`.
    """
    check_full(full)
    extra = sorted(trimmed.instructions - full.instructions)
    if extra:
        raise ProofError(f"the trimmed engine has {extra[0]}, which the full one lacks")
    if trimmed.registers > full.registers:
        raise ProofError(
            f"the trimmed engine has {trimmed.registers} registers, the full one {full.registers}"
        )
    for name in _SIZES:
        size, limit = getattr(trimmed, name), getattr(full, name)
        if size > limit:
            raise ProofError(f"{name} of the trimmed engine is {size}, of the full one {limit}")
    # Engines with other memories build multipliers differently.
    big, small = (replace(config, sram="behavioural") for config in (full, trimmed))
    proofs = prove_sizes(big, small, progress)
    if trimmed.rows_of(Unit.VECTOR):
        proofs["vector unit"] = prove_vector_unit(big, small, progress)
    proofs["engine"] = _prove_engine(big, provable(full, trimmed), progress)
    left_out = tuple(
        field.name
        for field in fields(PeConfig)
        if field.name not in (*PROVED_FIELDS, "sram")
        and getattr(full, field.name) != getattr(trimmed, field.name)
    )
    return replace(joined(proofs), left_out=left_out)


def _prove_engine(full: PeConfig, trimmed: PeConfig, progress: Progress) -> Proof:
    progress("full engine", 0, 1)
    big = _full(full)
    progress("trimmed engine", 0, 1)
    small = cut(Pe(trimmed), "trimmed", probes=PROBES)
    return prove_relation(big, small, engine_relation(full, trimmed), progress)


@cache
def _full(config: PeConfig) -> CutDesign:
    """The full engine, shared by proofs of several trimmed ones."""
    return cut(Pe(config), "full", probes=PROBES)
