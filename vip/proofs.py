"""The verb ``prove``: proof that trimmed engines are equivalent to the full one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from isa.program import Program
from pe.config import PeConfig
from sim_tb.cosim.applications import ApplicationError, applications
from synth.analysis.trim import Known, trim
from synth.formal.prove import Proof
from synth.formal.prove import prove as prove_trimmed

from .configurations import Design, engine
from .programs import load_program
from .progress import Progress, by_part, silent
from .trimming.subjects import known_launches

__all__ = ["DEFAULT", "ProofReport", "prove"]

#: Applications that are proved when none is named.
DEFAULT = ("matrix-addition", "image-convolution", "bp")


@dataclass(frozen=True, kw_only=True)
class ProofReport:
    """Proofs by the application or program that the engine is trimmed to."""

    proofs: Mapping[str, Proof]

    @property
    def holds(self) -> bool:
        """Whether every condition of every proof was shown."""
        return all(proof.holds for proof in self.proofs.values())

    def to_json(self) -> dict[str, object]:
        """The proofs as plain JSON data."""
        return {name: proof.to_json() for name, proof in self.proofs.items()}


def prove(
    what: Sequence[str | Path] = DEFAULT,
    config: Design = "pe",
    *,
    progress: Progress = silent,
) -> ProofReport:
    """Prove that engines trimmed to programs do what the full one does, for every input.

    ``prove(["bp"]).holds``. docs/proofs.md lists the conditions and the assumptions. A proof takes
    minutes; earlier proofs are cached.

    Parameters:
        what: applications of the suite, or program files; an engine is proved for each.
        config: of the full engine.
        progress: called with each condition that is shown.

    Raises:
        VipError: a name or program that can't be used, or a proof that can't be set up.
    """
    full = engine(config)
    proofs = {}
    for name, launches in _launches(what, full).items():
        programs = [program for program, _ in launches]
        trimmed = trim(programs, full, known=[known for _, known in launches])
        proofs[name] = prove_trimmed(full, trimmed, by_part(progress, f"proof for {name}"))
    return ProofReport(proofs=proofs)


def _launches(what: Sequence[str | Path], full: PeConfig) -> dict[str, list[tuple[Program, Known]]]:
    """The programs of each application or file, with what is declared about them."""
    known = {each.name: each for each in applications()}
    found: dict[str, list[tuple[Program, Known]]] = {}
    for each in what:
        name = str(each)
        if name in known:
            launches = known_launches([known[name]], full)
            found[name] = [(program, about) for _, program, about in launches]
        elif Path(each).is_file():
            found[name] = [(load_program(Path(each), full.instruction_words), Known())]
        else:
            raise ApplicationError(f"{name}: no such file, and no application ({', '.join(known)})")
    return found
