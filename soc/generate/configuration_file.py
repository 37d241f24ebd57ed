"""Configurations as JSON files, an exchange format between tools."""

import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from hdl.config import ConfigurationError
from pe.config import PeConfig
from soc.chip.config import ChipConfig
from soc.tile.config import VaultTileConfig
from support.errors import VipError, suggestion
from support.files import read_bytes, write_atomically

from .designs import Configuration
from .generate import configuration_json

_Config = TypeVar("_Config", PeConfig, VaultTileConfig, ChipConfig)

#: Largest configuration file, in bytes.
CONFIGURATION_BYTES = 1 << 20

_KINDS = (ChipConfig, VaultTileConfig, PeConfig)


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

    The file holds the output of :func:`soc.generate.generate.configuration_json`, or is the
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
        return configuration_of(raw)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None
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
    built: Configuration = _built(_KINDS, raw, "")
    return built


def configuration_as(kind: type[_Config], raw: object) -> _Config:
    """As :func:`configuration_of`, for one kind.

    Raises:
        ConfigurationError: as there, or it is of another kind.
    """
    config = configuration_of(raw)
    if not isinstance(config, kind):
        raise ConfigurationError(f"a configuration of another kind is needed, not a {config.title}")
    return config


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
