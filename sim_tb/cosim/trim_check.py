"""A trimmed engine compared with the full one: same results, same cycles, and a fault for each
removed instruction."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from isa.faults import FaultCause
from isa.image import DramImage
from isa.program import Program
from isa.run import EngineEnd, Launch
from isa.table import BY_KEY, REGISTERS
from pe.config import PeConfig

from .engine import CosimError, MemoryBehaviour, PeSimulation

_FAULT_CYCLES = 10_000
#: Longer runs are not repeated to find the fewest transfers in flight.
_MOST_CYCLES_TO_REPEAT = 5_000_000
#: A repeated run is aborted after this many cycles more than the first.
_MORE_CYCLES = 1_000
#: Minimum requests in flight that an engine can be built for.
_LEAST_REQUESTS = 2


class ProgramFaultError(CosimError):
    """A program that must run to its end faults on the full engine."""


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A program with its data.

    Attributes:
        program: to run. contents: the memory from address 0 on.
        name: for messages; may be "".
        parameters: DRAM address of the parameter block.
        memory: behaviour of the memory. max_cycles: a run that takes longer is an error.
        may_fault: whether a fault is allowed; the program is then compared up to it.
    """

    program: Program
    contents: bytes = b""
    name: str = ""
    parameters: int = 0
    memory: MemoryBehaviour = field(default_factory=MemoryBehaviour)
    max_cycles: int = 100_000_000
    may_fault: bool = False

    @property
    def zero_memory(self) -> bool:
        """Whether the memory holds only zeros."""
        return self.contents.count(0) == len(self.contents)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A run of a workload on an engine.

    Attributes:
        work: the workload. config: of the engine.
        result: how it ended. memory: digest of the final memory.
        in_flight: fewest entries of the array range check, and fewest memory requests in flight (a
            power of two), within the allowed cycles; None if not determined.
    """

    work: Workload
    config: PeConfig
    result: EngineEnd
    memory: str
    in_flight: tuple[int, int] | None = None

    @property
    def registers(self) -> list[int]:
        """All registers that an engine can have, as 64-bit patterns; those that this engine lacks
        have their initial values."""
        registers = self.result.registers
        return [*registers, *[0] * (REGISTERS - len(registers))]

    @property
    def end(self) -> tuple[str, FaultCause, int | None]:
        """State, cause and, after a fault, its place."""
        faulted = self.result.state == "faulted"
        return self.result.state, self.result.cause, self.result.pc if faulted else None


@dataclass(frozen=True, kw_only=True)
class TrimCheck:
    """A launch on both designs.

    Attributes:
        name: of the program.
        cycles_full, cycles_trimmed: of the program.
        different: names of what differs: end (with cause and place of a fault), memory, scratchpad,
            registers and, if both engines have them and take the same cycles, counters; or
            ``cycles`` if the trimmed engine takes more than allowed. Empty for a vault, whose
            outputs are compared with the golden model instead.
        state, cause, pc: how it ended on the full design; ``pc`` is the place of a fault.
        zero_memory: whether the memory held only zeros.
        unfaulted: keys of removed instructions that the trimmed engine did not refuse as illegal;
            must be empty.
    """

    name: str
    cycles_full: int
    cycles_trimmed: int
    different: tuple[str, ...] = ()
    state: str = "halted"
    cause: str = "NONE"
    pc: int | None = None
    zero_memory: bool = False
    unfaulted: tuple[str, ...] = ()

    @property
    def match(self) -> bool:
        """Whether nothing differs."""
        return not self.different

    def to_json(self) -> dict[str, object]:
        """The launch as plain JSON data."""
        return {
            "program": self.name,
            "match": self.match,
            "different": list(self.different),
            "state": self.state,
            "cause": self.cause,
            "pc": self.pc,
            "zero_memory": self.zero_memory,
            "cycles_full": self.cycles_full,
            "cycles_trimmed": self.cycles_trimmed,
        }


def _digest(image: DramImage) -> str:
    """Digest of the addresses and contents of all nonzero blocks of ``image``."""
    digest = hashlib.sha256()
    for place, block in image.blocks():
        digest.update(place.to_bytes(8, "little") + block)
    return digest.hexdigest()


def _run(
    simulation: PeSimulation,
    work: Workload,
    memory_bytes: int,
    progress: Callable[[int], None] | None,
    limits: tuple[int, int] | None = None,
) -> Measured:
    with DramImage(memory_bytes) as image:
        image.write(0, work.contents)
        launch = Launch(
            program=work.program,
            parameters=work.parameters,
            max_cycles=work.max_cycles,
            limits=limits,
        )
        result = simulation.run(launch, image, memory=work.memory, progress=progress)
        return Measured(
            work=work, config=simulation.config, result=result.engine, memory=_digest(image)
        )


def measure(
    work: Workload,
    config: PeConfig,
    progress: Callable[[int], None] | None = None,
    *,
    watched: bool = True,
    slower: float = 0.0,
) -> Measured:
    """Run ``work`` on the full engine.

    Parameters:
        config: of the engine.
        watched: also determine how many transfers it needs in flight; the engine must then have
            loads and stores of the scratchpad.
        slower: cycles that fewer transfers in flight may add, as a fraction of the run's.
        progress: called periodically with the cycles so far.

    Raises:
        ProgramFaultError: the program faults, and may not.
        CosimError: a run that does not end.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    with PeSimulation(config, watched=watched) as simulation:
        measured = _run(simulation, work, 1 << config.address_bits, progress)
        measured = replace(measured, in_flight=_fewest(simulation, work, measured, slower))
    result = measured.result
    if not result.halted and not work.may_fault:
        subject = f"{work.name}: the program" if work.name else "the program"
        raise ProgramFaultError(f"{subject} faults on the full engine: {result.fault}")
    return measured


