"""Lines of hardware that Amaranth's simulator executes, for ``vip bench coverage``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TypeVar
from uuid import uuid4

from amaranth.hdl import Elaboratable, Fragment
from amaranth.sim import Simulator

from hdl.lines import mark_lines
from support.coverage import coverage_folder
from support.files import write_file
from tests import quick_simulator

Design = TypeVar("Design")


@lru_cache(4)
def design_of(kind: Callable[..., Design], *arguments: Any, **options: Any) -> Design:
    """``kind(*arguments, **options)``, the same for several simulations: see
    :func:`simulator_of`. Not for tests that change the code of the hardware."""
    return kind(*arguments, **options)


def _as_it_is(design: Elaboratable) -> Elaboratable:
    return design


@contextmanager
def simulator_of(
    design: Elaboratable, prepare: Callable[[Any], Any] = _as_it_is
) -> Iterator[Simulator]:
    """A simulator of what ``prepare`` makes of ``design``. If coverage is measured, its lines are
    noted at the end.

    A line is executed if its condition holds at an edge of a clock, or ever if there is none.
    Otherwise ``design`` keeps the simulator, which begins anew the next time: it takes longer to
    make one of an engine than to run a short program on it.
    """
    folder = coverage_folder()
    if not folder:
        known = vars(design).setdefault("_simulators", {})
        if prepare in known and quick_simulator.installed:
            quick_simulator.renew(known[prepare])
        else:
            known[prepare] = Simulator(prepare(design))
        yield known[prepare]
        return
    fragment = Fragment.get(prepare(design), None)
    marks = mark_lines(fragment)
    simulator: Any = Simulator(fragment)
    state = simulator._engine._state
    true: set[int] = set()
    executed: set[int] = set()

    domains = simulator._design.fragment.domains.values()

    def follow(number: int) -> Callable[[int, int], bool]:
        def change(before: int, after: int) -> bool:
            if after and not domains:
                executed.add(number)
            (true.add if after else true.discard)(number)
            return number not in executed

        return change

    def edge(before: int, after: int) -> bool:
        if after and true:
            executed.update(true)
            true.clear()
        return True

    for number, mark in enumerate(marks):
        state.add_signal_waker(mark, follow(number))
    for domain in domains:
        state.add_signal_waker(domain.clk, edge)
    yield simulator
    ran = {marks[number].name for number in executed}
    lines = sorted(f"{'-+'[mark in ran]}{mark}\n" for mark in {mark.name for mark in marks})
    folder.mkdir(parents=True, exist_ok=True)
    write_file(folder / f"{uuid4()}.lines", "".join(lines))
