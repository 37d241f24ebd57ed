"""Division of a processing engine into the units that reports list."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hdl.emission import Emission
from hdl.sram_macro import SramGeometry
from pe.vector.units import SPECIAL_PORTS
from support.errors import unknown
from synth.errors import SynthesisError

#: Name of the row of the connections between units.
OTHER = "other"

#: Modules whose parts are separate units, as in thesis Table 7.4.
OPENED = ("vector_unit",)


#: Names of all units that an engine may have, to refuse others before elaboration; a test compares
#: them with all presets.
NAMES = (
    "sequencer",
    "fetch",
    "decode",
    "operands",
    "issue",
    "dispatch",
    "arc",
    "register_file",
    "scalar",
    "vector_control",
    "vector_vertical",
    "vector_horizontal",
    "vector_finish",
    *(f"vector_{port.name}" for port in SPECIAL_PORTS),
    "load_store",
    "scratchpad",
    "counters",
    OTHER,
)


def check_units(names: Iterable[str]) -> None:
    """Refuse names that no unit of any engine has.

    Raises:
        SynthesisError: one of ``names`` is neither in :data:`NAMES` nor in :data:`OPENED`.
    """
    for name in names:
        if name not in (*NAMES, *OPENED):
            raise SynthesisError(unknown("unit", name, NAMES))


@dataclass(frozen=True)
class EngineUnit:
    """A row of a report.

    Attributes:
        name: of the unit.
        modules: its top modules, each with its number of instances.
        opened: whether the modules that these instantiate are separate units.
    """

    name: str
    modules: tuple[tuple[str, int], ...]
    opened: bool = False


def units(emission: Emission) -> tuple[EngineUnit, ...]:
    """The units of an engine in the order of its modules; the last one connects them."""
    numbers: Counter[str] = Counter()
    glue: Counter[str] = Counter()

    def descend(module: str, times: int) -> None:
        glue[module] += times
        for part, number in emission.instances[module].items():
            if part in OPENED:
                descend(part, times * number)
            else:
                numbers[part] += times * number

    descend(emission.top, 1)
    order = {name: place for place, name in enumerate(emission.modules)}
    rows = [
        EngineUnit(name, ((name, numbers[name]),))
        for name in sorted(numbers, key=order.__getitem__)
    ]
    rows.append(EngineUnit(OTHER, tuple(sorted(glue.items())), opened=True))
    return tuple(rows)


def closure(emission: Emission, module: str) -> tuple[str, ...]:
    """``module`` and all modules below it, parts first, without black boxes."""
    seen: set[str] = set()

    def descend(name: str) -> None:
        if name in emission.modules and name not in seen:
            seen.add(name)
            for part in emission.instances[name]:
                descend(part)

    descend(module)
    return tuple(name for name in emission.modules if name in seen)


def memories(emission: Emission, unit: EngineUnit) -> Mapping[SramGeometry, int]:
    """The memories in ``unit`` of an engine with ``sram="macro"``: shape -> how many."""
    numbers: Counter[SramGeometry] = Counter()

    def descend(module: str, times: int) -> None:
        if module not in emission.modules:
            numbers[SramGeometry.parse(module)] += times
            return
        for part, number in emission.instances[module].items():
            descend(part, times * number)

    if not unit.opened:
        for module, times in unit.modules:
            descend(module, times)
    return dict(sorted(numbers.items()))
