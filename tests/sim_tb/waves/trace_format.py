"""A reader of traces of events, written from the description of the Trace Event Format."""

import json
from collections import defaultdict
from dataclasses import dataclass, field

#: Process and track, by name.
Track = tuple[str, str]


@dataclass
class Trace:
    """slices: track -> (name, start, duration); counters: (process, name) -> (time, value);
    overlapping: (process, category) -> (name, start, end)."""

    slices: dict[Track, list[tuple[str, float, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    counters: dict[Track, list[tuple[float, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    overlapping: dict[Track, list[tuple[str, float, float]]] = field(
        default_factory=lambda: defaultdict(list)
    )


def read_trace(text: str) -> Trace:
    """Read a trace, and check that each event has what its phase needs."""
    content = json.loads(text)
    events = content["traceEvents"]
    names: dict[tuple[int, int], str] = {}
    for event in events:
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name", "process_sort_index")
            if event["name"] != "process_sort_index":
                assert (event["pid"], event["tid"]) not in names
                names[event["pid"], event["tid"]] = event["args"]["name"]
    trace = Trace()
    begun: dict[tuple[int, str, str], tuple[str, float]] = {}
    for event in events:
        phase, process = event["ph"], event["pid"]
        assert isinstance(process, int)
        if phase == "M":
            continue
        assert event["ts"] >= 0
        group = names[process, 0]
        if phase == "X":
            assert event["dur"] >= 0
            track = (group, names[process, event["tid"]])
            trace.slices[track].append((event["name"], event["ts"], event["dur"]))
        elif phase == "C":
            ((_, value),) = event["args"].items()
            trace.counters[group, event["name"]].append((event["ts"], float(value)))
        elif phase == "b":
            key = (process, event["cat"], event["id"])
            assert key not in begun
            begun[key] = (event["name"], event["ts"])
        elif phase == "e":
            name, start = begun.pop((process, event["cat"], event["id"]))
            assert name == event["name"]
            assert start <= event["ts"]
            trace.overlapping[group, event["cat"]].append((name, start, event["ts"]))
        else:
            raise AssertionError(phase)
    assert not begun
    for track, slices in trace.slices.items():
        _check_nesting(track, slices)
    for values in trace.counters.values():
        times = [time for time, _ in values]
        assert times == sorted(set(times))
    return trace


def _check_nesting(track: Track, slices: list[tuple[str, float, float]]) -> None:
    """Slices of a track lie apart or within each other."""
    ends: list[float] = []
    for name, start, duration in sorted(slices, key=lambda each: (each[1], -each[2])):
        while ends and ends[-1] <= start:
            ends.pop()
        assert not ends or start + duration <= ends[-1], (track, name, start)
        ends.append(start + duration)
