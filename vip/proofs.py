"""The verb ``prove``: proof that trimmed engines are equivalent to the full one."""

from collections.abc import Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from isa.program import Program
from microkernels.suite import ApplicationError, suite
from pe.config import PeConfig
from soc.generate.presets import Design, preset
from support.errors import Shown, unknown
from support.processes import workers
from synth.analysis.contents import Subject
from synth.analysis.trim import report
from synth.formal.induction import Progress as Steps
from synth.formal.induction import Proof
from synth.formal.prove import prove as prove_trimmed

from .programs import load_program
from .progress import Progress, by_part, silent
from .trimming.runs import known_launches, provable_engine

#: Applications that are proved when none is named: the whole suite.
DEFAULT = tuple(suite())


@dataclass(frozen=True, kw_only=True)
class ProofReport(Shown):
    """Proofs by the application or program that the engine is trimmed to."""

    proofs: Mapping[str, Proof]

    @property
    def holds(self) -> bool:
        """Whether every condition of every proof holds."""
        return all(proof.holds for proof in self.proofs.values())

    def to_json(self) -> dict[str, object]:
        """The proofs as plain JSON data."""
        return {name: proof.to_json() for name, proof in self.proofs.items()}


def prove(
    what: Program | Path | str | Sequence[Program | Path | str] = DEFAULT,
    config: Design = "pe",
    *,
    progress: Progress = silent,
) -> ProofReport:
    """Prove that engines trimmed to programs do what the full one does, for every input.

    ``prove("bp").holds``. docs/proofs.md lists the conditions and the assumptions. A proof takes a
    minute or more; finished proofs are cached. Several run in parallel, one per processor.

    Parameters:
        what: one or several applications of the suite, programs, or files of programs; an engine is
            proved for each.
        config: of the full engine; it also gets the optional instructions that an application uses.
        progress: called with each proved condition or, for several engines, each finished proof.

    Raises:
        VipError: an invalid name or program, or a proof that can't be set up.
    """
    full = provable_engine(config)
    launches = _launches([what] if isinstance(what, Program | Path | str) else what, full)
    if not launches:
        raise ApplicationError("there is no program to prove an engine of")
    if len(launches) == 1:
        ((name, only),) = launches.items()
        proof = _proof(_full_for(name, full), only, by_part(progress, f"proof for {name}"))
        return ProofReport(proofs={name: proof})
    proofs: dict[str, Proof] = {}
    with workers() as pool:
        tasks = {
            pool.submit(_proof, _full_for(name, full), subjects): name
            for name, subjects in launches.items()
        }
        progress("proofs", 0, len(tasks))
        for task in as_completed(tasks):
            proofs[tasks[task]] = task.result()
            progress("proofs", len(proofs), len(tasks), tasks[task])
    return ProofReport(proofs={name: proofs[name] for name in launches})


def _full_for(name: str, full: PeConfig) -> PeConfig:
    """``full`` with the optional instructions that the application ``name`` was written for."""
    if name not in suite():
        return full
    optional = preset(suite()[name].preset).instructions - preset("pe").instructions
    return replace(full, instructions=full.instructions | optional)


def _proof(full: PeConfig, launches: Sequence[Subject], progress: Steps = silent) -> Proof:
    """The proof of the engine that is trimmed to ``launches``."""
    trimmed = report(launches, full).trimmed
    return prove_trimmed(full, trimmed, progress)


def _launches(programs: Sequence[Program | Path | str], full: PeConfig) -> dict[str, list[Subject]]:
    """The programs of each application or file, with what is declared about them."""
    subjects: dict[str, list[Subject]] = {}
    for number, program in enumerate(programs):
        name = f"program {number}" if isinstance(program, Program) else str(program)
        if name in suite():
            subjects[name] = known_launches([suite()[name]], full)
        elif isinstance(program, Program) or Path(program).is_file():
            loaded = load_program(program, full.instruction_words)
            subjects[name] = [Subject(program=loaded)]
        else:
            raise ApplicationError(f"no such file, and {unknown('application', name, suite())}")
    return subjects
