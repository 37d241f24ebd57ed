"""Programs that an engine is trimmed to, with what is declared about their memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from isa.declared import Declared
from isa.image import DramImage
from isa.program import Program
from microkernels.runtime.job import KernelJob
from pe.config import PeConfig
from sim_tb.cosim.applications import Application, applications
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.trim_check import Workload
from support.files import read_bytes
from synth.analysis.contents import contents_of
from synth.analysis.trim import Known
from synth.errors import DeclarationError
from vip.programs import load_program

__all__ = ["Launches", "Loaded", "Subject", "known_launches", "load_subjects", "subjects_of"]

#: Bytes that a file of a memory's contents may have.
_MEMORY_BYTES = 1 << 28


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A program that the engine must run.

    Attributes:
        program: a program, or a file of one or of assembly.
        memories: contents of the memory from address 0 on, bytes or a file, of a run each. Without
            any the program runs on zeros, and this run is not used as a profile.
        name: for messages; "": that of the file.
        declared: what is fixed in memory; the rest is data, and may hold anything.
        parameters: DRAM address of the parameter block (r5); None: that of the launches.
    """

    program: Program | Path
    memories: Sequence[bytes | Path] = ()
    name: str = ""
    declared: Declared = field(default_factory=Declared)
    parameters: int | None = None


@dataclass(frozen=True, kw_only=True)
class Launches:
    """Settings for the runs of the programs.

    Attributes:
        parameters: DRAM address of the parameter block (r5), fixed with the application.
        behaviour: of the memory. max_cycles: a longer run is an error.
        allow_fault: compare a program that faults up to its fault.
    """

    parameters: int = 0
    behaviour: MemoryBehaviour = field(default_factory=MemoryBehaviour)
    max_cycles: int = 200_000_000
    allow_fault: bool = False


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A subject, read.

    Attributes:
        name: not empty. program: it. memories: contents, one at least if anything is declared.
        known: what all its launches have in common.
    """

    name: str
    program: Program
    memories: tuple[bytes, ...]
    known: Known

    def workloads(self, launches: Launches) -> list[Workload]:
        """Its runs: one on each of its memories, or one on zeros."""
        return [
            Workload(
                name=self.name,
                program=self.program,
                contents=memory,
                parameters=self.known.parameters or 0,
                memory=launches.behaviour,
                max_cycles=launches.max_cycles,
                may_fault=launches.allow_fault,
            )
            for memory in self.memories or (b"",)
        ]


def subjects_of(application: Application) -> list[Subject]:
    """The launches of an application, with what its jobs declare."""
    jobs = application.jobs
    return [
        Subject(
            program=job.program,
            memories=(_memory(job),),
            name=application.name if len(jobs) == 1 else f"{application.name}, launch {number}",
            declared=job.declared,
            parameters=job.parameters,
        )
        for number, job in enumerate(jobs, 1)
    ]


def known_launches(members: Sequence[Application], full: PeConfig) -> list[Loaded]:
    """The launches of applications on engines of ``full``."""
    return load_subjects([launch for item in members for launch in subjects_of(item)], full, 0)


def _memory(job: KernelJob) -> bytes:
    with DramImage(job.end) as memory:
        job.prepare(memory)
        return memory.read(0, job.end)


def load_subjects(
    programs: Sequence[Subject | Program | Path | str], full: PeConfig, parameters: int
) -> list[Loaded]:
    """The programs with names and memories, each read.

    Parameters:
        programs: of these a text is the name of an application, or of a file.
        parameters: start register of that name, where a subject has none.

    Raises:
        VipError: a program or memory that can't be used.
        DeclarationError: declarations that the memory, or the memories of one program, contradict.
        OSError: a file that can't be read.
    """
    loaded = []
    for number, item in enumerate(_listed(programs)):
        subject = item if isinstance(item, Subject) else Subject(program=item)
        if not subject.name:
            path = subject.program
            name = path.name if isinstance(path, Path) else f"program {number}"
            subject = replace(subject, name=name)
        loaded.append(_loaded(subject, full, parameters))
    return loaded


def _listed(
    programs: Sequence[Subject | Program | Path | str],
) -> list[Subject | Program | Path]:
    suite = {item.name: item for item in applications()}
    listed: list[Subject | Program | Path] = []
    for item in programs:
        if not isinstance(item, str):
            listed.append(item)
        elif item in suite:
            listed += subjects_of(suite[item])
        else:
            listed.append(Path(item))
    return listed


def _loaded(subject: Subject, full: PeConfig, parameters: int) -> Loaded:
    size = 1 << full.address_bits
    limit = min(size, _MEMORY_BYTES)
    memories = tuple(
        read_bytes(memory, limit) if isinstance(memory, Path) else memory
        for memory in subject.memories
    )
    declared = subject.declared
    if (declared.constants or declared.numbers) and not memories:
        span = (*declared.constants, *(numbers.span for numbers in declared.numbers))[0]
        raise DeclarationError(f"{subject.name}: {span} is declared, but no memory is given")
    start = subject.parameters
    try:
        contents = [contents_of(declared, memory, size) for memory in memories or (b"",)]
        for other in contents[1:]:
            contents[0].check_same(other)
    except DeclarationError as error:
        raise DeclarationError(f"{subject.name}: {error}") from error
    return Loaded(
        name=subject.name,
        program=load_program(subject.program, full.instruction_words),
        memories=memories,
        known=Known(
            contents=contents[0],
            parameters=parameters if start is None else start,
            slots=declared.slots,
        ),
    )
