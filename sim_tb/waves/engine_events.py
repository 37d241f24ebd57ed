"""Events of engines over time: what is issued or waited for, vector instructions, transfers."""

from isa.program import Program

from .konata import instruction_at
from .pipeline import Follower
from .trace_events import TraceEvents

__all__ = ["add_engine"]


def add_engine(events: TraceEvents, name: str, engine: Follower, program: Program) -> None:
    """Add the tracks of one engine, which ran ``program``.

    - ``issue``: each cycle's counter, an instruction issued or the cause that none was;
    - ``vector unit``: beats of each vector instruction;
    - ``load-store unit``: while the requests of each transfer leave;
    - transfers from their first request to their last answer, which overlap;
    - the number of memory requests in flight.
    """
    process = events.process(name)
    issue = events.track(process, "issue")
    for interval in engine.activity:
        events.slice(process, issue, interval.name, interval.start, interval.end)
    tracks = {
        "V": events.track(process, "vector unit"),
        "L": events.track(process, "load-store unit"),
    }
    waiting = []
    for instruction in engine.found:
        text = instruction_at(program, instruction.pc)
        for stage in instruction.stages:
            if stage.name in tracks:
                about = {"pc": instruction.pc}
                events.slice(process, tracks[stage.name], text, stage.start, stage.end, about)
            elif stage.name == "M":
                waiting.append((text, stage.start, stage.end))
    events.overlapping(process, f"{name}: in memory", waiting)
    events.counter(process, "requests in flight", engine.in_flight)
