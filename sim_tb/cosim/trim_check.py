"""A trimmed engine compared with the full one: same results, same cycles, and a fault for each
removed instruction."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from isa.faults import FaultCause
from isa.image import DramImage
from isa.program import Program
from isa.run import EngineEnd, Launch
from isa.table import BY_KEY, REGISTERS
from pe.capabilities import Capabilities
from pe.config import PeConfig

from .engine import CosimError, MemoryBehaviour, PeSimulation

_FAULT_CYCLES = 10_000
#: Longer runs are not repeated to find the fewest transfers in flight.
MOST_CYCLES_TO_REPEAT = 5_000_000
#: A repeated run is aborted after this many cycles more than the first.
_MORE_CYCLES = 1_000
#: Minimum requests in flight that an engine can be built for.
LEAST_REQUESTS = 2


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A run of a launch on an engine.

    Attributes:
        launch: that ran. contents: the memory before it, from address 0 on.
        behaviour: of the memory.
        result: how it ended. memory: digest of the final memory.
        in_flight: fewest entries of the array range check, and fewest memory requests in flight (a
            power of two), within the allowed cycles; None if not determined.
    """

    launch: Launch
    contents: bytes
    behaviour: MemoryBehaviour
    result: EngineEnd
    memory: str
    in_flight: tuple[int, int] | None = None

    @property
    def zero_memory(self) -> bool:
        """Whether the memory holds only zeros at first."""
        return self.contents.count(0) == len(self.contents)

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
            ``cycles`` if the trimmed engine takes more than allowed, or fewer without shared ports.
            Empty for a vault, whose outputs are compared with the golden model instead.
        zero_memory: whether the memory held only zeros.
        unfaulted: keys of removed instructions that the trimmed engine did not refuse as illegal;
            must be empty.
    """

    name: str
    cycles_full: int
    cycles_trimmed: int
    different: tuple[str, ...] = ()
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
    launch: Launch,
    contents: bytes,
    behaviour: MemoryBehaviour,
    memory_bytes: int,
    progress: Callable[[int], None] | None = None,
) -> Measured:
    with DramImage(memory_bytes) as image:
        image.write(0, contents)
        result = simulation.run(launch, image, memory=behaviour, progress=progress)
        return Measured(
            launch=launch,
            contents=contents,
            behaviour=behaviour,
            result=result.engine,
            memory=_digest(image),
        )


def measure(
    launch: Launch,
    contents: bytes,
    config: PeConfig,
    progress: Callable[[int], None] | None = None,
    *,
    behaviour: MemoryBehaviour | None = None,
    watched: bool = True,
    slower: float = 0.0,
) -> Measured:
    """Run ``launch`` on the full engine.

    Parameters:
        contents: the memory from address 0 on. config: of the engine.
        behaviour: of the memory; None: the default.
        watched: also determine how many transfers it needs in flight, unless the engine has none
            with the scratchpad.
        slower: cycles that fewer transfers in flight may add, as a fraction of the run's.
        progress: called periodically with the cycles so far.

    Raises:
        CosimError: the program faults or does not end.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    watched = watched and bool(Capabilities.of(config).transfers)
    with PeSimulation(config, watched=watched) as simulation:
        measured = _run(
            simulation,
            launch,
            contents,
            behaviour or MemoryBehaviour(),
            1 << config.address_bits,
            progress,
        )
        if not measured.result.halted:
            subject = f"{launch.name}: the program" if launch.name else "the program"
            raise CosimError(f"{subject} faults on the full engine: {measured.result.fault}")
        return replace(measured, in_flight=_fewest(simulation, measured, slower))


def _in_time(full: Measured, other: Measured, config: PeConfig, slower: float) -> bool:
    """Whether ``other`` takes at most the fraction ``slower`` more cycles than ``full`` on an
    engine of ``config``, and fewer only if waits for shared ports can end earlier."""
    more = other.result.cycles - full.result.cycles
    return (more >= 0 or config.shared_ports) and more <= slower * full.result.cycles


