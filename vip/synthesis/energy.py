"""Power of an engine: a run recorded from the simulator, replayed on its mapped netlist."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pe.config import PeConfig
from sim_tb.cosim.recorded import RecordedRun
from soc.generate.generate import verilog
from synth.netlist import RESET
from synth.physical.mapping import Progress, engine_netlist
from synth.physical.targets import find_cells
from synth.power.gate_sim import Recording
from synth.power.power import PowerReport, check_energies, measure_power
from synth.timing.sta import longest_path


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
    gate_clocks: bool = True,
    progress: Progress | None = None,
    jobs: int | None = None,
) -> PowerReport:
    """Power of the engine ``config`` during the recorded ``runs``, at least one, and its clock.

    The mapped netlist is simulated with the recorded inputs and must give the Verilog's outputs.

    Parameters:
        target: ``nangate45`` or ``liberty:PATH``.
        gate_clocks: see :func:`synth.physical.asic.asic_commands`.
        progress: called after each unit is mapped. jobs: units at a time.

    Raises:
        SynthesisError: the target has no energies, or the netlist can't be simulated or differs
            from its Verilog.
    """
    cells, library = find_cells(target, gate_clocks=gate_clocks)
    emission = verilog(replace(config, sram="macro"))
    netlist = engine_netlist(emission, cells, progress, jobs)
    recordings = [
        Recording(
            inputs={port: run.port(port) for port in (*netlist.inputs, RESET)},
            outputs={port: run.port(port) for port in netlist.outputs},
            counted=run.running,
        )
        for run in runs
    ]
    work: Counter[str] = Counter()
    for run in runs:
        work.update(run.work)
    label = f"engine for {target}"
    report = measure_power(netlist, library, recordings, what=label, work=work)
    return replace(report, fmax_mhz=longest_path(netlist, library).fmax_mhz)
