"""Bit files of boards: clock, mapping, placing at the board's pins and packing, cached by the
content of their inputs."""

import gzip
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hdl.yosys import run_yosys
from soc.board.boards import FpgaBoard, with_block_rams
from soc.board.design import TOP, constraints
from soc.board.families import CLOCK, NETLIST, PINS, PLL, REPORT, FpgaFamily
from support.cache import content_key
from support.files import read_bytes, write_file
from support.scratch import owned_folder, scratch_folder
from synth.errors import SynthesisError

from .cell_models import fpga_models
from .nextpnr import Placement, clock_of, placement_of, run_packaged
from .targets import find_target
from .yosys import Run, cache_folder, run

#: Part of every key: changes with the format of the cached result.
_FORMAT = "1"
_PLACEMENT, _VERILOG = "placement.json", "netlist.v"
_MOST_BIT_BYTES = 1 << 25


def pll_verilog(board: FpgaBoard, mhz: float, sdram: int = 0) -> str:
    """Verilog of module :data:`soc.board.design.PLL`, which makes ``mhz`` of the board's clock, and
    ``sdram`` times that, shifted and not, for an SDRAM, unless that is 0.

    Raises:
        SynthesisError: the PLL can't make it.
        MissingExtraError: the family's tools are not installed.
    """
    family = board.family
    command = family.clock(board.part, board.clock_mhz, mhz, sdram)
    file = cache_folder() / f"{_key(family, 'pll', *command[1])}.pll.v"
    if not file.is_file():
        with scratch_folder("pll") as folder:
            what = f"{mhz:g} MHz from {board.clock_mhz:g}"
            run_packaged(command, folder, CLOCK, what=what)
            text = family.clock_module((folder / CLOCK).read_text(encoding="utf-8"))
        made = _rate(text)
        if abs(made - mhz) > mhz / 200:
            raise SynthesisError(f"the PLL can't make {what}; nearest is {made:g} MHz")
        file.parent.mkdir(parents=True, exist_ok=True)
        write_file(file, text)
    return file.read_text(encoding="utf-8")


def _rate(pll: str) -> float:
    """The rate in MHz that a PLL makes, by its Verilog."""
    made = re.search(r"output clkout0, // ([\d.]+) MHz", pll)
    return float(made[1]) if made else 0.0


def map_board(
    verilog: Mapping[str, str], board: FpgaBoard, mhz: float, sdram: int = 0
) -> tuple[Path, Mapping[str, float]]:
    """Map the design of a board (:func:`soc.board.design.board_verilog`): gzipped Yosys JSON, and
    measure of the family's target -> number.

    Parameters:
        mhz: of the design's clock. sdram: see :func:`pll_verilog`.

    Raises:
        SynthesisError: a tool fails, or the design does not fit the device.
        MissingExtraError: a tool is not installed.
    """
    label = f"the design on {board.name}"
    family, target = board.family, find_target(board.family.name)
    work = Run(
        top=TOP,
        sources={**verilog, PLL: pll_verilog(board, mhz, sdram)},
        cells=family.cells,
        commands=(*target.recipes[0], *family.pads),
        netlist="json",
    )
    mapped = run(work, what=f"synthesis of {label}")
    counted = {
        name: number for name, number in mapped.cells.items() if name not in family.uncounted
    }
    used = target.count(type(mapped)(counted, 0.0), frozenset())
    if used["brams"] > board.block_rams:
        raise SynthesisError(
            f"{label}: it does not fit: it needs {used['brams']:g} block RAMs of "
            f"{board.block_rams} ({used['brams'] - board.block_rams:g} too many)"
            f"{with_block_rams(used['brams'])}"
        )
    assert mapped.netlist is not None
    return mapped.netlist, used


def netlist_verilog(netlist: Path, family: FpgaFamily) -> Mapping[str, str]:
    """Verilog of a mapped board, and of its cells, for simulation at the pins: module or file ->
    text. The PLL passes the board's clock.

    Parameters:
        netlist: of :func:`map_board`. family: of the board.

    Raises:
        SynthesisError: a cell has no model.
        YosysError: the netlist can't be read.
    """
    content = json.loads(gzip.decompress(netlist.read_bytes()))
    module = content["modules"][TOP]
    # Records of the origin of flattened cells.
    types = {cell["type"] for cell in module["cells"].values()} - {"$scopeinfo"}
    models = fpga_models(family.name, types)
    with scratch_folder("netlist") as folder:
        write_file(folder / NETLIST, json.dumps({**content, "modules": {TOP: module}}))
        commands = [f"read_json {NETLIST}", "delete t:$scopeinfo", "opt_clean -purge"]
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
        SynthesisError: a tool refuses the design.
        MissingExtraError: it is not installed.
    """
    family, bits = board.family, f"board{board.family.ending}"
    pins = constraints(board, sdram=bool(sdram))
    options = (*family.placer(board.part), f"{mhz:g}", str(seed))
    target = cache_folder() / f"{_key(family, 'bit', netlist.parent.name, pins, *options)}.board"
    if not target.is_dir():
        what = f"{board.name}, seed {seed}"
        target.parent.mkdir(parents=True, exist_ok=True)
        with owned_folder(target.parent, ".placing-") as own:
            folder = own / "run"
            folder.mkdir()
            write_file(folder / NETLIST, gzip.decompress(netlist.read_bytes()))
            write_file(folder / PINS, pins)
            made = _rate(pll_verilog(board, mhz, sdram))
            program, placing = family.place(board.part)
            placing = [*placing, "--report", REPORT, "--seed", str(seed), "--quiet"]
            placing += ["--freq", f"{made:g}", "--timing-allow-fail"]
            run_packaged((program, placing), folder, REPORT, what=what)
            run_packaged(family.pack(board.part, bits), folder, bits, what=what)
            report = json.loads((folder / REPORT).read_text(encoding="utf-8"))
            placement = _of_chip(placement_of(report, seed, _clocks(report), what), report, mhz)
            write_file(folder / _PLACEMENT, json.dumps(placement.to_json(), indent=1) + "\n")
            for name in (NETLIST, REPORT):
                (folder / name).unlink()
            shutil.rmtree(target, ignore_errors=True)
            folder.rename(target)
    placement = Placement.from_json(json.loads((target / _PLACEMENT).read_text(encoding="utf-8")))
    return read_bytes(target / bits, _MOST_BIT_BYTES), placement.fmax_mhz


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


def _key(family: FpgaFamily, *parts: str) -> str:
    family.need()
    return content_key(_FORMAT, *map(version, family.packages), *parts)
