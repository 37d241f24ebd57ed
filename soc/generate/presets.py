"""Named configurations."""

from dataclasses import replace
from typing import TypeVar

from hdl.config import ConfigurationError
from memory.axi.layout import AxiConfig
from memory.config import VaultConfig
from noc.config import NetworkConfig
from pe.config import INT8_INSTRUCTIONS, LOGISTIC_INSTRUCTIONS, PeConfig
from soc.chip.config import CHIP_PORTS, ChipConfig
from soc.tile.config import VaultTileConfig
from support.errors import unknown

from .designs import Configuration

_Config = TypeVar("_Config", PeConfig, VaultTileConfig, ChipConfig)

_KINDS = {PeConfig: "one engine", VaultTileConfig: "a vault", ChipConfig: "a chip"}

#: Of the chip for tests: every standard instruction, but small memories and queues.
_TINY_TILE = VaultTileConfig(
    pe=PeConfig(
        instruction_words=512,
        scratchpad_bytes=2048,
        arc_entries=8,
        load_store_queue=16,
        address_bits=20,
    ),
    vault=VaultConfig(banks=4, rows=1024, transaction_queue=8, command_queue=4, tag_bits=6),
    pes=1,
    extra_ports=CHIP_PORTS,
)
_SMALL_TILE = replace(_TINY_TILE, pes=2)
#: Of the chip for an FPGA. A vault's port moves 8 bytes per cycle, so a wider bus has no use.
_FPGA_TILE = VaultTileConfig(
    pe=PeConfig(address_bits=28, sram="fpga"),
    vault=AxiConfig(address_bits=28, tag_bits=8, data_bits=64, sram="fpga"),
    pes=2,
    extra_ports=CHIP_PORTS,
)
#: Of a vault with products of bytes.
_INT8_ENGINE = replace(VaultTileConfig().pe, instructions=INT8_INSTRUCTIONS)
_INT8_TILE = replace(ChipConfig().tile, pe=_INT8_ENGINE)
#: Of the chip whose network and its data stay on it.
_EDGE_TILE = replace(_INT8_TILE, vault=replace(VaultConfig(), preload_bytes=1 << 20))


def _network(tile: VaultTileConfig, *, columns: int, rows: int) -> NetworkConfig:
    """The network that joins ``columns`` x ``rows`` tiles."""
    return NetworkConfig(
        columns=columns,
        rows=rows,
        address_bits=tile.vault.address_bits,
        tag_bits=tile.pe.tag_bits,
        sram=tile.vault.sram,
    )


#: Name -> configuration. ``pe`` is the thesis's processing engine (chapter 5, section 7.1.3);
#: ``pe-small`` has every standard instruction but small memories and queues, for quick experiments;
#: ``pe-logistic`` also has the logistic unit, for recurrent networks; ``pe-int8`` has products of
#: bytes, for networks of 8 bits. ``vault`` is the thesis's vault, four engines and 256 MiB;
#: ``vault-logistic`` and ``vault-int8`` have the engines of these names; ``vault-axi`` has an AXI
#: bus of 256 bits instead of its DRAM controller, for a board's memory; ``vault-small`` has two
#: small engines and 1 MiB. ``tiny`` is a chip of 2 x 2 vaults of 1 MiB with one small engine each,
#: for tests; ``small`` is one of 4 x 2 vaults with two; ``fpga`` is for a large 7-series;
#: ``edge-int8`` is a chip of one vault with products of bytes, whose first MiB is on the chip, for
#: small networks; ``thesis`` is the thesis's chip, ``thesis-int8`` has products of bytes, and
#: ``thesis-int8-lines`` also a line buffer in each vault, for weights that its engines share.
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
    "pe-logistic": PeConfig(instructions=LOGISTIC_INSTRUCTIONS),
    "pe-int8": PeConfig(instructions=INT8_INSTRUCTIONS),
    "vault": VaultTileConfig(),
    "vault-logistic": VaultTileConfig(
        pe=replace(VaultTileConfig().pe, instructions=LOGISTIC_INSTRUCTIONS)
    ),
    "vault-int8": VaultTileConfig(pe=_INT8_ENGINE),
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
    "tiny": ChipConfig(tile=_TINY_TILE, network=_network(_TINY_TILE, columns=2, rows=2)),
    "small": ChipConfig(tile=_SMALL_TILE, network=_network(_SMALL_TILE, columns=4, rows=2)),
    "fpga": ChipConfig(tile=_FPGA_TILE, network=_network(_FPGA_TILE, columns=2, rows=2)),
    "edge-int8": ChipConfig(tile=_EDGE_TILE, network=_network(_EDGE_TILE, columns=1, rows=1)),
    "thesis": ChipConfig(),
    "thesis-int8": ChipConfig(tile=_INT8_TILE),
    "thesis-int8-lines": ChipConfig(tile=replace(_INT8_TILE, line_buffer=32)),
}


def any_preset(name: str) -> Configuration:
    """The configuration called ``name``.

    Raises:
        ConfigurationError: there is none; the message lists the presets.
    """
    try:
        return PRESETS[name]
    except KeyError:
        raise ConfigurationError(unknown("preset", name, PRESETS)) from None


def preset(name: str) -> PeConfig:
    """The configuration of one engine called ``name``.

    Raises:
        ConfigurationError: there is none, or it is of another kind; the message names the presets.
    """
    return _of_kind(name, PeConfig)


def tile_preset(name: str) -> VaultTileConfig:
    """The configuration of a vault with its engines called ``name``; raises as :func:`preset`."""
    return _of_kind(name, VaultTileConfig)


def chip_preset(name: str) -> ChipConfig:
    """The configuration of a chip called ``name``; raises as :func:`preset`."""
    return _of_kind(name, ChipConfig)


def _of_kind(name: str, kind: type[_Config]) -> _Config:
    config = any_preset(name)
    if not isinstance(config, kind):
        raise _another(name, kind)
    return config


def _another(name: str, kind_needed: type) -> ConfigurationError:
    """Message for a preset that is not a ``kind_needed``."""
    fitting = ", ".join(key for key, config in PRESETS.items() if isinstance(config, kind_needed))
    kind = _KINDS[type(PRESETS[name])]
    return ConfigurationError(
        f"preset {name!r} is {kind}; {_KINDS[kind_needed]} is needed here: {fitting}"
    )
