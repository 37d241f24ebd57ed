"""What a run costs: bytes of DRAM, and energy of engines and memories at 28 nm and 0.9 V.

A run's counters say what it did (:func:`work`), and :func:`energy_uj` multiplies:

========================================  ==================================================
engine, vector unit works                 pJ of such a cycle of a convolution's layer, in 16
                                          bits or, on engines that multiply bytes, in bytes
engine waits for a register from memory   pJ of a cycle of a program that does nothing else
engine runs otherwise                     pJ of a cycle of a program that loads and stores
engine has halted, or is not launched     pJ of a cycle after ``halt``
DRAM                                      :data:`DRAM_PJ_PER_BIT` of each column read or
                                          written
line buffer, preload memory, network      words read and written, at the energy of their
                                          memories in :mod:`synth.sram`; of the network those
                                          of the buffers at the ends of its links
========================================  ==================================================

``vip bench power --record`` records the cycles of an engine, measured on its mapped netlist. Left
out: controllers and crossbars, the line buffer's tags, the network's wires, and the host.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from hdl.ports import COLUMN_BYTES, COLUMN_WORDS, WORD_BITS
from hdl.sram_macro import SramGeometry
from isa.run import RunResult
from noc.config import NetworkConfig
from noc.ports import flit
from pe.config import PAIRS, PeConfig
from soc.generate.designs import Configuration
from soc.generate.presets import preset
from soc.tile.config import VaultBackEnd
from support.errors import VipError
from synth.power.power import THESIS_NM, THESIS_VOLTS
from synth.sram import access_fj

#: The thesis's energy of a Hybrid Memory Cube.
DRAM_PJ_PER_BIT = 10

#: Preset of the engine whose cycles are recorded, and other presets of engines that they hold for:
#: without products of bytes there are 0.07 kGE less.
MEASURED_ENGINE = "pe-int8"
_ALIKE = (MEASURED_ENGINE, "pe")
#: What an engine does in a cycle; names of figures of the record, and of a run's work.
STATES = ("products", "products_of_bytes", "moving", "waiting", "halted")

_WORD_BYTES = WORD_BITS // 8
_RECORD = Path(__file__).parent.parent / "bench" / "results" / "power.json"


def work(config: Configuration, result: RunResult, *, loading: int = 0) -> dict[str, int]:
    """What a launch did, by name: ``read_bytes`` and ``written_bytes`` of DRAM, cycles of all
    engines in each of :data:`STATES`, and words of the other memories.

    Parameters:
        config: that it ran on.
        loading: cycles before the launch, in which the host loads the program, if ``result`` does
            not have them.
    """
    columns = {name: sum(vault[name] for vault in result.vaults) for name in ("READS", "WRITES")}
    engines = {
        name: sum(end.counters[name] for end in result.engines)
        for name in ("CYCLES", "VECTOR_BUSY", "STALL_REGISTER", "BYTES_LOADED", "BYTES_STORED")
    }
    cycles = max(result.elapsed_cycles, result.host_cycles) + (result.loading or loading)
    running, busy, waiting = (engines[n] for n in ("CYCLES", "VECTOR_BUSY", "STALL_REGISTER"))
    # A cycle may count as both.
    waiting = min(waiting, running - busy)
    products = "products_of_bytes" if PAIRS in config.pe.instructions else "products"
    done = {
        # An engine alone has a memory that counts no columns.
        "read_bytes": COLUMN_BYTES * columns["READS"] if result.vaults else engines["BYTES_LOADED"],
        "written_bytes": (
            COLUMN_BYTES * columns["WRITES"] if result.vaults else engines["BYTES_STORED"]
        ),
        products: busy,
        "waiting": waiting,
        "moving": running - busy - waiting,
        "halted": cycles * config.engines - running,
    }
    if config.lines:
        lines = {
            name: sum(vault[name] for vault in result.vaults)
            for name in ("LINE_HITS", "LINE_MERGED", "LINE_FILLS")
        }
        done["line_buffer_words"] = COLUMN_WORDS * sum(lines.values())
    back_end = _back_end(config)
    if back_end is not None and back_end.preload_bytes:
        words = (engines["BYTES_LOADED"] + engines["BYTES_STORED"]) // _WORD_BYTES
        # The others are those of the DRAM's columns.
        done["preload_words"] = max(0, words - COLUMN_WORDS * sum(columns.values()))
    if result.network:
        done["flits"] = result.flits
    return done


def energy_uj(config: Configuration, done: Mapping[str, float]) -> dict[str, float]:
    """Microjoules of :func:`work` by part of the machine: ``engines``, ``DRAM``, and ``line
    buffer``, ``preload`` and ``network`` of those that have them.

    Raises:
        VipError: there are no power data for the engines of ``config``, or its memory is unknown.
    """
    back_end = _back_end(config)
    if back_end is None:
        raise VipError("no energy: what the memory of an engine alone takes is not known")
    cycles = _cycle_pj(config.pe)
    pj = {
        "engines": sum(cycles[name] * done.get(name, 0) for name in STATES),
        "DRAM": 8 * DRAM_PJ_PER_BIT * (done["read_bytes"] + done["written_bytes"]),
    }
    if config.lines:
        words = SramGeometry(COLUMN_WORDS * config.lines, WORD_BITS, 1, 1)
        pj["line buffer"] = _access_pj(words) * done["line_buffer_words"]
    if back_end.preload_bytes:
        byte = SramGeometry(back_end.preload_bytes // _WORD_BYTES, 8, 1, 1)
        pj["preload"] = _WORD_BYTES * _access_pj(byte) * done["preload_words"]
    if "flits" in done:
        pj["network"] = 2 * _access_pj(_link_buffer(config)) * done["flits"]
    return {part: value / 1e6 for part, value in pj.items()}


def _back_end(config: Any) -> VaultBackEnd | None:
    """Of each vault; None: of an engine alone."""
    back_end: VaultBackEnd | None = getattr(getattr(config, "tile", config), "vault", None)
    return back_end


def _link_buffer(config: Any) -> SramGeometry:
    network: NetworkConfig = config.network
    return SramGeometry(network.channels * network.buffer_flits, flit().size, 1, 1)


def costs_of(
    config: Configuration, done: Mapping[str, Mapping[str, int]]
) -> tuple[dict[str, dict[str, float]], str]:
    """``read_bytes`` and ``written_bytes`` of each of ``done`` (of :func:`work`), and microjoules
    by part, such as ``engines_uj`` and ``dram_uj``; and why there are none of these, or ""."""
    costs: dict[str, dict[str, float]] = {
        name: {kind: one[kind] for kind in ("read_bytes", "written_bytes")}
        for name, one in done.items()
    }
    try:
        for name, one in done.items():
            for part, uj in energy_uj(config, one).items():
                costs[name][f"{part.replace(' ', '_').lower()}_uj"] = uj
    except VipError as error:
        return costs, str(error)
    return costs, ""


def _access_pj(geometry: SramGeometry) -> float:
    return access_fj(geometry, THESIS_NM, THESIS_VOLTS) / 1000


@cache
def _cycle_pj(engine: PeConfig) -> Mapping[str, float]:
    """pJ of a cycle of an engine in each of :data:`STATES`.

    Raises:
        VipError: other engines than ``engine`` were measured, or there is no record.
    """
    alike = [preset(name) for name in _ALIKE]
    plain = replace(engine, address_bits=alike[0].address_bits)
    if plain not in alike:
        raise VipError(
            f"no energy: power is recorded for engines of the presets {' and '.join(_ALIKE)} "
            "alone; vip power measures another engine"
        )
    try:
        results = json.loads(_RECORD.read_text(encoding="utf-8"))["results"]
        return {state: results[f"{state}_pj_per_cycle"]["value"] for state in STATES}
    except (OSError, ValueError, KeyError, TypeError):
        raise VipError(
            "no energy: bench/results/power.json is missing; vip bench power --record writes it"
        ) from None
