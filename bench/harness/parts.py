"""Areas of components and engines, and clocks of engines."""

from collections.abc import Callable, Iterator

from hdl.component import Component
from hdl.config import SramKind
from hdl.emission import emit
from pe.config import PeConfig
from synth.physical.area import measure_unit, synthesise
from synth.physical.targets import find_target
from synth.physical.units import EngineUnit
from vip.synthesis.clocks import timing

from .experiment import Measurement

_CELLS = "nangate45"


def part_area(make: Callable[[SramKind], Component], target: str) -> dict[str, float]:
    """Measures of a single component, mapped to ``target``.

    Parameters:
        make: creates the component with memories of a given kind.

    Raises:
        synth.errors.SynthesisError: Yosys fails.
    """
    chosen = find_target(target)
    emission = emit(make(chosen.sram), "part")
    unit = EngineUnit("part", ((emission.top, 1),))
    return measure_unit(unit, chosen, emission, emit(make("macro"), "part")).values


def engine_areas(prefix: str, config: PeConfig) -> Iterator[Measurement]:
    """Logic of an engine: gate equivalents, and 7-series lookup tables."""
    kge = synthesise(config, "generic").total.values["logic_ge"] / 1000
    yield Measurement(f"{prefix}_kge", kge, "kge", 0.01)
    yield Measurement(
        f"{prefix}_luts", synthesise(config, "xc7").total.values["luts"], "luts", 0.01
    )


def engine_clocks(prefix: str, config: PeConfig) -> Iterator[Measurement]:
    """Clock of an engine in Nangate 45 nm, mapped for speed, without and with wire loads."""
    (corner,) = timing(config, _CELLS).corners
    for wires, path in (("pins", corner.pins), ("wires", corner.wires)):
        yield Measurement(f"{prefix}_mhz_{wires}", path.fmax_mhz, "MHz", 0.02, True)
