"""Machines for models: what their planner must know, and how jobs run on them."""

from dataclasses import dataclass

from hdl.config import ConfigurationError
from microkernels.runtime.ring import ChipEngines
from pe.config import PeConfig
from sim_tb.cosim.kernels import chip_engines
from soc.chip.config import ChipConfig
from soc.generate.presets import PRESETS
from soc.tile.config import VaultTileConfig
from vip.configurations import design

#: Clock of the thesis's machine, in GHz.
CLOCK_GHZ = 1.25


@dataclass(frozen=True, kw_only=True)
class ModelMachine:
    """A machine that models run on.

    Attributes:
        preset: its name.
        config: of the vault or chip.
        engines: as planners know them.
    """

    preset: str
    config: VaultTileConfig | ChipConfig
    engines: ChipEngines

    @property
    def instructions(self) -> frozenset[str]:
        """Keys of the engines' instructions."""
        return self.config.pe.instructions


def model_machine(preset: str) -> ModelMachine:
    """The machine of a preset, a vault or a chip.

    Raises:
        ConfigurationError: no such preset, or it is one engine.
    """
    config = design(preset)
    if isinstance(config, PeConfig):
        names = [name for name, other in PRESETS.items() if not isinstance(other, PeConfig)]
        raise ConfigurationError(
            f"a model needs a vault or a chip, not a {config.title}; there are: {', '.join(names)}"
        )
    return ModelMachine(preset=preset, config=config, engines=chip_engines(config))
