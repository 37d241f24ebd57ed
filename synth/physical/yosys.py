"""Synthesis runs in Yosys, cached by the content of the inputs."""

import gzip
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from hdl.yosys import YosysError, run_yosys, yosys_version
from support.cache import build_folder, content_key
from support.files import write_file
from support.scratch import owned_folder, plain_folder
from synth.errors import SynthesisError

#: Part of every key: changes with the format of the cached result.
_FORMAT = "1"
_LOG = "yosys.log"
_RESULT = "cells.json"
_SOURCE = "design.v"
_STATISTICS = "statistics.json"
_NETLIST = "netlist"
#: Format of the netlist -> part of the key.
_KEYS = {"": (), "json": ("netlist",), "v": ("verilog",)}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One synthesis.

    Attributes:
        top: name of the top module.
        sources: Verilog, module name -> text. Comments do not count as content.
        boxes: names of modules that remain black boxes.
        cells: Yosys's names of files with cells of the device that ``sources`` instantiate.
        commands: Yosys commands after reading; ``{top}`` is replaced.
        files: name -> text of files in the folder in which the commands run.
        liberty: name of the file in ``files`` with the cells' areas; "": only count cells.
        netlist: also return the mapped netlist, in this format.
    """

    top: str
    sources: Mapping[str, str]
    boxes: tuple[str, ...] = ()
    cells: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    liberty: str = ""
    netlist: Literal["", "json", "v"] = ""

    @property
    def key(self) -> str:
        """Hash of everything that determines the result."""
        sources = {
            name: re.sub(r"^//.*\n", "", text, flags=re.MULTILINE)
            for name, text in self.sources.items()
        }
        content = (self.top, sources, self.boxes, self.commands, dict(self.files), self.liberty)
        further = (*_KEYS[self.netlist], *self.cells)
        return content_key(_FORMAT, yosys_version(), *content, *further)


@dataclass(frozen=True)
class CellCount:
    """Result of a run.

    It has the number of cells by type (including black boxes), their area from the Liberty file (0
    without one; excluding black boxes), and the gzipped netlist, if requested: Yosys JSON, or
    Verilog of the module alone with a wire per net.
    """

    cells: Mapping[str, int]
    area: float
    netlist: Path | None = None


def cache_folder() -> Path:
    """Folder of cached results, in :func:`support.cache.build_folder`.

    Each result has a folder, together with Yosys's messages.
    """
    return build_folder() / "synthesis"


def run(work: Run, *, what: str) -> CellCount:
    """Do ``work``, or return its cached result.

    An interrupted run does not leave files that a later one could mistake for a result.

    Parameters:
        work: the synthesis.
        what: names it in error messages, e.g. ``arc for xc7``.

    Raises:
        SynthesisError: Yosys refused the design.
        OSError: the folder of results can't be written.
    """
    target = cache_folder() / work.key
    cached = _read(target, work.netlist)
    if cached is not None:
        return cached
    target.parent.mkdir(parents=True, exist_ok=True)
    with (
        owned_folder(target.parent, ".running-") as own,
        # In a scratch folder, since ABC can't find a library if the path has blanks or quotes.
        plain_folder("synthesis") as scratch,
    ):
        folder = own / "run"
        folder.mkdir()
        _execute(work, folder, scratch, what)
        result = _read(folder, work.netlist)
        if result is None:
            raise SynthesisError(f"{what}: Yosys wrote no counts")
        # A folder that can't be read as a result is damaged.
        shutil.rmtree(target, ignore_errors=True)
        try:
            folder.rename(target)
        except OSError:
            if _read(target, work.netlist) is None:
                raise
    return replace(result, netlist=target / _packed(work.netlist) if work.netlist else None)


def _packed(netlist: str) -> str:
    return f"{_NETLIST}.{netlist}.gz"


def _execute(work: Run, folder: Path, scratch: Path, label: str) -> None:
    """Run Yosys in ``scratch`` and put result and messages into ``folder``."""
    for name, text in work.files.items():
        write_file(scratch / name, text)
    write_file(scratch / _SOURCE, "\n".join(work.sources.values()))
    commands = [f"read_verilog {_SOURCE}"]
    commands += [f"read_verilog -lib -specify {cells}" for cells in work.cells]
    commands += [f"blackbox {box}" for box in work.boxes]
    commands += [f"hierarchy -check -top {work.top}"]
    commands += [command.format(top=work.top) for command in work.commands]
    liberty = f"-liberty {work.liberty}" if work.liberty else ""
    commands += [f"tee -q -o {_STATISTICS} stat -json {liberty}"]
    if work.netlist == "json":
        commands += [f"write_json {_NETLIST}"]
    elif work.netlist == "v":
        # Names that follow from the names of cells that they connect are long.
        commands += ["opt_clean -purge", "splitnets", f"rename -hide {work.top}/*"]
        commands += [f"select {work.top}", f"write_verilog -noattr -noexpr -selected {_NETLIST}"]
    try:
        run_yosys(commands, purpose=label, folder=scratch, log=folder / _LOG)
    except YosysError as error:
        raise SynthesisError(str(error)) from error
    report = json.loads((scratch / _STATISTICS).read_text(encoding="utf-8"))
    # The statistics omit an empty module without ports.
    module = report["modules"].get(f"\\{work.top}", {})
    cells = {
        name: number
        for name, number in sorted(module.get("num_cells_by_type", {}).items())
        # Records of the origin of flattened cells.
        if name != "$scopeinfo"
    }
    result = {"cells": cells, "area": float(module.get("area", 0.0))}
    if work.netlist:
        netlist = (scratch / _NETLIST).read_bytes()
        # Without a timestamp, equal netlists are equal files.
        write_file(folder / _packed(work.netlist), gzip.compress(netlist, compresslevel=5, mtime=0))
    write_file(folder / _RESULT, json.dumps(result, indent=1) + "\n")


def _read(folder: Path, netlist: str) -> CellCount | None:
    try:
        result = json.loads((folder / _RESULT).read_text(encoding="utf-8"))
        file = folder / _packed(netlist) if netlist else None
        if file is not None and not file.is_file():
            return None
        return CellCount(dict(result["cells"]), float(result["area"]), file)
    except (OSError, ValueError, KeyError, TypeError):
        return None
