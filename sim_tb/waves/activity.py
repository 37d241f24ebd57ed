"""What engines do over time, in windows of equal length."""

from dataclasses import dataclass

from .pipeline import Follower

__all__ = ["Activity", "activity"]

#: Windows of a run, at most.
_WINDOWS = 120


@dataclass(frozen=True)
class Activity:
    """Cycles of each engine by what they were counted as, over time.

    Attributes:
        interval: cycles of a window.
        engines: name of an engine -> counter, in small letters -> its cycles in each window, from
            the first cycle of the first engine on.
    """

    interval: int
    engines: dict[str, dict[str, list[int]]]

    def to_json(self) -> dict[str, object]:
        """The same as plain data."""
        return {"interval_cycles": self.interval, "engines": self.engines}


def activity(engines: dict[str, Follower]) -> Activity:
    """The activity of ``engines``, by name; each has followed a whole run."""
    ran = {name: engine.activity for name, engine in engines.items() if engine.activity}
    start = min((intervals[0].start for intervals in ran.values()), default=0)
    end = max((intervals[-1].end for intervals in ran.values()), default=0)
    interval = max(1, -(-(end - start) // _WINDOWS))
    count = -(-(end - start) // interval)
    result: dict[str, dict[str, list[int]]] = {}
    for name, intervals in ran.items():
        kinds = result[name] = {}
        for stretch in intervals:
            windows = kinds.setdefault(stretch.name, [0] * count)
            at = stretch.start - start
            while at < stretch.end - start:
                until = min(stretch.end - start, (at // interval + 1) * interval)
                windows[at // interval] += until - at
                at = until
    return Activity(interval, result)
