"""Machines for models: what their planner must know."""

from dataclasses import replace

from microkernels.common.feature_map import COLUMN_BYTES
from microkernels.runtime.ring import ChipEngines
from pe.config import PeConfig
from sim_tb.cosim.kernels import chip_engines
from vip.configurations import design

#: Clock of the thesis's machine, in GHz.
CLOCK_GHZ = 1.25


def model_engines(preset: str) -> ChipEngines:
    """The engines of a preset, as planners of models know them.

    Raises:
        ConfigurationError: no such preset.
    """
    config = design(preset)
    engines = chip_engines(config)
    if isinstance(config, PeConfig):
        # The memory of an engine alone, such as a board's, has no banks with rows.
        engines = replace(engines, alignment=COLUMN_BYTES)
    return engines
