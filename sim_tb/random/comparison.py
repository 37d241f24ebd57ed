"""Comparison of engine and instruction set simulator on random programs."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from isa.image import DramImage
from isa.run import RunResult
from pe.config import PeConfig
from sim_tb.cosim.engine import CosimError, PeSimulation, TooLong
from sim_tb.harness.engine import HostJob

from .interrupted import interruption
from .programs import random_program
from .random_program import RandomProgram
from .reference import differences, listing, run_reference

#: Images in use at once: the session takes two jobs ahead of the current one.
_IMAGES = 4
#: Numbers of a report that add up.
_SUMS = ("programs", "faulting", "disturbed", "early", "memory_errors", "full", "cycles", "words")
#: Differing programs after which a comparison stops.
ENOUGH = 10


@dataclass(frozen=True)
class Difference:
    """A program on which the two disagree: seed, differences, a listing of both, and whether the
    engine did not end."""

    seed: int
    what: tuple[str, ...]
    listing: str
    hung: bool = False


@dataclass(frozen=True, kw_only=True)
class RandomReport:
    """Outcome of a comparison.

    Attributes:
        programs: compared programs. faulting: those that end in a fault.
        disturbed: those with memory errors or a stop. early: those that this ended early.
            memory_errors: those that met an error.
        full: those that fill the instruction buffer to its last word.
        cycles: simulated. words: of all programs.
        different: programs on which the two disagree; at ten the comparison stops.
    """

    programs: int
    faulting: int
    disturbed: int
    early: int
    memory_errors: int
    full: int
    cycles: int
    words: int
    different: tuple[Difference, ...]

    @property
    def sums(self) -> dict[str, int]:
        """The fields that add up."""
        return {name: getattr(self, name) for name in _SUMS}

    @classmethod
    def joined(cls, parts: Sequence["RandomReport"]) -> "RandomReport":
        """The sum of at least one part."""
        return cls(
            **{name: sum(part.sums[name] for part in parts) for name in _SUMS},
            different=tuple(
                sorted((one for part in parts for one in part.different), key=lambda one: one.seed)
            ),
        )

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> "RandomReport":
        """The inverse of :func:`dataclasses.asdict`, also for data read from JSON."""
        different = (
            Difference(**{**one, "what": tuple(one["what"])}) for one in content["different"]
        )
        return cls(**{**content, "different": tuple(different)})


def check_programs(
    config: PeConfig,
    *,
    programs: int,
    seed: int,
    disturbed: float = 0.0,
    netlist: str = "",
    make: Callable[[int, PeConfig, float], RandomProgram] = random_program,
) -> RandomReport:
    """Run random programs on the engine of ``config`` and on the simulator, and compare.

    The comparison covers state, cause and program counter of a fault, every register, the
    scratchpad, and the memory that the programs may touch; for memory errors and stops see
    :mod:`sim_tb.random.interrupted`. Half of all programs start without a reset, in the state that
    the previous one left.

    Parameters:
        config: of the engine. If registers and scratchpad can't be read (``sram`` is not
            ``behavioural``), programs that end without a fault store them to memory.
        programs: number of programs, at least 1.
        seed: of the first program; the seeds are consecutive.
        disturbed: share of the programs, 0..1, with memory errors, a stop, or both.
        netlist: see :class:`sim_tb.cosim.engine.PeSimulation`.
        make: makes a program from its seed.

    Raises:
        sim_tb.runner.build.BuildError: the simulator can't be built.
        sim_tb.runner.session.SessionError: the simulator ended by itself.
    """
    simulation = PeSimulation(config, netlist=netlist)
    images = [DramImage(1 << config.address_bits) for _ in range(_IMAGES)]
    other = DramImage(1 << config.address_bits)
    pending: list[tuple[RandomProgram, DramImage]] = []

    def jobs() -> Iterator[HostJob]:
        for number in range(programs):
            program = make(seed + number, config, disturbed)
            image = images[number % _IMAGES]
            fill(image, program)
            pending.append((program, image))
            yield program_job(program, image, simulation)

    different: list[Difference] = []
    tally: Counter[str] = Counter()
    try:
        with simulation:
            for result in simulation.run_many(jobs()):
                program, image = pending.pop(0)
                fill(other, program)
                lines, early = compare(program, config, result, image, other)
                tally.update(_counts(program, config, result), early=early)
                if lines:
                    text, hung = listing(program, lines), isinstance(result, TooLong)
                    different.append(Difference(program.seed, tuple(lines), text, hung))
                if len(different) == ENOUGH:
                    break
    finally:
        for image in (*images, other):
            image.close()
    return RandomReport(
        **{name: tally[name] for name in _SUMS},
        different=tuple(different),
    )


def _counts(
    program: RandomProgram, config: PeConfig, result: RunResult | CosimError
) -> dict[str, int]:
    """The contribution of one program to a :class:`RandomReport`."""
    counts = {
        "programs": 1,
        "words": len(program.words),
        "full": len(program.words) == config.instruction_words,
        "disturbed": _is_disturbed(program),
    }
    if isinstance(result, CosimError):
        return counts
    end = result.engine
    return counts | {
        "cycles": end.elapsed_cycles,
        "faulting": end.cause != 0,
        "memory_errors": end.memory_error,
    }


def fill(image: DramImage, program: RandomProgram) -> None:
    """Write to ``image`` what ``program`` finds there."""
    for address, content in program.windows:
        image.write(address, content)


def program_job(
    program: RandomProgram, image: DramImage, simulation: PeSimulation, **job: Any
) -> HostJob:
    """The job of ``program``; ``job`` are further parameters of
    :meth:`sim_tb.cosim.engine.PeSimulation.job`."""
    job = {"reset": program.reset, "identity": program.identity, **job}
    return simulation.job(
        program.launch,
        image,
        memory=program.memory,
        **job,
        scratchpad=program.scratchpad if simulation.config.sram == "behavioural" else None,
    )


def compare(
    program: RandomProgram,
    config: PeConfig,
    result: RunResult | CosimError,
    image: DramImage,
    other: DramImage,
) -> tuple[list[str], bool]:
    """The differences between an engine's end and the simulator's, one per line, and whether the
    engine ended early, as a disturbed one may.

    Parameters:
        image: memory that the engine left. other: its initial contents, which are changed.
    """
    if isinstance(result, CosimError):
        return [f"engine: {result}"], False
    if _is_disturbed(program):
        return interruption(program, config, result.engine, image, other)
    expected = run_reference(program, config, other)
    memories = [(start, len(content)) for start, content in program.windows]
    memory = [(start, image.read(start, size), other.read(start, size)) for start, size in memories]
    return differences(expected, result.engine, program.words, config, memory), False


def _is_disturbed(program: RandomProgram) -> bool:
    return program.launch.stop_after is not None or program.memory.errors != (0, 0)
