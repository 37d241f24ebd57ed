"""Speed of simulators: Verilog, timing model, instruction set simulators."""

from collections.abc import Callable, Iterator

from isa.compiled.simulator import CheckingSimulator, CompiledSimulator
from isa.image import DramImage
from isa.iss.simulator import Simulator
from microkernels.bp.jobs import bp_job
from microkernels.data.stereo import motorcycle
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from sim_tb.cosim.machine import Timed
from soc.generate.presets import preset, tile_preset

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
    vault_jobs = [
        bp_job(problem, iterations, engines=ChipEngines(pes=tile.pes)) for iterations in _SPEED_RUNS
    ]

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
