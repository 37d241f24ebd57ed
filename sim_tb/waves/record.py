"""Follows all engines, vaults and links of a waveform file in one pass."""

import re
from dataclasses import dataclass
from pathlib import Path

from isa.program import Program

from .cycles import TraceError, clock_name, read_cycles, signal_names
from .pipeline import SIGNALS, Follower
from .trace_events import SIGNALS as VAULT_SIGNALS
from .trace_events import TraceEvents, VaultFollower, add_engine, add_vault

#: Cycles per count of a link's flits.
WINDOW = 32

_ENGINE = re.compile(r"(.+)\.sequencer\.active")
_CONTROLLER = re.compile(r"(.+)\.dram__valid")
_LINK = re.compile(r"(.+)\.router\.(east|west|north|south)_out__valid")


@dataclass(frozen=True)
class Record:
    """The contents of a waveform file.

    Attributes:
        cycles: its clock cycles.
        engines, vaults: by the scopes of the engines and of the vaults' controllers, below the top.
        links: scope of a router and direction -> flits in each :data:`WINDOW` cycles.
    """

    cycles: int
    engines: dict[str, Follower]
    vaults: dict[str, VaultFollower]
    links: dict[str, list[int]]


def read_record(path: Path) -> Record:
    """Follow everything in the VCD file ``path``.

    Raises:
        TraceError: the file is not a VCD file, or has no engine with counters.
        OSError: the file can't be read.
    """
    names = signal_names(path)
    clock = clock_name(names)
    engines = {
        match[1]: Follower()
        for name in sorted(names, key=_natural)
        if (match := _ENGINE.fullmatch(name)) and f"{match[1]}.counters.event" in names
    }
    if not engines:
        raise TraceError(f"{path}: no signals of an engine with counters")
    signals = [f"{scope}.{name}" for scope in engines for name in SIGNALS]
    vaults: dict[str, tuple[VaultFollower, int]] = {}
    for name in sorted(names, key=_natural):
        match = _CONTROLLER.fullmatch(name)
        if match and f"{match[1]}.queue.occupied" in names:
            levels = _levels(names, match[1])
            vaults[match[1]] = VaultFollower(len(levels)), len(levels)
            signals += [f"{match[1]}.{signal}" for signal in VAULT_SIGNALS] + levels
    links = {
        f"{match[1]} {match[2]}": name
        for name in sorted(names, key=_natural)
        if (match := _LINK.fullmatch(name))
    }
    signals += links.values()
    flits: dict[str, list[int]] = {name: [] for name in links}
    cycle = -1
    for cycle, values in enumerate(read_cycles(path, clock, signals)):
        at = 0
        for engine in engines.values():
            engine.cycle(cycle, values[at : at + len(SIGNALS)])
            at += len(SIGNALS)
        for vault, banks in vaults.values():
            vault.cycle(cycle, values[at : at + len(VAULT_SIGNALS) + banks])
            at += len(VAULT_SIGNALS) + banks
        for name, valid in zip(links, values[at:], strict=True):
            if cycle % WINDOW == 0:
                flits[name].append(0)
            flits[name][-1] += valid
    for engine in engines.values():
        engine.finish(cycle + 1)
    for vault, _ in vaults.values():
        vault.finish(cycle + 1)
    return Record(
        cycles=cycle + 1,
        engines={_short(scope): engine for scope, engine in engines.items()},
        vaults={_short(scope): vault for scope, (vault, _) in vaults.items()},
        links={_short(name): counts for name, counts in flits.items()},
    )


def _natural(name: str) -> list[tuple[int, str]]:
    """A sort key that puts ``pe_10`` after ``pe_2``."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if part.isdigit() else (0, part) for part in parts]


def _levels(names: dict[str, str], scope: str) -> list[str]:
    levels: list[str] = []
    while (name := f"{scope}.bank_{len(levels)}.queue.level") in names:
        levels.append(name)
    return levels


def _short(scope: str) -> str:
    """``scope`` without the top module."""
    return scope.partition(".")[2] or scope


def trace_events(record: Record, program: Program, refresh: int = 1) -> str:
    """The event trace of ``record``, as JSON.

    Parameters:
        program: the engines' program. refresh: cycles of a DRAM bank's refresh.
    """
    events = TraceEvents()
    for name, engine in record.engines.items():
        add_engine(events, name, engine, program)
    for name, vault in record.vaults.items():
        add_vault(events, name, vault, refresh)
    if record.links:
        process = events.process("links")
        for name, counts in record.links.items():
            events.counter(
                process,
                f"{name}, flits in {WINDOW} cycles",
                [(number * WINDOW, count) for number, count in enumerate(counts)],
            )
    return events.text(cycles=record.cycles)


#: Most windows of a run.
_WINDOWS = 120


def activity(engines: dict[str, Follower]) -> dict[str, object]:
    """Cycles of each engine by counter, over time, as plain JSON data.

    ``interval_cycles`` is the length of a window; ``engines`` has, by engine and counter in lower
    case, the cycles in each window, beginning with the first cycle of the first engine. Each engine
    must have followed a whole run.
    """
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
    return {"interval_cycles": interval, "engines": result}
