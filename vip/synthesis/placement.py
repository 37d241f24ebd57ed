"""Placements of a processing engine on an FPGA, several seeds at a time."""

from typing import Any

from pe.config import PeConfig
from soc.generate.presets import configuration_as, configuration_json
from synth.errors import SynthesisError
from synth.physical.nextpnr import Placement
from synth.physical.place import PlaceReport, map_design
from vip.executor.executor import opened
from vip.executor.work import Task
from vip.progress import Progress, silent

#: :func:`run_seed` for :mod:`vip.executor.work`.
WORK = "vip.synthesis.placement:run_seed"


def run_seed(task: Task) -> dict[str, Any]:
    """The ``placement`` of ``unit`` (None: all) of the engine ``configuration`` on ``device`` with
    ``seed``, as plain data."""
    config = configuration_as(PeConfig, task["configuration"])
    placed = map_design(config, task["device"], task["unit"]).place(task["seed"])
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
    by_seed = {seed: mapped.kept(seed) for seed in range(1, seeds + 1)}
    missing = [seed for seed, placement in by_seed.items() if placement is None]
    shared = {"configuration": configuration_json(config), "device": device, "unit": unit}
    if missing:
        with opened(WORK, scheduler=scheduler, jobs=jobs) as executor:
            for number, result in executor([{"seed": seed, **shared} for seed in missing]):
                seed = missing[number]
                if "placement" not in result:
                    lost = f"{mapped.what}, seed {seed}: {result.get('lost')}"
                    raise SynthesisError(result.get("error") or lost)
                by_seed[seed] = placement = Placement.from_json(result["placement"])
                mapped.keep(placement)
                done = seeds - sum(one is None for one in by_seed.values())
                progress(stage, done, seeds, f"seed {seed}")
    return mapped.report([placement for placement in by_seed.values() if placement is not None])
