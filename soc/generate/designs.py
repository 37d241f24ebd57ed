"""The designs that can be generated: a processing engine, a vault with its engines, a chip."""

from collections.abc import Callable, Mapping
from typing import Any

from hdl.component import Component
from pe.config import PeConfig
from pe.core import Pe
from soc.chip.chip import Chip
from soc.chip.config import ChipConfig
from soc.tile.config import VaultTileConfig
from soc.tile.tile import VaultTile

#: Configurations of the designs that can be generated. Each knows its kind, title, vaults, engines,
#: memory, module name and clocks.
Configuration = PeConfig | VaultTileConfig | ChipConfig

_COMPONENTS: Mapping[type, Callable[[Any], Component]] = {
    PeConfig: Pe,
    VaultTileConfig: VaultTile,
    ChipConfig: Chip,
}


def component(config: Configuration) -> Component:
    """The hardware of ``config``."""
    return _COMPONENTS[type(config)](config)
