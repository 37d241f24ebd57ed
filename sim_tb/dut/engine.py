"""The simulator of one processing engine: its Verilog, its surroundings, and both cached."""

import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from hdl.counter_bank import COUNTER_BITS
from hdl.sram_macro import SramGeometry, macro_model
from isa.support.cache import build_folder
from isa.support.files import write_atomically
from pe.config import PeConfig
from pe.interface import PC_BITS, status_layout
from sim_tb.runner.build import BuildError, Design, build, check_tools
from sim_tb.runner.cache import fingerprint
from sim_tb.runner.readout import CONTROL, WATCH_CONTROL
from soc.generate.designs import Configuration
from soc.generate.generate import configuration_json, verilog

__all__ = [
    "TOP",
    "TRACE_FORMATS",
    "build_engine",
    "check_trace",
    "configuration_verilog",
    "engine_design",
    "source_digest",
]

#: Top module, and so the executable's name.
TOP = "vip_pe_top"
#: Formats of waveform files, by the files' suffix.
TRACE_FORMATS = ("vcd", "fst")

_SUPPORT = (
    "memory_model.sv",
    "memory_model.h",
    "memory_model.cpp",
    "pe_host.h",
    "pe_host.cpp",
    "pe_host.sv",
    "pe_top.sv",
)
#: Tells how much of an engine is in use at once.
_WATCH = "pe_watch.sv"
#: Rooms whose source decides what the Verilog is.
_SOURCES = ("isa", "hdl", "pe", "memory", "noc", "soc")
_SOURCE_SUFFIXES = (".py", ".cpp", ".h", ".sv")


def engine_design(
    config: PeConfig, pe: str, trace: str = "", *, ports_only: bool = False, watched: bool = False
) -> Design:
    """What the simulator of an engine is built from.

    Parameters:
        config: of the engine.
        pe: SystemVerilog of its top module ``pe`` and all below.
        trace: "" or one of :data:`TRACE_FORMATS`.
        ports_only: waveforms hold the engine's ports alone, which lie in the scope :data:`TOP`.
        watched: results tell how much of it was in use at once; it must have loads or stores of the
            scratchpad.
    """
    return Design(
        top=TOP,
        verilog={"pe.sv": pe},
        support=(*_SUPPORT, _WATCH) if watched else _SUPPORT,
        parameters={
            "ADDRESS_BITS": config.address_bits,
            "TAG_BITS": config.tag_bits,
            "PC_BITS": config.pc_bits,
            "CAUSE_BITS": status_layout()["cause"].width,
            "STATUS_PC_BITS": PC_BITS,
            "COUNTER_BITS": COUNTER_BITS,
        },
        control=WATCH_CONTROL if watched else CONTROL,
        trace=trace,
        trace_levels=int(ports_only),
    )


def build_engine(
    config: PeConfig, trace: str = "", *, ports_only: bool = False, watched: bool = False
) -> Path:
    """The folder of the simulator of an engine; see :func:`sim_tb.runner.build.build`.

    Parameters:
        config: of the engine.
        trace: "" or the format of waveform files that it can write, of :data:`TRACE_FORMATS`.
        ports_only, watched: see :func:`engine_design`.

    Raises:
        BuildError: as :func:`sim_tb.runner.build.build`, or no such format.
    """
    check_trace(trace)
    pe = configuration_verilog(config)
    return build(engine_design(config, pe, trace, ports_only=ports_only, watched=watched))


def check_trace(trace: str) -> None:
    """Refuse a format of waveform files that is neither "" nor of :data:`TRACE_FORMATS`.

    Raises:
        BuildError: as said.
    """
    if trace and trace not in TRACE_FORMATS:
        raise BuildError(f"waveforms are written as {' or '.join(TRACE_FORMATS)}, not {trace!r}")


def configuration_verilog(config: Configuration) -> str:
    """All Verilog of ``config``, kept as long as the source that makes it stays the same."""
    what = json.dumps(configuration_json(config), sort_keys=True)
    key = fingerprint(version("amaranth"), what, source_digest(_SOURCES))
    folder = build_folder() / "verilog"
    kept = folder / f"{key}.v"
    if not kept.is_file():
        # Nothing was simulated with it, so a simulator must be built; better refused before.
        check_tools()
        emission = verilog(config)
        macros = [macro_model(SramGeometry.parse(name)) for name in emission.black_boxes]
        text = "".join([*macros, *emission.modules.values()])
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, text.encode())
    return kept.read_text()


def source_digest(rooms: Sequence[str]) -> str:
    """A short name that differs where any source file in the folders ``rooms`` does."""
    root = Path(__file__).parents[2]
    parts: list[bytes | str] = []
    for room in rooms:
        for path in sorted((root / room).rglob("*")):
            if path.suffix in _SOURCE_SUFFIXES:
                parts += [path.relative_to(root).as_posix(), path.read_bytes()]
    return fingerprint(*parts)
