"""Jobs of Markov random fields on the machine that is named."""

from dataclasses import dataclass
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

__all__ = ["MrfMachine", "Place"]

#: ``golden``: the golden model alone. ``iss``: the instruction set simulator. ``model``: the timing
#: model. ``rtl``: the Verilog.
Place = Literal["golden", "iss", "model", "rtl"]

_CYCLES = "machine (cycles)"


@dataclass(frozen=True)
class MrfMachine:
    """The hardware of a configuration in a place.

    Attributes:
        config: of an engine, a vault or a chip. on: the place.
    """

    config: Configuration
    on: Place

    @property
    def engine(self) -> PeConfig:
        """Configuration of an engine."""
        return self.config if isinstance(self.config, PeConfig) else self.config.pe

    @property
    def chip(self) -> ChipConfig | None:
        """The configuration, if it is of a chip."""
        return self.config if isinstance(self.config, ChipConfig) else None

    @property
    def pes(self) -> int:
        """Engines of a vault."""
        if isinstance(self.config, ChipConfig):
            return self.config.tile.pes
        return self.config.pes if isinstance(self.config, VaultTileConfig) else 1

    def run(self, job: KernelJob, progress: Progress) -> tuple[Elements, dict[str, int]]:
        """Outputs of the machine, and cycles of its launches by their names.

        Raises:
            VipError: a run that faults or does not end, or a simulator that can't be built.
        """
        config, on = self.config, self.on
        if on == "iss":
            count = counting(progress, "instruction set simulator (instructions)")
            return execute(job, progress=count).outputs, {}
        if on == "golden":
            raise KernelError("the golden model runs no job")
        cycles = counting(progress, _CYCLES)
        if isinstance(config, ChipConfig):
            outcome = cosim_chip(job, config, on=on, preload=True, progress=cycles)
        elif isinstance(config, VaultTileConfig):
            outcome = cosim_vault(job, config, on=on, progress=cycles)
        else:
            outcome = cosim_engine(job, config, on=on, progress=cycles)
        counts = {name: result.program_cycles for name, result in outcome.results.items()}
        return outcome.outputs, counts
