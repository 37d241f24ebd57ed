"""Belief propagation on whole chips: the timing model's cycles."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

import microkernels.bp.jobs
import sim_tb.measure.full_hd
import sim_tb.measure.scaling
from sim_tb.measure.full_hd import MEMORY_WAITS, RUNS, full_hd_job, measure_full_hd
from sim_tb.measure.plots.scaling import draw_scaling
from sim_tb.measure.scaling import measure_scaling
from soc.generate.presets import chip_preset

from . import fingerprints
from .functional import model_parts
from .measurement import Measurement

__all__ = ["full_hd", "made_of_full_hd", "made_of_scaling", "scaling"]

_CHIP = "thesis"
#: Counters of :class:`pe.interface.PeCounter` -> name of their share of the cycles.
_SHARES = {
    "vector_busy": ("VECTOR_BUSY",),
    "issued": ("ISSUED_SCALAR", "ISSUED_VECTOR", "ISSUED_LOAD_STORE", "ISSUED_CONTROL"),
    "waits_for_vector_unit": ("STALL_VECTOR", "STALL_DRAIN"),
    "waits_for_memory": MEMORY_WAITS,
    "fetch": ("STALL_FETCH",),
}


def full_hd() -> Iterator[Measurement]:
    """Belief propagation on full HD, whole, on the 128 engines of the thesis's chip: BP-M
    with one and with eight iterations, and the hierarchical run with one and with five iterations
    on each level. Every message is compared with the golden model's. Times at 1.25 GHz."""
    config = chip_preset(_CHIP)
    for name in RUNS:
        phases = measure_full_hd(name, config)
        for phase in phases:
            prefix = f"{name}_{phase.name}"
            yield Measurement(f"{prefix}_cycles", phase.cycles, "cycles")
            yield Measurement(f"{prefix}_ms", phase.ms, "ms an iteration")
            yield Measurement(f"{prefix}_gb_s", phase.gbs, "GB/s", more_is_better=True)
            for share, counters in _SHARES.items():
                value = 100 * sum(phase.shares[counter] for counter in counters)
                yield Measurement(f"{prefix}_{share}", value, "%", tolerance=None)
        yield Measurement(f"{name}_total_ms", sum(p.ms * p.iterations for p in phases), "ms")
        # Those of the last phase, as each phase counts from the beginning.
        seconds = phases[-1].seconds
        yield Measurement(f"{name}_seconds", seconds, "s with loading and reading", None)
        speed = phases[-1].simulated / (seconds * phases[-1].processors) / 1000
        yield Measurement(
            f"{name}_kcycles_per_second", speed, "kcycles/s of a processor", None, True
        )


def made_of_full_hd() -> dict[str, str]:
    """The chip, the model of it, and the programs."""
    config = chip_preset(_CHIP)
    return {
        f"Verilog of {_CHIP}": fingerprints.hardware(config),
        "programs": fingerprints.programs(
            launch.program for name in RUNS for launch in full_hd_job(name, config).launches
        ),
        "what is measured": fingerprints.code(sim_tb.measure.full_hd),
        **model_parts(),
    }


def scaling() -> Iterator[Measurement]:
    """An iteration of BP-M against the number of vaults, for two images, of engines a vault, and of
    pixels, in as many columns and rows of tiles as vaults and in those of the fastest cut, on the
    timing model. Every message is compared with the golden model's. Times at 1.25 GHz."""
    for series, point in measure_scaling(chip_preset(_CHIP)):
        at = {
            "vaults": f"{point.vaults}",
            "small": f"{point.vaults}",
            "engines": f"{point.engines}",
            "image": f"{point.width}x{point.height}",
            "cut": f"{point.width}x{point.height}",
        }[series]
        yield Measurement(f"{series}_{at}_cycles", point.cycles, "cycles")
        yield Measurement(f"{series}_{at}_ms", point.ms, "ms")
        busy = 100 * point.vector_busy
        yield Measurement(f"{series}_{at}_vector_busy", busy, "%", more_is_better=True)
        yield Measurement(f"{series}_{at}_waits", 100 * point.waits, "%")
        yield Measurement(f"{series}_{at}_bus_busy", 100 * point.bus_busy, "%", tolerance=None)


def made_of_scaling() -> dict[str, str]:
    """The chip whose parts are varied, its model, and the generators of programs."""
    return {
        f"Verilog of {_CHIP}": fingerprints.hardware(chip_preset(_CHIP)),
        "kernels": fingerprints.code(*fingerprints.parts(microkernels.bp)),
        "what is measured": fingerprints.code(sim_tb.measure.scaling),
        **model_parts(),
    }


def main(path: Annotated[Path, typer.Option(help="PNG or SVG to write.")]) -> None:
    """Draw how BP-M scales. What was measured before is kept.

    Example: python -m bench.chips --path scaling.png
    """
    draw_scaling(list(measure_scaling(chip_preset(_CHIP), progress=typer.echo)), path)


if __name__ == "__main__":
    typer.run(main)
