"""Simulators of mutated designs in place of those that tests ask for, started once."""

import ctypes
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sim_tb.harness.models import Library
from sim_tb.runner import build as runner
from sim_tb.runner.build import Design
from sim_tb.runner.session import Session, SessionError

from .netlist import INDEX_SOURCE

_MUTANT = "vip_mutant.cpp"


@contextmanager
def mutated_builds(verilog: Mapping[str, str]) -> Iterator[None]:
    """Within, simulators of designs with a source of ``verilog`` (original -> mutated) have the
    mutated one."""

    def mutated(design: Design) -> Design:
        sources = {name: verilog.get(text, text) for name, text in design.verilog.items()}
        if sources == design.verilog:
            return design
        return replace(design, verilog=sources, around={**design.around, _MUTANT: INDEX_SOURCE})

    def compiled(design: Design, work: Path) -> None:
        compile_design(mutated(design), work)

    compile_design, key = runner._compile, Design.key
    assert isinstance(key, property)
    assert key.fget is not None
    of = key.fget
    runner._compile = compiled
    Design.key = property(lambda design: of(mutated(design)))  # type: ignore[assignment]
    try:
        yield
    finally:
        runner._compile = compile_design
        Design.key = key  # type: ignore[method-assign]


@dataclass(frozen=True)
class _Select:
    """A job that makes a mutant active and limits the cycles until the next one.

    Its result is the cycles since the one before; -1 from a simulator without mutants.
    """

    index: int
    limit: int
    outer: bool = True

    def start(self, library: Library) -> None:
        """Nothing runs."""

    async def drive(self, dut: Any, library: Library) -> int:
        try:
            select = library.library.vip_mutant_set
        except AttributeError:
            return -1
        select.restype = ctypes.c_longlong
        return int(select(self.index, ctypes.c_longlong(self.limit)))


class _Ending:
    """In place of the thread that waits for a simulator, in a copy of the process, which has no
    threads: tells the session what the simulator said last."""

    def __init__(self, session: Session, log: Path) -> None:
        self._session, self._log = session, log

    def join(self) -> None:
        lines = self._log.read_text(errors="replace").splitlines() if self._log.is_file() else []
        self._session._failure = next((line for line in reversed(lines) if line.strip()), "")


class Simulators:
    """Simulators that stay when their :class:`Session` is left, for the next one of the same kind.

    Starting one takes a second of processor time, and most mutants die in less. Every session
    begins with :meth:`select`'s mutant.
    """

    def __init__(self) -> None:
        self._running: dict[Any, Session] = {}
        self._lent: set[Any] = set()
        self._selected = (0, 0)
        self._most = 0

    def select(self, index: int, limit: int) -> None:
        """Make ``index`` active in sessions from now on, for ``limit`` cycles; 0: without limit."""
        self._selected = (index, limit)

    def most_cycles(self) -> int:
        """Most cycles of a session in this process."""
        for first in self._running.values():
            self._note(first)
        return self._most

    def _note(self, session: Session) -> None:
        """Select the mutant, and note the cycles since the last selection."""
        jobs = [_Select(*self._selected)]
        self._most = max(self._most, *session.run_many(jobs))  # type: ignore[arg-type]

    def restart(self) -> None:
        """Start simulators that ended, or whose sessions ended within a job."""
        for key, first in list(self._running.items()):
            if self._alive(first):
                continue
            self._end(first)
            self._running[key] = self._started(first)

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Within, sessions use these simulators; they end afterwards."""
        self._enter, self._exit = Session.__enter__, Session.__exit__
        pool = self
        Session.__enter__ = lambda session: pool._open(session)  # type: ignore[method-assign]
        Session.__exit__ = lambda session, *error: pool._close(session, *error)  # type: ignore
        try:
            yield
        finally:
            Session.__enter__, Session.__exit__ = self._enter, self._exit  # type: ignore
            for first in self._running.values():
                self._end(first)

    def _started(self, like: Session) -> Session:
        return self._enter(Session(like.folder, like.top, arguments=like.arguments))

    def _alive(self, first: Session) -> bool:
        """Whether it answers at once."""
        try:
            with first._connected():
                first._connection.send(_Select(0, 0))
                while first._connection.poll(1):
                    kind, content = first._connection.recv()
                    if kind == "result" and isinstance(content, int):
                        return True
        except SessionError:
            pass
        return False

    def _end(self, first: Session) -> None:
        first._waiting = 1
        self._exit(first, None, None, None)

    def _open(self, session: Session) -> Session:
        key = (session.folder, session.top, session.arguments)
        # With arguments it has clocks of its own, whose phase a run would leave to the next.
        if session.trace is not None or session.arguments or key in self._lent:
            return self._enter(session)
        if key not in self._running:
            self._running[key] = self._started(session)
        first = self._running[key]
        for name in ("process", "_connection", "_runner"):
            setattr(session, name, getattr(first, name))
        session._thread = _Ending(session, first._work / "log")  # type: ignore[assignment]
        session._key = key  # type: ignore[attr-defined]
        self._lent.add(key)
        try:
            self._note(session)
        except SessionError:
            self._lent.discard(key)
            raise
        return session

    def _close(self, session: Session, *error: Any) -> None:
        if not hasattr(session, "_key"):
            self._exit(session, *error)
            return
        self._lent.discard(session._key)
        try:
            while session._waiting:
                session._receive(None)
        except SessionError:
            if error[0] is None:
                raise
