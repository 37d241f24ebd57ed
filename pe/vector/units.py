"""The special units that the vector unit can have."""

from pe.capabilities import Capabilities
from pe.config import PeConfig

from .logistic import LOGISTIC
from .special import SpecialPort

#: A new unit is a line here, and one in :mod:`isa.units`.
SPECIAL_PORTS: tuple[SpecialPort, ...] = (LOGISTIC,)


def special_ports(config: PeConfig) -> tuple[SpecialPort, ...]:
    """The special units of which ``config`` has an instruction."""
    caps = Capabilities.of(config)
    return tuple(port for port in SPECIAL_PORTS if caps.of_special(port.name))
