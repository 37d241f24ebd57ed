"""Named configurations."""

from hdl.config import ConfigurationError, PeConfig
from memory.axi_layout import AxiConfig
from memory.config import VaultConfig

from .config import Configuration, VaultTileConfig

__all__ = ["PRESETS", "any_preset", "preset", "tile_preset"]

#: Name -> configuration. ``pe`` is the thesis's processing engine (chapter 5, section 7.1.3);
#: ``pe-small`` has every instruction but small memories and queues, for quick looks. ``vault`` is
#: the thesis's vault, four engines and 256 MiB; ``vault-axi`` has an AXI bus of 256 bits in place
#: of its DRAM controller, for a board's memory; ``vault-small`` has two small engines and 1 MiB.
PRESETS: dict[str, Configuration] = {
    "pe": PeConfig(),
    "pe-small": PeConfig(
        instruction_words=256,
        registers=32,
        scratchpad_bytes=1024,
        arc_entries=4,
        load_store_queue=8,
        address_bits=24,
    ),
    "vault": VaultTileConfig(),
    "vault-axi": VaultTileConfig(vault=AxiConfig()),
    "vault-small": VaultTileConfig(
        pe=PeConfig(
            instruction_words=512,
            scratchpad_bytes=2048,
            arc_entries=8,
            load_store_queue=16,
            address_bits=20,
        ),
        vault=VaultConfig(banks=4, rows=1024, transaction_queue=8, command_queue=4, tag_bits=5),
        pes=2,
        extra_ports=0,
    ),
}


def any_preset(name: str) -> Configuration:
    """The configuration called ``name``.

    Raises:
        ConfigurationError: there is none; the message names those that there are.
    """
    try:
        return PRESETS[name]
    except KeyError:
        known = ", ".join(PRESETS)
        raise ConfigurationError(f"unknown preset {name!r}; there are: {known}") from None


def preset(name: str) -> PeConfig:
    """The configuration of one engine called ``name``.

    Raises:
        ConfigurationError: there is none, or it is of more than an engine; the message names those
            that there are.
    """
    config = any_preset(name)
    if not isinstance(config, PeConfig):
        raise ConfigurationError(
            f"preset {name!r} is a vault; one engine is needed here: {_names(PeConfig)}"
        )
    return config


def tile_preset(name: str) -> VaultTileConfig:
    """The configuration of a vault with its engines called ``name``.

    Raises:
        ConfigurationError: there is none, or it is of one engine; the message names those that
            there are.
    """
    config = any_preset(name)
    if not isinstance(config, VaultTileConfig):
        raise ConfigurationError(
            f"preset {name!r} is one engine; a vault is needed here: {_names(VaultTileConfig)}"
        )
    return config


def _names(kind: type) -> str:
    return ", ".join(name for name, config in PRESETS.items() if isinstance(config, kind))
