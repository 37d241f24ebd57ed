"""Machines for models: what their planner must know, and how jobs run on them."""

from dataclasses import dataclass, replace

from microkernels.common.feature_map import COLUMN_BYTES
from microkernels.runtime.ring import ChipEngines
from pe.config import PeConfig
from sim_tb.cosim.kernels import chip_engines
from soc.generate.designs import Configuration
from vip.configurations import design

#: Clock of the thesis's machine, in GHz.
CLOCK_GHZ = 1.25


@dataclass(frozen=True, kw_only=True)
class ModelMachine:
    """A machine that models run on.

    Attributes:
        preset: its name.
        config: of the engine, vault or chip.
        engines: as planners know them.
    """

    preset: str
    config: Configuration
    engines: ChipEngines

    @property
    def instructions(self) -> frozenset[str]:
        """Keys of the engines' instructions."""
        return self.config.pe.instructions


def model_machine(preset: str) -> ModelMachine:
    """The machine of a preset.

    Raises:
        ConfigurationError: no such preset.
    """
    config = design(preset)
    engines = chip_engines(config)
    if isinstance(config, PeConfig):
        # The memory of an engine alone, such as a board's, has no banks with rows.
        engines = replace(engines, alignment=COLUMN_BYTES)
    return ModelMachine(preset=preset, config=config, engines=engines)
