"""Machines that run launches: simulators of Verilog, timing models, instruction set simulators."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from isa.compiled.machine import SimulatedMachine
from isa.run import Machine
from pe.config import PeConfig
from sim_tb.harness.memory import MemoryBehaviour
from sim_tb.timed.chip.chip_model import ChipModel
from sim_tb.timed.engine.pe_model import PeModel
from sim_tb.timed.vault.vault_model import VaultModel
from soc.chip.config import ChipConfig
from soc.generate.designs import Configuration
from soc.tile.config import VaultTileConfig

from .chip import ChipMachine, ChipSession, ChipSimulation, Periods
from .engine import CosimError, PeSimulation
from .vault import VaultSimulation

#: ``iss``: compiled instruction set simulators, without cycles. ``model``: the timing model, faster
#: than the Verilog and with the same cycles. ``rtl``: the Verilog. ``netlist``: an engine's mapped
#: cells.
On = Literal["iss", "model", "rtl", "netlist"]
#: ``golden``: only the golden model, without a machine.
Place = Literal["golden", "iss", "model", "rtl"]
#: Machines that count cycles.
Timed = Literal["model", "rtl"]


class MachineOptions(TypedDict, total=False):
    """Options with which a machine is opened. None or False is the same as no option.

    Attributes:
        trace: waveform file, ``.vcd`` or ``.fst``. ports_only: only of an engine's ports.
        memory: behaviour of a single engine's memory; None: the default.
        netlist: see :class:`sim_tb.cosim.engine.PeSimulation`.
        preload, counters: see :class:`sim_tb.cosim.chip.ChipMachine`; only for chips.
        outer, periods: see :class:`sim_tb.cosim.chip.ChipSimulation`.
        axi_latency: see :class:`sim_tb.cosim.chip.ChipSession`.
    """

    trace: Path | None
    ports_only: bool
    memory: MemoryBehaviour | None
    netlist: str
    preload: bool
    counters: bool
    outer: bool
    periods: Periods | None
    axi_latency: int


_NAMES = {
    "iss": "the instruction set simulator",
    "model": "the timing model",
    "rtl": "the Verilog",
    "netlist": "the netlist",
}
_DESIGNS = {"engine": "one engine", "vault": "a vault", "chip": "a chip"}
#: Option -> why a machine that does not take it refuses it. Machines ignore all other options.
_REFUSALS = {
    "trace": "{value}: {machine} writes no waveforms; the Verilog does (--on rtl)",
    "ports_only": "{machine} of {design} has no waveforms of its ports alone",
    "memory": "{machine} of {design} has its own memory, whose behaviour can't be chosen",
    "outer": "{machine} has no AXI buses for an outer host; the Verilog of a chip has",
    "periods": "{machine} of {design} has no periods of two clocks; the Verilog of a chip has",
}


def open_machine(
    design: Configuration, on: On = "rtl", **options: Unpack[MachineOptions]
) -> Machine:
    """The machine of an engine, a vault or a chip, a context manager.

    Raises:
        CosimError: the machine does not support ``design`` or an option.
        support.native.CompilerError: a model can't be built.
        sim_tb.runner.build.BuildError: the simulator of the Verilog can't be built.
    """
    check_machine(design, on, **options)
    opened, takes = _MACHINES[on, type(design)]
    return opened(design, **{name: value for name, value in options.items() if name in takes})


def check_machine(design: Configuration, on: On, **options: Unpack[MachineOptions]) -> None:
    """Check before the work that :func:`open_machine` takes these options.

    Raises:
        CosimError: the machine does not support ``design`` or an option.
    """
    if on not in _NAMES:
        raise CosimError(f"on is {', '.join(_NAMES)}, not {on!r}")
    if (on, type(design)) not in _MACHINES:
        raise CosimError(
            f"{_NAMES[on]} of {_DESIGNS[design.kind]} can't run, only that of one engine"
        )
    if on != "iss" and design.on_board:
        raise CosimError(
            f"{_NAMES[on]} of {_DESIGNS[design.kind]} with on-chip memory or without an AXI4 data "
            "port can't run here; vip board sim runs one with a serial host port"
        )
    _, takes = _MACHINES[on, type(design)]
    for name, value in options.items():
        if value and name not in takes and name in _REFUSALS:
            names = {"machine": _NAMES[on], "design": _DESIGNS[design.kind]}
            raise CosimError(_REFUSALS[name].format(value=value, **names))


def _simulated(design: Configuration) -> Machine:
    pe = design.pe
    if pe.program is not None:
        raise CosimError("the instruction set simulator has no built-in program")
    if design.engines > 1 and 1 << pe.address_bits < design.memory_bytes:
        raise CosimError("the instruction set simulator has no windows of engines in a memory")
    return SimulatedMachine(pe.limits, vaults=design.vaults, slots=design.slots, config=design)


def _chip(
    kind: Callable[..., ChipSession],
    config: ChipConfig,
    *,
    preload: bool = False,
    counters: bool = True,
    **session: Any,
) -> ChipMachine:
    return ChipMachine(
        config,
        lambda image, progress: kind(config, image, progress=progress, **session),
        preload=preload,
        counters=counters,
    )


_HOST = frozenset({"preload", "counters", "axi_latency"})
#: Machine and type of design -> what opens it, and the options that it takes.
_MACHINES: Mapping[tuple[str, type], tuple[Callable[..., Machine], frozenset[str]]] = {
    ("iss", PeConfig): (_simulated, frozenset()),
    ("iss", VaultTileConfig): (_simulated, frozenset()),
    ("iss", ChipConfig): (_simulated, frozenset()),
    ("model", PeConfig): (PeModel, frozenset({"memory"})),
    ("model", VaultTileConfig): (VaultModel, frozenset()),
    ("model", ChipConfig): (partial(_chip, ChipModel), _HOST),
    ("rtl", PeConfig): (PeSimulation, frozenset({"memory", "trace", "ports_only"})),
    ("netlist", PeConfig): (PeSimulation, frozenset({"memory", "netlist"})),
    ("rtl", VaultTileConfig): (VaultSimulation, frozenset({"trace"})),
    ("rtl", ChipConfig): (partial(_chip, ChipSimulation), _HOST | {"trace", "outer", "periods"}),
}
