"""Generation of a directory of Verilog from a configuration."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from hdl.clocks import CLOCK_PORTS, ENGINE_DOMAIN, MEMORY_DOMAIN
from hdl.config import SramKind
from hdl.crossing import RESET_CYCLES
from hdl.emission import Emission, emit, interface_only
from hdl.sram_macro import SramGeometry, macro_model, macro_stub
from hdl.verilog import CLEARED_WORDS
from support.errors import Shown, VipError
from support.files import read_bytes, write_file
from support.scratch import owned_folder

from .c_header import HEADER_NAME, c_header
from .designs import Configuration, component
from .exports.exported import ExportedDesign
from .exports.fusesoc import fusesoc_core
from .exports.litex import litex_module
from .exports.tinytapeout import tiny_tapeout
from .exports.vitis import vitis_kernel
from .exports.vivado import vivado_ip
from .port_table import example, port_constants, port_table
from .presets import configuration_json

#: File that marks a directory as generated; contains the configuration and a list of files.
MANIFEST = "vip.json"
#: Largest accepted size of it: a hundred times the largest one's.
_MANIFEST_BYTES = 1 << 20

#: Warning of Verilator about generated Verilog -> reason why it is not a defect here. Verilator
#: rejects a file with an unknown warning; 5.006, the oldest supported version, knows these.
WAIVERS: dict[str, str] = {
    "UNUSEDSIGNAL": "Names of signals and of the fields of records are kept for waveforms even "
    "where nothing reads them; a shared signature can carry more than one side needs; and sums "
    "have a carry bit that is dropped on purpose.",
    "WIDTH": "Operands are extended by the rules of Verilog, for which the widths were computed, "
    "so that nothing is lost; `!` and conditions of several bits mean `== 0` and `!= 0`.",
    "CASEINCOMPLETE": "The outputs of a case have values before it, and the reset or selector "
    "values that it leaves out keep them.",
    "CMPCONST": "A comparison in generated, regular logic is constant at the ends of its range.",
    "UNSIGNED": "As CMPCONST, at the lower end.",
    "VARHIDDEN": "An instance may have the name of a signal inside it.",
    "INITIALDLY": "`at_start` changes at the start when all `always @*` wait for it, so that "
    "simulators with four states evaluate them.",
}

#: Warnings of 5.006 that later versions no longer give.
OLDER_WAIVERS: dict[str, str] = {
    "UNOPTFLAT": "Bits of a vector that follow from lower ones are not a loop.",
}

#: The same for designs with two clocks.
TWO_CLOCK_WAIVERS: dict[str, str] = {
    **WAIVERS,
    "DECLFILENAME": "The FIFO of a crossing stands in the file of the crossing.",
    "SYNCASYNCNET": "The reset of one clock domain asynchronously sets the synchroniser that "
    "brings it to the other domain (AsyncFFSynchronizer of Amaranth).",
}

#: Tools for which there are files beside the Verilog.
ExportTool = Literal["fusesoc", "litex", "tinytapeout", "vitis", "vivado"]
#: Tool -> its files.
EXPORTS: Mapping[ExportTool, Callable[[ExportedDesign], Mapping[str, str]]] = {
    "fusesoc": fusesoc_core,
    "litex": litex_module,
    "tinytapeout": tiny_tapeout,
    "vitis": vitis_kernel,
    "vivado": vivado_ip,
}

#: Module that runs a program on an engine.
_EXAMPLE = "example.v"
#: Makes what it reads as memory from a binary file.
_WORDS = (
    'import sys; data = open(sys.argv[1], "rb").read(); '
    'print(*(data[n : n + 8][::-1].hex() for n in range(0, len(data), 8)), sep="\\n")'
)
#: How memories are built -> what the README says of it.
_MEMORIES: dict[SramKind, str] = {
    "behavioural": " For block and LUT RAM of an FPGA, `vip generate --config"
    f" {MANIFEST} --memories fpga -o ../fpga` writes this design again, in another folder.",
    "fpga": " They become block and LUT RAM.",
    "macro": "",
}


class GenerateError(VipError):
    """A directory that can't be written; the message gives the reason."""


@dataclass(frozen=True, kw_only=True)
class Generated(Shown):
    """A directory of Verilog.

    Attributes:
        config: of the design.
        directory: output directory.
        top: name of the top module.
        modules: names of the modules, each after those that it instantiates.
        macros: names of the memory macros that the design instantiates.
        files: all files written, relative to ``directory``, sorted.
        lines, bytes: of the Verilog of the modules.
    """

    config: Configuration
    directory: Path
    top: str
    modules: tuple[str, ...]
    macros: tuple[str, ...]
    files: tuple[str, ...]
    lines: int
    bytes: int

    def to_json(self) -> dict[str, object]:
        """The generated design as plain JSON data."""
        content = dict(vars(self))
        configuration = configuration_json(content.pop("config"))
        content["directory"] = str(self.directory)
        for name in ("modules", "macros", "files"):
            content[name] = list(content[name])
        return {**content, "configuration": configuration}


