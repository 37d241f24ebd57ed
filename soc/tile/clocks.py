"""The clocks of a vault and its engines."""

from dataclasses import dataclass, field

from hdl.config import ConfigurationError
from hdl.crossing import MAX_CROSSING_DEPTH, MIN_CROSSING_DEPTH
from support.checks import Checks

#: Numbers of clocks, as named in configurations.
CLOCKS = ("one", "two")

_CHECK = Checks(ConfigurationError)
_OPTIONAL = {"optional": True}


@dataclass(frozen=True, kw_only=True)
class ClockConfig:
    """The clocks of a vault and its engines.

    Attributes:
        domains: "one": everything has the clock ``clk``. "two": the back end of the vault
            (controller and DRAM, or AXI bus) has ``clk_mem``, of any ratio and phase; its times in
            ns are those of that clock.
        request_depth, response_depth: beats buffered on the way to the memory and back, with two
            clocks; a power of two, 4..64. From 8 on, one beat passes per cycle of the slower clock.

    Raises:
        ConfigurationError: a value outside its range.
    """

    domains: str = field(default="one", metadata=_OPTIONAL)
    request_depth: int = field(default=8, metadata=_OPTIONAL)
    response_depth: int = field(default=8, metadata=_OPTIONAL)

    def __post_init__(self) -> None:
        _CHECK.one_of("domains", self.domains, CLOCKS)
        for name in ("request_depth", "response_depth"):
            _CHECK.power_of_two(name, getattr(self, name), MIN_CROSSING_DEPTH, MAX_CROSSING_DEPTH)

    @property
    def two(self) -> bool:
        """Whether the memory has its own clock."""
        return self.domains == "two"
