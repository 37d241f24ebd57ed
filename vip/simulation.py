"""The verb ``run``: a program on the instruction set simulator."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from isa.compiled.simulator import CheckingSimulator
from isa.hazards import HazardLog
from isa.image import DramImage
from isa.iss.simulator import Simulator, SimulatorError, every
from isa.program import Program
from isa.run import EngineEnd
from isa.timing import Hazard
from soc.generate.presets import Design, advised, engine
from support.errors import Shown
from synth.analysis.facts import Facts
from synth.analysis.profile import Profile, profile_of, recorder

from .programs import LIMIT, Dump, fill, load_program, memory_contents
from .progress import Progress, silent

#: Instructions between reports of progress, of the simulators in Python and compiled.
_STEP, _COMPILED_STEP = 50_000, 20_000_000


@dataclass(frozen=True, kw_only=True)
class ProgramRun(Shown):
    """A run on the instruction set simulator.

    Attributes:
        program: the one that ran. outcome: its end; ``outcome.fault`` is a line about
            a fault: where, why, and what is allowed.
        executed: instruction -> number of executions.
        registers: 64-bit patterns.
        hazards: uses of the scratchpad before the vector unit is done, for which hardware may
            compute other values.
        saturated: for each word of the program, the number of values limited to their element's
            width.
        profile: for :func:`vip.trim`; None: not made.
        dumped: the requested bytes.
        seconds: duration of the run.
    """

    program: Program
    outcome: EngineEnd
    executed: Mapping[str, int]
    registers: tuple[int, ...]
    hazards: tuple[Hazard, ...]
    saturated: tuple[int, ...]
    profile: Profile | None
    dumped: bytes
    seconds: float

    def to_json(self) -> dict[str, object]:
        """The numbers of the run as plain JSON data."""
        return {
            "state": self.outcome.state,
            "cause": self.outcome.cause.name,
            "pc": self.outcome.pc,
            "fault": self.outcome.fault,
            "instructions": self.outcome.executed,
            "executed": dict(self.executed),
            "registers": list(self.registers),
            "hazards": [one.report() for one in self.hazards],
            "saturated": sum(self.saturated),
        }


def run(
    program: Program | Path | str,
    config: Design = "pe",
    *,
    memory: bytes | NDArray[Any] | Path | str | None = None,
    parameters: int = 0,
    limit: int = LIMIT,
    dump: Dump | None = None,
    profile: bool = False,
    compiled: bool = False,
    progress: Progress = silent,
) -> ProgramRun:
    """Run a program on the instruction set simulator and check its timing rules.

    ``run(assemble("mov r9, #42\\nhalt")).registers[9]`` is 42.

    Parameters:
        program: a program, or the name or path of a program file or of assembly.
        config: of the engine.
        memory: contents from address 0 on: bytes, an array as it lies in memory, or the name or
            path of a file; None: zeros.
        parameters: DRAM address of the parameter block (r5).
        limit: instructions after which the run ends, at least 1.
        dump: bytes of the memory to read afterwards.
        profile: whether the result has one.
        compiled: use the simulator in C++: the same results about a hundred times faster, without a
            profile. The first use compiles it, in under half a minute.
        progress: called with the instructions so far.

    Raises:
        VipError: a program, configuration or memory that can't be used, or a dump outside it.
        OSError: a file that can't be read or written.
    """
    chosen = engine(config)
    if compiled and profile:
        raise SimulatorError("a compiled run has no profile")
    step = _COMPILED_STEP if compiled else _STEP
    if dump is not None:
        dump = Dump(*dump)
        dump.check(1 << chosen.address_bits)
    loaded = load_program(program)
    facts, log = Facts(), HazardLog()
    observers = [*([recorder(facts)] if profile else []), log.observer()]
    with DramImage(1 << chosen.address_bits) as image:
        fill(image, memory_contents(memory))
        kind = CheckingSimulator if compiled else Simulator
        simulator = kind(
            loaded,
            image,
            parameters=parameters,
            **chosen.limits,
            observer=None if compiled else every(*observers),
            count_saturation=True,
        )
        started = time.perf_counter()
        outcome = simulator.run(min(step, limit))
        while outcome.state == "running" and outcome.executed < limit:
            progress("instructions", outcome.executed)
            outcome = simulator.run(min(step, limit - outcome.executed))
        seconds = time.perf_counter() - started
        dumped = b"" if dump is None else dump.take(image)
    fault = advised(outcome.fault, loaded, outcome.cause, outcome.pc, chosen)
    met = simulator.hazards if isinstance(simulator, CheckingSimulator) else log.hazards
    return ProgramRun(
        program=loaded,
        outcome=replace(outcome, fault=fault),
        executed=dict(simulator.executed),
        registers=tuple(simulator.registers),
        hazards=tuple(met),
        saturated=tuple(simulator.saturated),
        profile=profile_of(loaded, simulator, facts, parameters) if profile else None,
        dumped=dumped,
        seconds=seconds,
    )