@lru_cache(maxsize=16)
def verilog(config: Configuration, *, top: str | None = None) -> Emission:
    """Verilog of ``config``.

    Parameters:
        config: the design.
        top: name of the top module; by default the configuration's ``module_name``.

    Raises:
        hdl.emission.EmissionError: ``top`` is not an identifier.
    """
    return emit(component(config), config.module_name if top is None else top)


def generate(
    config: Configuration,
    directory: Path | str,
    *,
    top: str | None = None,
    extra_files: Mapping[str, str] | None = None,
    about: str = "",
    tool: ExportTool | None = None,
) -> Generated:
    """Write the design of ``config`` as a directory of Verilog.

    ``rtl/`` contains one file per module, ``filelist.f`` their order (for ``verilator -F``,
    ``iverilog -c``), ``waivers.vlt`` the lint waivers, :data:`MANIFEST` the configuration, and
    ``README.md`` a description with the ports, ``TOP_ports.vh`` constants for them, ``example.v`` a
    module that runs a program on an engine. A chip also has the C header of its registers,
    :data:`soc.generate.c_header.HEADER_NAME`. With ``sram="macro"`` there are also ``models/`` (for
    simulation, in ``filelist.f``) and ``stubs/`` (for synthesis) of the memories. The contents
    depend only on the configuration and the versions of the tools. The directory is written
    atomically; a previously generated one is replaced.

    Parameters:
        config: the design.
        directory: output directory.
        top: name of the top module; by default the configuration's ``module_name``.
        extra_files: further files of the directory: name -> text.
        about: for ``README.md`` and :data:`MANIFEST`, what the design is for, in sentences.
        tool: whose files of :data:`EXPORTS` are written, too.

    Raises:
        ExportError: ``tool`` can't connect the design.
        GenerateError: ``directory`` can't be written, or holds other files.
        hdl.emission.EmissionError: ``top`` is not an identifier.
    """
    target = Path(directory)
    check_directory(target)
    emission = verilog(config, top=top)
    files = _contents(config, emission, extra_files or {}, about, tool)
    try:
        _write(target, files)
    except OSError as error:
        raise GenerateError(f"can't write {target}: {error.strerror or error}") from error
    text = list(emission.modules.values())
    return Generated(
        config=config,
        directory=target,
        top=emission.top,
        modules=tuple(emission.modules),
        macros=emission.black_boxes,
        files=tuple(sorted(files)),
        lines=sum(module.count("\n") for module in text),
        bytes=sum(len(module.encode()) for module in text),
    )


def _contents(
    config: Configuration,
    emission: Emission,
    extra_files: Mapping[str, str],
    about: str,
    tool: ExportTool | None,
) -> dict[str, str]:
    files = {f"rtl/{name}.v": text for name, text in emission.modules.items()}
    sources = list(files)
    files |= extra_files
    for name in emission.black_boxes:
        geometry = SramGeometry.parse(name)
        files[f"models/{name}.v"] = macro_model(geometry)
        files[f"stubs/{name}.v"] = macro_stub(geometry)
        sources.insert(0, f"models/{name}.v")
    files["filelist.f"] = "".join(f"{name}\n" for name in sources)
    files["waivers.vlt"] = waiver_file(TWO_CLOCK_WAIVERS if config.two_clocks else WAIVERS)
    if config.kind == "chip":
        files[HEADER_NAME] = c_header()
    design = interface_only(component(config))
    clocks = CLOCK_PORTS[ENGINE_DOMAIN] + (CLOCK_PORTS[MEMORY_DOMAIN] if config.two_clocks else ())
    if text := example(config.pe, design, emission.top, clocks):
        files[_EXAMPLE] = text
    header = f"{emission.top}_ports.vh"
    files[header] = port_constants(design, emission.top)
    exported = ExportedDesign(
        component=design,
        top=emission.top,
        title=config.title,
        version=version("vip-inference"),
        sources=sources,
        header=header,
        clocks=clocks,
        vault_bytes=config.vault_bytes,
    )
    if tool is not None:
        files |= EXPORTS[tool](exported)
    files["README.md"] = _readme(config, emission, about, clocks, runs=_EXAMPLE in files)
    names = sorted([*files, MANIFEST])
    manifest = {
        "generator": "vip",
        "version": version("vip-inference"),
        "top": emission.top,
        "about": about,
        "configuration": configuration_json(config),
        "files": names,
    }
    files[MANIFEST] = json.dumps(manifest, indent=2, sort_keys=True) + "\n"
    return files


