"""Contents of the report page of an engine: area, clock, power, scaling, devices."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pe.config import PeConfig
from support.errors import Shown
from synth.physical.area import AreaReport, synthesise
from synth.physical.devices import DEVICES, PLACED
from synth.physical.place import PlaceReport
from synth.power.power import PowerReport
from vip.synthesis.clocks import TimedNetlist, timing
from vip.synthesis.placement import place
from vip.synthesis.power import KERNELS, engine_power, record

#: Parameter of a configuration -> its description, and the values that are tried.
_SWEEPS: Mapping[str, tuple[str, Sequence[int]]] = {
    "arc_entries": ("ARC entries", (5, 10, 20, 40)),
    "scratchpad_bytes": ("scratchpad, bytes", (2048, 4096, 8192, 16384)),
    "registers": ("registers", (16, 32, 64)),
    "load_store_queue": ("load-store queue", (8, 16, 32, 64)),
}


#: Points of an area over a parameter: value, um2 of logic and of memories at 28 nm.
Points = tuple[tuple[int, float, float], ...]


@dataclass(frozen=True, kw_only=True)
class Report(Shown):
    """A page and all its contents.

    Attributes:
        page: the HTML file. name, config: of the engine.
        area: for ``generic``. cells: for ``nangate45``.
        netlist: of standard cells.
        fits: device -> engines that fit, by the counts for ``ecp5``.
        power: kernel of :data:`KERNELS` -> power.
        scaling: by parameter, its present value and the points. placed: on devices, if requested.
    """

    page: Path
    name: str
    config: PeConfig
    area: AreaReport
    cells: AreaReport
    netlist: TimedNetlist
    fits: Mapping[str, int]
    power: Mapping[str, PowerReport]
    scaling: Mapping[str, tuple[int, Points]]
    placed: tuple[PlaceReport, ...]


def collect(
    page: Path,
    name: str,
    config: PeConfig,
    *,
    devices: Sequence[str],
    seeds: int,
    jobs: int | None,
    step: Callable[[str], None],
) -> Report:
    """Measure everything; finished syntheses are cached, so a second time is quick.

    Parameters:
        page: where the caller writes it. name: of the configuration.
        devices: FPGAs to place on, which takes minutes per seed.
        seeds: placements on each. jobs: tools in parallel. step: called with the name of the next
            step.

    Raises:
        SynthesisError: a device that does not exist or is too small, or a tool is missing.
    """
    step("area")
    area = synthesise(config, "generic", jobs=jobs)
    step("standard cells")
    cells = synthesise(config, "nangate45", jobs=jobs)
    netlist = timing(config, jobs=jobs)
    step("ECP5")
    ecp5 = synthesise(config, "ecp5", jobs=jobs).total.values
    power = {}
    for kernel in KERNELS:
        step(f"power of {kernel}")
        run = record(kernel, config)
        power[kernel] = engine_power([run], config, "nangate45", jobs=jobs)
    scaling = dict(_scaling(config, jobs, step))
    placed = []
    for device in devices:
        step(f"placement on {device}")
        placed.append(place(config, device, seeds=seeds, jobs=jobs))
    return Report(
        page=page,
        name=name,
        config=config,
        area=area,
        cells=cells,
        netlist=netlist,
        fits={name: DEVICES[name].copies(ecp5) for name in PLACED},
        power=power,
        scaling=scaling,
        placed=tuple(placed),
    )


def _scaling(
    config: PeConfig, jobs: int | None, step: Callable[[str], None]
) -> Iterator[tuple[str, tuple[int, Points]]]:
    for parameter, (label, values) in _SWEEPS.items():
        chosen = getattr(config, parameter)
        points = []
        for value in sorted({*values, chosen}):
            step(f"{label}: {value}")
            changed: dict[str, Any] = {parameter: value}
            total = synthesise(replace(config, **changed), "generic", jobs=jobs).total.values
            memories = total["sram_um2"]
            points.append((value, total["area_um2"] - memories, memories))
        yield label, (chosen, tuple(points))
