"""Placing and routing an engine, one of its units, or the memory of a vault on an FPGA, in steps of
which :mod:`vip.synthesis.area` does several at a time."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import median

from hdl.emission import Emission
from pe.config import PeConfig
from soc.generate.generate import verilog
from support.errors import unknown
from synth.errors import SynthesisError
from synth.netlist import CLOCK

from .area import TOTAL
from .devices import Device, find_placed
from .nextpnr import Placement, Placer, need_nextpnr
from .shell import SHELL, UNIT, ports_of, shell_ffs, shell_verilog
from .targets import ecp5_commands, find_target
from .units import OPENED, OTHER, closure
from .yosys import Run, run

#: Target clock in MHz: above the expected one, so that the tools do not stop early.
AIM_MHZ = 100.0
#: Period of an engine as mapping estimates it, in ps. Mapped for the shortest paths it takes 870
#: lookup tables more.
_PERIOD_PS = 11_000


@dataclass(frozen=True)
class PlaceReport:
    """Results of placing a design with several seeds.

    Attributes:
        unit: the placed unit; ``total`` is the whole design, an engine or the memory of a vault.
        device: the FPGA.
        used: measure -> amount after mapping, without the shell's flip-flops.
        placements: one per seed, in order.
        path: in the slowest clock domain of the placement with the median clock: units and the ns
            spent in each, in order.
    """

    unit: str
    device: Device
    used: dict[str, float]
    placements: tuple[Placement, ...]
    path: tuple[tuple[str, float], ...]

    @property
    def fmax_mhz(self) -> float:
        """Median clock of the seeds in MHz."""
        return round(median(placement.fmax_mhz for placement in self.placements), 2)

    def rate_mhz(self, clock: str) -> float:
        """Median rate of ``clock`` of the seeds in MHz."""
        return round(median(placement.rates[clock] for placement in self.placements), 2)

    def to_json(self) -> dict[str, object]:
        """The report as plain JSON data."""
        return {
            "device": self.device.name,
            "part": self.device.part,
            "unit": self.unit,
            **self.used,
            "utilisation": {
                name: round(self.used[name] / number, 4)
                for name, number in self.device.capacity.items()
            },
            "copies_that_fit": self.device.copies(self.used),
            "fmax_mhz": self.fmax_mhz,
            "seeds": {str(p.seed): round(p.fmax_mhz, 2) for p in self.placements},
            "critical_path": [{"unit": unit, "ns": ns} for unit, ns in self.path],
        }


@dataclass(frozen=True, kw_only=True)
class MappedDesign:
    """A module mapped to ECP5, in the shell of :mod:`synth.physical.shell`; it fits the device.

    Attributes:
        emission: with the module. module: its name.
        used: measure -> amount, without the shell's flip-flops.
        placer: of module and shell on the FPGA.
    """

    emission: Emission
    module: str
    used: dict[str, float]
    placer: Placer

    def report(self, placements: Sequence[Placement]) -> PlaceReport:
        """The report of at least one placement, in the order of their seeds."""
        unit = TOTAL if self.module == self.emission.top else self.module
        path = self._path(placements)
        return PlaceReport(unit, self.placer.device, self.used, tuple(placements), path)

    def _path(self, placements: Sequence[Placement]) -> tuple[tuple[str, float], ...]:
        middle = sorted(placements, key=lambda p: p.fmax_mhz)[(len(placements) - 1) // 2]

        def named() -> Iterator[tuple[str, float]]:
            unit = OTHER
            for cell, ns in middle.path:
                # Cells that only continue a chain have no name.
                unit = self.unit_of_cell(cell) or unit
                yield unit, ns

        return tuple(
            (unit, round(sum(ns for _, ns in steps), 2))
            for unit, steps in groupby(named(), key=lambda step: step[0])
        )

    def unit_of_cell(self, cell: str) -> str | None:
        """Unit of a cell in the flattened netlist of the shell, by its name; None if unknown.

        Yosys names a cell after an adjacent register or net, so at the boundary between two units
        this may be the other one.
        """
        first, *names = cell.split(".")
        if first != UNIT:
            return None
        module, emission = self.module, self.emission
        for name in names[:-1]:
            inner = re.search(
                rf"^  (\w+) \\?{re.escape(name)} \(", emission.modules.get(module, ""), re.MULTILINE
            )
            if inner is None:
                break
            module = inner[1]
            if self.module != emission.top or module not in OPENED:
                return module
        return OTHER


def map_in_shell(
    emission: Emission,
    module: str,
    device: Device,
    aims: Mapping[str, float],
    of_memory: Callable[[str], bool] = lambda _: False,
    period_ps: int = 0,
) -> MappedDesign:
    """Map a module of ``emission`` to ECP5, cached by content.

    Parameters:
        device: that it must fit.
        aims: clock -> target rate in MHz for placements.
        of_memory: whether the port of a name belongs to the memory's clock.
        period_ps: see :func:`synth.physical.targets.ecp5_commands`.

    Raises:
        SynthesisError: the design does not fit (the message gives the shortage), or a tool fails.
        MissingExtraError: nextpnr or Yosys is not installed.
    """
    need_nextpnr()
    ports = ports_of(module, emission.modules[module])
    memory: Collection[str] = {port for side in ports for port in side if of_memory(port)}
    sources = {name: emission.modules[name] for name in closure(emission, module)}
    work = Run(
        top=SHELL,
        sources={**sources, SHELL: shell_verilog(module, ports, memory)},
        commands=ecp5_commands(period_ps),
        netlist="json",
    )
    label = f"{module} on {device.name}"
    mapped = run(work, what=f"synthesis of {label}")
    counts = find_target("ecp5").count(mapped, frozenset())
    lacking = device.shortage(counts)
    if lacking:
        raise SynthesisError(f"{label}: it does not fit: it needs {lacking}")
    assert mapped.netlist is not None
    used = {measure: _plain(value) for measure, value in counts.items()}
    used["ffs"] -= shell_ffs(ports)
    return MappedDesign(
        emission=emission,
        module=module,
        used=used,
        placer=Placer(mapped.netlist, device, aims, label),
    )


def _plain(value: float) -> float:
    return int(value) if value == int(value) else value


def map_design(config: PeConfig, device: str, unit: str | None = None) -> MappedDesign:
    """Map an engine or one unit of it to ECP5, cached by content as in
    :func:`synth.physical.area.synthesise`.

    Parameters:
        config: of the engine; memories are always those for FPGAs.
        device: see :func:`synth.physical.devices.find_placed`.
        unit: name of the unit to map; None: all.

    Raises:
        SynthesisError: the device or unit is unknown, the design does not fit (the message gives
            the shortage), or a tool fails.
        MissingExtraError: a tool is missing.
    """
    chosen = find_placed(device)
    emission = verilog(replace(config, sram="fpga"))
    module = emission.top if unit is None else unit
    if module not in emission.modules:
        raise SynthesisError(unknown("unit", module, emission.modules))
    return map_in_shell(emission, module, chosen, {CLOCK: AIM_MHZ}, period_ps=_PERIOD_PS)
