"""Bit files of boards: clock, mapping, placing at the board's pins and packing, cached by the
content of their inputs."""

import gzip
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hdl.yosys import run_yosys
from soc.board.boards import FpgaBoard, with_block_rams
from soc.board.design import PLL, TOP, constraints
from soc.board.sdram import SDRAM_PHASES
from support.cache import content_key
from support.files import read_bytes, write_file
from support.scratch import owned_folder, scratch_folder
from synth.errors import SynthesisError

from .cell_models import fpga_models
from .nextpnr import Placement, clock_of, nextpnr_version, placement_of, run_packaged
from .targets import ecp5_commands, find_target
from .yosys import Run, cache_folder, run

#: Part of every key: changes with the format of the cached result.
_FORMAT = "1"
_CELLS = ("+/lattice/cells_sim_ecp5.v", "+/lattice/cells_bb_ecp5.v")
#: Cells of the pins and of the clock, which no measure counts.
_PINS = ("EHXPLLL", "ODDRX1F", "TRELLIS_IO")
_NETLIST, _PINS_FILE, _REPORT, _CONFIG, _BITS = (
    "netlist.json",
    "pins.lpf",
    "report.json",
    "board.config",
    "board.bit",
)
_PLL_FILE, _PLACEMENT, _VERILOG = "pll.v", "placement.json", "netlist.v"
_PACKED_MHZ = 62.0
_MOST_BIT_BYTES = 1 << 25


def pll_verilog(board: FpgaBoard, mhz: float, sdram: int = 0) -> str:
    """Verilog of module :data:`soc.board.design.PLL`, which makes ``mhz`` of the board's clock, and
    ``sdram`` times that, shifted and not, for an SDRAM, unless that is 0.

    Raises:
        SynthesisError: the PLL can't make it.
        MissingExtraError: nextpnr's package is not installed.
    """
    options = ["-i", f"{board.clock_mhz:g}", "-o", f"{mhz:g}", "-f", _PLL_FILE, "--module", PLL]
    if sdram:
        options += ["--clkout1", f"{mhz * sdram:g}", "--phase1", f"{SDRAM_PHASES[sdram]}"]
        options += ["--clkout2", f"{mhz * sdram:g}"]
    key = _key("pll", *options)
    file = cache_folder() / f"{key}.pll.v"
    if not file.is_file():
        with scratch_folder("pll") as folder:
            what = f"{mhz:g} MHz from {board.clock_mhz:g}"
            run_packaged("ecppll", options, folder, _PLL_FILE, what=what)
            text = (folder / _PLL_FILE).read_text(encoding="utf-8")
        made = re.search(r"output clkout0, // ([\d.]+) MHz", text)
        if made is None or abs(float(made[1]) - mhz) > mhz / 200:
            raise SynthesisError(f"the PLL can't make {what}; nearest is {made and made[1]} MHz")
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text)
    return file.read_text(encoding="utf-8")


def map_board(
    verilog: Mapping[str, str], board: FpgaBoard, mhz: float, sdram: int = 0
) -> tuple[Path, Mapping[str, float]]:
    """Map the design of a board (:func:`soc.board.design.board_verilog`): gzipped Yosys JSON, and
    measure of ECP5 -> number.

    Parameters:
        mhz: of the design's clock. sdram: see :func:`pll_verilog`.

    Raises:
        SynthesisError: a tool fails, or the design does not fit the device.
        MissingExtraError: a tool is not installed.
    """
    label = f"the design on {board.name}"
    work = Run(
        top=TOP,
        sources={**verilog, PLL: pll_verilog(board, mhz, sdram)},
        cells=_CELLS,
        commands=ecp5_commands(),
        netlist="json",
    )
    mapped = run(work, what=f"synthesis of {label}")
    counted = {name: number for name, number in mapped.cells.items() if name not in _PINS}
    used = find_target("ecp5").count(type(mapped)(counted, 0.0), frozenset())
    if used["brams"] > board.block_rams:
        raise SynthesisError(
            f"{label}: it does not fit: it needs {used['brams']:g} block RAMs of "
            f"{board.block_rams} ({used['brams'] - board.block_rams:g} too many)"
            f"{with_block_rams(used['brams'])}"
        )
    assert mapped.netlist is not None
    return mapped.netlist, used


