"""What the tests are worth: lines of hardware and crosses that they reach, mutants that die,
and bad inputs that are refused."""

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from hdl.lines import constant_lines, marked_lines
from sim_tb.runner.cache import source_digest
from support.cache import build_folder
from support.coverage import VARIABLE
from support.errors import unknown
from support.files import write_file
from support.processes import tool

from .harness.experiment import SIMULATION, BenchError, Measurement, experiment, last_line, say
from .harness.record import ROOT

#: Rooms whose Python describes hardware.
ROOMS = ("hdl", "pe", "memory", "noc", "soc")
#: What decides the lines that a test reaches.
_SOURCES = (
    *(*ROOMS, "isa", "microkernels", "sim_tb", "support"),
    *(f"tests/{room}" for room in (*ROOMS, "sim_tb")),
)
#: Those of :data:`_TESTS` that are slow.
_SLOW = ("tests/sim_tb/cosim/test_directed.py",)
#: Tests that simulate Verilog, or parts of these rooms in Amaranth's simulator.
_TESTS = (
    *_SLOW,
    "tests/sim_tb/test_network.py",
    "tests/sim_tb/cosim/test_two_clocks.py::test_copies_of_counters_are_never_torn",
    "tests/hdl/test_stream_buffer.py",
    *(f"tests/pe/test_{name}.py" for name in ("counters", "issue", "scalar", "sequencer")),
    "tests/pe/test_scratchpad.py",
    *(f"tests/pe/lsu/test_{name}.py" for name in ("history", "load_store", "workspace")),
    *(f"tests/memory/test_{name}.py" for name in ("bank_machine", "axi_backend", "preload")),
    *(f"tests/memory/test_{name}.py" for name in ("line_buffer", "sarsa")),
    "tests/memory/test_controller.py::test_random_accesses",
    "tests/noc/test_crossbar.py",
    *(f"tests/soc/test_{name}.py" for name in ("control_races", "host_control", "host_data")),
    *(f"tests/soc/board/test_{name}.py" for name in ("serial_host", "uart")),
)
#: First words of bins (:func:`hdl.lines.cover`).
_CROSSES = ("operands", "dispatch", "scheduler", "policy", "turn")
#: Sources that only coverage needs.
_OF_COVERAGE = {"hdl/lines.py", "pe/frontend/crosses.py"}
#: Bins that no run can reach, and why.
_UNREACHABLE = {
    r"\w+ \S+ (ACT|READ|WRITE) no request.*": "a request is needed",
    r"\w+ \S+ (READ write|WRITE read).*": "the request decides the command",
    r"scheduler \S+ ACT .* (some|forced)": "a closed bank refreshes before it opens a row",
    r"scheduler \S+ (READ|WRITE) .* forced": "a refresh that can wait no longer comes first",
    r"scheduler \S+ REFRESH .* none": "no refresh is owed",
}
#: Mutants of Python, and what is mutated, by the names of ``tests.mutation``.
_PYTHON = "sources"
_UNITS = ("engine", "vault", "router", "node", "host", "crossings", "lines", "history", _PYTHON)
#: Methods of a module whose ``with`` statements are conditions.
_CONDITIONS = {"If", "Elif", "Else", "Case", "Default", "State"}
#: A point in Verilator's file: name of a Verilog file, its lines, and how often they ran.
_POINT = re.compile(r"^C '\x01f\x02([^\x01]*)\x01.*?\x01S\x02([\d,-]*)\x01.*' (\d+)$")


@dataclass(frozen=True)
class _Line:
    """A line under a condition.

    Attributes:
        first, last: lines of the statement. guard: line of its condition, if only that has a
            signal of its own; 0: it has one itself.
    """

    first: int
    last: int
    guard: int = 0


@cache
def guarded_lines(file: Path) -> tuple[_Line, ...]:
    """Lines of ``file`` that describe hardware under a condition: ``with m.If`` and its like, each
    assignment, and each ``m.next``."""
    lines: dict[int, _Line] = {}

    def visit(node: ast.AST, guard: int, inner: int) -> None:
        """Add what is in ``node``: under the condition of line ``guard``, and of line ``inner`` if
        no Python statement chooses between them."""
        if isinstance(node, ast.With) and (opened := _condition(node)):
            lines[opened.lineno] = _Line(opened.lineno, opened.end_lineno or opened.lineno)
            guard = inner = opened.lineno
        elif isinstance(node, ast.If | ast.For | ast.While | ast.Match | ast.FunctionDef):
            inner = 0
            if isinstance(node, ast.FunctionDef):
                guard = 0
        elif guard and isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "eq":
            line = _Line(node.lineno, node.end_lineno or node.lineno, inner)
            lines.setdefault(line.first, line)
        elif guard and isinstance(node, ast.Assign) and _is_next(node):
            lines[node.lineno] = _Line(node.lineno, node.end_lineno or node.lineno, inner)
        for child in ast.iter_child_nodes(node):
            visit(child, guard, inner)

    visit(ast.parse(file.read_text()), 0, 0)
    return tuple(lines[line] for line in sorted(lines))


