"""Configurations as verbs accept them: an object, a preset's name, or a file."""

from pathlib import Path

from hdl.config import ConfigurationError
from isa.faults import FaultCause
from isa.program import Program
from isa.table import find
from pe.config import PeConfig
from soc.generate.configuration_file import read_configuration
from soc.generate.designs import Configuration
from soc.generate.presets import PRESETS, any_preset, preset

#: A configuration, the name of a preset, or a JSON file with a configuration.
Design = Configuration | Path | str


def design(config: Design) -> Configuration:
    """The configuration that ``config`` is or names.

    Raises:
        ConfigurationError: there is no such preset, or the file is not a configuration.
        OSError: the file can't be read.
    """
    if isinstance(config, str):
        return any_preset(config)
    return read_configuration(config) if isinstance(config, Path) else config


def engine(config: Design) -> PeConfig:
    """The configuration of one engine that ``config`` is or names.

    Raises:
        ConfigurationError: as for :func:`design`, or it is not an engine.
        OSError: the file can't be read.
    """
    if isinstance(config, str):
        return preset(config)
    configuration = design(config)
    if not isinstance(configuration, PeConfig):
        raise ConfigurationError(f"one engine is needed here, not a {configuration.title}")
    return configuration


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