def netlist_verilog(netlist: Path) -> Mapping[str, str]:
    """Verilog of a mapped board, and of its cells, for simulation at the pins: module or file ->
    text. The PLL passes the board's clock.

    Parameters:
        netlist: of :func:`map_board`.

    Raises:
        SynthesisError: a cell has no model.
        YosysError: the netlist can't be read.
    """
    content = json.loads(gzip.decompress(netlist.read_bytes()))
    module = content["modules"][TOP]
    # Records of the origin of flattened cells.
    types = {cell["type"] for cell in module["cells"].values()} - {"$scopeinfo"}
    models = fpga_models("ecp5", types)
    with scratch_folder("netlist") as folder:
        write_file(folder / _NETLIST, json.dumps({**content, "modules": {TOP: module}}))
        commands = [f"read_json {_NETLIST}", "delete t:$scopeinfo", "opt_clean -purge"]
        commands += [f"rename -hide {TOP}/*", f"write_verilog -noattr -noexpr {_VERILOG}"]
        run_yosys(commands, purpose="netlist of a board", folder=folder)
        text = (folder / _VERILOG).read_text(encoding="utf-8")
    return {TOP: text, "cells": models}


def bit_file(
    netlist: Path, board: FpgaBoard, mhz: float, sdram: int, seed: int
) -> tuple[bytes, float]:
    """Place, route and pack: the bit file, and the chip's highest clock in MHz; minutes, unless it
    is cached.

    Parameters:
        netlist, board, mhz, sdram: as for :func:`map_board`.

    Raises:
        SynthesisError: nextpnr refuses the design.
        MissingExtraError: it is not installed.
    """
    pins = constraints(board, sdram=bool(sdram))
    key = _key("bit", netlist.parent.name, pins, *board.placer, f"{mhz:g}", str(seed))
    target = cache_folder() / f"{key}.board"
    if not target.is_dir():
        what = f"{board.name}, seed {seed}"
        target.parent.mkdir(parents=True, exist_ok=True)
        with owned_folder(target.parent, ".placing-") as own:
            folder = own / "run"
            folder.mkdir()
            write_file(folder / _NETLIST, gzip.decompress(netlist.read_bytes()))
            write_file(folder / _PINS_FILE, pins)
            options = [*board.placer, "--json", _NETLIST, "--lpf", _PINS_FILE]
            options += ["--textcfg", _CONFIG, "--report", _REPORT, "--seed", str(seed), "--quiet"]
            options += ["--freq", f"{mhz:g}", "--timing-allow-fail"]
            run_packaged("nextpnr_ecp5", options, folder, _REPORT, what=what)
            packing = ["--compress", "--freq", f"{_PACKED_MHZ}", "--input", _CONFIG]
            run_packaged("ecppack", [*packing, "--bit", _BITS], folder, _BITS, what=what)
            report = json.loads((folder / _REPORT).read_text(encoding="utf-8"))
            placement = _of_chip(placement_of(report, seed, _clocks(report), what), report, mhz)
            write_file(folder / _PLACEMENT, json.dumps(placement.to_json(), indent=1) + "\n")
            for name in (_NETLIST, _REPORT):
                (folder / name).unlink()
            shutil.rmtree(target, ignore_errors=True)
            folder.rename(target)
    placement = Placement.from_json(json.loads((target / _PLACEMENT).read_text(encoding="utf-8")))
    return read_bytes(target / _BITS, _MOST_BIT_BYTES), placement.fmax_mhz


def _clocks(report: Mapping[str, Any]) -> dict[str, float]:
    """Clock -> MHz that it has. Yosys names a clock's net after any of the modules that it
    reaches."""
    return {clock_of(net): float(rate["constraint"]) for net, rate in report["fmax"].items()}


def _of_chip(placement: Placement, report: Mapping[str, Any], mhz: float) -> Placement:
    """The placement with rates of the chip's clock: an SDRAM's is a multiple of it, and from one to
    the other a value has a cycle of the faster."""
    clocks = _clocks(report)
    rates = {clock: placement.rates[clock] * mhz / aim for clock, aim in clocks.items()}
    for one in placement.crossings:
        fastest = max(clocks[one.source], clocks[one.target])
        rates[f"{one.source} to {one.target}"] = 1e3 / one.ns * mhz / fastest
    return replace(placement, rates=rates)


def _key(*parts: str) -> str:
    return content_key(_FORMAT, nextpnr_version(), *parts)
