"""Speed of simulators: Verilog, timing model, instruction set simulators."""

import time
from collections.abc import Callable, Iterator

import numpy as np

from isa.compiled.checking import CheckingSimulator
from isa.compiled.simulator import CompiledSimulator
from isa.image import DramImage
from isa.iss.simulator import Simulator
from microkernels.bp.jobs import bp_job
from microkernels.bp.problem import BpProblem
from microkernels.common.errors import KernelError
from microkernels.data.stereo import motorcycle
from microkernels.runtime.compiled import execute
from microkernels.runtime.job import KernelJob
from microkernels.suite import Application, suite
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import bp_job_on, run_on
from sim_tb.cosim.machine import Timed
from soc.generate.presets import chip_preset, preset, tile_preset

from .harness.experiment import SIMULATION, Measurement, cpu_seconds, experiment

_TILE = "vault"

#: Pixels and labels for measuring simulation speed, and iterations of the two runs, whose
#: difference excludes start and end.
_SPEED, _SPEED_RUNS = (64, 48, 16), (1, 5)


@experiment(presets=("pe", "vault"), tools=SIMULATION, minutes=3)
def speed() -> Iterator[Measurement]:
    """Cycles and instructions that each simulator does per second of processor time.

    Cycles of one engine and of a vault, on Verilog and on the timing model, without the start;
    instructions of the instruction set simulator in Python, compiled, and compiled with hazard
    checks, in one run each.
    """
    problem = motorcycle(*_SPEED).problem

    tile = tile_preset(_TILE)
    engine_jobs = [bp_job(problem, iterations) for iterations in _SPEED_RUNS]
    vault_jobs = [bp_job(problem, iterations, pes=tile.pes) for iterations in _SPEED_RUNS]

    def pe(number: int, on: Timed) -> int:
        return run_on(engine_jobs[number], preset("pe"), on=on).cycles

    def vault(number: int, on: Timed) -> int:
        return run_on(vault_jobs[number], tile, on=on).cycles

    machines: dict[str, tuple[Callable[[int, Timed], int], Timed]] = {
        "pe": (pe, "rtl"),
        "vault": (vault, "rtl"),
        "pe_model": (pe, "model"),
        "vault_model": (vault, "model"),
    }
    for name, (run, on) in machines.items():
        # The first run builds the simulator.
        run(0, on)
        cycles, seconds = [], []
        for number in range(len(_SPEED_RUNS)):
            before = cpu_seconds()
            cycles.append(run(number, on))
            seconds.append(cpu_seconds() - before)
        rate = (cycles[1] - cycles[0]) / (seconds[1] - seconds[0])
        yield Measurement(f"{name}_kcycles_per_second", rate / 1000, "kcycles/s", None, True)
    job, config = bp_job(problem, _SPEED_RUNS[1]), preset("pe")
    kinds = {"python": Simulator, "compiled": CompiledSimulator, "checking": CheckingSimulator}
    for name, kind in kinds.items():
        with DramImage(1 << config.address_bits) as memory:
            job.prepare(memory)
            simulator = kind(job.program, memory, parameters=job.parameters, **config.limits)
            before = cpu_seconds()
            end = simulator.run()
            rate = end.executed / (cpu_seconds() - before)
            if job.differing(job.outputs(memory)):
                raise CosimError(f"{job.name}: the {name} simulator differs from the golden model")
        yield Measurement(f"{name}_kinstructions_per_second", rate / 1000, "k/s", None, True)


_CHIP = "thesis"

#: Pixels of full HD, labels, and the step and bound of the smoothness costs.
_WIDTH, _HEIGHT, _LABELS, _STEP, _BOUND = 1920, 1080, 16, 5, 15

#: Bound of the random data costs.
_COST = 3000

#: Processor seconds for which an application is launched again and again, and launches per memory.
#: The first launch does not count, as the host allocates the pages that it touches.
_SECONDS, _LAUNCHES = 0.2, 50


def _job() -> KernelJob:
    """An iteration of BP-M on all engines of the chip, with random data costs."""
    costs = np.random.default_rng(1).integers(-_COST, _COST, (_HEIGHT, _WIDTH, _LABELS))
    labels = np.arange(_LABELS)
    distances = np.abs(np.subtract.outer(labels, labels))
    smoothness = np.minimum(distances * _STEP, _BOUND)
    return bp_job_on(BpProblem(costs, smoothness), 1, chip_preset(_CHIP))


@experiment(presets=("thesis", "pe", "pe-logistic"), tools=("numpy",), minutes=4)
def functional() -> Iterator[Measurement]:
    """Compiled simulators: an iteration of BP-M in full HD on all 128 engines, and applications.

    BP-M with 16 labels: instructions of all engines, including those spent waiting, and processor
    seconds, including the time to fill and read the memory. Every message must equal the golden
    model's. For each application of the suite: instructions per second of processor time over many
    launches.
    """
    job = _job()
    before = cpu_seconds()
    run = execute(job)
    yield Measurement("full_hd_instructions", run.instructions, "instructions", 0.01)
    yield Measurement("full_hd_cpu_seconds", cpu_seconds() - before, "s", None)
    if not run.match:
        raise KernelError(f"{job.name}: messages differ from the golden model's")
    for application in suite().values():
        name = application.name.replace("-", "_")
        rate = _rate(application) / 1000
        yield Measurement(f"{name}_kinstructions_per_second", rate, "k/s", None, True)


def _rate(application: Application) -> float:
    """Instructions per second of processor time, without the simulators' set-up."""
    done, seconds = 0, 0.0
    while seconds < _SECONDS:
        for job in application.jobs:
            instructions, spent = _repeated(job, application.preset)
            done, seconds = done + instructions, seconds + spent
    return done / seconds


def _repeated(job: KernelJob, name: str) -> tuple[int, float]:
    """Instructions and seconds of all launches except the first."""
    config, done, seconds = preset(name), 0, 0.0
    with DramImage(1 << config.address_bits) as memory:
        for launch in range(_LAUNCHES):
            job.prepare(memory)
            simulator = CompiledSimulator(
                job.program, memory, parameters=job.parameters, **config.limits
            )
            before = time.process_time()
            end = simulator.run()
            if launch:
                done, seconds = done + end.executed, seconds + time.process_time() - before
        if job.differing(job.outputs(memory)):
            raise KernelError(f"{job.name}: outputs differ from the golden model's")
    return done, seconds
