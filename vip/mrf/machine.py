"""Jobs of Markov random fields on the machine that is named."""

from typing import Literal

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements
from microkernels.runtime.compiled import execute
from microkernels.runtime.job import KernelJob
from pe.config import PeConfig
from sim_tb.cosim.kernels import cosim_chip, cosim_engine, cosim_vault
from soc.chip.config import ChipConfig
from soc.generate.designs import Configuration
from soc.tile.config import VaultTileConfig
from vip.progress import Progress, counting

__all__ = ["Place", "engine_of", "run_job"]

#: ``golden``: the golden model alone. ``iss``: the instruction set simulator. ``model``: the timing
#: model. ``rtl``: the Verilog.
Place = Literal["golden", "iss", "model", "rtl"]

_CYCLES = "machine (cycles)"


def engine_of(config: Configuration) -> PeConfig:
    """An engine of the configuration."""
    return config if isinstance(config, PeConfig) else config.pe


def run_job(
    job: KernelJob, config: Configuration, on: Place, progress: Progress
) -> tuple[Elements, dict[str, int]]:
    """Outputs of the machine, and cycles of its launches by their names.

    Raises:
        VipError: a run that faults or does not end, or a simulator that can't be built.
    """
    if on == "iss":
        count = counting(progress, "instruction set simulator (instructions)")
        return execute(job, progress=count).outputs, {}
    if on == "golden":
        raise KernelError("the golden model runs no job")
    cycles = counting(progress, _CYCLES)
    if isinstance(config, ChipConfig):
        chip = cosim_chip(job, config, on=on, preload=True, progress=cycles)
        return chip.outputs, {name: one.program_cycles for name, one in chip.results.items()}
    if isinstance(config, VaultTileConfig):
        vault = cosim_vault(job, config, on=on, progress=cycles)
        return vault.outputs, {
            name: result.program_cycles for name, result in vault.results.items()
        }
    engine = cosim_engine(job, config, on=on, progress=cycles)
    return engine.outputs, {name: result.program_cycles for name, result in engine.results.items()}