def _condition(node: ast.With) -> ast.expr | None:
    call = node.items[0].context_expr
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    return call if call.func.attr in _CONDITIONS else None


def _is_next(node: ast.Assign) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "next" for one in node.targets)


def merged(counts: Path) -> tuple[set[str], set[str]]:
    """Lines with a signal in the designs that ran, and those that were executed.

    Parameters:
        counts: file of Verilator, with the name that a session gives it.

    Raises:
        BenchError: the simulator is no longer cached.
    """
    folder = build_folder() / "simulators" / counts.name.split("-")[0]
    marks: dict[str, dict[int, str]] = {}
    present: set[str] = set()
    executed: set[str] = set()
    for file in [*folder.glob("*.v"), *folder.glob("*.sv")]:
        text = file.read_text()
        marks[file.name] = marked_lines(text)
        executed |= constant_lines(text)
        present |= {*marks[file.name].values(), *constant_lines(text)}
    if not marks:
        raise BenchError(f"{counts}: its simulator is not in {folder}; measure it again")
    for text in counts.read_text(errors="replace").splitlines():
        if (point := _POINT.match(text)) and int(point[3]):
            lines = marks.get(Path(point[1]).name, {})
            executed |= {lines[number] for number in _numbers(point[2]) if number in lines}
    return present, executed


