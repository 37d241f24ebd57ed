"""The verb ``generate``: Verilog of a configuration."""

from dataclasses import dataclass
from pathlib import Path

from hdl.config import SramKind
from soc.generate.configuration_file import read_about
from soc.generate.designs import Configuration
from soc.generate.generate import GenerateReport, configuration_json
from soc.generate.generate import generate as write_verilog
from support.errors import Shown

from .configurations import Design, design


@dataclass(frozen=True, kw_only=True)
class Generated(Shown):
    """A directory of Verilog. config: of the design. report: the directory's contents."""

    config: Configuration
    report: GenerateReport

    def to_json(self) -> dict[str, object]:
        """The generated design as plain JSON data."""
        report = self.report
        return {
            "directory": str(report.directory),
            "top": report.top,
            "modules": list(report.modules),
            "macros": list(report.macros),
            "files": list(report.files),
            "lines": report.lines,
            "bytes": report.bytes,
            "configuration": configuration_json(self.config),
        }


def generate(config: Design, output: Path | str, *, memories: SramKind | None = None) -> Generated:
    """Write Verilog, one file per module, with its configuration and lint waivers.

    ``generate("pe", "build/pe", memories="macro")`` writes one engine with memory macros. See
    :func:`soc.generate.generate.generate` for the files. What ``vip.json`` of a generated directory
    says of its design, such as what it was trimmed to, the new directory says, too.

    Parameters:
        config: a configuration, the name of a preset, or a JSON file with a configuration.
        output: directory, written completely or not at all; replaces one generated earlier.
        memories: how memories are built; None: as configured.

    Raises:
        ConfigurationError: an invalid configuration.
        GenerateError: the directory can't be written, or contains something else.
    """
    chosen = design(config)
    if memories is not None:
        chosen = chosen.with_sram(memories)
    about = read_about(config) if isinstance(config, Path) else ""
    return Generated(config=chosen, report=write_verilog(chosen, output, about=about))