def _in_time(full: Measured, other: Measured, slower: float) -> bool:
    """Whether ``other`` takes at most the fraction ``slower`` more cycles than ``full``."""
    return 0 <= other.result.cycles - full.result.cycles <= slower * full.result.cycles


def _fewest(
    simulation: PeSimulation, work: Workload, full: Measured, slower: float
) -> tuple[int, int] | None:
    """See :attr:`Measured.in_flight`; for a long run, the most that it had in use.

    An entry of the array range check costs more area than a request in flight, so the extra cycles
    are first spent on fewer entries.
    """
    used = full.result.in_flight
    if used is None:
        return None
    entries, requests = max(used[0], 1), max(1 << (used[1] - 1).bit_length(), _LEAST_REQUESTS)
    config = full.config
    entries, requests = min(entries, config.arc_entries), min(requests, config.load_store_queue)
    if full.result.cycles > _MOST_CYCLES_TO_REPEAT:
        return entries, requests

    cycles = full.result.elapsed_cycles + int(slower * full.result.cycles) + _MORE_CYCLES
    limited = replace(work, max_cycles=cycles)

    def enough(limits: tuple[int, int], slower: float) -> bool:
        try:
            other = _run(simulation, limited, 1 << config.address_bits, None, limits)
        except CosimError:
            # The limited run was aborted: it takes longer.
            return False
        return _in_time(full, other, slower) and other.end == full.end

    for allowed in dict.fromkeys((0.0, slower)):
        while entries > 1 and enough((entries - 1, requests), allowed):
            entries -= 1
        while requests > _LEAST_REQUESTS and enough((entries, requests // 2), allowed):
            requests //= 2
    return entries, requests


def without_fault(
    config: PeConfig, keys: Sequence[str], *, ports_only: bool = False
) -> tuple[str, ...]:
    """The ``keys`` that don't stop the engine as illegal instructions.

    Parameters:
        config: of the engine.
        keys: of instructions that it lacks.
        ports_only: use the simulator of :mod:`sim_tb.cosim.recorded`.

    Raises:
        CosimError: a run that does not end.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    halt = BY_KEY["halt"].match
    # A ROM has no room for them; the rest of the engine is the same.
    loaded = replace(config, program=None)
    simulator = PeSimulation(loaded, ports_only=ports_only)
    with simulator as simulation, DramImage(1 << config.address_bits) as image:
        jobs = [
            simulation.job(
                Launch(program=Program((BY_KEY[key].match, halt)), max_cycles=_FAULT_CYCLES), image
            )
            for key in keys
        ]
        unfaulted = []
        for key, result in zip(keys, simulation.run_many(jobs), strict=True):
            if isinstance(result, CosimError):
                raise result
            end = result.engine
            illegal = ("faulted", FaultCause.ILLEGAL_INSTRUCTION, 0)
            if (end.state, end.cause, end.pc) != illegal:
                unfaulted.append(key)
    return tuple(unfaulted)


def check_trimmed(
    work: Workload,
    full: PeConfig,
    trimmed: PeConfig,
    progress: Callable[[int], None] | None = None,
    *,
    before: Measured | None = None,
    try_removed: bool = True,
    ports_only: bool = False,
    slower: float = 0.0,
) -> TrimCheck:
    """Run ``work`` on both engines, and each removed instruction on the trimmed one. State that the
    trimmed engine lacks must keep its initial value in the full one.

    Parameters:
        progress: called periodically with the cycles so far, the full engine's first.
        before: the full engine's run, if there is one (:func:`measure`).
        try_removed: False: skip the removed instructions, which another check has tried.
        ports_only: use the trimmed engine's simulator of :mod:`sim_tb.cosim.recorded`.
        slower: further cycles that the trimmed engine may take, as a fraction of the full one's.

    Raises:
        ProgramFaultError: the program faults on the full engine, and may not.
        CosimError, sim_tb.runner.build.BuildError: an endless run; a simulator can't be built.
    """
    one = before or measure(work, full, progress, watched=False)
    begun = one.result.elapsed_cycles

    def shifted(cycles: int) -> None:
        if progress is not None:
            progress(begun + cycles)

    with PeSimulation(trimmed, ports_only=ports_only) as simulation:
        # Memory of the full engine's size: a trimmed one can't send addresses that it lacks.
        other = _run(simulation, work, 1 << full.address_bits, shifted)
    pairs: dict[str, tuple[object, object]] = {
        "end": (one.end, other.end),
        "memory": (one.memory, other.memory),
        "scratchpad": (
            one.result.scratchpad,
            other.result.scratchpad.ljust(len(one.result.scratchpad), b"\0"),
        ),
        "registers": (one.registers, other.registers),
        "cycles": (True, _in_time(one, other, slower)),
    }
    if full.counters and trimmed.counters and one.result.cycles == other.result.cycles:
        pairs["counters"] = (one.result.counters, other.result.counters)
    removed = sorted(full.instructions - trimmed.instructions) if try_removed else []
    state, cause, pc = one.end
    return TrimCheck(
        name=work.name,
        cycles_full=one.result.cycles,
        cycles_trimmed=other.result.cycles,
        different=tuple(name for name, (expected, actual) in pairs.items() if expected != actual),
        state=state,
        cause=cause.name,
        pc=pc,
        zero_memory=work.zero_memory,
        unfaulted=without_fault(trimmed, removed, ports_only=ports_only),
    )
