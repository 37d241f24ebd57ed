"""A run of programs: what a machine is given."""

from dataclasses import dataclass

from .program import Program

__all__ = ["Launch"]

#: A launch that takes more cycles counts as hung; as many are hours of simulation.
_MAX_CYCLES = 1 << 36


@dataclass(frozen=True, kw_only=True)
class Launch:
    """One launch of all engines.

    Attributes:
        program: executed by all engines.
        parameters: the start register of that name, the same for all: the address of the parameter
            block, within its vault where there are several; 0..2**64 - 1.
        name: distinguishes the launches of a job.
        max_cycles: a launch that takes more cycles counts as hung; 1..2**63 - 1.
    """

    program: Program
    parameters: int = 0
    name: str = ""
    max_cycles: int = _MAX_CYCLES
