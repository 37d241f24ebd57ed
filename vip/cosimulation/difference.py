"""The first difference of an engine from the instruction set simulator, with waveforms."""

from dataclasses import dataclass, replace
from pathlib import Path

from isa.compiled.simulator import CompiledSimulator
from isa.image import DramImage
from isa.run import Launch, RunError
from pe.config import PeConfig
from sim_tb.cosim.difference import FirstDifference, first_difference
from sim_tb.cosim.engine import CosimError, MemoryBehaviour, PeSimulation
from sim_tb.waves.cut import cut_waves
from sim_tb.waves.pipeline import TracedInstruction
from sim_tb.waves.record import read_record
from sim_tb.waves.saved import save_file, texts_of
from support.files import write_atomically
from support.scratch import scratch_folder
from vip.programs import fill
from vip.progress import Progress, silent

_STAGE = "first difference (runs)"
#: Clock cycles of waveforms before the first and after the last instruction shown.
_MARGIN = 4


@dataclass(frozen=True, kw_only=True)
class Locator:
    """Finds the first difference of a run.

    Parameters:
        launch: of the program. config: of the engine.
        memory, behaviour, progress: as for :func:`vip.cosimulation.program.cosim`.
        commits: number of last instructions to report, at least 1.
        window: file for the waveforms of these, ``.vcd``; None: none.
        saved: file for the signals of ``window`` that GTKWave (``.gtkw``) or Surfer (``.sucl``)
            shows; None: none.

    Raises:
        CosimError: ``commits`` below 1, or ``saved`` without ``window``.
    """

    launch: Launch
    config: PeConfig
    memory: bytes | Path | None
    behaviour: MemoryBehaviour
    commits: int
    window: Path | None
    saved: Path | None = None
    progress: Progress = silent

    def __post_init__(self) -> None:
        if self.commits < 1:
            raise CosimError(f"commits must be 1 or more, not {self.commits}")
        if self.saved is not None and self.window is None:
            raise CosimError(f"{self.saved}: signals are saved for waveforms; name a window, too")

    def locate(self) -> FirstDifference | None:
        """The first difference; None: there is none, or the engine lacks the counters to find it.

        Raises:
            VipError: a simulator that can't be built. OSError: a file can't be written.
        """
        if not self.config.counters:
            return None
        with PeSimulation(self.config) as machine:
            difference = first_difference(
                machine,
                self.launch,
                lambda image: fill(image, self.memory),
                memory_bytes=1 << self.config.address_bits,
                behaviour=self.behaviour,
                commits=self.commits,
                progress=lambda runs: self.progress(_STAGE, runs),
            )
        if difference is None or self.window is None:
            return difference
        return replace(difference, passages=self._waves(difference, self.window))

    def explain(self, error: RunError) -> None:
        """Raise the ``error`` of an engine that breaks down; if the program ends on the simulator,
        with the first difference from it."""
        located = self.locate() if self._ends() else None
        if located is not None:
            first = located.instruction
            raise CosimError(
                f"{error}; it first differs from the simulator after instruction {first.number}, "
                f"word {first.pc}: {first.text}"
            ) from None

    def _ends(self) -> bool:
        """Whether the program ends on the simulator, with the engine's limit of cycles as
        instructions."""
        with DramImage(1 << self.config.address_bits) as image:
            fill(image, self.memory)
            simulator = CompiledSimulator(
                self.launch.program,
                image,
                parameters=self.launch.parameters,
                **self.config.limits,
            )
            return simulator.run(self.launch.max_cycles).state != "limit"

    def _waves(self, difference: FirstDifference, window: Path) -> tuple[TracedInstruction, ...]:
        with scratch_folder("waves") as folder, DramImage(1 << self.config.address_bits) as image:
            recorded = folder / "wave.vcd"
            fill(image, self.memory)
            launch = replace(self.launch, stop_after=difference.cycle)
            with PeSimulation(self.config, trace=recorded) as machine:
                # If an engine breaks down, the waveforms are the result.
                job = machine.job(launch, image, memory=self.behaviour)
                list(machine.run_many([job]))
            record = read_record(recorded)
            (engine,) = record.engines.values()
            executed = [instruction for instruction in engine.found if instruction.retired][
                -self.commits :
            ]
            first = executed[0].start if executed else 0
            last = max((instruction.end for instruction in executed), default=record.cycles)
            texts = texts_of(self.launch.program, engine.found)
            cut_waves(recorded, window, max(0, first - _MARGIN), last + _MARGIN, texts)
            if self.saved is not None:
                write_atomically(self.saved, save_file(window, texts, self.saved.suffix).encode())
        return tuple(executed)
