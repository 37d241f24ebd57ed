"""A processing engine or one unit of it, placed and routed on an FPGA: the parts of the work, of
which :mod:`vip.synthesis.placement` does several at a time."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import median

from hdl.emission import Emission
from pe.config import PeConfig
from soc.generate.generate import verilog
from synth.errors import SynthesisError

from .area import TOTAL
from .devices import Device, find_device
from .in_shell import map_in_shell
from .nextpnr import Placement, keep_placement, kept_placement, place_netlist
from .shell import UNIT
from .units import OPENED, OTHER

__all__ = ["MappedDesign", "PlaceReport", "map_design", "unit_of_cell"]

#: Target clock in MHz: above the expected one, so that the tools do not stop early.
AIM_MHZ = 100.0


@dataclass(frozen=True)
class PlaceReport:
    """Results of placing a design with several seeds.

    Attributes:
        unit: the placed unit; ``total`` is a whole engine.
        device: the FPGA.
        config: parameters of the engine.
        used: measure -> number of it after mapping, without the shell's flip-flops.
        placements: one a seed, in their order.
        path: of the placement with the median clock: units and the ns spent in each, in order.
    """

    unit: str
    device: Device
    config: PeConfig
    used: dict[str, float]
    placements: tuple[Placement, ...]
    path: tuple[tuple[str, float], ...]

    @property
    def fmax_mhz(self) -> float:
        """Median of the seeds' clocks in MHz."""
        return round(median(placement.fmax_mhz for placement in self.placements), 2)

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
    """A design mapped to ECP5, in the shell of :mod:`synth.physical.shell`; it fits the device.

    Attributes:
        unit, device, config, used: as of :class:`PlaceReport`.
        what: names the design in messages.
        netlist: of :func:`synth.physical.yosys.run`.
        emission: of the engine. module: that of ``unit``.
    """

    unit: str
    device: Device
    config: PeConfig
    used: dict[str, float]
    what: str
    netlist: Path
    emission: Emission
    module: str

    def place(self, seed: int) -> Placement:
        """Place and route, or take the cached result; takes minutes for an engine.

        Raises:
            SynthesisError: nextpnr refuses the design.
            MissingExtraError: it is not installed.
        """
        label = f"{self.what}, seed {seed}"
        return place_netlist(self.netlist, self.device, seed, AIM_MHZ, what=label)

    def kept(self, seed: int) -> Placement | None:
        """The cached result of :meth:`place`; errors as there."""
        return kept_placement(self.netlist, self.device, seed, AIM_MHZ)

    def keep(self, placement: Placement) -> None:
        """Cache a result of :meth:`place`, which may be another machine's."""
        keep_placement(placement, self.netlist, self.device, AIM_MHZ)

    def report(self, placements: Sequence[Placement]) -> PlaceReport:
        """The report of at least one placement, in the order of their seeds."""
        path = _path(self.emission, self.module, placements)
        return PlaceReport(self.unit, self.device, self.config, self.used, tuple(placements), path)


def map_design(config: PeConfig, device: str, unit: str | None = None) -> MappedDesign:
    """Map an engine or one unit of it to ECP5, cached by content as in
    :func:`synth.physical.area.synthesise`.

    Parameters:
        config: of the engine; memories are always those for FPGAs.
        device: see :func:`synth.physical.devices.find_device`.
        unit: module alone; None: all.

    Raises:
        SynthesisError: an unknown device or unit, a design that does not fit (the message gives the
            shortage), or a tool that is missing or fails.
    """
    chosen = find_device(device)
    emission = verilog(replace(config, sram="fpga"))
    module = emission.top if unit is None else unit
    if module not in emission.modules:
        names = ", ".join(emission.modules)
        raise SynthesisError(f"unknown unit {unit!r}; there are: {names}")
    mapped = map_in_shell(emission, module, chosen)
    return MappedDesign(
        unit=TOTAL if unit is None else unit,
        device=chosen,
        config=config,
        used=mapped.used,
        what=mapped.what,
        netlist=mapped.netlist,
        emission=emission,
        module=module,
    )


def _path(
    emission: Emission, top: str, placements: Sequence[Placement]
) -> tuple[tuple[str, float], ...]:
    middle = sorted(placements, key=lambda p: p.fmax_mhz)[(len(placements) - 1) // 2]

    def named() -> Iterator[tuple[str, float]]:
        unit = OTHER
        for step in middle.path:
            # Cells that only carry a chain on have no name of their own.
            unit = unit_of_cell(emission, top, step.cell) or unit
            yield unit, step.ns

    return tuple(
        (unit, round(sum(ns for _, ns in steps), 2))
        for unit, steps in groupby(named(), key=lambda step: step[0])
    )


def unit_of_cell(emission: Emission, top: str, cell: str) -> str | None:
    """Unit of a cell in the flattened netlist of the shell, by its name; None without one.

    Yosys names a cell after a register or net beside it, so at the border of two units it may be
    that of the other one.
    """
    first, *names = cell.split(".")
    if first != UNIT:
        return None
    module = top
    for name in names[:-1]:
        inner = re.search(
            rf"^  (\w+) \\?{re.escape(name)} \(", emission.modules.get(module, ""), re.MULTILINE
        )
        if inner is None:
            break
        module = inner[1]
        if top != emission.top or module not in OPENED:
            return module
    return OTHER
