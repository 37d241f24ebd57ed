"""The verb ``synth``: area by unit, and placement on FPGAs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse, product
from typing import Any

from hdl.yosys import need_yosys
from pe.config import PeConfig
from soc.generate.presets import Design, configuration_as, configuration_json, engine, naming
from support.errors import Shown
from support.extras import together
from synth.errors import SynthesisError
from synth.physical.area import TABLE_7_4, TOTAL, AreaReport, by_component, synthesise
from synth.physical.asic import need_nangate
from synth.physical.devices import DEVICES, PLACED, find_placed, is_placed
from synth.physical.nextpnr import Placement, need_nextpnr
from synth.physical.place import PlaceReport, map_design
from synth.physical.targets import check_target, default_targets
from synth.physical.units import check_units
from vip.executor.executor import check_scheduler, opened
from vip.executor.work import Task
from vip.progress import Progress, by_part, silent

#: :func:`run_seed` for :mod:`vip.executor.work`.
WORK = "vip.synthesis.area:run_seed"
#: Measures that the JSON report always contains.
_ALWAYS = ("logic_ge", "area_um2", "luts", "ffs", "dsps", "brams", "fmax_mhz")


@dataclass(frozen=True, kw_only=True)
class SynthReport(Shown):
    """Area of an engine.

    Attributes:
        config: of the engine. areas: target -> area by unit.
        placed: device -> the placed and routed design.
    """

    config: PeConfig
    areas: Mapping[str, AreaReport]
    placed: Mapping[str, Sequence[PlaceReport]]

    def to_json(self) -> dict[str, object]:
        """Totals, ``units`` by name, each target and device, and ``generic`` beside Table 7.4.

        Every measure of :data:`_ALWAYS` is present; None if no target gives it. If several targets
        give a measure, the last one counts, but targets with a clock take precedence over all
        others, so that ``logic_ge`` and ``fmax_mhz`` come from one netlist. Values of placed
        designs take precedence over both.
        """
        none: dict[str, object] = dict.fromkeys(_ALWAYS)
        totals = dict(none)
        units: dict[str, dict[str, object]] = {}
        for area in sorted(self.areas.values(), key=lambda area: "fmax_mhz" in area.total.values):
            totals |= area.total.values
            for row in area.rows:
                units[row.unit] = {**units.get(row.unit, none), **row.values}
        report: dict[str, object] = {
            "targets": {name: area.to_json() for name, area in self.areas.items()}
        }
        if "generic" in self.areas:
            report["table_7_4_um2"] = {
                row.unit: {"thesis": TABLE_7_4[row.unit], "ours": round(row.values["area_um2"], 1)}
                for row in by_component(self.areas["generic"])
            }
        if self.placed:
            report["devices"] = {
                device: {one.unit: one.to_json() for one in reports}
                for device, reports in self.placed.items()
            }
        for one in (one for reports in self.placed.values() for one in reports):
            values = {**one.used, "fmax_mhz": one.fmax_mhz}
            if one.unit == TOTAL:
                totals |= values
            else:
                units[one.unit] = {**units.get(one.unit, none), **values}
        return {
            **totals,
            "units": units,
            **report,
            "configuration": configuration_json(self.config),
        }


def _check_targets(targets: Sequence[str]) -> None:
    """Reject names that are neither a target nor a device that is placed, and those whose tools are
    missing.

    Raises:
        SynthesisError: such a name; the message lists the targets and devices.
        MissingExtraError: Yosys, nextpnr or a library is not installed.
    """
    for name in targets:
        if name in DEVICES or is_placed(name):
            find_placed(name)
        else:
            check_target(name, PLACED)
    with together():
        need_yosys()
        if any(map(is_placed, targets)):
            need_nextpnr()
        need_nangate(*targets)


def synth(
    config: Design = "pe",
    target: str | Sequence[str] = (),
    *,
    units: str | Sequence[str] = (),
    seeds: int = 5,
    flat: bool = False,
    scheduler: str | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
) -> SynthReport:
    """Synthesise an engine with Yosys, or place and route it on FPGAs.

    ``synth("pe", target="xc7").areas["xc7"].total.values["luts"]`` are its LUTs. Finished units and
    seeds are cached. A device gets the whole engine, or each named unit alone.

    Parameters:
        config: of an engine.
        target: one or several; none: :func:`synth.physical.targets.default_targets`;
            :data:`synth.physical.targets.TARGETS`, ``nangate45[-area]``,
            ``liberty:PATH``, or a device (:func:`synth.physical.devices.find_placed`).
        units: one or several; none: all.
        seeds: placements on each device, at least 1.
        flat: also synthesise the whole engine, without borders between units.
        scheduler: address of a Dask scheduler whose workers place seeds; None: local processes.
        jobs: tools and local processes at a time; None: one per processor.
        progress: called after each unit or seed.

    Raises:
        SynthesisError: an unknown target, device or unit, a design that Yosys refuses or that does
            not fit, a tool that is missing, or a scheduler without a device.
        vip.executor.work.ExecutorError: as for :func:`vip.executor.executor.opened`.
    """
    chosen = engine(config)
    targets = (target,) if isinstance(target, str) else target or default_targets(chosen)
    units = (units,) if isinstance(units, str) else units
    _check_targets(targets)
    check_units(units)
    if scheduler is not None and not any(map(is_placed, targets)):
        raise SynthesisError(
            f"a scheduler is for placements, and no target is a device: {', '.join(PLACED)}"
        )
    check_scheduler(WORK, scheduler)
    areas: dict[str, AreaReport] = {}
    placed: dict[str, list[PlaceReport]] = {}
    with naming(config):
        for name in filterfalse(is_placed, targets):
            report = by_part(progress, f"synthesis for {name}")
            areas[name] = synthesise(chosen, name, units or None, report, jobs, flat=flat)
        for name, unit in product(filter(is_placed, targets), units or (None,)):
            results = place(
                chosen,
                name,
                unit=unit,
                seeds=seeds,
                scheduler=scheduler,
                jobs=jobs,
                progress=progress,
            )
            placed.setdefault(name, []).append(results)
    return SynthReport(config=chosen, areas=areas, placed=placed)


def run_seed(task: Task) -> dict[str, Any]:
    """The ``placement`` of ``unit`` (None: all) of the engine ``configuration`` on ``device`` with
    ``seed``, as plain data."""
    config = configuration_as(PeConfig, task["configuration"])
    placed = map_design(config, task["device"], task["unit"]).placer.place(task["seed"])
    return {"placement": placed.to_json()}


def place(
    config: PeConfig,
    device: str,
    *,
    unit: str | None = None,
    seeds: int = 5,
    scheduler: str | None = None,
    jobs: int | None = None,
    progress: Progress = silent,
) -> PlaceReport:
    """Map to ECP5, place and route, once per seed, in the shell of :mod:`synth.physical.shell`.

    Results are cached by content; a finished seed never runs again, wherever it ran.

    Parameters:
        config, device, unit: as for :func:`synth.physical.place.map_design`.
        seeds: number of placements, with seeds from 1 on; at least 1.
        scheduler: address of a Dask scheduler whose workers place; None: local processes.
        jobs: number of local processes; None: one per processor.
        progress: called after each seed.

    Raises:
        SynthesisError: as for ``map_design``; a process ended; or ``seeds`` is below 1.
        vip.executor.work.ExecutorError: as for :func:`vip.executor.executor.opened`.
    """
    if seeds < 1:
        raise SynthesisError(f"at least 1 seed is needed, not {seeds}")
    stage = f"place and route on {device}"
    progress(stage, 0, seeds)
    mapped = map_design(config, device, unit)
    placer = mapped.placer
    by_seed = {seed: placer.known(seed) for seed in range(1, seeds + 1)}
    missing = [seed for seed, placement in by_seed.items() if placement is None]
    shared = {"configuration": configuration_json(config), "device": device, "unit": unit}
    if missing:
        with opened(WORK, scheduler=scheduler, jobs=jobs) as executor:
            for number, result in executor([{"seed": seed, **shared} for seed in missing]):
                seed = missing[number]
                if "placement" not in result:
                    lost = f"{placer.what}, seed {seed}: {result.get('lost')}"
                    raise SynthesisError(result.get("error") or lost)
                by_seed[seed] = placement = Placement.from_json(result["placement"])
                placer.keep(placement)
                done = seeds - sum(one is None for one in by_seed.values())
                progress(stage, done, seeds, f"seed {seed}")
    return mapped.report([placement for placement in by_seed.values() if placement is not None])
