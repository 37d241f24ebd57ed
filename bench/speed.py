"""Speed of simulators: Verilog, timing model, instruction set simulators."""

from collections.abc import Iterator

from isa.compiled.simulator import CheckingSimulator, CompiledSimulator
from isa.image import DramImage
from isa.iss.simulator import Simulator
from microkernels.bp.jobs import bp_job
from microkernels.data.stereo import motorcycle
from microkernels.runtime.ring import ChipEngines
from sim_tb.cosim.engine import CosimError
from sim_tb.cosim.kernels import run_on
from sim_tb.cosim.machine import Timed
from soc.generate.designs import Configuration
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

    engine, tile = preset("pe"), tile_preset(_TILE)
    machines: dict[str, tuple[Configuration, Timed]] = {
        "pe": (engine, "rtl"),
        "vault": (tile, "rtl"),
        "pe_model": (engine, "model"),
        "vault_model": (tile, "model"),
    }
    for name, (machine, on) in machines.items():
        engines = ChipEngines(pes=machine.slots)
        jobs = [bp_job(problem, iterations, engines=engines) for iterations in _SPEED_RUNS]
        # The first run builds the simulator.
        run_on(jobs[0], machine, on=on)
        cycles, seconds = [], []
        for job in jobs:
            before = cpu_seconds()
            cycles.append(run_on(job, machine, on=on).cycles)
            seconds.append(cpu_seconds() - before)
        rate = (cycles[1] - cycles[0]) / (seconds[1] - seconds[0])
        yield Measurement(f"{name}_kcycles_per_second", rate / 1000, "kcycles/s", None, True)
    job = bp_job(problem, _SPEED_RUNS[1])
    kinds = {"python": Simulator, "compiled": CompiledSimulator, "checking": CheckingSimulator}
    for name, kind in kinds.items():
        with DramImage(1 << engine.address_bits) as memory:
            job.prepare(memory)
            simulator = kind(job.program, memory, parameters=job.parameters, **engine.limits)
            before = cpu_seconds()
            end = simulator.run()
            rate = end.executed / (cpu_seconds() - before)
            if job.differing(job.outputs(memory)):
                raise CosimError(f"{job.name}: the {name} simulator differs from the golden model")
        yield Measurement(f"{name}_kinstructions_per_second", rate / 1000, "k/s", None, True)
