"""Comparison of a program's run on the Verilog of an engine with the instruction set simulator."""

from dataclasses import dataclass
from itertools import chain

from isa.hazards import Hazard, HazardLog
from isa.image import DramImage
from isa.iss.simulator import Simulator
from isa.program import Program
from isa.run import EngineEnd
from pe.config import PeConfig
from sim_tb.random.reference import differences, expected_end

__all__ = ["Comparison", "compare_run"]

#: Bytes that a difference in memory shows.
_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Result of a comparison.

    Attributes:
        differences: one line each: end, registers, scratchpad, memory; of the last two the first
            bytes that differ. Empty: engine and simulator agree.
        hazards: of the program, as the simulator ran it; they explain most differences.
        saturated: see :attr:`isa.iss.simulator.Simulator.saturated`.
    """

    differences: tuple[str, ...]
    hazards: tuple[Hazard, ...]
    saturated: tuple[int, ...]

    @property
    def match(self) -> bool:
        """Whether nothing differs."""
        return not self.differences


def compare_run(
    program: Program,
    end: EngineEnd,
    memory: DramImage,
    start: DramImage,
    *,
    config: PeConfig,
    parameters: int = 0,
) -> Comparison:
    """Compare the final state of ``program`` with that on the simulator.

    Compared are state, cause and program counter of the end, all registers and the scratchpad where
    they can be read (memories are ``behavioural``), and all of the memory.

    Parameters:
        end: of the run on the engine of ``config``, with a scratchpad of zeros at its start and the
            identity of an engine that is alone.
        memory: as the run left it. start: as the run found it; the simulator changes it.
        parameters: DRAM address of the parameter block.
    """
    log = HazardLog()
    simulator = Simulator(
        program,
        start,
        parameters=parameters,
        **config.limits,
        observer=log.observer(),
        count_saturation=True,
    )
    # An instruction takes a cycle at least, so a run of more instructions must be a different one.
    outcome = simulator.run(end.cycles)
    expected = expected_end(simulator, outcome, program.words, config)
    lines = differences(expected, end, ())
    places = memory.differences(start)
    if (first := next(places, None)) is not None:
        count = sum(1 for _ in chain([first], places))
        size = min(_SHOWN, memory.size - first)
        mine, theirs = (image.read(first, size).hex(" ") for image in (memory, start))
        lines.append(
            f"memory at {first:#x}: engine {mine}, expected {theirs} ({count} bytes differ)"
        )
    return Comparison(
        differences=tuple(lines), hazards=tuple(log.hazards), saturated=simulator.saturated
    )
