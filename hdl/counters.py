"""Performance counters of a processing engine.

Counters run from launch to the end of the program. Every cycle of a running program is counted once
in ``CYCLES`` and once in exactly one of the ``ISSUED_*`` and ``STALL_*`` counters.
"""

from enum import IntEnum

__all__ = ["COUNTER_BITS", "PeCounter"]

#: Width of a counter; at 1.25 GHz it wraps after three hours.
COUNTER_BITS = 44


class PeCounter(IntEnum):
    """Index of each counter on the control port."""

    CYCLES = 0
    #: Instructions issued, by functional unit; ``ISSUED_CONTROL`` are those of the issue stage.
    ISSUED_SCALAR = 1
    ISSUED_VECTOR = 2
    ISSUED_LOAD_STORE = 3
    ISSUED_CONTROL = 4
    #: No instruction at the issue stage: start-up and taken branches.
    STALL_FETCH = 5
    #: A register to be read or written waits for its value from memory.
    STALL_REGISTER = 6
    #: The instruction's scratchpad range overlaps a transfer in flight.
    STALL_ARC_CONFLICT = 7
    #: A transfer found every entry of the array range check taken.
    STALL_ARC_FULL = 8
    #: A vector instruction waits for the vector unit.
    STALL_VECTOR = 9
    #: A load or store waits for the load-store unit.
    STALL_LOAD_STORE = 10
    #: ``v.drain`` waits.
    STALL_DRAIN = 11
    #: ``memfence`` waits, or ``halt`` or a fault waits for the units to finish.
    STALL_FENCE = 12
    #: Cycles in which the vector unit reads a beat.
    VECTOR_BUSY = 13
    #: Bytes requested from memory and bytes written to it.
    BYTES_LOADED = 14
    BYTES_STORED = 15
