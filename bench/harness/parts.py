"""Areas of components."""

from collections.abc import Callable

from hdl.component import Component
from hdl.config import SramKind
from hdl.emission import emit
from synth.physical.area import measure_unit
from synth.physical.targets import find_target
from synth.physical.units import EngineUnit


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