def _numbers(text: str) -> Iterator[int]:
    """Numbers in a list of ranges, such as ``4,7-9``."""
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def _run(test: str, folder: Path) -> list[str]:
    """Lines that ``test`` reaches: ``+`` before those executed, ``-`` before the others.

    A file in ``folder`` has them, after a hash of all sources; while these are the same, the test
    is not run again.
    """
    name = re.sub(r"\W+", "-", test)
    result = folder / f"{name}.lines"
    sources = f"= {source_digest(_SOURCES)}"
    if result.is_file():
        first, *lines = result.read_text().splitlines()
        if first == sources:
            return lines
    raw = folder / name
    which = "slow" if test in _SLOW else "not slow"
    say(test)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-m", which, test],
        cwd=ROOT,
        env={**os.environ, VARIABLE: str(raw), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise BenchError(f"{test}: {last_line(done.stdout)}")
    present: set[str] = set()
    executed: set[str] = set()
    for counts in raw.glob("*.dat"):
        designed, ran = merged(counts)
        present |= designed
        executed |= ran
        counts.unlink()
    for noted in raw.glob("*.lines"):
        marks = noted.read_text().splitlines()
        present |= {mark[1:] for mark in marks}
        executed |= {mark[1:] for mark in marks if mark[0] == "+"}
        noted.unlink()
    lines = [f"{'-+'[one in executed]}{one}" for one in sorted(present)]
    write_file(result, "".join(f"{line}\n" for line in [sources, *lines]))
    return lines


def _missing(file: Path, present: Set[str], executed: Set[str]) -> tuple[int, list[int]]:
    """Number of lines of ``file`` under a condition, and those of them that never ran."""
    name = file.relative_to(ROOT).as_posix()
    if name in _OF_COVERAGE:
        return 0, []

    def places(line: _Line) -> Iterator[str]:
        return (f"{name}:{number}" for number in range(line.first, line.last + 1))

    lines = guarded_lines(file)
    missing = []
    for line in lines:
        own = [place for place in places(line) if place in present]
        where = own or ([f"{name}:{line.guard}"] if line.guard else [])
        if not any(place in executed for place in where):
            missing.append(line.first)
    inside = {place for line in lines for place in places(line)}
    # What a function assigns for its caller is under the caller's condition.
    called = {one for one in present if one.startswith(f"{name}:")} - inside
    missing += sorted(int(one.rpartition(":")[2]) for one in called - executed)
    return len(lines) + len(called), missing


@experiment(tools=SIMULATION, minutes=60)
def coverage() -> Iterator[Measurement]:
    """Lines of hardware under a condition, and bins of crosses, that cosimulations reach.

    They are those of some tests; none is run again while all sources of hardware, isa,
    microkernels, sim_tb, support and of their tests are the same. What is not reached is listed in
    ``coverage/missing.txt`` of the cache folder.

    Example: vip bench coverage
    """
    folder = build_folder() / "coverage"
    folder.mkdir(parents=True, exist_ok=True)
    present: set[str] = set()
    executed: set[str] = set()
    for test in _TESTS:
        for line in _run(test, folder):
            present.add(line[1:])
            if line[0] == "+":
                executed.add(line[1:])
    report = []
    totals = Counter[str]()
    for one in sorted(one for one in present if one.startswith("bin:")):
        name = one.removeprefix("bin:").replace("_", " ")
        cross = name.partition(" ")[0]
        reason = next((why for how, why in _UNREACHABLE.items() if re.fullmatch(how, name)), "")
        if reason and one in executed:
            raise BenchError(f"{name} was reached, though {reason}")
        totals[f"{cross}_unreachable"] += bool(reason)
        totals[f"{cross}_bins"] += not reason
        totals[f"{cross}_reached"] += one in executed
        if not reason and one not in executed:
            report.append(f"{name}\n")
    for room in ROOMS:
        for file in sorted((ROOT / room).rglob("*.py")):
            count, missing = _missing(file, present, executed)
            totals[f"{room}_lines"] += count
            totals[f"{room}_executed"] += count - len(missing)
            report += [f"{file.relative_to(ROOT)}:{line}\n" for line in missing]
    write_file(folder / "missing.txt", "".join(report))
    for cross in _CROSSES:
        for what in ("bins", "reached", "unreachable"):
            figure = f"{cross}_{what}"
            yield Measurement(figure, totals[figure], "bins", None, what == "reached")
    for room in ROOMS:
        yield Measurement(f"{room}_lines", totals[f"{room}_lines"], "lines", None)
        yield Measurement(f"{room}_executed", totals[f"{room}_executed"], "lines", None, True)
    lines, ran = (sum(totals[f"{room}_{what}"] for room in ROOMS) for what in ("lines", "executed"))
    yield Measurement("lines", lines, "lines", None)
    yield Measurement("executed_percent", 100 * ran / lines, "%", None, True)


@experiment(tools=(*SIMULATION, "pyosys"), minutes=150)
def mutants(units: str = ",".join(_UNITS)) -> Iterator[Measurement]:
    """Changes of one bit in the Verilog, and of components in Python, that make test notices.

    Changes of the Verilog run the simulations of their unit, those of Python all tests of their
    room, and count apart. Those that are proved to be equivalent, or are listed as such with the
    reason, don't count. Mutants are not tried again while the tests are the same.

    Example: vip bench mutants --units router
    """
    for name in units.split(","):
        if name not in _UNITS:
            raise BenchError(unknown("unit of mutants", name, _UNITS))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "counts.json"
        words = [sys.executable, "-m", "tests.mutation", *units.split(","), "--json", str(file)]
        with tool(words, cwd=ROOT, stderr=None if sys.stderr.isatty() else subprocess.PIPE) as done:
            _, errors = done.communicate()
        if done.returncode:
            raise BenchError(f"mutants: {last_line((errors or b'').decode())}")
        counts = json.loads(file.read_text())
    for unit, numbers in counts.items():
        yield Measurement(f"{unit}_mutants", numbers["mutants"], "mutants", None)
        yield Measurement(f"{unit}_different", numbers["different"], "mutants", None)
        yield Measurement(f"{unit}_killed", numbers["killed"], "mutants", None, True)
    total = Counter[str]()
    for unit, numbers in counts.items():
        total.update(numbers if unit != _PYTHON else {})
    yield Measurement("mutants", total["mutants"], "mutants", None)
    yield Measurement("different", total["different"], "mutants", None)
    if total["different"]:
        score = 100 * total["killed"] / total["different"]
        yield Measurement("killed_percent", score, "%", None, True)


@experiment(minutes=60)
def bad_inputs(
    inputs: Annotated[int, typer.Option(min=1, max=10**9, help="How many at most.")] = 10**6,
    minutes: Annotated[int, typer.Option(min=1, max=10**4, help="When to begin no more.")] = 4,
) -> Iterator[Measurement]:
    """Bad inputs of every option and file format: each is refused in one line.

    What earlier runs did counts, and the next inputs follow. An input that is answered wrongly is
    an error, and is tried again.

    Example: vip bench bad_inputs --minutes 600
    """
    log = build_folder() / "bad_inputs.json"
    log.parent.mkdir(parents=True, exist_ok=True)
    say("bad inputs")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.vip.bad_inputs", "--seed", "46", "--log", str(log)),
            *("--count", str(inputs), "--minutes", str(minutes)),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        wrong = [line for line in done.stdout.splitlines() if "VIOLATION" in line]
        if wrong:
            raise BenchError(f"{len(wrong)} wrong answers: {wrong[0]}")
        raise BenchError(f"bad_inputs: {last_line(done.stderr)}")
    parts = json.loads(log.read_text())
    yield Measurement("inputs", sum(part["count"] for part in parts), "inputs", None, True)
    yield Measurement("cpu_seconds", sum(part["seconds"] for part in parts), "s", None)
    yield Measurement("slowest", max(part["slowest"] for part in parts), "ms", None)
    yield Measurement(
        "commands", len({name for part in parts for name in part["called"]}), "", None
    )
