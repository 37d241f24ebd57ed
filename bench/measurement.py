"""A measured figure, its error, and the processor time that measuring took."""

import resource
import time
from dataclasses import dataclass

from support.errors import VipError

__all__ = ["BenchError", "Measurement", "child_seconds", "cpu_seconds"]


class BenchError(VipError):
    """A record, a checkout or a name that can't be used, or a measurement that failed; one line."""


@dataclass(frozen=True)
class Measurement:
    """A figure.

    Attributes:
        name: of the measured quantity; unique within a benchmark. value: the figure. unit: its
            unit.
        tolerance: a record and a new measurement may differ by this share of the record;
            None: it depends on the machine and is only recorded.
        more_is_better: direction of an improvement.
    """

    name: str
    value: float
    unit: str
    tolerance: float | None = 0.0
    more_is_better: bool = False


def child_seconds() -> float:
    """Seconds of a processor that ended child processes took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_seconds() -> float:
    """Seconds of a processor that this process and its ended children took."""
    return time.process_time() + child_seconds()
