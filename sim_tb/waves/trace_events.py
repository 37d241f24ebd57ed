"""Traces of events over time as JSON, which Perfetto and Chrome's tracing view open.

The format is the Trace Event Format's array of objects; its unit of time, a microsecond, stands for
a clock cycle here, as the viewers round to whole nanoseconds.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["TraceEvents"]


class TraceEvents:
    """Events, by process and track."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._processes = 0
        self._tracks: dict[int, int] = {}

    def process(self, name: str) -> int:
        """A group of tracks; its number."""
        self._processes += 1
        number = self._processes
        self._tracks[number] = 0
        self._name("process_name", name, number, 0)
        self._events.append(
            {
                "ph": "M",
                "name": "process_sort_index",
                "pid": number,
                "tid": 0,
                "args": {"sort_index": number},
            }
        )
        return number

    def track(self, process: int, name: str) -> int:
        """A track of slices that don't overlap; its number within the process."""
        self._tracks[process] += 1
        number = self._tracks[process]
        self._name("thread_name", name, process, number)
        return number

    def _name(self, kind: str, name: str, process: int, track: int) -> None:
        self._events.append(
            {"ph": "M", "name": kind, "pid": process, "tid": track, "args": {"name": name}}
        )

    def slice(
        self,
        process: int,
        track: int,
        name: str,
        start: int,
        end: int,
        arguments: Mapping[str, object] | None = None,
    ) -> None:
        """``name`` from cycle ``start`` to before ``end``."""
        event: dict[str, Any] = {
            "ph": "X",
            "name": name,
            "pid": process,
            "tid": track,
            "ts": start,
            "dur": end - start,
        }
        if arguments:
            event["args"] = dict(arguments)
        self._events.append(event)

    def overlapping(self, process: int, group: str, slices: Iterable[tuple[str, int, int]]) -> None:
        """Slices ``(name, start, end)`` that may overlap, as one group of asynchronous events."""
        for number, (name, start, end) in enumerate(slices):
            same = {"cat": group, "name": name, "pid": process, "tid": 0, "id": f"{group}{number}"}
            self._events.append({"ph": "b", "ts": start, **same})
            self._events.append({"ph": "e", "ts": end, **same})

    def counter(self, process: int, name: str, values: Iterable[tuple[int, float]]) -> None:
        """A quantity ``(cycle, value)`` that keeps its value until the next cycle given."""
        for cycle, value in values:
            self._events.append(
                {
                    "ph": "C",
                    "name": name,
                    "pid": process,
                    "tid": 0,
                    "ts": cycle,
                    "args": {name: value},
                }
            )

    def text(self, **about: object) -> str:
        """The file; ``about`` is shown as its description."""
        lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in self._events)
        head = json.dumps({"unit": "a microsecond of the viewer is a clock cycle", **about})
        return f'{{"otherData": {head},\n"traceEvents": [\n{lines}\n]}}\n'
