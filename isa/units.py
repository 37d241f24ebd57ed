"""The special units that an engine can have."""

from .logistic import LOGISTIC
from .special_unit import SpecialUnit

#: By name. A new unit adds a line here and one in :mod:`pe.vector.units`.
SPECIAL_UNITS: dict[str, SpecialUnit] = {unit.name: unit for unit in (LOGISTIC,)}
