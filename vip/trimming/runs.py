"""Programs that an engine is trimmed to, their runs on the full one, and the engine cut to both."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from isa.image import DramImage
from isa.program import NOTHING_DECLARED, Declared, Program
from isa.run import Launch
from microkernels.runtime.job import KernelJob
from microkernels.suite import Application, suite
from pe.config import PeConfig
from sim_tb.cosim.engine import MemoryBehaviour
from sim_tb.cosim.trim_check import Measured, TrimCheck, check_trimmed, measure
from soc.generate.presets import Design, engine, naming
from soc.tile.config import VaultTileConfig
from support.files import read_bytes
from synth.analysis.bounds import Sizes
from synth.analysis.contents import Subject
from synth.analysis.facts import Facts
from synth.analysis.profile import Profile, profile_run, program_digest
from synth.analysis.trim import TrimReport, named, profile_of_each, report
from synth.errors import DeclarationError, TrimError
from synth.formal.prove import check_full
from vip.programs import LIMIT, load_program, memory_contents
from vip.progress import Progress, counting

#: Largest file of memory contents, in bytes.
_MEMORY_BYTES = 1 << 28


def subject(
    program: Program | Path | str,
    memories: Sequence[bytes | NDArray[Any] | Path | str] = (),
    *,
    name: str = "",
    declared: Declared | None = None,
    parameters: int | None = None,
) -> Subject:
    """A program that the engine must run, with its files read.

    Parameters:
        program: a program, or the name or path of its file or of assembly.
        memories: contents of the memory from address 0 on, one per run: bytes, an array, or the
            name or path of a file, of at most 256 MiB. Without any the program runs on zeros, and
            this run is not used as a profile.
        name: for messages; "": that of the file.
        declared: what is fixed in memory; the rest is data, and may be anything. None: nothing.
        parameters: DRAM address of the parameter block (r5); None: that of the runs.

    Raises:
        DeclarationError: something is declared, but there is no memory.
        VipError: a program or memory can't be used.
        OSError: a file can't be read.
    """
    contents = tuple(
        read_bytes(memory, _MEMORY_BYTES) if isinstance(memory, Path) else memory or b""
        for memory in map(memory_contents, memories)
    )
    file = "" if isinstance(program, Program) else Path(program).name
    declared = declared or NOTHING_DECLARED
    if (declared.constants or declared.numbers) and not contents:
        span = (*declared.constants, *(numbers.span for numbers in declared.numbers))[0]
        raise DeclarationError(f"{name or file}: {span} is declared, but no memory is given")
    return Subject(
        program=load_program(Path(program) if isinstance(program, str) else program),
        name=name or file,
        memories=contents,
        declared=declared,
        parameters=parameters,
    )


def subjects_of(application: Application) -> list[Subject]:
    """The launches of an application, with what its jobs declare."""
    jobs = application.jobs
    return [
        Subject(
            program=job.program,
            memories=(job.memory,),
            name=application.name if len(jobs) == 1 else f"{application.name}, launch {number}",
            declared=job.declared,
            parameters=job.parameters,
        )
        for number, job in enumerate(jobs, 1)
    ]


def provable_engine(config: Design) -> PeConfig:
    """The full engine that ``config`` is or names.

    Raises:
        ConfigurationError: as for :func:`soc.generate.presets.engine`, or no proof covers it.
        OSError: the file can't be read.
    """
    full = engine(config)
    with naming(config):
        check_full(full)
    return full


def known_launches(members: Sequence[Application], full: PeConfig) -> list[Subject]:
    """The launches of applications on engines of ``full``."""
    return load_subjects([launch for item in members for launch in subjects_of(item)], full, 0)


def _prepared(job: KernelJob, memory: DramImage) -> bytes:
    job.prepare(memory)
    return memory.read(0, job.end)


def launches_alone(jobs: Sequence[KernelJob], engine: PeConfig, pes: int) -> list[Subject]:
    """The launches of jobs that have a vault with ``pes`` engines for themselves, one after the
    other, by names that differ; of those that differ only in data, the first.

    Parameters:
        engine: whose memory is the vault.
    """
    launches: dict[tuple[tuple[int, ...], str], Subject] = {}
    with DramImage(max(job.end for job in jobs)) as image:
        before = [(job, _prepared(job, image)) for job in jobs]
    for job, memory in before:
        declared = job.declarations
        for launch in job.launches:
            one = Subject(
                program=launch.program,
                name=launch.name or job.name,
                memories=(memory,),
                declared=replace(declared[launch.name], slots=pes),
                parameters=launch.parameters,
                one_vault=True,
            )
            contents = one.contents(engine)
            key = repr((contents.constants, contents.numbers, one.parameters))
            launches.setdefault((tuple(launch.program.words), key), one)
    names = Counter(one.name for one in launches.values())
    return [
        one if names[one.name] == 1 else replace(one, name=f"{one.name}, launch {number}")
        for number, one in enumerate(launches.values(), 1)
    ]


def load_subjects(
    programs: Subject | Program | Path | str | Sequence[Subject | Program | Path | str],
    full: PeConfig,
    parameters: int,
) -> list[Subject]:
    """Read programs with their names and memories.

    Parameters:
        programs: a string is the name of an application, or of a file.
        parameters: of subjects that have none.

    Raises:
        VipError: a program or memory can't be used.
        DeclarationError: the memory contradicts declarations, or so do a program's memories.
        OSError: a file can't be read.
    """
    if isinstance(programs, Subject | Program | Path | str):
        programs = [programs]
    subjects: list[Subject] = []
    for number, item in enumerate(programs):
        if isinstance(item, Subject):
            subjects.append(item)
        elif isinstance(item, str) and item in suite():
            subjects += subjects_of(suite()[item])
        else:
            name = f"program {number}" if isinstance(item, Program) else ""
            subjects.append(subject(item, name=name))
    return [_for_engine(one, full, parameters) for one in subjects]


def _for_engine(one: Subject, full: PeConfig, parameters: int) -> Subject:
    """``one`` with ``parameters``, if it has none."""
    load_program(one.program, full.instruction_words)
    with named(one.name):
        one.contents(full)
    return one if one.parameters is not None else replace(one, parameters=parameters)


#: Additional cycles that engines trimmed to the suite may take, as a fraction.
SLOWER = 0.01


def timed_profile(run: Measured, slower: float) -> Profile:
    """A profile that has only the transfers in flight of ``run``.

    Parameters:
        slower: additional cycles that fewer of them may cost, as for :func:`measure`.
    """
    return Profile(
        digest=program_digest(run.launch.program),
        facts=Facts(),
        in_flight=run.in_flight,
        slower=0.0 if run.in_flight is None else slower,
    )


def moved(runs: Sequence[Measured]) -> int:
    """Bytes that the work of ``runs``, all with counters, loads and stores."""
    counted = [run.result.counters for run in runs]
    return sum(counters["BYTES_LOADED"] + counters["BYTES_STORED"] for counters in counted)


def demand(runs: Sequence[Measured]) -> float:
    """Bytes per cycle that the full engine moves in ``runs``, all with counters."""
    cycles = sum(run.result.counters["CYCLES"] for run in runs)
    return moved(runs) / cycles if cycles else 0.0


def proved_cut(programs: Sequence[Subject], full: PeConfig, runs: Sequence[Measured]) -> TrimReport:
    """Trim ``full`` to programs by proof. Their ``runs``, with :data:`SLOWER`, decide the transfers
    in flight alone.

    Raises:
        TrimError: see :func:`synth.analysis.trim.report`; or a size is not proved for every input.
    """
    timed = [timed_profile(run, SLOWER) for run in runs]
    cut = report(programs, full, timed=timed, sizes=Sizes(basis="proved"))
    for bound in cut.bounds:
        if bound.basis != "proved":
            raise TrimError(f"{bound.name} is not proved for every input: {bound.why}")
    return cut


class EngineWork:
    """Programs on one engine.

    Parameters:
        behaviour: of the memory; None: the default.
        max_cycles: a longer run is an error.

    Attributes:
        runs: on the Verilog of the full engine, as :meth:`cut` made them.
    """

    def __init__(
        self,
        programs: Sequence[Subject],
        full: PeConfig,
        *,
        behaviour: MemoryBehaviour | None = None,
        max_cycles: int = LIMIT,
    ) -> None:
        self._programs = programs
        self._full = full
        self._behaviour = behaviour
        self._max_cycles = max_cycles
        # One run on each memory, or one on zeros.
        self._launches = [(one, memory) for one in programs for memory in one.memories or (b"",)]
        self.runs: list[Measured] = []

    def _measured(
        self, subject: Subject, memory: bytes, progress: Callable[[int], None], **watch: Any
    ) -> Measured:
        """The run on the full engine; ``watch`` as for :func:`measure`."""
        launch = Launch(
            name=subject.name,
            program=subject.program,
            parameters=subject.parameters or 0,
            max_cycles=self._max_cycles,
        )
        return measure(
            launch,
            memory,
            self._full,
            progress,
            behaviour=self._behaviour,
            **watch,
        )

    @property
    def title(self) -> str:
        """Names of the programs, and the parameters of their launches."""
        return ", ".join(
            f"{one.name} (launched with parameters {one.parameters})" for one in self._programs
        )

    def vault(self, engine: PeConfig) -> VaultTileConfig | None:
        """None: the programs run on one engine."""
        return None

    def cut(self, sizes: Sizes, *, hardware: bool, progress: Progress) -> TrimReport:
        """The engine that the programs need; they run on the full one or, without ``hardware``, on
        the simulator alone."""
        # Errors come early, as the runs of the programs on hardware take long.
        profile_of_each([subject.program for subject in self._programs], sizes.profiles)
        report(self._programs, self._full, sizes=replace(sizes, basis="proved"))
        profiles = []
        for one, memory in self._launches:
            # A run on zeros is not representative of runs on data.
            if not (hardware or one.memories):
                continue
            cycles = counting(progress, f"{one.name} on the full engine")
            with DramImage(1 << self._full.address_bits) as image:
                image.write(0, memory)
                profile = profile_run(
                    one.program,
                    image,
                    self._full,
                    parameters=one.parameters or 0,
                    limit=self._max_cycles,
                    progress=cycles,
                )
            if one.memories:
                profiles.append(profile)
            if hardware:
                self.runs.append(self._measured(one, memory, cycles, slower=sizes.slower))
        timed = [timed_profile(run, sizes.slower) for run in self.runs]
        return report(self._programs, self._full, profiles, timed=timed, sizes=sizes)

    def check(
        self, cut: TrimReport, slower: float, progress: Progress
    ) -> tuple[tuple[TrimCheck, ...], tuple[str, ...]]:
        """Run everything on the trimmed engine, and on the full one unless that was done; try each
        removed instruction once."""
        checks = []
        for number, (one, memory) in enumerate(self._launches):
            cycles = counting(progress, f"{one.name} on both engines (cycles)")
            before = (
                self.runs[number]
                if self.runs
                else self._measured(one, memory, cycles, watched=False)
            )
            checks.append(
                check_trimmed(
                    before,
                    cut.full,
                    cut.trimmed,
                    cycles,
                    try_removed=number == 0,
                    slower=slower,
                )
            )
        return tuple(checks), tuple(sorted({key for check in checks for key in check.unfaulted}))
