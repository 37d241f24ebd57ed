"""Configurations by name, and as JSON files, an exchange format between tools."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from hdl.config import ConfigurationError
from isa.faults import FaultCause
from isa.program import Program
from isa.table import find
from memory.axi.layout import AxiConfig
from memory.config import VaultConfig
from noc.config import NetworkConfig
from pe.config import INT8_INSTRUCTIONS, LOGISTIC_INSTRUCTIONS, PeConfig
from soc.chip.config import CHIP_PORTS, ChipConfig
from soc.tile.config import VaultTileConfig
from support.errors import VipError, suggestion, unknown
from support.files import read_bytes, write_atomically

from .designs import Configuration

_Config = TypeVar("_Config", PeConfig, VaultTileConfig, ChipConfig)

#: In a tie, plain data are the first of these.
_KINDS = {ChipConfig: "a chip", VaultTileConfig: "a vault", PeConfig: "one engine"}
#: Largest configuration file, in bytes.
CONFIGURATION_BYTES = 1 << 20

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
    "vault-small": replace(
        _SMALL_TILE, vault=replace(_SMALL_TILE.vault, tag_bits=5), extra_ports=0
    ),
    "tiny": ChipConfig(tile=_TINY_TILE, network=_network(_TINY_TILE, columns=2, rows=2)),
    "small": ChipConfig(tile=_SMALL_TILE, network=_network(_SMALL_TILE, columns=4, rows=2)),
    "fpga": ChipConfig(tile=_FPGA_TILE, network=_network(_FPGA_TILE, columns=2, rows=2)),
    "edge-int8": ChipConfig(tile=_EDGE_TILE, network=_network(_EDGE_TILE, columns=1, rows=1)),
    "thesis": ChipConfig(),
    "thesis-int8": ChipConfig(tile=_INT8_TILE),
    "thesis-int8-lines": ChipConfig(tile=replace(_INT8_TILE, line_buffer=32)),
}


#: A configuration, the name of a preset, or a JSON file with a configuration.
Design = Configuration | Path | str


def design(config: Design) -> Configuration:
    """The configuration that ``config`` is or names.

    Raises:
        ConfigurationError: there is no such preset, and the message lists them; or the file is not
            a configuration.
        OSError: the file can't be read.
    """
    if isinstance(config, Path):
        return read_configuration(config)
    if not isinstance(config, str):
        return config
    try:
        return PRESETS[config]
    except KeyError:
        raise ConfigurationError(unknown("preset", config, PRESETS)) from None


def engine(config: Design) -> PeConfig:
    """The configuration of one engine that ``config`` is or names.

    Raises:
        ConfigurationError: as for :func:`design`, or it is not an engine.
        OSError: the file can't be read.
    """
    return _of_kind(config, PeConfig)


@contextmanager
def naming(config: Design) -> Iterator[None]:
    """Let the message of a :class:`ConfigurationError` begin with the file that ``config`` is, if
    it is one."""
    try:
        yield
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{config}: {error}" if isinstance(config, Path) else str(error)
        ) from None


def advised(fault: str, program: Program, cause: FaultCause, pc: int, config: Configuration) -> str:
    """``fault``, a line about a fault of ``program`` at word ``pc``; if ``config`` lacks the
    instruction there, with the presets that have it."""
    row = find(program.words[pc]) if 0 <= pc < len(program.words) else None
    if cause is not FaultCause.ILLEGAL_INSTRUCTION or row is None:
        return fault
    if row.key in config.pe.instructions:
        return fault
    names = [
        name
        for name, other in PRESETS.items()
        if other.kind == config.kind and row.key in other.pe.instructions
    ]
    match names:
        case []:
            return f"{fault}; no preset has it"
        case [name]:
            return f"{fault}; the preset {name} has it"
    return f"{fault}; the presets {', '.join(names)} have it"


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


def _of_kind(config: Design, kind: type[_Config]) -> _Config:
    """The configuration of this kind that ``config`` is or names."""
    configuration, needed = design(config), f"{_KINDS[kind]} is needed here"
    if isinstance(configuration, kind):
        return configuration
    if isinstance(config, str):
        fitting = (name for name, other in PRESETS.items() if isinstance(other, kind))
        needed = f"preset {config!r} is {_KINDS[type(configuration)]}; {needed}"
        raise ConfigurationError(f"{needed}: {', '.join(fitting)}")
    with naming(config):
        raise ConfigurationError(f"{needed}, not a {configuration.title}")


def configuration_json(config: Configuration) -> dict[str, object]:
    """``config`` as plain JSON data: parts within each other, instructions sorted."""
    return {field.name: _plain(getattr(config, field.name)) for field in fields(config)}


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return sorted(value) if isinstance(value, frozenset) else value


def configuration_text(config: Configuration) -> str:
    """A configuration as JSON text, to be read by :func:`read_configuration`."""
    return json.dumps(configuration_json(config), indent=2, sort_keys=True) + "\n"


def write_configuration(config: Configuration, path: Path) -> None:
    """Write ``config`` to ``path``, to be read by :func:`read_configuration`.

    Raises:
        OSError: it can't be written.
    """
    write_atomically(path, configuration_text(config).encode())


def read_configuration(path: Path) -> Configuration:
    """The configuration in a JSON file.

    The file holds the output of :func:`configuration_json`, or is the
    manifest of a generated directory, which includes it.

    Raises:
        ConfigurationError: the file is not JSON, or as from :func:`configuration_of`; the message
            begins with ``path``.
        OSError: it can't be read.
    """
    raw = _read(path)
    if _is_manifest(raw):
        raw = raw.get("configuration")
    try:
        with naming(path):
            return configuration_of(raw)
    except RecursionError:
        raise ConfigurationError(f"{path}: nested too deeply") from None


def read_about(path: Path) -> str:
    """What the design in a manifest is for, as of :func:`soc.generate.generate.generate`; "" of any
    other configuration file.

    Raises:
        ConfigurationError: the file is not JSON, or says it in something else than a line.
        OSError: it can't be read.
    """
    raw = _read(path)
    about = raw.get("about", "") if _is_manifest(raw) else ""
    if not isinstance(about, str) or not about.isprintable():
        raise ConfigurationError(f"{path}: about must be a line of text, not {about!r:.60}")
    return about


def _read(path: Path) -> Any:
    try:
        return json.loads(read_bytes(path, CONFIGURATION_BYTES))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: not a JSON file: {error}") from None


def _is_manifest(raw: object) -> bool:
    return isinstance(raw, dict) and raw.get("generator") == "vip"


def configuration_of(raw: object) -> Configuration:
    """The configuration of plain JSON data.

    It is a chip (:class:`soc.chip.config.ChipConfig`), a vault with engines, or an engine: the kind
    that shares most fields, or else has most names near them; the first of these in a tie. Missing
    fields take their defaults.

    Raises:
        ConfigurationError: a field that the kind does not have, or a value that it refuses. The
            message names the place.
    """
    built: Configuration = _built(tuple(_KINDS), raw, "")
    return built


def configuration_as(kind: type[_Config], raw: object) -> _Config:
    """As :func:`configuration_of`, for one kind.

    Raises:
        ConfigurationError: as there, or it is of another kind.
    """
    return _of_kind(configuration_of(raw), kind)


def _built(kinds: tuple[type, ...], raw: object, where: str) -> Any:
    """The object of one of ``kinds``, dataclasses, with the fields of ``raw``."""
    if not isinstance(raw, dict):
        raise ConfigurationError(f"{where or 'a configuration'} must be an object, not {raw!r:.60}")
    names = {kind: {field.name for field in fields(kind)} for kind in kinds}

    def closeness(kind: type) -> tuple[int, int]:
        misspelt = (bool(suggestion(str(name), names[kind])) for name in raw)
        return len(names[kind] & raw.keys()), sum(misspelt)

    # In a tie, the first kind.
    kind = max(kinds, key=closeness)
    unknown = sorted(raw.keys() - names[kind])
    if unknown:
        raise ConfigurationError(
            f"{where or 'a configuration'} has no field {unknown[0]!r}; "
            f"there are: {', '.join(sorted(names[kind]))}{suggestion(str(unknown[0]), names[kind])}"
        )
    hints = get_type_hints(kind)
    values = {
        name: _value(hints[name], value, f"{where}.{name}" if where else name)
        for name, value in raw.items()
    }
    try:
        return kind(**values)
    except VipError as error:
        raise ConfigurationError(f"{where}: {error}" if where else str(error)) from None


def _value(hint: Any, raw: object, where: str) -> object:
    """``raw`` converted for a field annotated ``hint``; the field itself checks the value."""
    union = get_origin(hint) in (Union, UnionType)
    choices = get_args(hint) if union else (hint,)
    parts: tuple[type, ...] = tuple(filter(is_dataclass, choices))
    if parts:
        return _built(parts, raw, where)
    if isinstance(raw, bool) and bool not in choices:
        raise ConfigurationError(f"{where} can't be {str(raw).lower()}")
    origins: list[Any] = [get_origin(choice) for choice in choices]
    for collection in (frozenset, tuple):
        if collection in origins and isinstance(raw, list):
            try:
                return collection(raw)
            except TypeError:
                raise ConfigurationError(f"{where} must be a list of plain values") from None
    return raw