def _readme(
    config: Configuration, emission: Emission, about: str, clocks: Sequence[str], *, runs: bool
) -> str:
    design = interface_only(component(config))
    rows = [
        f"| `{name}` | {emission.classes[name]} | {text.count(chr(10))} |"
        for name, text in reversed(list(emission.modules.items()))
    ]
    macros = stubs = second = launch = ""
    shown = _example_manual(config) if runs else ""
    if config.kind == "chip":
        launch = (
            " To run a program, write its words to `PROGRAM` and their number to `START`, then wait"
            f" until `RUNNING` reads 0: `{HEADER_NAME}` has these addresses of the control port."
        )
    if config.two_clocks:
        second = (
            "The memory ports have a clock and a reset of their own, `clk_mem` and `rst_mem`: both"
            f" resets are 1 together for {RESET_CYCLES} cycles of the slower clock at least. "
        )
    if emission.black_boxes:
        stubs = "stubs/*.v "
        macros = (
            "\nMemories are macros: `models/` holds what they do, for simulation, `stubs/` the"
            " black boxes, for synthesis.\n"
        )
    intro = f"{about}\n\n" if about else ""
    return (
        f"# {emission.top}: a VIP {config.title}\n\n{intro}"
        f"Generated Verilog-2005; top module `{emission.top}`, clock `clk` (rising edge), reset"
        f" `rst` (synchronous, active high). {second}The configuration is in `{MANIFEST}`.\n\n"
        f"    verilator --lint-only -Wall waivers.vlt -F filelist.f --top {emission.top}\n"
        f"    iverilog -c filelist.f -s {emission.top} -o {emission.top}.vvp\n"
        f'    yosys -p "read_verilog {stubs}rtl/*.v; hierarchy -check -top {emission.top}"\n'
        "\nRun them in this folder: `iverilog` looks for the files of `filelist.f` where it runs."
        " In Vivado: `read_verilog [glob rtl/*.v]` and"
        f" `synth_design -top {emission.top} -part PART`. Nothing is left to `read_mem`: memories"
        f" start at 0, those above {CLEARED_WORDS:,} words if the device clears"
        f" them.{_MEMORIES[config.pe.sram]}\n"
        f"{macros}\n"
        "## Ports\n\n"
        "Streams (`payload`, `valid`, `ready`) and the channels of AXI move a payload at the rising"
        " edge at which `valid` and `ready` are 1; `valid` does not wait for `ready`, and an offer"
        " stays until it is taken. Directions are the module's; fields are below their port. "
        + ("Reset" if second else "Hold the reset for two cycles, and reset")
        + " with the module"
        " all that is connected to it: the memory, whose contents may stay, and the bus to it."
        f" `{emission.top}_ports.vh` has the bits of ports and fields as constants, to be included"
        f" in a module.{launch}\n\n"
        f"{port_table(design, clocks)}\n{shown}"
        f"| module | generated from | lines |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _example_manual(config: Configuration) -> str:
    """How to run :data:`_EXAMPLE`."""
    built_in = config.pe.program is not None
    assemble = "" if built_in else "    vip asm FILE.s -o program.mem\n"
    return (
        f"## Example\n\n`{_EXAMPLE}` runs {'the program' if built_in else '`program.mem`'}"
        " on `memory.mem`, a 64-bit word per line in hexadecimal, and writes `memory.out`."
        " `iverilog -P example.PARAMETERS=N` gives it the launch's parameters,"
        " `-P example.WORDS=N` a memory of other than 4096 words, a multiple of 4.\n\n"
        f"{assemble}    python3 -c '{_WORDS}' FILE.bin > memory.mem\n"
        f"    iverilog -c filelist.f -s example -o example.vvp {_EXAMPLE}"
        " && vvp example.vvp\n\n"
    )


def check_directory(target: Path) -> None:
    """Refuse an output directory unless it is missing, empty or previously generated.

    Raises:
        GenerateError: the directory is refused.
    """
    if not target.exists():
        return
    if not target.is_dir():
        raise GenerateError(f"{target} exists and is not a directory")
    existing = {str(path.relative_to(target)) for path in target.rglob("*") if not path.is_dir()}
    if not existing:
        return
    try:
        manifest = json.loads(read_bytes(target / MANIFEST, _MANIFEST_BYTES))
        written = set(manifest["files"]) if manifest["generator"] == "vip" else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        written = None
    if written is None:
        raise GenerateError(f"{target} is not empty and was not generated by VIP")
    foreign = sorted(existing - written)
    if foreign:
        raise GenerateError(f"{target} holds {foreign[0]}, which VIP did not generate")


def _write(target: Path, files: dict[str, str]) -> None:
    # If it is a link, the target folder is replaced.
    target = Path(os.path.realpath(target))
    target.parent.mkdir(parents=True, exist_ok=True)
    with owned_folder(target.parent, f".{target.name}-") as folder:
        new = folder / "new"
        for name, text in files.items():
            path = new / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, text)
        if target.exists():
            target.rename(folder / "old")
        try:
            new.rename(target)
        except OSError:
            if (folder / "old").exists():
                (folder / "old").rename(target)
            raise


def waiver_file(warnings: dict[str, str] = WAIVERS) -> str:
    """Text of a Verilator control file that waives ``warnings`` (name -> reason), and those of
    older versions."""
    lines = ["`verilator_config"]
    for name, reason in (warnings | OLDER_WAIVERS).items():
        lines += [f"// {reason}", f'lint_off -rule {name} -file "*rtl/*.v"']
    return "\n".join(lines) + "\n"
