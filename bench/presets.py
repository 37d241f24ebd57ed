"""Benchmark of the presets: area of each, for ``vip presets``."""

from collections.abc import Iterator

from soc.generate.presets import PRESETS
from synth.physical.targets import find_target
from vip.presets import MEASURED, figure_name, measure_areas

from . import fingerprints
from .measurement import Measurement

__all__ = ["made_of_presets", "presets"]


def presets() -> Iterator[Measurement]:
    """Area of every preset: gates and bits of memory, and cells of both kinds of FPGA."""
    for name in PRESETS:
        areas = measure_areas([name], lambda _: None)[name]
        for target, measures in MEASURED.items():
            for measure in measures:
                value = areas[target][measure]
                unit = {"logic_ge": "GE", "sram_bits": "bits"}.get(measure, measure)
                yield Measurement(figure_name(name, target, measure), value, unit, 0.01)


def made_of_presets() -> dict[str, str]:
    """The hardware of every preset, and the mappings."""
    hardware = {f"Verilog of {name}": fingerprints.hardware(PRESETS[name]) for name in PRESETS}
    mappings = {f"mapping {name}": fingerprints.mapping(find_target(name)) for name in MEASURED}
    return {**hardware, **mappings}
