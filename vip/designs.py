"""The verb ``generate``: Verilog of a configuration."""

from pathlib import Path

from hdl.config import SramKind
from soc.generate.generate import ExportTool, Generated
from soc.generate.generate import generate as write_verilog
from soc.generate.presets import Design, design, naming, read_about


def generate(
    config: Design,
    output: Path | str,
    *,
    memories: SramKind | None = None,
    tool: ExportTool | None = None,
) -> Generated:
    """Write Verilog, one file per module, with its configuration and lint waivers.

    ``generate("pe", "build/pe", memories="macro")`` writes one engine with memory macros. See
    :func:`soc.generate.generate.generate` for the files. What ``vip.json`` of a generated directory
    says of its design, such as what it was trimmed to, the new directory says, too.

    Parameters:
        config: a configuration, the name of a preset, or a JSON file with a configuration.
        output: directory, written completely or not at all; replaces one generated earlier.
        memories: how memories are built; None: as configured.
        tool: whose files are written, too; see :data:`soc.generate.generate.EXPORTS`.

    Raises:
        ConfigurationError: an invalid configuration.
        ExportError: ``tool`` can't connect the design.
        GenerateError: the directory can't be written, or contains something else.
    """
    chosen = design(config)
    if memories is not None:
        with naming(config):
            chosen = chosen.with_sram(memories)
    about = read_about(config) if isinstance(config, Path) else ""
    return write_verilog(chosen, output, about=about, tool=tool)
