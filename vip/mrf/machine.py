"""Jobs of Markov random fields on the machine that is named."""

from dataclasses import dataclass
from typing import Literal

from microkernels.common.errors import KernelError
from microkernels.common.fixed_point import Elements
from microkernels.runtime.job import KernelJob
from sim_tb.cosim.kernels import run_on
from soc.generate.designs import Configuration
from vip.progress import Progress, counting

__all__ = ["MrfMachine", "Place"]

#: ``golden``: the golden model alone. ``iss``: the instruction set simulator. ``model``: the timing
#: model. ``rtl``: the Verilog.
Place = Literal["golden", "iss", "model", "rtl"]

_CYCLES = "machine (cycles)"
_SIMULATOR = "instruction set simulator (instructions)"


@dataclass(frozen=True)
class MrfMachine:
    """The hardware of a configuration in a place.

    Attributes:
        config: of an engine, a vault or a chip. on: the place.
    """

    config: Configuration
    on: Place

    def run(self, job: KernelJob, progress: Progress) -> tuple[Elements, dict[str, int]]:
        """Outputs of the machine, and cycles of its launches by their names.

        Raises:
            VipError: a run that faults or does not end, or a simulator that can't be built.
        """
        if self.on == "golden":
            raise KernelError("the golden model runs no job")
        stage = _SIMULATOR if self.on == "iss" else _CYCLES
        counted = counting(progress, stage)
        outcome = run_on(job, self.config, on=self.on, preload=True, progress=counted)
        counts = {name: result.program_cycles for name, result in outcome.results.items()}
        return outcome.outputs, counts