def _fewest(simulation: PeSimulation, full: Measured, slower: float) -> tuple[int, int] | None:
    """See :attr:`Measured.in_flight`; for a long run, the most that it had in use.

    An entry of the array range check costs more area than a request in flight, so the extra cycles
    are first spent on fewer entries.
    """
    used = full.result.in_flight
    if used is None:
        return None
    entries, requests = max(used[0], 1), max(1 << (used[1] - 1).bit_length(), LEAST_REQUESTS)
    config = simulation.config
    entries, requests = min(entries, config.arc_entries), min(requests, config.load_store_queue)
    if full.result.cycles > MOST_CYCLES_TO_REPEAT:
        return entries, requests

    cycles = full.result.elapsed_cycles + int(slower * full.result.cycles) + _MORE_CYCLES
    limited = replace(full.launch, max_cycles=cycles)
    memory_bytes = 1 << config.address_bits

    def enough(limits: tuple[int, int], slower: float) -> bool:
        try:
            launch = replace(limited, limits=limits)
            other = _run(simulation, launch, full.contents, full.behaviour, memory_bytes)
        except CosimError:
            # The limited run was aborted: it takes longer.
            return False
        return _in_time(full, other, config, slower) and other.end == full.end

    for allowed in dict.fromkeys((0.0, slower)):
        while entries > 1 and enough((entries - 1, requests), allowed):
            entries -= 1
        while requests > LEAST_REQUESTS and enough((entries, requests // 2), allowed):
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
    before: Measured,
    full: PeConfig,
    trimmed: PeConfig,
    progress: Callable[[int], None] | None = None,
    *,
    try_removed: bool = True,
    ports_only: bool = False,
    slower: float = 0.0,
) -> TrimCheck:
    """Repeat a run of the full engine on the trimmed one, and try each removed instruction there.
    State that the trimmed engine lacks must keep its initial value in the full one.

    Parameters:
        before: the full engine's run (:func:`measure`).
        progress: called periodically with the cycles so far, after those of the full engine.
        try_removed: False: skip the removed instructions, which another check has tried.
        ports_only: use the trimmed engine's simulator of :mod:`sim_tb.cosim.recorded`.
        slower: further cycles that the trimmed engine may take, as a fraction of the full one's.

    Raises:
        CosimError, sim_tb.runner.build.BuildError: an endless run; a simulator can't be built.
    """
    begun = before.result.elapsed_cycles

    def shifted(cycles: int) -> None:
        if progress is not None:
            progress(begun + cycles)

    with PeSimulation(trimmed, ports_only=ports_only) as simulation:
        # Memory of the full engine's size: a trimmed one can't send addresses that it lacks.
        memory_bytes = 1 << full.address_bits
        other = _run(
            simulation, before.launch, before.contents, before.behaviour, memory_bytes, shifted
        )
    pairs: dict[str, tuple[object, object]] = {
        "end": (before.end, other.end),
        "memory": (before.memory, other.memory),
        "scratchpad": (
            before.result.scratchpad,
            other.result.scratchpad.ljust(len(before.result.scratchpad), b"\0"),
        ),
        "registers": (before.registers, other.registers),
        "cycles": (True, _in_time(before, other, full, slower)),
    }
    if full.counters and trimmed.counters and before.result.cycles == other.result.cycles:
        pairs["counters"] = (before.result.counters, other.result.counters)
    removed = sorted(full.instructions - trimmed.instructions) if try_removed else []
    return TrimCheck(
        name=before.launch.name,
        cycles_full=before.result.cycles,
        cycles_trimmed=other.result.cycles,
        different=tuple(name for name, (expected, actual) in pairs.items() if expected != actual),
        zero_memory=before.zero_memory,
        unfaulted=without_fault(trimmed, removed, ports_only=ports_only),
    )
