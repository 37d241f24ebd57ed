"""The designs that can be generated: a processing engine, a vault with its engines, a chip."""

from dataclasses import replace

from hdl.component import Component
from hdl.config import SramKind
from pe.config import PeConfig
from pe.core import Pe
from soc.chip.chip import Chip
from soc.chip.config import ChipConfig
from soc.tile.config import VaultTileConfig
from soc.tile.tile import VaultTile

__all__ = [
    "Configuration",
    "component",
    "description",
    "module_name",
    "two_clocks",
    "with_sram",
]

#: Configurations of the designs that can be generated.
Configuration = PeConfig | VaultTileConfig | ChipConfig


def component(config: Configuration) -> Component:
    """The hardware of ``config``."""
    if isinstance(config, ChipConfig):
        return Chip(config)
    return VaultTile(config) if isinstance(config, VaultTileConfig) else Pe(config)


def module_name(config: Configuration) -> str:
    """Default name of its top module."""
    if isinstance(config, ChipConfig):
        return "chip"
    return "vault_tile" if isinstance(config, VaultTileConfig) else "pe"


def description(config: Configuration) -> str:
    """Short description."""
    if isinstance(config, ChipConfig):
        network = config.network
        return (
            f"chip of {network.columns} x {network.rows} vaults with processing engines "
            f"({config.pes})"
        )
    if isinstance(config, VaultTileConfig):
        return f"vault with processing engines ({config.pes})"
    return "processing engine"


def two_clocks(config: Configuration) -> bool:
    """Whether the memory has a clock of its own."""
    if isinstance(config, ChipConfig):
        return config.tile.clocks.two
    return isinstance(config, VaultTileConfig) and config.clocks.two


def with_sram(config: Configuration, kind: SramKind) -> Configuration:
    """``config`` with all its memories built as ``kind``.

    Raises:
        ConfigurationError: an unknown ``kind``.
    """
    if isinstance(config, ChipConfig):
        tile = _tile_with_sram(config.tile, kind)
        return replace(config, tile=tile, network=replace(config.network, sram=kind))
    if isinstance(config, VaultTileConfig):
        return _tile_with_sram(config, kind)
    return replace(config, sram=kind)


def _tile_with_sram(config: VaultTileConfig, kind: SramKind) -> VaultTileConfig:
    # The engine is checked first, so that an unknown kind is its configuration's error.
    pe = replace(config.pe, sram=kind)
    return replace(config, pe=pe, vault=replace(config.vault, sram=kind))
