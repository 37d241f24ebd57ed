"""A trimmed engine held against the full one: same results, same cycles, faults for the rest."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field

from hdl.config import PeConfig
from hdl.ports import PeState
from isa.faults import FaultCause
from isa.image import DramImage
from isa.program import Program
from isa.table import BY_KEY

from .cosim import CosimError, CosimResult, Job, MemoryBehaviour, PeSimulation

__all__ = ["ProgramFaultError", "TrimCheck", "Workload", "check_trimmed"]

_BLOCK = 1 << 20
_FAULT_CYCLES = 10_000


class ProgramFaultError(CosimError):
    """A program that faults on the full engine, where it was to show what it does."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A program with what it works on.

    Attributes:
        program: what to run. contents: the memory from address 0 on.
        parameters: DRAM address of the parameter block.
        memory: behaviour of the memory. max_cycles: a run that takes longer is an error.
        may_fault: whether a program that faults is compared too, up to its fault.
    """

    program: Program
    contents: bytes = b""
    parameters: int = 0
    memory: MemoryBehaviour = field(default_factory=MemoryBehaviour)
    max_cycles: int = 200_000_000
    may_fault: bool = False

    @property
    def zero_memory(self) -> bool:
        """Whether the program runs on a memory of zeros."""
        return self.contents.count(0) == len(self.contents)


@dataclass(frozen=True, kw_only=True)
class TrimCheck:
    """What the comparison found.

    Attributes:
        match: end (with cause and place of a fault), memory, scratchpad, registers, cycles and
            all counters are the same on both engines.
        different: what is not, by name.
        cycles_full, cycles_trimmed: of the program.
        removed: number of instructions that the trimmed engine does not have.
        unfaulted: keys of those that did not stop it as illegal instructions; must be empty.
        full, trimmed: the runs.
    """

    match: bool
    different: tuple[str, ...]
    cycles_full: int
    cycles_trimmed: int
    removed: int
    unfaulted: tuple[str, ...]
    full: CosimResult
    trimmed: CosimResult


def _digest(image: DramImage) -> str:
    """Digest of the places and contents of all blocks of ``image`` that are not all 0."""
    digest = hashlib.sha256()
    zero = bytes(_BLOCK)
    with image.path.open("rb") as file:
        end = os.fstat(file.fileno()).st_size
        place = 0
        while place < end:
            try:
                place = os.lseek(file.fileno(), place, os.SEEK_DATA)
            except OSError:
                # Nothing but a hole up to the end.
                break
            place -= place % _BLOCK
            block = os.pread(file.fileno(), _BLOCK, place)
            if block != zero[: len(block)]:
                digest.update(place.to_bytes(8, "little") + block)
            place += _BLOCK
    return digest.hexdigest()


def _run(
    simulation: PeSimulation, work: Workload, progress: Callable[[int], None] | None
) -> tuple[CosimResult, str]:
    config = simulation.config
    with DramImage(1 << config.address_bits) as image:
        image.write(0, work.contents)
        job = Job(
            words=work.program.words,
            image=image,
            memory=work.memory,
            parameters=work.parameters,
            max_cycles=work.max_cycles,
        )
        result = simulation.run(job, progress)
        return result, _digest(image)


def _without_fault(simulation: PeSimulation, keys: list[str]) -> tuple[str, ...]:
    """Those of ``keys`` that do not stop the engine as illegal instructions."""
    halt = BY_KEY["halt"].match
    with DramImage(1 << simulation.config.address_bits) as image:
        jobs = [
            Job(words=(BY_KEY[key].match, halt), image=image, max_cycles=_FAULT_CYCLES)
            for key in keys
        ]
        found = []
        for key, result in zip(keys, simulation.run_many(jobs), strict=True):
            if isinstance(result, CosimError):
                raise result
            illegal = (PeState.FAULTED, FaultCause.ILLEGAL_INSTRUCTION, 0)
            if (result.state, result.cause, result.pc) != illegal:
                found.append(key)
    return tuple(found)


def _end(result: CosimResult) -> tuple[PeState, FaultCause, int | None]:
    """State, cause and place; a program that halts has no place of a fault."""
    faulted = result.state is PeState.FAULTED
    return result.state, result.cause, result.pc if faulted else None


def check_trimmed(
    work: Workload,
    full: PeConfig,
    trimmed: PeConfig,
    progress: Callable[[int], None] | None = None,
) -> TrimCheck:
    """Run ``work`` on both engines, and each removed instruction on the trimmed one.

    Parameters:
        progress: called now and then with the cycles so far, of the full engine first.

    Raises:
        ProgramFaultError: the program faults on the full engine, and may not.
        CosimError: a run that does not end.
        sim_tb.build.BuildError: a simulator can't be built.
    """
    removed = sorted(full.instructions - trimmed.instructions)
    with PeSimulation(full) as simulation:
        before, memory_before = _run(simulation, work, progress)
    if before.state is not PeState.HALTED and not work.may_fault:
        raise ProgramFaultError(
            f"the program faults on the full engine: {before.cause.name} at word {before.pc}"
        )
    begun = before.cycles

    def shifted(cycles: int) -> None:
        if progress is not None:
            progress(begun + cycles)

    with PeSimulation(trimmed) as simulation:
        after, memory_after = _run(simulation, work, shifted)
        unfaulted = _without_fault(simulation, removed)
    kept = len(after.registers)
    pairs = {
        "end": (_end(before), _end(after)),
        "memory": (memory_before, memory_after),
        "scratchpad": (before.scratchpad, after.scratchpad),
        # A register that the trimmed engine lacks is never written.
        "registers": (before.registers, after.registers + [0] * (len(before.registers) - kept)),
        # Not the host's cycles: an engine with fewer registers is ready sooner.
        "counters": (before.counters, after.counters),
    }
    different = tuple(name for name, (one, other) in pairs.items() if one != other)
    return TrimCheck(
        match=not different,
        different=different,
        cycles_full=before.counters["CYCLES"] or before.cycles,
        cycles_trimmed=after.counters["CYCLES"] or after.cycles,
        removed=len(removed),
        unfaulted=unfaulted,
        full=before,
        trimmed=after,
    )
