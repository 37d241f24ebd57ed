"""Runs of programs on the Verilog of one engine that record the values at its ports."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from isa.image import DramImage
from isa.program import Program
from isa.run import Launch
from microkernels.runtime.job import KernelJob
from pe.config import PeConfig
from pe.interface import PeState
from sim_tb.dut.engine import TOP
from sim_tb.waves.cycles import read_signals
from support.scratch import scratch_folder

from .engine import CosimError, MemoryBehaviour, PeSimulation
from .kernels import run_on
from .trim_check import Measured


@dataclass(frozen=True)
class RecordedRun:
    """A run, cycle by cycle.

    Attributes:
        signals: name -> values just before each clock edge, from the simulation's first cycle on.
        running: the engine's first cycle, and the one after its last.
        work: kind of work -> its amount.
    """

    signals: Mapping[str, list[int]]
    running: tuple[int, int]
    work: Mapping[str, float]

    def port(self, name: str) -> list[int]:
        """Values at a port of the engine, by its name in Verilog, e.g. ``control__stop``.

        Raises:
            CosimError: there is no such port.
        """
        if name not in self.signals:
            raise CosimError(f"the simulated engine has no port {name}")
        return self.signals[name]


def record_job(job: KernelJob, config: PeConfig, work: Mapping[str, float]) -> RecordedRun:
    """Record a kernel, compared with the golden model. ``work`` is :attr:`RecordedRun.work`.

    Raises:
        CosimError: the results differ, or the program faulted.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    with scratch_folder("trace") as folder:
        trace = folder / "ports.vcd"
        if not run_on(job, config, trace=trace, ports_only=True).match:
            raise CosimError(f"{job.name}: the outputs differ from the golden model's")
        return _recorded(trace, work)


def record_program(
    program: Program,
    memory: DramImage,
    config: PeConfig,
    max_cycles: int,
    *,
    parameters: int = 0,
    behaviour: MemoryBehaviour | None = None,
) -> RecordedRun:
    """Record any program.

    Parameters:
        memory: changed by the engine. max_cycles, parameters: see :class:`isa.run.Launch`.
        behaviour: of the memory; None: the default.

    Raises:
        CosimError: it faulted or did not end.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    launch = Launch(program=program, max_cycles=max_cycles, parameters=parameters)
    with scratch_folder("trace") as folder:
        trace = folder / "ports.vcd"
        with PeSimulation(config, trace=trace, ports_only=True) as simulation:
            end = simulation.run(launch, memory, memory=behaviour).engine
        if not end.halted:
            raise CosimError(end.fault)
        return _recorded(trace, {})


def record_again(run: Measured, config: PeConfig, address_bits: int) -> RecordedRun:
    """Record what ``run`` was a run of.

    Parameters:
        address_bits: of its memory; a trimmed engine may have fewer.

    Raises:
        CosimError: it faulted or did not end.
        sim_tb.runner.build.BuildError: the simulator can't be built.
    """
    with DramImage(1 << address_bits) as memory:
        memory.write(0, run.contents)
        return record_program(
            run.launch.program,
            memory,
            config,
            run.launch.max_cycles,
            parameters=run.launch.parameters,
            behaviour=run.behaviour,
        )


def _recorded(trace: Path, work: Mapping[str, float]) -> RecordedRun:
    signals = read_signals(trace, TOP)
    # The low bits of the status are the state.
    running = [
        cycle
        for cycle, status in enumerate(signals["control__status"])
        if status & 3 == PeState.RUNNING.value
    ]
    return RecordedRun(signals, (running[0], running[-1] + 1), work)
