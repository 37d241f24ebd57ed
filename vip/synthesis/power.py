"""The verb ``power``: power of an engine that runs a kernel: the run of the Verilog, recorded
and replayed on the mapped netlist."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from isa.image import DramImage
from isa.program import Program
from microkernels.data.stereo import motorcycle
from microkernels.nn.conv_loop import conv_loop_data, conv_loop_job
from pe.config import PeConfig
from sim_tb.cosim.kernels import bp_job_on
from sim_tb.cosim.recorded import RecordedRun, record_job, record_program
from sim_tb.runner.build import need_simulator
from soc.generate.generate import verilog
from soc.generate.presets import Design, engine
from support.errors import VipError
from support.extras import together
from synth.physical.asic import need_nangate
from synth.physical.mapping import Progress as UnitProgress
from synth.physical.mapping import engine_netlist
from synth.physical.targets import find_cells
from synth.power.power import PowerReport, check_energies, measure_power
from synth.timing.sta import longest_path
from vip.programs import fill, load_program, memory_contents
from vip.progress import Progress, by_part, silent

#: Width, height and labels, and positions of a convolution: some ten thousand cycles each.
_BP_SIZE = (8, 4, 16)
CONVOLUTION_POSITIONS = 64

#: Kernel -> its description.
KERNELS: Mapping[str, str] = {
    "bp": "belief propagation",
    "conv": "convolution, inner loop",
}


def record(kernel: str, config: PeConfig) -> RecordedRun:
    """Run a kernel of :data:`KERNELS` with the ports recorded."""
    if kernel == "bp":
        job = bp_job_on(motorcycle(*_BP_SIZE).problem, 1, config)
        return record_job(job, config, {"message update": job.updates or 0})
    job = conv_loop_job(*conv_loop_data(CONVOLUTION_POSITIONS))
    return record_job(job, config, {"multiply-accumulate": job.operations // 2})


def check_power_target(target: str) -> None:
    """Check before the work that the cells of ``target`` have energies.

    Raises:
        SynthesisError: they have none, or there is no such target of standard cells.
    """
    _, library = find_cells(target)
    check_energies(library)


def engine_power(
    runs: Sequence[RecordedRun],
    config: PeConfig,
    target: str,
    *,
    progress: UnitProgress | None = None,
    jobs: int | None = None,
) -> PowerReport:
    """Power of the engine ``config`` during the recorded ``runs``, at least one, and its clock.

    The mapped netlist is simulated with the recorded inputs and must give the Verilog's outputs.

    Parameters:
        target: ``nangate45`` or ``liberty:PATH``.
        progress: called after each unit is mapped. jobs: units at a time.

    Raises:
        SynthesisError: the target has no energies, or the netlist can't be simulated or differs
            from its Verilog.
    """
    cells, library = find_cells(target)
    emission = verilog(replace(config, sram=cells.sram))
    netlist = engine_netlist(emission, cells, progress, jobs)
    report = measure_power(netlist, library, runs, what=f"engine for {target}")
    return replace(report, config=config, fmax_mhz=longest_path(netlist, library).fmax_mhz)


def power(
    kernel: str | Program | Path = "bp",
    config: Design = "pe",
    *,
    memory: bytes | NDArray[Any] | Path | str | None = None,
    parameters: int = 0,
    target: str = "nangate45",
    mhz: float = 1000.0,
    max_cycles: int = 50_000,
    jobs: int | None = None,
    progress: Progress = silent,
) -> PowerReport:
    """Estimate the power of an engine that runs a kernel.

    ``power("bp").milliwatts`` is that of belief propagation at 1 GHz. The kernel runs on the
    Verilog; the mapped netlist is simulated with the same inputs and must give the same outputs;
    the activity of each cell, wire and memory is counted.

    Parameters:
        kernel: a name in :data:`KERNELS`, a program, or a program's file.
        config: of an engine.
        memory: contents from address 0 on for a program, as for :func:`vip.run`; None: zeros.
        parameters: DRAM address of a program's parameter block (r5).
        target: ``nangate45`` or ``liberty:PATH``.
        mhz: clock at which power is stated.
        max_cycles: a program that runs longer is an error.
        jobs: tools at a time; None: one per processor.
        progress: called after each unit that is mapped.

    Raises:
        VipError: the program, configuration or target can't be used, or the netlist differs from
            its Verilog.
    """
    chosen = engine(config)
    with together():
        need_simulator()
        need_nangate(target)
    check_power_target(target)
    own = isinstance(kernel, str) and kernel in KERNELS
    if own and (memory is not None or parameters):
        raise VipError(f"{kernel} has its own memory: contents and parameters are for programs")
    name = kernel if isinstance(kernel, str) else str(getattr(kernel, "name", "a program"))
    progress("power", part=f"running {name}")
    if isinstance(kernel, str) and own:
        run = record(kernel, chosen)
    else:
        source = Path(kernel) if isinstance(kernel, str) else kernel
        program = load_program(source, chosen.instruction_words)
        with DramImage(1 << chosen.address_bits) as image:
            fill(image, memory_contents(memory))
            run = record_program(program, image, chosen, max_cycles, parameters=parameters)
    report = engine_power(
        [run],
        chosen,
        target,
        progress=by_part(progress, f"power on {target}"),
        jobs=jobs,
    )
    return replace(report, kernel=name, mhz=mhz)
