"""Configurations as the verbs take them: an object, the name of a preset, or a file."""

from pathlib import Path

from hdl.config import ConfigurationError
from pe.config import PeConfig
from soc.generate.configuration_file import read_configuration
from soc.generate.designs import Configuration
from soc.generate.presets import any_preset, preset

__all__ = ["Design", "design", "engine"]

#: A configuration, the name of a preset, or a JSON file with a configuration.
Design = Configuration | Path | str


def design(config: Design) -> Configuration:
    """The configuration that ``config`` is or names.

    Raises:
        ConfigurationError: no such preset, or a file that holds no configuration.
        OSError: the file can't be read.
    """
    if isinstance(config, str):
        return any_preset(config)
    return read_configuration(config) if isinstance(config, Path) else config


def engine(config: Design) -> PeConfig:
    """The configuration of one engine that ``config`` is or names.

    Raises:
        ConfigurationError: as of :func:`design`, or it is no engine.
        OSError: the file can't be read.
    """
    if isinstance(config, str):
        return preset(config)
    configuration = design(config)
    if not isinstance(configuration, PeConfig):
        raise ConfigurationError(f"one engine is needed here, not a {configuration.title}")
    return configuration
